// SPDX-License-Identifier: Apache-2.0
// Run options: the precision and the threads of an executable. They do not include the graph and
// the devices.
#ifndef INF_BACKENDS_EXEC_RUN_OPTIONS_H
#define INF_BACKENDS_EXEC_RUN_OPTIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/precision.h"
#include "backends/device/kernel_races.h"

// Options of an executable. A zeroed struct means: fp32, all threads, no pinned nodes.
struct inf_run_options {
    enum inf_precision precision; // precision of nodes on devices that support it; AUTO: fp32
    // Threads of runs on the first device; 0: all threads of the device.
    uint32_t threads;
    // Hashes (inf_node_hash()) of the nodes that are computed in fp32 regardless of `precision`.
    // Borrowed.
    const uint64_t *pinned;
    uint32_t pinned_count;
    // Read between the steps of a compilation; if the flag is true, the compilation fails with
    // INF_CANCELLED. The caller keeps the flag until the compilation returns. NULL: the compilation
    // cannot be cancelled.
    const atomic_bool *cancelled;
    // The number of the user whose request needs the executable, plus 1. 0: the daemon itself needs
    // the executable, and no budget of a user limits it. Used only while compiling.
    uint64_t user;
    // Bytes that the buffers of the executable may have; 0: no bound.
    uint64_t buffer_bytes_max;
    // Bytes of intermediate results that one run may need (request_memory_max); 0: no bound.
    uint64_t run_bytes_max;
    // Bytes that memory_max leaves for the intermediate results; 0: no bound.
    uint64_t room_bytes;
    struct inf_kernel_races races; // whether kernels race during the compilation
};

// Returns `options` with AUTO replaced by FP32, because executables treat AUTO as FP32.
struct inf_run_options inf_run_options_resolve(struct inf_run_options options);

// Returns true if precision and threads are equal; the other members are not compared. AUTO
// differs from FP32, so call inf_run_options_resolve() first if either may be AUTO.
bool inf_run_options_equal(const struct inf_run_options *a, const struct inf_run_options *b);

#endif
