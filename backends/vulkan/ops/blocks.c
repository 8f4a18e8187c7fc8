// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits in blocks (matmul_blocks). The weights become floats when
// they are uploaded, and the product is a convolution with one tap, as other products with constant
// matrices are. The device therefore holds four to sixteen times the bytes of the weights in the
// graph, or half of that if it keeps weights in 16 bits.
#include <stdlib.h>

#include "backends/vulkan/ops/conv.h"
#include "backends/vulkan/ops/conv_choice.h"
#include "backends/vulkan/ops/ops.h"

// A column has one zero point for each of its blocks. If they are bytes, their number is rounded up
// to a multiple of this.
#define ZERO_GROUP 4u

// The constant operands of a node.
struct blocks {
    const uint8_t *numbers;
    const float *scales;
    const void *zeros; // bytes or floats; NULL: 2^(bits - 1)
    bool zero_bytes;
    uint32_t bits, block;       // bits of a number, and numbers of a block
    uint32_t depth, per_column; // weights and blocks of a column
    uint32_t columns;
};

static float zero_of(const struct blocks *blocks, size_t column, size_t block)
{
    if (blocks->zeros == NULL)
        return (float)(1u << (blocks->bits - 1));
    if (!blocks->zero_bytes)
        return ((const float *)blocks->zeros)[column * blocks->per_column + block];
    size_t step = (blocks->per_column + ZERO_GROUP - 1) / ZERO_GROUP * ZERO_GROUP;
    return ((const uint8_t *)blocks->zeros)[column * step + block];
}

// Writes the weights to `to`, [columns][depth].
static void expand_weights(const struct blocks *blocks, float *to)
{
    size_t column_bits = (size_t)blocks->per_column * blocks->block * blocks->bits;
    uint32_t mask = (1u << blocks->bits) - 1;
    for (size_t column = 0; column < blocks->columns; column++)
        for (size_t k = 0; k < blocks->depth; k++) {
            size_t block = k / blocks->block, bit = column * column_bits + k * blocks->bits;
            uint32_t number = (uint32_t)blocks->numbers[bit / 8] >> bit % 8 & mask;
            *to++ = ((float)number - zero_of(blocks, column, block)) *
                    blocks->scales[column * blocks->per_column + block];
        }
}

static enum inf_code read_blocks(struct blocks *blocks, const struct vk_lowering *lowering,
                                 struct inf_error *err)
{
    const struct inf_attrs_matmul_blocks *attrs = &lowering->node->attrs.matmul_blocks;
    const struct inf_shape *x = vk_input_shape(lowering, 0), *w = vk_input_shape(lowering, 1);
    for (uint32_t i = 1; i < 4; i++)
        if (vk_has_input(lowering, i) &&
            !inf_graph_is_const(lowering->graph, lowering->node->inputs[i]))
            return vk_decline(lowering, err, "input %u is not constant", i);
    *blocks = (struct blocks){.numbers = vk_const_data(lowering, 1),
                              .scales = vk_const_data(lowering, 2),
                              .zeros = vk_const_data(lowering, 3),
                              .bits = (uint32_t)attrs->bits,
                              .block = (uint32_t)attrs->block,
                              .depth = (uint32_t)x->dims[x->rank - 1],
                              .per_column = (uint32_t)w->dims[1],
                              .columns = (uint32_t)w->dims[0]};
    blocks->zero_bytes = blocks->zeros != NULL && vk_input_dtype(lowering, 3) == INF_DTYPE_U8;
    // A vector of four columns is the unit of packed weights.
    uint64_t count = ((uint64_t)blocks->columns + 3) / 4 * 4 * blocks->depth;
    if (count * sizeof(float) > lowering->gpu->properties.limits.maxStorageBufferRange ||
        count > INT32_MAX / 4)
        return vk_decline(lowering, err,
                          "its weights have %zu bytes in fp32, more than can be bound",
                          (size_t)count * sizeof(float));
    return INF_OK;
}

enum inf_code vk_lower_matmul_blocks(struct vk_lowering *lowering, struct inf_error *err)
{
    struct blocks blocks = {0};
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    INF_TRY(read_blocks(&blocks, lowering, err));
    float *weights = NULL;
    if (lowering->list != NULL) {
        weights = malloc((size_t)blocks.columns * blocks.depth * sizeof *weights);
        if (weights == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "node '%s': no memory for its weights", lowering->node->name);
        expand_weights(&blocks, weights);
    }
    struct vk_conv conv = {.activation = {.function = FN_NONE}, .bias_index = 4};
    vk_conv_init_rows(&conv, vk_dims_product(y, 0, y->rank - 1), blocks.depth, blocks.columns,
                      true);
    conv.weights.from = weights;
    enum inf_code code = vk_emit_conv(lowering, &conv, err);
    free(weights);
    // The node gets no race candidates: a race checks results with the weights to which the
    // recorded convolution points, and these are freed here.
    if (lowering->candidates != NULL)
        *lowering->candidates = (struct vk_conv_candidates){0};
    return code;
}
