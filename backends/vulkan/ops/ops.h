// SPDX-License-Identifier: Apache-2.0
// The functions that lower nodes, one for each operator that has shaders.
#ifndef INF_BACKENDS_VULKAN_OPS_OPS_H
#define INF_BACKENDS_VULKAN_OPS_OPS_H

#include "backends/vulkan/lowering/lowering.h"

// Emits the dispatches of a node. All types and shapes are known, and no tensor is empty.
//
// INF_UNSUPPORTED  the node cannot be lowered; `err` gives the reason.
typedef enum inf_code vk_lower_fn(struct vk_lowering *lowering, struct inf_error *err);

vk_lower_fn vk_lower_unary, vk_lower_clip, vk_lower_binary, vk_lower_prelu, vk_lower_compare,
    vk_lower_select, vk_lower_cast;
vk_lower_fn vk_lower_conv2d, vk_lower_depthwise, vk_lower_conv2d_transpose, vk_lower_matmul,
    vk_lower_matmul_blocks;
vk_lower_fn vk_lower_pool, vk_lower_resize;
vk_lower_fn vk_lower_qconv2d, vk_lower_qmatmul, vk_lower_quantize, vk_lower_dequantize,
    vk_lower_lookup, vk_lower_qbinary;
vk_lower_fn vk_lower_reduce, vk_lower_arg, vk_lower_softmax, vk_lower_batch_norm,
    vk_lower_normalize;
vk_lower_fn vk_lower_copy, vk_lower_transpose, vk_lower_slice, vk_lower_concat, vk_lower_split,
    vk_lower_tile, vk_lower_broadcast, vk_lower_fill, vk_lower_space_to_depth,
    vk_lower_depth_to_space, vk_lower_pad, vk_lower_gather, vk_lower_gather_nd;

#endif
