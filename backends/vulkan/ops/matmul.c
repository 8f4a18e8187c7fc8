// SPDX-License-Identifier: Apache-2.0
// Products of matrices. A product with a constant matrix is lowered to a convolution with one tap.
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/ops.h"

// Lowers a product a * b with constant b to a convolution with one tap, whose pixels are the rows
// of a.
static enum inf_code lower_constant(struct vk_lowering *lowering, uint32_t rows, uint32_t k,
                                    uint32_t n, struct inf_error *err)
{
    struct vk_conv conv = {.activation = vk_node_activation(lowering->node), .bias_index = 2};
    vk_conv_init_rows(&conv, rows, k, n, lowering->node->attrs.matmul.transpose_b);
    conv.weights.from = vk_const_data(lowering, 1);
    return vk_emit_conv(lowering, &conv, err);
}

// Products with fewer rows or columns than this are not computed in blocks, because most of a block
// would be computed in vain.
#define BLOCK_SIDE_MIN 8u

// Returns true if the product may be computed in 16 bits. The precision must allow it. An operand
// or the result must be 16-bit, because otherwise the shaders cannot report numbers that do not fit
// in 16 bits. In a race the operands are 16-bit.
static bool may_use_half(const struct vk_lowering *lowering)
{
    const struct inf_node *node = lowering->node;
    bool half = lowering->candidates != NULL;
    for (uint32_t i = 0; lowering->lowered != NULL && i < node->input_count; i++)
        half |= vk_has_input(lowering, i) && lowering->lowered[node->inputs[i]];
    if (lowering->lowered != NULL)
        half |= lowering->lowered[node->outputs[0]];
    return lowering->half_weights && lowering->gpu->half_arithmetic && half;
}

// Chooses the shader for a product of two tensors. The rule is matmul.comp, which was measured on
// llvmpipe. Only races choose the other shaders.
static struct vk_shader_choice choose_shader(const struct vk_lowering *lowering,
                                             const struct vk_product *product)
{
    static const struct vk_shader_choice squares = {VK_BY_SQUARES, 0, 0};
    static const struct vk_shader_choice blocks[] = {{VK_BY_BLOCKS, 2, 1},
                                                     {VK_BY_BLOCKS, 4, 1},
                                                     {VK_BY_BLOCKS, 4, 2},
                                                     {VK_BY_BLOCKS, 8, 2},
                                                     {VK_BY_BLOCKS, 4, 4}};
    static const struct vk_shader_choice half[] = {
        {VK_BY_BLOCKS_F16, 4, 1}, {VK_BY_BLOCKS_F16, 4, 2}, {VK_BY_BLOCKS_F16, 8, 2},
        {VK_BY_MATRICES, 1, 1},   {VK_BY_MATRICES, 2, 1},   {VK_BY_MATRICES, 2, 2},
        {VK_BY_MATRICES, 2, 4}};
    struct vk_shader_choice list[VK_SHADER_CANDIDATES];
    const struct vk_product_push *push = &product->push;
    uint32_t count = 0;
    bool blocked = INF_MIN(push->m, push->n) >= BLOCK_SIDE_MIN;
    list[count++] = squares;
    for (uint32_t i = 0; blocked && i < INF_ARRAY_LENGTH(blocks); i++)
        list[count++] = blocks[i];
    for (uint32_t i = 0; blocked && may_use_half(lowering) && i < INF_ARRAY_LENGTH(half); i++)
        if (half[i].method != VK_BY_MATRICES || vk_can_use_matrices(lowering->gpu, &half[i]))
            list[count++] = half[i];
    // Bias and activation hardly change which shader is fastest.
    struct {
        struct vk_product_push push;
        uint32_t batch, half;
    } parts = {*push, product->batch, lowering->half_weights};
    parts.push.low = parts.push.high = 0;
    uint64_t key = vk_shader_key(lowering, &parts, sizeof parts);
    if (lowering->candidates != NULL && key != 0) {
        lowering->candidates->subject = VK_RACE_PRODUCT;
        lowering->candidates->product = *product;
    }
    return vk_shader_choose(lowering, key, squares, list, count);
}

// Emits matmul.comp.
static enum inf_code emit_squares(struct vk_lowering *lowering, const struct vk_product *product,
                                  struct inf_error *err)
{
    struct vk_product_push push = product->push;
    push.count = product->batch * ((push.m + 3) / 4) * ((push.n + 3) / 4);
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_MATMUL, {product->function, product->bias}},
        .invocations = push.count,
        .cost = (uint64_t)product->batch * push.m * push.n * push.k};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    INF_TRY(vk_product_bind(lowering, &dispatch, product, false, false, err));
    return vk_emit_dispatch(lowering, &dispatch, vk_loop(push.k, VK_NO_LOOPS).run, err);
}

enum inf_code vk_lower_matmul(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_matmul *attrs = &lowering->node->attrs.matmul;
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    struct vk_product product;
    bool built = false;
    INF_TRY(vk_need_f32(lowering, 0, err));
    if (a->rank < 2 || b->rank < 2 || y->rank < 2)
        return vk_decline(lowering, err, "operands of rank 1 are not built");
    uint32_t n = (uint32_t)y->dims[y->rank - 1];
    uint32_t k = (uint32_t)a->dims[a->rank - (attrs->transpose_a ? 2 : 1)];
    if (!attrs->transpose_a && inf_graph_is_const(lowering->graph, lowering->node->inputs[1]) &&
        inf_shape_elements(b) == (size_t)k * n)
        return lower_constant(lowering, vk_dims_product(y, 0, y->rank - 1), k, n, err);
    INF_TRY(vk_product_describe(lowering, &product, err));
    struct vk_shader_choice choice = choose_shader(lowering, &product);
    if (choice.method != VK_BY_SQUARES)
        INF_TRY(vk_emit_pair(lowering, &product, &choice, &built, err));
    return built ? INF_OK : emit_squares(lowering, &product, err);
}
