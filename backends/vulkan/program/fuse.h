// SPDX-License-Identifier: Apache-2.0
// Trees of element-wise nodes that one dispatch computes, of which nothing but the result is stored. Their
// shaders are written and compiled while models are loaded, and kept on disk.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_FUSE_H
#define INF_BACKENDS_VULKAN_PROGRAM_FUSE_H

#include "backends/vulkan/program/kernel.h"

// Nodes of a tree: each has two parameters in the push constants.
#define VK_TREE_NODES 12

// Values from outside of it: one binding is the result's.
#define VK_TREE_OPERANDS (VK_BINDINGS_MAX - 1)

struct vk_tree {
    uint32_t nodes[VK_TREE_NODES]; // those that make values before those that read them
    uint32_t node_count;
    uint32_t values[VK_TREE_OPERANDS];
    uint32_t modes[VK_TREE_OPERANDS]; // MODE_FLAT, MODE_SCALAR or MODE_ROW
    uint32_t rows[VK_TREE_OPERANDS];  // vectors in a row
    uint32_t value_count;
};

// Whether node `node` of the graph is one of the segment's.
bool vk_segment_has(const struct inf_segment *segment, uint32_t node);

// The one node of the segment that reads what `node` makes, however often, if nothing else does; INF_NODE_NONE too where
// the segment does not tell readers.
uint32_t vk_sole_reader(const struct inf_segment *segment, uint32_t node);

// Makes the dispatches of a step of the lowering's node: of that, and of what is computed on the way to it. None
// where it is computed at another's.
enum inf_code vk_lower_step(struct vk_lowering *lowering, const struct inf_segment *segment,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// The backend's entry: the node at whose step `node` is computed as well.
uint32_t vk_fused_into(struct inf_device *device, const struct inf_segment *segment, uint32_t node);

// The tree of two nodes or more that is computed at the step of `node`, which no other tree has. False
// where there is none.
bool vk_tree_find(struct vk_tree *tree, struct vk_gpu *gpu, const struct inf_segment *segment,
                  uint32_t node);

// Makes the dispatch of a tree whose last node is the lowering's.
//
// INF_UNSUPPORTED  its shader cannot be built; nothing is fused on this GPU from then on.
enum inf_code vk_lower_tree(struct vk_lowering *lowering, const struct vk_tree *tree,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
