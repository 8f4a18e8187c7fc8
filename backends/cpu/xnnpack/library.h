// SPDX-License-Identifier: Apache-2.0
// XNNPACK as a library: its initialisation, the flags of its operators, and its errors.
#ifndef INF_BACKENDS_CPU_XNNPACK_LIBRARY_H
#define INF_BACKENDS_CPU_XNNPACK_LIBRARY_H

#include "backends/cpu/core/kernel.h"

// Flags for every operator. Without XNN_FLAG_YIELD_WORKERS the pool's threads spin for a million
// iterations after each operator. If another process needs the cores, this makes the 99th
// percentile of run times ten times larger.
#define INF_XNN_FLAGS XNN_FLAG_YIELD_WORKERS

// Initialises XNNPACK with the counting allocator (counted_memory.h). Further calls do nothing. Any
// thread.
//
// INF_UNAVAILABLE  (NO_DEVICE) XNNPACK does not support this processor.
// INF_EXHAUSTED    no memory.
enum inf_code inf_xnn_init(struct inf_error *err) INF_NODISCARD;

// Returns INF_OK if XNNPACK's `status` is success, otherwise an error that names the node. `what`
// is the name of the XNNPACK operator.
enum inf_code inf_xnn_check(enum xnn_status status, const struct inf_node *node, const char *what,
                            struct inf_error *err) INF_NODISCARD;

#endif
