// SPDX-License-Identifier: Apache-2.0
// Selects the kernel for a node if several kernels can compute it: the first kernel of the table,
// or the winner of a timing comparison ("race") that is run once for each kind of node.
#ifndef INF_BACKENDS_CPU_PROGRAM_KERNEL_SELECT_H
#define INF_BACKENDS_CPU_PROGRAM_KERNEL_SELECT_H

#include "backends/cpu/program/race_key.h"
#include "backends/device/kernel_races.h"

// What a compilation knows of races, and whether it runs any.
struct inf_cpu_races {
    struct inf_race_results *results; // NULL: fixed rules choose
    struct inf_kernel_races how;
};

// Sets *out_kernel, which is static, to the kernel that computes step->node. Only the members of
// `step` that are set before create() are read. The candidates are timed if several kernels can
// compute the node, no winner is recorded, races->how allows a race, and the time budget for
// comparisons is not used up. Otherwise, without a winner, the first kernel that can compute the
// node is selected. Any thread that may block.
//
// INF_UNSUPPORTED  no kernel can compute the node; `err` gives the reason.
enum inf_code inf_cpu_kernel_select(const struct inf_cpu_kernel **out_kernel,
                                    const struct inf_cpu_races *races,
                                    const struct inf_cpu_step *step,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
