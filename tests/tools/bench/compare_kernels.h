// SPDX-License-Identifier: Apache-2.0
// The kernels of the cpu device against each other.
#ifndef INF_TESTS_TOOLS_BENCH_COMPARE_KERNELS_H
#define INF_TESTS_TOOLS_BENCH_COMPARE_KERNELS_H

#include "backends/exec/executable.h"

// Prints a line for each node of the plan that several kernels of `device` compute: what each takes at
// least, alone, the rule's first; and a line for each chain of nodes, and each stream of chains, that one
// step may compute: what it takes as one, and in pieces.
//
// INF_UNSUPPORTED  it is no cpu device.
enum inf_code tool_compare_kernels(struct inf_device *device,
                                   const struct inf_executable *executable,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
