// SPDX-License-Identifier: Apache-2.0
// Compares the kernels of the cpu device with each other.
#ifndef INF_TESTS_TOOLS_KERNELS_COMPARE_KERNELS_H
#define INF_TESTS_TOOLS_KERNELS_COMPARE_KERNELS_H

#include "backends/exec/executable.h"

// Prints one line for each node of the plan that several kernels of `device` can compute: the
// shortest time of each kernel, run alone. The kernel that the device's rule prefers is first. Also
// prints one line for each fused chain and row pipeline: its time as one step, and as smaller
// steps.
//
// INF_UNSUPPORTED  `device` is not a cpu device.
enum inf_code tool_compare_kernels(struct inf_device *device,
                                   const struct inf_executable *executable,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
