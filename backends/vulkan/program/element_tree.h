// SPDX-License-Identifier: Apache-2.0
// Element-wise trees: element-wise nodes that one dispatch computes, so that only the result of the
// last node is stored. Their shaders are generated and compiled when models are loaded, and kept on
// disk.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_ELEMENT_TREE_H
#define INF_BACKENDS_VULKAN_PROGRAM_ELEMENT_TREE_H

#include "backends/vulkan/lowering/lowering.h"

// The most nodes in a tree. Each node has two parameters in the push constants.
#define VK_ELEMENT_TREE_NODES 12

// The maximum number of operands of a fused group of elementwise nodes (an element tree) that come
// from outside the group. One binding of the shader is reserved for the result.
#define VK_ELEMENT_TREE_OPERANDS (VK_BINDINGS_MAX - 1)

struct vk_element_tree {
    uint32_t nodes[VK_ELEMENT_TREE_NODES]; // ordered so that operands are computed first
    uint32_t node_count;
    uint32_t values[VK_ELEMENT_TREE_OPERANDS];
    // How each operand from outside is broadcast: MODE_FLAT, MODE_SCALAR or MODE_ROW.
    uint32_t modes[VK_ELEMENT_TREE_OPERANDS];
    // For MODE_ROW: length of the operand's row, in vectors of four elements.
    uint32_t rows[VK_ELEMENT_TREE_OPERANDS];
    uint32_t value_count;
};

// Finds the tree of at least two nodes whose last node is `node`. Returns false if there is none.
bool vk_element_tree_find(struct vk_element_tree *tree, struct vk_gpu *gpu,
                          const struct inf_segment *segment, uint32_t node);

// Returns the last node of the tree that contains `node`; the step of that last node computes
// `node`. Returns INF_NODE_NONE if `node` has its own step.
uint32_t vk_element_tree_step(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node);

// Emits the dispatch that computes a tree. `lowering` is the context of the tree's last node.
//
// INF_UNSUPPORTED  the shader cannot be built; from then on no trees are fused on this GPU.
enum inf_code vk_lower_element_tree(struct vk_lowering *lowering,
                                    const struct vk_element_tree *tree,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
