// SPDX-License-Identifier: Apache-2.0
// Steps: groups of nodes that are computed by the same dispatches.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_LOWER_STEP_H
#define INF_BACKENDS_VULKAN_PROGRAM_LOWER_STEP_H

#include "backends/vulkan/lowering/lowering.h"

// Emits the dispatches for the step of the node in `lowering`, including all other nodes that the
// step computes. Emits nothing if the step of another node computes this node.
enum inf_code vk_lower_step(struct vk_lowering *lowering, const struct inf_segment *segment,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The `fused_into` function of struct inf_backend. Returns the node whose step also computes
// `node`; INF_NODE_NONE if `node` has its own step.
uint32_t vk_fused_into(struct inf_device *device, const struct inf_segment *segment, uint32_t node);

#endif
