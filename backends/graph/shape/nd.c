// SPDX-License-Identifier: Apache-2.0
// Shapes of operators with windows in any number of dimensions, and of dilation2d.
#include "backends/graph/shape/rules.h"

// The window attributes of conv_nd, conv_nd_transpose and pool_nd.
struct lists {
    const struct inf_ints *strides, *dilations, *pads_before, *pads_after;
    enum inf_padding padding;
};

#define LISTS_OF(attrs)                                                                            \
    (struct lists)                                                                                 \
    {                                                                                              \
        &(attrs)->strides, &(attrs)->dilations, &(attrs)->pads_before, &(attrs)->pads_after,       \
            (attrs)->padding                                                                       \
    }

static struct lists lists_of(const struct inf_node *node)
{
    if (node->op == INF_OP_POOL_ND)
        return LISTS_OF(&node->attrs.pool_nd);
    if (node->op == INF_OP_CONV_ND_TRANSPOSE)
        return LISTS_OF(&node->attrs.conv_nd_transpose);
    return LISTS_OF(&node->attrs.conv_nd);
}

// Checks that a list has one element per spatial axis, or is empty, and that each element is in
// least..65535.
static enum inf_code check_list(struct inf_infer *infer, const char *name,
                                const struct inf_ints *list, int32_t axes, int64_t least)
{
    if (list->count != 0 && list->count != axes)
        return inf_shape_fault(infer, "%s has %d elements, wanted %d", name, list->count, axes);
    for (int32_t i = 0; i < list->count; i++)
        if (list->values[i] < least || list->values[i] > 65535)
            return inf_shape_fault(infer, "%s has %lld, wanted %lld to 65535", name,
                                   (long long)list->values[i], (long long)least);
    return INF_OK;
}

static enum inf_code check_lists(struct inf_infer *infer, int32_t axes)
{
    struct lists lists = lists_of(infer->node);
    INF_TRY(check_list(infer, "strides", lists.strides, axes, 1));
    INF_TRY(check_list(infer, "dilations", lists.dilations, axes, 1));
    INF_TRY(check_list(infer, "pads_before", lists.pads_before, axes, 0));
    return check_list(infer, "pads_after", lists.pads_after, axes, 0);
}

static int32_t read_element(const struct inf_ints *list, int32_t axis, int32_t otherwise)
{
    return list->count == 0 ? otherwise : (int32_t)list->values[axis];
}

// With `ceil`, counts an incomplete last window too, if it starts inside x or inside the padding
// before x.
static void round_up(struct inf_window *window)
{
    int64_t reach = (int64_t)(window->kernel - 1) * window->dilation + 1;
    int64_t room = window->input + window->pad_before + window->pad_after - reach;
    if (room % window->stride != 0 &&
        window->output * window->stride < window->input + window->pad_before)
        window->output++;
}

static bool settle_window(const struct inf_node *node, int32_t axis, int64_t input, int64_t kernel,
                          struct inf_window *window)
{
    struct lists lists = lists_of(node);
    struct inf_window_attrs attrs = {
        .padding = lists.padding,
        .stride = {read_element(lists.strides, axis, 1)},
        .dilation = {read_element(lists.dilations, axis, 1)},
        .pad_before = {read_element(lists.pads_before, axis, 0)},
        .pad_after = {read_element(lists.pads_after, axis, 0)},
    };
    if (!inf_window_resolve(&attrs, 0, input, kernel, window))
        return false;
    if (node->op == INF_OP_POOL_ND && node->attrs.pool_nd.ceil && lists.padding != INF_PADDING_SAME)
        round_up(window);
    return true;
}

void inf_node_window_nd(const struct inf_graph *graph, const struct inf_node *node, int32_t axis,
                        struct inf_window *window)
{
    uint32_t big = node->op == INF_OP_CONV_ND_TRANSPOSE ? node->outputs[0] : node->inputs[0];
    int64_t kernel = node->op == INF_OP_POOL_ND ? node->attrs.pool_nd.kernel.values[axis]
                                                : graph->values[node->inputs[1]].shape.dims[axis];
    if (!settle_window(node, axis, graph->values[big].shape.dims[1 + axis], kernel, window))
        *window = (struct inf_window){.stride = 1, .dilation = 1};
}

// Computes the number of windows along spatial axis `axis`. *output is INF_DIM_UNKNOWN if the size
// of the input or the size of the kernel is unknown.
static enum inf_code slide_window(struct inf_infer *infer, int32_t axis, int64_t input,
                                  int64_t kernel, int64_t *output)
{
    struct inf_window window;
    *output = INF_DIM_UNKNOWN;
    if (kernel == 0)
        return inf_shape_fault(infer, "the window has no elements along spatial axis %d", axis);
    if (input < 0 || kernel < 0)
        return INF_OK;
    bool settled = settle_window(infer->node, axis, input, kernel, &window);
    if (!settled && infer->node->op == INF_OP_POOL_ND) { // no window fits, so y is empty
        *output = 0;
        return INF_OK;
    }
    if (!settled)
        return inf_shape_fault(infer, "a window of %lld does not fit into %lld of spatial axis %d",
                               (long long)kernel, (long long)input, axis);
    *output = window.output;
    return INF_OK;
}

// Checks that x and the filter have the same rank, 3 or more. *axes is the number of spatial axes,
// or -1 if it is unknown.
static enum inf_code check_ranks(struct inf_infer *infer, int32_t *axes)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *filter = inf_infer_input(infer, 1);
    *axes = -1;
    if (x->rank < 0 || filter->rank < 0)
        return INF_OK;
    if (x->rank < 3 || x->rank != filter->rank)
        return inf_shape_fault(infer,
                               "x has rank %d and the filter %d, wanted the same, at least 3",
                               x->rank, filter->rank);
    *axes = x->rank - 2;
    return check_lists(infer, *axes);
}

// Checks that the optional input `index` is [channels].
static enum inf_code check_bias(struct inf_infer *infer, uint32_t index, int64_t channels)
{
    if (!inf_infer_has_input(infer, index))
        return INF_OK;
    const struct inf_shape *bias = inf_infer_input(infer, index);
    int64_t merged;
    if (bias->rank < 0 || (bias->rank == 1 && inf_dim_merge(bias->dims[0], channels, &merged)))
        return INF_OK;
    char text[INF_SHAPE_TEXT_SIZE];
    return inf_shape_fault(infer, "the bias has shape %s, wanted [%lld]",
                           inf_shape_print(bias, text), (long long)channels);
}

enum inf_code inf_infer_conv_nd(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *filter = inf_infer_input(infer, 1);
    int32_t axes;
    INF_TRY(check_ranks(infer, &axes));
    if (axes < 0)
        return INF_OK;
    int32_t groups = infer->node->attrs.conv_nd.groups;
    int64_t in = x->dims[axes + 1], out = filter->dims[axes + 1], merged;
    if (in % groups > 0 || out % groups > 0)
        return inf_shape_fault(infer, "%lld and %lld channels do not divide into %d groups",
                               (long long)in, (long long)out, groups);
    if (!inf_dim_merge(in < 0 ? in : in / groups, filter->dims[axes], &merged))
        return inf_shape_fault(infer, "the filter is for %lld channels, x has %lld in %d groups",
                               (long long)filter->dims[axes], (long long)in, groups);
    INF_TRY(check_bias(infer, 2, out));
    struct inf_shape y = {.rank = x->rank, .dims = {x->dims[0]}};
    for (int32_t i = 0; i < axes; i++)
        INF_TRY(slide_window(infer, i, x->dims[1 + i], filter->dims[i], &y.dims[1 + i]));
    y.dims[axes + 1] = out;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_conv_nd_transpose(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *filter = inf_infer_input(infer, 1);
    struct inf_shape y;
    bool known;
    int32_t axes;
    INF_TRY(check_ranks(infer, &axes));
    INF_TRY(inf_infer_listed(infer, 2, 0, &y, &known));
    if (axes < 0 || y.rank < 0)
        return INF_OK;
    if (!known)
        inf_infer_partial(infer, 2, &y);
    if (y.rank != x->rank)
        return inf_shape_fault(infer, "the output shape has %d elements, wanted %d", y.rank,
                               x->rank);
    int32_t groups = infer->node->attrs.conv_nd_transpose.groups;
    int64_t merged, out;
    if (!inf_dim_product(filter->dims[axes], groups, &out) ||
        !inf_dim_merge(y.dims[axes + 1], out, &y.dims[axes + 1]) ||
        x->dims[axes + 1] % groups > 0 ||
        !inf_dim_merge(x->dims[axes + 1], filter->dims[axes + 1], &merged) ||
        !inf_dim_merge(x->dims[0], y.dims[0], &y.dims[0])) {
        char a[INF_SHAPE_TEXT_SIZE];
        char b[INF_SHAPE_TEXT_SIZE];
        char c[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "%s with filter %s and %d groups does not become %s",
                               inf_shape_print(x, a), inf_shape_print(filter, b), groups,
                               inf_shape_print(&y, c));
    }
    INF_TRY(check_bias(infer, 3, y.dims[axes + 1]));
    for (int32_t i = 0; i < axes; i++) {
        // size of the output of a convolution of y with this window; must equal the size of x
        int64_t back;
        INF_TRY(slide_window(infer, i, y.dims[1 + i], filter->dims[i], &back));
        if (!inf_dim_merge(back, x->dims[1 + i], &merged))
            return inf_shape_fault(
                infer, "an output of %lld along axis %d comes from %lld, x has %lld",
                (long long)y.dims[1 + i], 1 + i, (long long)back, (long long)x->dims[1 + i]);
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_pool_nd(struct inf_infer *infer)
{
    const struct inf_attrs_pool_nd *attrs = &infer->node->attrs.pool_nd;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    uint32_t outputs = infer->node->output_count;
    if (outputs > (attrs->kind == INF_POOL_MAX ? 2u : 1u))
        return inf_fail(infer->err, INF_INVALID, "%u outputs are too many for its kind", outputs);
    if (outputs == 2)
        infer->dtypes[1] = INF_DTYPE_I32;
    if (x->rank < 0)
        return INF_OK;
    int32_t axes = x->rank - 2;
    if (axes < 1 || attrs->kernel.count != axes)
        return inf_shape_fault(infer, "x has rank %d and the kernel %d axes, wanted two less",
                               x->rank, attrs->kernel.count);
    INF_TRY(check_list(infer, "kernel", &attrs->kernel, axes, 1));
    INF_TRY(check_lists(infer, axes));
    struct inf_shape y = *x;
    for (int32_t i = 0; i < axes; i++)
        INF_TRY(slide_window(infer, i, x->dims[1 + i], attrs->kernel.values[i], &y.dims[1 + i]));
    for (uint32_t i = 0; i < outputs; i++)
        INF_TRY(inf_infer_output(infer, i, &y));
    return INF_OK;
}

enum inf_code inf_infer_dilation2d(struct inf_infer *infer)
{
    const struct inf_shape *filter = inf_infer_input(infer, 1);
    struct inf_shape x;
    INF_TRY(inf_infer_image(infer, 0, &x));
    struct inf_shape window = filter->rank < 0 ? INF_SHAPE(-1, -1, -1) : *filter;
    struct inf_window_attrs attrs = inf_node_window_attrs(infer->node);
    struct inf_shape y = x;
    if (window.rank != 3 || !inf_dim_merge(x.dims[3], window.dims[2], &y.dims[3])) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "the filter has shape %s, wanted [h,w,%lld]",
                               inf_shape_print(filter, text), (long long)x.dims[3]);
    }
    for (int axis = 0; axis < 2; axis++) {
        struct inf_window settled;
        bool known = x.dims[1 + axis] >= 0 && window.dims[axis] >= 0;
        if (known &&
            !inf_window_resolve(&attrs, axis, x.dims[1 + axis], window.dims[axis], &settled))
            return inf_shape_fault(infer, "a window of %lld does not fit into %lld",
                                   (long long)window.dims[axis], (long long)x.dims[1 + axis]);
        y.dims[1 + axis] = known ? settled.output : INF_DIM_UNKNOWN;
    }
    return inf_infer_output(infer, 0, &y);
}
