// SPDX-License-Identifier: Apache-2.0
// What the shader of a tree of element-wise nodes reads like. Numbers that change from node to node are
// push constants, so that trees of one form share a shader.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_TREE_SHADER_H
#define INF_BACKENDS_VULKAN_PROGRAM_TREE_SHADER_H

#include "backends/vulkan/program/element_tree.h"

// Writes the GLSL; `half`: some operands are in 16 bits. *out_source is the caller's to free().
//
// INF_EXHAUSTED  memory.
enum inf_code vk_tree_shader_write(char **out_source, const struct vk_lowering *lowering,
                                   const struct vk_element_tree *tree, bool half,
                                   struct inf_error *err) INF_NODISCARD;

#endif
