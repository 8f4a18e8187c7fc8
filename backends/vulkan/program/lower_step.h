// SPDX-License-Identifier: Apache-2.0
// Steps: nodes that are lowered together.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_LOWER_STEP_H
#define INF_BACKENDS_VULKAN_PROGRAM_LOWER_STEP_H

#include "backends/vulkan/lowering/lowering.h"

// Emits the dispatches of the step of the lowering's node, with all nodes that the step computes.
// Emits nothing if another node's step computes it.
enum inf_code vk_lower_step(struct vk_lowering *lowering, const struct inf_segment *segment,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The `fused_into` entry of the backend: the node whose step also computes `node`; INF_NODE_NONE if
// it has its own.
uint32_t vk_fused_into(struct inf_device *device, const struct inf_segment *segment, uint32_t node);

#endif
