// SPDX-License-Identifier: Apache-2.0
// Describes a product of two tensors for all shaders that can compute it. matmul.c chooses the
// shader.
#ifndef INF_BACKENDS_VULKAN_OPS_PRODUCT_H
#define INF_BACKENDS_VULKAN_OPS_PRODUCT_H

#include "backends/vulkan/lowering/lowering.h"

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

// Describes the product of two tensors that the node computes.
//
// INF_UNSUPPORTED  too many batch axes, or an activation that no shader has.
enum inf_code vk_product_describe(const struct vk_lowering *lowering, struct vk_product *product,
                                  struct inf_error *err) INF_NODISCARD;

// Binds the operands and the result to the dispatch of a shader. `a_vector` and `b_vector` say
// whether the shader reads vectors of four numbers of a and b.
enum inf_code vk_product_bind(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              const struct vk_product *product, bool a_vector, bool b_vector,
                              struct inf_error *err) INF_NODISCARD;

#endif
