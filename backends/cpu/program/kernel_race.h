// SPDX-License-Identifier: Apache-2.0
// Timing comparisons ("races") between the kernels that can compute a node, with operands of zeros.
#ifndef INF_BACKENDS_CPU_PROGRAM_KERNEL_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_KERNEL_RACE_H

#include "backends/cpu/core/kernel.h"
#include "backends/device/kernel_races.h"

// Times `count` candidates (kernels that can compute step->node) and sets their least_ns. Each
// candidate creates a step like `step`; only the members of `step` that are set before create() are
// read. All candidates run in turn for at most about 20 ms. Each turn waits for `gate` (NULL
// allowed). The time of a candidate that fails is 0.
//
// INF_EXHAUSTED  no memory for operands.
// INF_CANCELLED  the gate gave up.
enum inf_code inf_cpu_kernel_race_run(struct inf_cpu_candidate *candidates, uint32_t count,
                                      const struct inf_cpu_step *step, struct inf_race_gate *gate,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Times all kernels that can compute a node of `graph`, whose shapes are known, in the way of
// inf_cpu_kernel_race_run(). *out_count is the number of kernels. Runs on slot 0 of a cpu device
// that must be idle. Used by tools.
enum inf_code inf_cpu_kernel_race_node(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                                       uint32_t *out_count, struct inf_device *device,
                                       const struct inf_graph *graph, uint32_t node,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
