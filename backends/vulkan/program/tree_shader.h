// SPDX-License-Identifier: Apache-2.0
// The GLSL source of element-wise trees. Parameters of nodes are push constants, so that trees of
// the same form share one shader.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_TREE_SHADER_H
#define INF_BACKENDS_VULKAN_PROGRAM_TREE_SHADER_H

#include "backends/vulkan/program/element_tree.h"

// Writes the source; the caller frees *out_source. `half` is true if some operands are 16-bit.
//
// INF_EXHAUSTED  no memory.
enum inf_code vk_tree_shader_write(char **out_source, const struct vk_lowering *lowering,
                                   const struct vk_element_tree *tree, bool half,
                                   struct inf_error *err) INF_NODISCARD;

#endif
