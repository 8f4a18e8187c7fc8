// SPDX-License-Identifier: Apache-2.0
// The product of two tensors that is being lowered, shared by all its shaders. matmul.c chooses the
// shader.
#ifndef INF_BACKENDS_VULKAN_OPS_PRODUCT_H
#define INF_BACKENDS_VULKAN_OPS_PRODUCT_H

#include "backends/vulkan/lowering/lowering.h"

struct vk_shader_choice;

// The push constants of shaders/lib/product.glsl.
struct vk_product_push {
    uint32_t count;
    uint32_t m, n, k;
    uint32_t a_row, a_column, b_row, b_column;
    uint32_t batch_axes;
    uint32_t batch_dims[BATCH_AXES];
    uint32_t a_batch[BATCH_AXES], b_batch[BATCH_AXES];
    float low, high;
};
_Static_assert(sizeof(struct vk_product_push) == 92, "as lib/product.glsl");

// A batch of products y = a * b + bias, each of an m x k matrix with a k x n matrix.
struct vk_product {
    struct vk_product_push push;
    uint32_t batch;    // number of products
    uint32_t function; // of the activation, one of FN_*
    bool bias;
};

// Emits conv_block.comp or conv_matrix.comp for two tensors, with the sizes of the choice. If the
// driver cannot build it, emits nothing and sets *out_built to false.
enum inf_code vk_emit_pair(struct vk_lowering *lowering, const struct vk_product *product,
                           const struct vk_shader_choice *choice, bool *out_built,
                           struct inf_error *err) INF_NODISCARD;

#endif
