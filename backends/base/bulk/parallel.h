// SPDX-License-Identifier: Apache-2.0
// Runs a piece of work on several cores, for loads: reading files, copying, transposing and packing
// weights. Runs of models have threads of their own (backends/cpu/core/team.h).
#ifndef INF_BACKENDS_BASE_BULK_PARALLEL_H
#define INF_BACKENDS_BASE_BULK_PARALLEL_H

#include <stddef.h>

#include "backends/base/role.h"

// Work that is cut into pieces, which are independent of each other.
struct inf_parallel {
    void (*run)(void *context, size_t piece); // any thread
    void *context;
    size_t pieces;
    // About how many bytes the whole work writes. Decides how many threads are worth starting.
    size_t bytes;
};

// There is one thread for each so many bytes, up to the number of cores and INF_PARALLEL_THREADS.
#define INF_PARALLEL_THREAD_BYTES ((size_t)1 << 20)
#define INF_PARALLEL_THREADS      8u

// Runs all pieces, each once, and returns when they are done. The calling thread takes part. The
// other threads are started for this call with the scheduling priority that the calling thread has
// then: a load at low priority takes no core from requests. A later change of the caller's priority
// does not reach them. If the system refuses a thread, the others do its work.
void inf_parallel_run(const struct inf_parallel *work) INF_MAY_BLOCK;

#endif
