// SPDX-License-Identifier: Apache-2.0
// Steps: the nodes that are lowered together.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_LOWER_STEP_H
#define INF_BACKENDS_VULKAN_PROGRAM_LOWER_STEP_H

#include "backends/vulkan/lowering/lowering.h"

// Makes the dispatches of a step of the lowering's node: of that, and of what is computed on the way to it. None
// where it is computed at another's.
enum inf_code vk_lower_step(struct vk_lowering *lowering, const struct inf_segment *segment,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The backend's entry: the node at whose step `node` is computed as well.
uint32_t vk_fused_into(struct inf_device *device, const struct inf_segment *segment, uint32_t node);

#endif
