// SPDX-License-Identifier: Apache-2.0
// Pipelines are what loading a model takes longest, and drivers make several at once.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_COMPILE_AHEAD_H
#define INF_BACKENDS_VULKAN_PROGRAM_COMPILE_AHEAD_H

#include "backends/vulkan/lowering/lowering.h"

// Makes the pipelines that a segment will need, and the shaders of its trees, on as many threads as the
// process may use cores, as far as that is known without its weights. What cannot be made is left to
// whoever makes the program, who finds out the same and can tell.
void vk_compile_ahead(struct vk_device *device, const struct inf_segment *segment) INF_MAY_BLOCK;

#endif
