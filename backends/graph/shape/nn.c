// SPDX-License-Identifier: Apache-2.0
// Shapes of the neural network operators.
#include "backends/graph/shape/rules.h"

// Checks that input `index`, if present, is [channels].
static enum inf_code check_per_channel(struct inf_infer *infer, uint32_t index, int64_t channels)
{
    if (!inf_infer_has_input(infer, index))
        return INF_OK;
    const struct inf_shape *shape = inf_infer_input(infer, index);
    int64_t merged;
    if (shape->rank < 0 || (shape->rank == 1 && inf_dim_merge(shape->dims[0], channels, &merged)))
        return INF_OK;
    char text[INF_SHAPE_TEXT_SIZE];
    return inf_shape_fault(infer,
                           "input %u has shape %s, wanted one element for each of %lld channels",
                           index, inf_shape_print(shape, text), (long long)channels);
}

// Checks the bias (input 2) and the alpha of prelu (input 3). Alpha is present only if the
// activation is prelu.
static enum inf_code check_bias_and_alpha(struct inf_infer *infer, enum inf_activation activation,
                                          int64_t channels)
{
    if ((activation == INF_ACTIVATION_PRELU) != inf_infer_has_input(infer, 3))
        return inf_fail(infer->err, INF_INVALID, "activation is %s %s an alpha input",
                        inf_activation_name(activation),
                        activation == INF_ACTIVATION_PRELU ? "without" : "and has");
    INF_TRY(check_per_channel(infer, 2, channels));
    return check_per_channel(infer, 3, channels);
}

enum inf_code inf_infer_window_count(struct inf_infer *infer, int axis, int64_t input,
                                     int64_t kernel, int64_t *output)
{
    const char *along = axis == 0 ? "rows" : "columns";
    *output = INF_DIM_UNKNOWN;
    if (kernel == 0)
        return inf_shape_fault(infer, "the window has no %s", along);
    if (input < 0 || kernel < 0)
        return INF_OK;
    struct inf_window_attrs attrs = inf_node_window_attrs(infer->node);
    struct inf_window window;
    if (!inf_window_resolve(&attrs, axis, input, kernel, &window))
        return inf_shape_fault(infer, "a window of %lld %s does not fit into %lld",
                               (long long)kernel, along, (long long)input);
    *output = window.output;
    return INF_OK;
}

enum inf_code inf_infer_conv2d(struct inf_infer *infer)
{
    const struct inf_attrs_conv2d *attrs = &infer->node->attrs.conv2d;
    struct inf_shape x;
    struct inf_shape filter;
    INF_TRY(inf_infer_image(infer, 0, &x));
    INF_TRY(inf_infer_image(infer, 1, &filter));
    int64_t group_channels = INF_DIM_UNKNOWN;
    if (x.dims[3] >= 0) {
        if (x.dims[3] % attrs->groups != 0)
            return inf_shape_fault(infer, "%lld channels do not divide into %d groups",
                                   (long long)x.dims[3], attrs->groups);
        group_channels = x.dims[3] / attrs->groups;
    }
    int64_t merged;
    if (!inf_dim_merge(group_channels, filter.dims[2], &merged))
        return inf_shape_fault(infer, "the filter is for %lld channels, its group has %lld",
                               (long long)filter.dims[2], (long long)group_channels);
    if (filter.dims[3] >= 0 && filter.dims[3] % attrs->groups != 0)
        return inf_shape_fault(infer, "%lld output channels do not divide into %d groups",
                               (long long)filter.dims[3], attrs->groups);
    INF_TRY(check_bias_and_alpha(infer, attrs->activation, filter.dims[3]));
    struct inf_shape y = {.rank = 4, .dims = {[0] = x.dims[0], [3] = filter.dims[3]}};
    INF_TRY(inf_infer_window_count(infer, 0, x.dims[1], filter.dims[0], &y.dims[1]));
    INF_TRY(inf_infer_window_count(infer, 1, x.dims[2], filter.dims[1], &y.dims[2]));
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_depthwise_conv2d(struct inf_infer *infer)
{
    struct inf_shape x;
    struct inf_shape filter;
    INF_TRY(inf_infer_image(infer, 0, &x));
    INF_TRY(inf_infer_image(infer, 1, &filter));
    int64_t channels;
    if (!inf_dim_merge(x.dims[3], filter.dims[2], &channels))
        return inf_shape_fault(infer, "the filter is for %lld channels, x has %lld",
                               (long long)filter.dims[2], (long long)x.dims[3]);
    struct inf_shape y = {.rank = 4, .dims = {x.dims[0]}};
    if (!inf_dim_product(channels, filter.dims[3], &y.dims[3]))
        return inf_shape_fault(infer, "%lld times %lld channels are too many", (long long)channels,
                               (long long)filter.dims[3]);
    INF_TRY(check_bias_and_alpha(infer, infer->node->attrs.depthwise_conv2d.activation, y.dims[3]));
    INF_TRY(inf_infer_window_count(infer, 0, x.dims[1], filter.dims[0], &y.dims[1]));
    INF_TRY(inf_infer_window_count(infer, 1, x.dims[2], filter.dims[1], &y.dims[2]));
    return inf_infer_output(infer, 0, &y);
}

// Reads operand 2, the list of output sizes that the model asks for, and merges it with the
// computed shape `y`. Fails if both are known and differ.
static enum inf_code take_output_shape(struct inf_infer *infer, struct inf_shape *y)
{
    struct inf_operand size;
    INF_TRY(inf_infer_operand(infer, 2, 0, &size));
    if (size.count != INF_DIM_UNKNOWN && size.count != 4)
        return inf_shape_fault(infer, "the output shape has %lld elements, wanted 4",
                               (long long)size.count);
    if (!size.known) {
        struct inf_shape listed = INF_SHAPE(-1, -1, -1, -1);
        inf_infer_partial(infer, 2, &listed);
        for (int32_t i = 1; i < 3; i++)
            y->dims[i] = listed.dims[i];
        return INF_OK;
    }
    for (int32_t i = 0; i < 4; i++) {
        // -1 means that the size is computed. Only batch and channels may be -1.
        bool computed = size.values[i] == -1 && (i == 0 || i == 3);
        if (size.values[i] < 0 && !computed)
            return inf_shape_fault(infer, "the output shape has %lld at %d",
                                   (long long)size.values[i], i);
        if (!inf_dim_merge(y->dims[i], size.values[i], &y->dims[i]))
            return inf_shape_fault(infer, "the output shape has %lld at %d, wanted %lld",
                                   (long long)size.values[i], i, (long long)y->dims[i]);
    }
    return INF_OK;
}

enum inf_code inf_infer_conv2d_transpose(struct inf_infer *infer)
{
    struct inf_shape x;
    struct inf_shape filter;
    INF_TRY(inf_infer_image(infer, 0, &x));
    INF_TRY(inf_infer_image(infer, 1, &filter));
    int64_t merged;
    if (!inf_dim_merge(x.dims[3], filter.dims[3], &merged))
        return inf_shape_fault(infer, "the filter is for %lld channels, x has %lld",
                               (long long)filter.dims[3], (long long)x.dims[3]);
    if (infer->node->attrs.conv2d_transpose.activation == INF_ACTIVATION_PRELU)
        return inf_fail(infer->err, INF_INVALID,
                        "activation prelu has no input to take alpha from");
    struct inf_shape y = {.rank = 4, .dims = {x.dims[0], -1, -1, filter.dims[2]}};
    INF_TRY(take_output_shape(infer, &y));
    INF_TRY(check_per_channel(infer, 3, y.dims[3]));
    INF_TRY(inf_infer_output(infer, 0, &y));
    for (int axis = 0; axis < 2; axis++) {
        // The size that a convolution of y with this window would give. It must equal the size of
        // x, because conv2d_transpose is the inverse direction.
        int64_t back;
        INF_TRY(inf_infer_window_count(infer, axis, y.dims[1 + axis], filter.dims[axis], &back));
        if (!inf_dim_merge(back, x.dims[1 + axis], &merged))
            return inf_shape_fault(infer, "an output of %lld %s comes from %lld, x has %lld",
                                   (long long)y.dims[1 + axis], axis == 0 ? "rows" : "columns",
                                   (long long)back, (long long)x.dims[1 + axis]);
    }
    return INF_OK;
}

enum inf_code inf_infer_product(struct inf_infer *infer, bool transpose_a, bool transpose_b,
                                struct inf_shape *y)
{
    const struct inf_shape *a = inf_infer_input(infer, 0);
    const struct inf_shape *b = inf_infer_input(infer, 1);
    char has_a[INF_SHAPE_TEXT_SIZE];
    char has_b[INF_SHAPE_TEXT_SIZE];
    if ((a->rank >= 0 && a->rank < 2) || (b->rank >= 0 && b->rank < 2))
        return inf_shape_fault(infer, "matrices %s and %s, wanted rank 2 or more",
                               inf_shape_print(a, has_a), inf_shape_print(b, has_b));
    int64_t columns = b->rank < 0 ? INF_DIM_UNKNOWN : b->dims[b->rank - (transpose_b ? 2 : 1)];
    y->rank = -1;
    if (a->rank < 0 || b->rank < 0)
        return INF_OK;
    int64_t depth;
    struct inf_shape batch_a = *a;
    struct inf_shape batch_b = *b;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!inf_dim_merge(a->dims[a->rank - (transpose_a ? 2 : 1)],
                       b->dims[b->rank - (transpose_b ? 1 : 2)], &depth) ||
        !inf_shape_broadcast(&batch_a, &batch_b, y))
        return inf_shape_fault(infer, "matrices %s and %s do not fit%s%s",
                               inf_shape_print(a, has_a), inf_shape_print(b, has_b),
                               transpose_a ? ", a transposed" : "",
                               transpose_b ? ", b transposed" : "");
    y->dims[y->rank++] = a->dims[a->rank - (transpose_a ? 1 : 2)];
    y->dims[y->rank++] = columns;
    return INF_OK;
}

enum inf_code inf_infer_matmul(struct inf_infer *infer)
{
    const struct inf_attrs_matmul *attrs = &infer->node->attrs.matmul;
    const struct inf_shape *b = inf_infer_input(infer, 1);
    struct inf_shape y;
    INF_TRY(inf_infer_product(infer, attrs->transpose_a, attrs->transpose_b, &y));
    int64_t columns =
        b->rank < 0 ? INF_DIM_UNKNOWN : b->dims[b->rank - (attrs->transpose_b ? 2 : 1)];
    INF_TRY(check_bias_and_alpha(infer, attrs->activation, columns));
    return y.rank < 0 ? INF_OK : inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_pool2d(struct inf_infer *infer)
{
    const struct inf_attrs_pool2d *attrs = &infer->node->attrs.pool2d;
    const int32_t kernel[] = {attrs->kernel_h, attrs->kernel_w};
    if (attrs->kind == INF_POOL_LP)
        return inf_fail(infer->err, INF_INVALID, "kind is lp, wanted max or average");
    struct inf_window_attrs window = inf_node_window_attrs(infer->node);
    struct inf_shape x;
    INF_TRY(inf_infer_image(infer, 0, &x));
    struct inf_shape y = x;
    for (int axis = 0; axis < 2; axis++) {
        // Refuse windows that cover only padding, because they would have no maximum and no mean.
        if (window.padding == INF_PADDING_EXPLICIT &&
            (window.pad_before[axis] >= kernel[axis] || window.pad_after[axis] >= kernel[axis]))
            return inf_shape_fault(infer, "padding of %d and %d, wanted less than the window's %d",
                                   window.pad_before[axis], window.pad_after[axis], kernel[axis]);
        INF_TRY(
            inf_infer_window_count(infer, axis, x.dims[1 + axis], kernel[axis], &y.dims[1 + axis]));
        if (x.dims[1 + axis] == 0 && y.dims[1 + axis] > 0)
            return inf_shape_fault(infer, "x has no %s", axis == 0 ? "rows" : "columns");
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_batch_norm(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank == 0)
        return inf_shape_fault(infer, "x is a scalar, wanted rank 1 or more");
    int64_t channels = x->rank < 0 ? INF_DIM_UNKNOWN : x->dims[x->rank - 1];
    for (uint32_t i = 1; i < 5; i++)
        INF_TRY(check_per_channel(infer, i, channels));
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_resize(struct inf_infer *infer)
{
    const struct inf_attrs_resize *attrs = &infer->node->attrs.resize;
    if (attrs->align_corners && attrs->half_pixel_centers)
        return inf_fail(infer->err, INF_INVALID,
                        "align_corners and half_pixel_centers exclude each other");
    struct inf_shape x;
    struct inf_operand size;
    INF_TRY(inf_infer_image(infer, 0, &x));
    INF_TRY(inf_infer_operand(infer, 1, 0, &size));
    if (size.count != INF_DIM_UNKNOWN && size.count != 2)
        return inf_shape_fault(infer, "the size has %lld elements, wanted 2",
                               (long long)size.count);
    struct inf_shape y = x;
    for (int32_t i = 0; i < 2; i++) {
        y.dims[1 + i] = INF_DIM_UNKNOWN;
        if (!size.known)
            continue;
        if (size.values[i] < 1 || x.dims[1 + i] == 0)
            return inf_shape_fault(infer, "%lld %s cannot become %lld", (long long)x.dims[1 + i],
                                   i == 0 ? "rows" : "columns", (long long)size.values[i]);
        y.dims[1 + i] = size.values[i];
    }
    return inf_infer_output(infer, 0, &y);
}
