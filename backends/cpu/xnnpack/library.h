// SPDX-License-Identifier: Apache-2.0
// XNNPACK as a library: starting it, the flags of its operators, and its errors.
#ifndef INF_BACKENDS_CPU_XNNPACK_LIBRARY_H
#define INF_BACKENDS_CPU_XNNPACK_LIBRARY_H

#include "backends/cpu/core/kernel.h"

// Flags of every operator. Without YIELD_WORKERS the pool's threads spin a million rounds after each: as
// soon as another process wants the cores, the slowest hundredth takes ten times longer.
#define INF_XNN_FLAGS XNN_FLAG_YIELD_WORKERS

// Starts XNNPACK with an allocator that counts. May be called again; any thread.
//
// INF_UNAVAILABLE  (NO_DEVICE) it does not work on this processor.
// INF_EXHAUSTED    memory.
enum inf_code inf_xnn_init(struct inf_error *err) INF_NODISCARD;

// What XNNPACK's `status` means for the node; `what` is the name of its operator.
enum inf_code inf_xnn_check(enum xnn_status status, const struct inf_node *node, const char *what,
                            struct inf_error *err) INF_NODISCARD;

#endif
