// SPDX-License-Identifier: Apache-2.0
// Creates pipelines in parallel. Creating pipelines takes most of the time of loading a model, and
// drivers can create several at the same time.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_COMPILE_AHEAD_H
#define INF_BACKENDS_VULKAN_PROGRAM_COMPILE_AHEAD_H

#include "backends/vulkan/lowering/lowering.h"

// Creates the pipelines that a segment needs, and the shaders of its element-wise trees, on as many
// threads as the process may use cores. Pipelines that depend on the values of the weights may be
// missing; they are created with the program. Errors are ignored, because compiling the program
// finds and reports them again.
void vk_compile_ahead(struct vk_device *device, const struct inf_segment *segment) INF_MAY_BLOCK;

#endif
