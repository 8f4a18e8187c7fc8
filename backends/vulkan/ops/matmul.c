// SPDX-License-Identifier: Apache-2.0
// Products of matrices. A product with a constant matrix is lowered to a convolution with one tap.
#include "backends/vulkan/ops/conv.h"
#include "backends/vulkan/ops/ops.h"

// The push constants of matmul.comp.
struct product {
    uint32_t count;
    uint32_t m, n, k;
    uint32_t a_row, a_column, b_row, b_column;
    uint32_t batch_axes;
    uint32_t batch_dims[BATCH_AXES];
    uint32_t a_batch[BATCH_AXES], b_batch[BATCH_AXES];
    float low, high;
};
_Static_assert(sizeof(struct product) == 92, "as matmul.comp");

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

// Returns the size of a batch axis of an operand. Batch axes are counted backwards: `axis` 0 is the
// last one.
static uint32_t batch_dim(const struct inf_shape *shape, int32_t axis)
{
    int32_t own = shape->rank - 3 - axis;
    return own < 0 ? 1 : (uint32_t)shape->dims[own];
}

static enum inf_code fill_batch(const struct vk_lowering *lowering, struct product *product,
                                struct inf_error *err)
{
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    if (y->rank - 2 > BATCH_AXES)
        return vk_decline(lowering, err, "more than %d batch axes are not built", BATCH_AXES);
    uint32_t a_step = product->m * product->k, b_step = product->k * product->n;
    for (int32_t axis = 0; axis < y->rank - 2; axis++) {
        uint32_t a_dim = batch_dim(a, axis), b_dim = batch_dim(b, axis);
        product->batch_dims[axis] = batch_dim(y, axis);
        product->a_batch[axis] = a_dim == 1 ? 0 : a_step;
        product->b_batch[axis] = b_dim == 1 ? 0 : b_step;
        a_step *= a_dim;
        b_step *= b_dim;
        product->batch_axes++;
    }
    return INF_OK;
}

enum inf_code vk_lower_matmul(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_matmul *attrs = &lowering->node->attrs.matmul;
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    INF_TRY(vk_need_f32(lowering, 0, err));
    if (a->rank < 2 || b->rank < 2 || y->rank < 2)
        return vk_decline(lowering, err, "operands of rank 1 are not built");
    struct product product = {.m = (uint32_t)y->dims[y->rank - 2],
                              .n = (uint32_t)y->dims[y->rank - 1],
                              .k = (uint32_t)a->dims[a->rank - (attrs->transpose_a ? 2 : 1)]};
    uint32_t m = product.m, n = product.n, k = product.k;
    if (!attrs->transpose_a && inf_graph_is_const(lowering->graph, lowering->node->inputs[1]) &&
        inf_shape_elements(b) == (size_t)k * n)
        return lower_constant(lowering, vk_dims_product(y, 0, y->rank - 1), k, n, err);
    struct vk_activation activation = vk_node_activation(lowering->node);
    if (activation.prelu || activation.function == UINT32_MAX)
        return vk_decline(lowering, err, "this activation is not built");
    product.a_row = attrs->transpose_a ? 1 : k;
    product.a_column = attrs->transpose_a ? m : 1;
    product.b_row = attrs->transpose_b ? 1 : n;
    product.b_column = attrs->transpose_b ? k : 1;
    product.low = activation.low;
    product.high = activation.high;
    INF_TRY(fill_batch(lowering, &product, err));
    product.count = vk_dims_product(y, 0, y->rank - 2) * ((m + 3) / 4) * ((n + 3) / 4);
    bool bias = vk_has_input(lowering, 2);
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_MATMUL, {activation.function, bias}},
                                   .invocations = product.count,
                                   .cost = (uint64_t)vk_dims_product(y, 0, y->rank) * k};
    vk_set_push_constants(&dispatch, &product, sizeof(product));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[1], err));
    // If there is no bias, bind another operand in its place, because the binding must not be
    // empty. The shader does not read it.
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[bias ? 2 : 1], err));
    for (uint32_t i = 0; i < 3; i++)
        vk_read_through_view(lowering, &dispatch, i, false);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, err);
}
