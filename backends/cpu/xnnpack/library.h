// SPDX-License-Identifier: Apache-2.0
// XNNPACK as a library: its start, the flags of its operators, and its errors.
#ifndef INF_BACKENDS_CPU_XNNPACK_LIBRARY_H
#define INF_BACKENDS_CPU_XNNPACK_LIBRARY_H

#include "backends/cpu/core/kernel.h"

// Flags of every operator. Without YIELD_WORKERS the pool's threads spin a million iterations after
// each operator. If another process needs the cores, the 99th percentile of run times then grows
// tenfold.
#define INF_XNN_FLAGS XNN_FLAG_YIELD_WORKERS

// Starts XNNPACK with the counting allocator. May be called again. Any thread.
//
// INF_UNAVAILABLE  (NO_DEVICE) XNNPACK does not support this processor.
// INF_EXHAUSTED    no memory.
enum inf_code inf_xnn_init(struct inf_error *err) INF_NODISCARD;

// Turns XNNPACK's `status` into an error that names the node. `what` is the name of its operator.
enum inf_code inf_xnn_check(enum xnn_status status, const struct inf_node *node, const char *what,
                            struct inf_error *err) INF_NODISCARD;

#endif
