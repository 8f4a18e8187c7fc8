// SPDX-License-Identifier: Apache-2.0
// Compares the shaders of a vulkan device with each other.
#ifndef INF_TESTS_TOOLS_KERNELS_COMPARE_SHADERS_H
#define INF_TESTS_TOOLS_KERNELS_COMPARE_SHADERS_H

#include "backends/exec/executable.h"

// Prints one line for each convolution and product with a constant matrix of the plan that several
// shaders of `device` can compute, once for each shape: the shortest time of each shader in us, run
// alone. The shader that the device's rule prefers is first, and the fastest one has an asterisk.
// "wrong" marks a shader whose results differ from sums in double, "-" one that did not run.
//
// INF_UNSUPPORTED  `device` is not a vulkan device.
enum inf_code tool_compare_shaders(struct inf_device *device,
                                   const struct inf_executable *executable,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
