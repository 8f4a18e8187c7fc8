// SPDX-License-Identifier: Apache-2.0
// Which kernel computes a node if several can: the first row of the table by rule, or the winner of
// a race that is run once for each kind of node.
#ifndef INF_BACKENDS_CPU_PROGRAM_KERNEL_SELECT_H
#define INF_BACKENDS_CPU_PROGRAM_KERNEL_SELECT_H

#include "backends/cpu/program/race_results.h"

// Sets *out_kernel, which is static, to the kernel that computes step->node. Only the members of
// `step` that are set before create() are read. Kernels race if several can compute the node, no
// winner is recorded, and the races so far have not used up their time. `results` NULL: by rule.
// Any thread that may block.
//
// INF_UNSUPPORTED  no row computes the node; the text says why.
enum inf_code inf_cpu_kernel_select(const struct inf_cpu_kernel **out_kernel,
                                    struct inf_cpu_race_results *results,
                                    const struct inf_cpu_step *step,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
