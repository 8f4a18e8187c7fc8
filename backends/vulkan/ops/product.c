// SPDX-License-Identifier: Apache-2.0
// Describes a product of two tensors, and binds its operands to the dispatch of a shader.
#include "backends/vulkan/ops/product.h"

#include "backends/vulkan/ops/ops.h"

// Returns the size of a batch axis of an operand. Batch axes are counted backwards: `axis` 0 is the
// last one.
static uint32_t batch_dim(const struct inf_shape *shape, int32_t axis)
{
    int32_t own = shape->rank - 3 - axis;
    return own < 0 ? 1 : (uint32_t)shape->dims[own];
}

// Describes where the matrices of the batch begin in a and b.
static enum inf_code fill_batch(const struct vk_lowering *lowering, struct vk_product *product,
                                struct inf_error *err)
{
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    struct vk_product_push *push = &product->push;
    if (y->rank - 2 > BATCH_AXES)
        return vk_decline(lowering, err, "more than %d batch axes are not built", BATCH_AXES);
    uint32_t a_step = push->m * push->k, b_step = push->k * push->n;
    for (int32_t axis = 0; axis < y->rank - 2; axis++) {
        uint32_t a_dim = batch_dim(a, axis), b_dim = batch_dim(b, axis);
        push->batch_dims[axis] = batch_dim(y, axis);
        push->a_batch[axis] = a_dim == 1 ? 0 : a_step;
        push->b_batch[axis] = b_dim == 1 ? 0 : b_step;
        a_step *= a_dim;
        b_step *= b_dim;
        push->batch_axes++;
    }
    product->batch = vk_dims_product(y, 0, y->rank - 2);
    return INF_OK;
}

enum inf_code vk_product_describe(const struct vk_lowering *lowering, struct vk_product *product,
                                  struct inf_error *err)
{
    const struct inf_attrs_matmul *attrs = &lowering->node->attrs.matmul;
    const struct inf_shape *a = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    struct vk_activation activation = vk_node_activation(lowering->node);
    if (activation.prelu || activation.function == UINT32_MAX)
        return vk_decline(lowering, err, "this activation is not built");
    uint32_t m = (uint32_t)y->dims[y->rank - 2], n = (uint32_t)y->dims[y->rank - 1];
    uint32_t k = (uint32_t)a->dims[a->rank - (attrs->transpose_a ? 2 : 1)];
    *product = (struct vk_product){.push = {.m = m,
                                            .n = n,
                                            .k = k,
                                            .a_row = attrs->transpose_a ? 1 : k,
                                            .a_column = attrs->transpose_a ? m : 1,
                                            .b_row = attrs->transpose_b ? 1 : n,
                                            .b_column = attrs->transpose_b ? k : 1,
                                            .low = activation.low,
                                            .high = activation.high},
                                   .function = activation.function,
                                   .bias = vk_has_input(lowering, 2)};
    return fill_batch(lowering, product, err);
}

enum inf_code vk_product_bind(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              const struct vk_product *product, bool a_vector, bool b_vector,
                              struct inf_error *err)
{
    const struct inf_node *node = lowering->node;
    INF_TRY(vk_bind_value(lowering, dispatch, node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, dispatch, node->inputs[1], err));
    // If there is no bias, bind another operand in its place, because the binding must not be
    // empty. The shader does not read it.
    INF_TRY(vk_bind_value(lowering, dispatch, node->inputs[product->bias ? 2 : 1], err));
    vk_read_through_view(lowering, dispatch, 0, a_vector);
    vk_read_through_view(lowering, dispatch, 1, b_vector);
    vk_read_through_view(lowering, dispatch, 2, false);
    return vk_bind_value(lowering, dispatch, node->outputs[0], err);
}
