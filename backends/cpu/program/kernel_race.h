// SPDX-License-Identifier: Apache-2.0
// Races among the rows that compute a node, with operands of zeros.
#ifndef INF_BACKENDS_CPU_PROGRAM_KERNEL_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_KERNEL_RACE_H

#include "backends/base/role.h"
#include "backends/cpu/core/kernel.h"

// Fills least_ns of `count` candidates, the rows that compute step->node: each makes a step like `step`
// (of which only what is set before create() is looked at) on threads of its pool, and all run in turn for
// some 20 ms at most. A candidate that fails keeps 0.
//
// INF_EXHAUSTED  memory for operands.
enum inf_code inf_cpu_kernel_race_run(struct inf_cpu_candidate *candidates, uint32_t count,
                                      const struct inf_cpu_step *step,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_cpu_kernel_race_run() for a node of `graph`, whose shapes are known, on slot 0 of a cpu device that runs nothing;
// *out_count says how many rows compute it. For tools.
enum inf_code inf_cpu_kernel_race_node(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                                       uint32_t *out_count, struct inf_device *device,
                                       const struct inf_graph *graph, uint32_t node,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
