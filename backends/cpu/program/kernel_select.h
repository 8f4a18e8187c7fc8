// SPDX-License-Identifier: Apache-2.0
// Which row computes a node where several can: by rule the first, or whichever won a race, once for each
// kind of node.
#ifndef INF_BACKENDS_CPU_PROGRAM_KERNEL_CHOICE_H
#define INF_BACKENDS_CPU_PROGRAM_KERNEL_CHOICE_H

#include "backends/cpu/program/race_results.h"

// *out_kernel, static, computes step->node, of a step on which only what is set before create() is looked
// at. Rows race where several can, nobody knows yet who wins, and races have not taken too long already.
// `choices` NULL: by rule. Any thread that may block.
//
// INF_UNSUPPORTED  no row computes it; the text says why.
enum inf_code inf_cpu_kernel_select(const struct inf_cpu_kernel **out_kernel,
                                    struct inf_cpu_race_results *results,
                                    const struct inf_cpu_step *step,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
