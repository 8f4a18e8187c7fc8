// SPDX-License-Identifier: Apache-2.0
// Checks shaders before a program uses them for the first time, because some drivers compile
// shaders that compute wrongly. For each step with a variant that was not checked on this driver,
// the GPU computes a sample (check_sample.h), and the results are compared with those of the
// reference device. Variants that compute wrongly are excluded. A variant whose results a race
// compared (shader_race.h) needs no check.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_SHADER_CHECK_H
#define INF_BACKENDS_VULKAN_PROGRAM_SHADER_CHECK_H

#include "backends/vulkan/program/program.h"

// The function compile() of struct inf_backend. Compiles the segment and checks its variants, if
// the GPU has an oracle. Failures such as a lack of memory leave a variant unchecked.
//
// INF_UNSUPPORTED  also: a variant computes wrongly and was excluded. Compile again: the nodes have
//                  other shaders, or the device declines them.
enum inf_code vk_program_compile_checked(struct inf_program **out_program,
                                         struct inf_device *device,
                                         const struct inf_segment *segment, uint32_t flags,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
