// SPDX-License-Identifier: Apache-2.0
// Lowers one node to dispatches.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_LOWER_NODE_H
#define INF_BACKENDS_VULKAN_PROGRAM_LOWER_NODE_H

#include "backends/vulkan/lowering/lowering.h"

// Checks the types and sizes of the node's values, then calls the lowering function of its
// operator.
enum inf_code vk_lower_node(struct vk_lowering *lowering, struct inf_error *err) INF_NODISCARD;

#endif
