// SPDX-License-Identifier: Apache-2.0
// Run options: how an executable computes, apart from what it computes and on which devices.
#ifndef INF_BACKENDS_EXEC_RUN_OPTIONS_H
#define INF_BACKENDS_EXEC_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/precision.h"

// All zero: fp32, all threads, no pinned nodes.
struct inf_run_options {
    enum inf_precision precision; // of nodes on devices that offer it; AUTO: fp32
    uint32_t threads;             // of runs on the first device; 0: all threads of the device
    // inf_node_hash() of the nodes that are computed in fp32 whatever `precision` is. Borrowed.
    const uint64_t *pinned;
    uint32_t pinned_count;
};

// Returns `options` with AUTO replaced by FP32, which is what AUTO means to an executable.
struct inf_run_options inf_run_options_resolve(struct inf_run_options options);

// Returns whether precision and threads are equal; pinned nodes are not compared. AUTO differs from
// FP32: call inf_run_options_resolve() first if either may be AUTO.
bool inf_run_options_equal(const struct inf_run_options *a, const struct inf_run_options *b);

#endif
