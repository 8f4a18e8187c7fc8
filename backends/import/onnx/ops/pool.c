// SPDX-License-Identifier: Apache-2.0
// Pooling. Plain windows over one or two axes become pool2d, which every device supports; other
// windows become pool_nd.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/window.h"

// Extends the padding at the end for ceil_mode, so that the last window fits. A window that begins
// after x and its leading padding is not counted.
static void extend_padding(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x)
{
    for (int32_t i = 0; inf_build_ok(&s->b) && i < window->axes; i++) {
        int64_t size = inf_build_known_dim(&s->b, x, i + 2), stride = window->stride[i];
        int64_t reach = inf_onnx_window_reach(window, i);
        int64_t room = size + window->before[i] + window->after[i] - reach;
        int64_t last = room > 0 ? (room + stride - 1) / stride : 0;
        if (last * stride >= size + window->before[i])
            last--;
        window->after[i] = INF_MAX(last * stride + reach - size - window->before[i], 0);
    }
}

// Adds nodes that compute the padding of extend_padding() for axis `axis` of x, whose size is not
// known at import. The result is i32 [1].
static uint32_t add_end_padding(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                                uint32_t x, int32_t axis)
{
    struct inf_builder *b = &s->b;
    int32_t i = axis - 2;
    double stride = (double)window->stride[i], reach = (double)inf_onnx_window_reach(window, i);
    uint32_t size = inf_build_binary_number(b, INF_BINARY_ADD, inf_build_dim_value(b, x, axis),
                                            (double)window->before[i]);
    uint32_t room = inf_build_binary_number(b, INF_BINARY_ADD, size,
                                            (double)window->after[i] - reach + stride - 1);
    uint32_t last = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, room, stride);
    uint32_t inside = inf_build_binary_number(b, INF_BINARY_SUB, size, 1);
    inside = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, inside, stride);
    last = inf_build_binary(b, INF_BINARY_MIN, last, inside);
    last = inf_build_binary_number(b, INF_BINARY_MAX, last, 0);
    uint32_t end = inf_build_binary_number(b, INF_BINARY_MUL, last, stride);
    end = inf_build_sub(b, inf_build_binary_number(b, INF_BINARY_ADD, end, reach), size);
    return inf_build_binary_number(b, INF_BINARY_MAX, end, 0);
}

// Adds the lowest number of the type of x. Padding with it changes no maximum.
static uint32_t add_least(struct inf_onnx_scope *s, uint32_t x)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    double least = dtype == INF_DTYPE_U8 ? 0 : dtype == INF_DTYPE_I8 ? INT8_MIN : -INFINITY;
    return inf_build_scalar(&s->b, dtype, least);
}

// Pads x at the end for ceil_mode. The shape of x is not known, so that nodes of the graph compute
// the amounts. Sets the window's own padding at the end to 0.
static uint32_t pad_end(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x)
{
    uint32_t amounts[2 * INF_ONNX_WINDOW_AXES];
    for (int32_t i = 0; i < window->axes; i++) {
        amounts[2 * i] = inf_build_list(&s->b, (int64_t[]){0}, 1);
        amounts[2 * i + 1] = add_end_padding(s, window, x, i + 2);
    }
    for (int32_t i = 0; i < window->axes; i++)
        window->after[i] = 0;
    return inf_onnx_window_pad(s, x, amounts, window->axes, add_least(s, x));
}

static uint32_t emit_pool2d(struct inf_onnx_scope *s, uint32_t x,
                            const struct inf_onnx_window *window)
{
    bool narrow = window->axes == 1;
    int32_t h = 0, w = narrow ? 0 : 1;
    if (narrow)
        x = inf_build_expand_dims(&s->b, x, (int64_t[]){2}, 1);
    x = inf_build_channels_last(&s->b, x);
    struct inf_build_node node = inf_build_describe_list(INF_OP_POOL2D, &x, 1);
    struct inf_attrs_pool2d *attrs = &node.attrs.pool2d;
    attrs->kind = (enum inf_pool_kind)s->op->kind;
    attrs->padding = window->same ? INF_PADDING_SAME : INF_PADDING_EXPLICIT;
    attrs->kernel_w = (int32_t)window->kernel[w];
    attrs->stride_w = (int32_t)window->stride[w];
    attrs->pad_left = (int32_t)window->before[w];
    attrs->pad_right = (int32_t)window->after[w];
    if (!narrow) {
        attrs->kernel_h = (int32_t)window->kernel[h];
        attrs->stride_h = (int32_t)window->stride[h];
        attrs->pad_top = (int32_t)window->before[h];
        attrs->pad_bottom = (int32_t)window->after[h];
    }
    uint32_t y = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
    return narrow ? inf_build_squeeze(&s->b, y, (int64_t[]){2}, 1) : y;
}

static struct inf_ints make_axis_list(const int64_t *values, int32_t count)
{
    struct inf_ints ints = {.count = count};
    for (int32_t i = 0; i < count; i++)
        ints.values[i] = values[i];
    return ints;
}

// Converts indices so that the first spatial axis is the fastest, not the last.
static uint32_t convert_indices(struct inf_onnx_scope *s, uint32_t indices)
{
    struct inf_builder *b = &s->b;
    uint32_t sizes[INF_ONNX_WINDOW_AXES], column = inf_build_list(b, (int64_t[]){1}, 1);
    int32_t axes = inf_build_rank(b, s->inputs[0]) - 2;
    column = inf_build_cast(b, column, INF_DTYPE_I64);
    uint32_t plane = column;
    for (int32_t i = 0; i < axes; i++) {
        sizes[i] = inf_build_cast(b, inf_build_dim_value(b, s->inputs[0], i + 2), INF_DTYPE_I64);
        sizes[i] = inf_build_binary_number(b, INF_BINARY_MAX, sizes[i], 1);
        plane = inf_build_mul(b, plane, sizes[i]);
    }
    uint32_t inside = inf_build_binary(b, INF_BINARY_MOD, indices, plane), row = plane;
    uint32_t sum = inf_build_sub(b, indices, inside);
    for (int32_t i = 0; i < axes; i++) {
        // The distance between neighbours along axis i in an order where the last axis is the
        // fastest.
        row = inf_build_div(b, row, sizes[i]);
        uint32_t at = inf_build_binary(b, INF_BINARY_MOD, inf_build_div(b, inside, row), sizes[i]);
        sum = inf_build_add(b, sum, inf_build_mul(b, at, column));
        column = inf_build_mul(b, column, sizes[i]);
    }
    return sum;
}

static void emit_pool_nd(struct inf_onnx_scope *s, uint32_t x, const struct inf_onnx_window *window,
                         bool ceil_mode, bool count_pads)
{
    uint32_t values[2];
    x = inf_build_channels_last(&s->b, x);
    struct inf_build_node node = inf_build_describe_list(INF_OP_POOL_ND, &x, 1);
    struct inf_attrs_pool_nd *attrs = &node.attrs.pool_nd;
    bool indices = inf_onnx_wants_output(s, 1);
    attrs->kind = (enum inf_pool_kind)s->op->kind;
    attrs->padding = window->same ? INF_PADDING_SAME : INF_PADDING_EXPLICIT;
    attrs->kernel = make_axis_list(window->kernel, window->axes);
    attrs->strides = make_axis_list(window->stride, window->axes);
    attrs->dilations = make_axis_list(window->dilation, window->axes);
    attrs->pads_before = make_axis_list(window->before, window->axes);
    attrs->pads_after = make_axis_list(window->after, window->axes);
    attrs->ceil = ceil_mode;
    attrs->count_padding = count_pads;
    attrs->p = s->op->kind == INF_POOL_LP ? inf_onnx_attr_int(s, "p", 2) : attrs->p;
    attrs->index_batch = attrs->index_channels_first = true;
    node.output_count = indices ? 2 : 1;
    inf_build_emit(&s->b, &node, values);
    s->outputs[0] = inf_build_channels_first(&s->b, values[0]);
    if (!indices)
        return;
    s->outputs[1] =
        inf_build_cast(&s->b, inf_build_channels_first(&s->b, values[1]), INF_DTYPE_I64);
    if (inf_onnx_attr_int(s, "storage_order", 0) != 0)
        s->outputs[1] = convert_indices(s, s->outputs[1]);
}

static bool is_plain(const struct inf_onnx_window *window)
{
    for (int32_t i = 0; i < window->axes; i++)
        if (window->dilation[i] != 1)
            return false;
    return window->axes <= 2;
}

static bool is_padded(const struct inf_onnx_window *window)
{
    for (int32_t i = 0; i < window->axes; i++)
        if (window->before[i] != 0 || window->after[i] != 0)
            return true;
    return window->same || window->lower;
}

// Adds one pool of x.
static void emit_pool(struct inf_onnx_scope *s, uint32_t x, struct inf_onnx_window *window,
                      bool ceil_mode, bool count_pads)
{
    bool is_average = s->op->kind == INF_POOL_AVERAGE;
    // Padding x is correct for a maximum only: an average would count the padding as elements.
    bool open = ceil_mode && !window->same && !inf_onnx_window_has_sizes(s, x);
    if (count_pads || inf_onnx_wants_output(s, 1) || s->op->kind == INF_POOL_LP ||
        !is_plain(window) || (open && is_average)) {
        emit_pool_nd(s, x, window, ceil_mode, count_pads);
        return;
    }
    if (open)
        x = pad_end(s, window, x);
    else if (ceil_mode)
        extend_padding(s, window, x);
    if (inf_build_ok(&s->b))
        s->outputs[0] = emit_pool2d(s, x, window);
}

// Adds a pool with auto_pad SAME_LOWER of x, whose size is not known: of x padded by nodes. An
// average without the padding is that of x with zeros around it, divided by that of ones with zeros
// around them.
static void emit_lower_pool(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                            bool count_pads)
{
    bool is_max = s->op->kind == INF_POOL_MAX;
    uint32_t x = s->inputs[0], ones = INF_VALUE_NONE;
    struct inf_onnx_window other = *window;
    if (inf_onnx_wants_output(s, 1))
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "positions with auto_pad SAME_LOWER and strides of x, whose size is not "
                       "known when it is imported");
    if (s->op->kind == INF_POOL_AVERAGE && !count_pads) {
        uint32_t one = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 1);
        ones = inf_build_fill(&s->b, inf_build_shape(&s->b, x), one);
        emit_pool(s, inf_onnx_window_resolve(s, &other, ones, INF_VALUE_NONE), &other, false,
                  false);
        ones = s->outputs[0];
    }
    x = inf_onnx_window_resolve(s, window, x, is_max ? add_least(s, x) : INF_VALUE_NONE);
    emit_pool(s, x, window, false, false);
    if (ones != INF_VALUE_NONE)
        s->outputs[0] = inf_build_div(&s->b, s->outputs[0], ones);
}

static void lower_pool(struct inf_onnx_scope *s)
{
    struct inf_onnx_window window;
    inf_onnx_window_read(s, &window, s->inputs[0], NULL);
    bool is_average = s->op->kind == INF_POOL_AVERAGE;
    bool ceil_mode = inf_onnx_attr_int(s, "ceil_mode", 0) != 0;
    bool count_pads = is_average && inf_onnx_attr_int(s, "count_include_pad", 0) != 0;
    (void)inf_onnx_find_attr(s, "storage_order"); // affects only the output of indices
    count_pads = count_pads && is_padded(&window);
    if (!inf_build_ok(&s->b))
        return;
    if (window.lower)
        emit_lower_pool(s, &window, count_pads);
    else
        emit_pool(s, s->inputs[0], &window, ceil_mode, count_pads);
}

static void lower_global_lp_pool(struct inf_onnx_scope *s)
{
    struct inf_ints axes = {.count = 0};
    double p = s->opset < 2 ? (double)inf_onnx_attr_float(s, "p", 2) : inf_onnx_attr_int(s, "p", 2);
    uint32_t x = inf_build_unary(&s->b, INF_UNARY_ABS, s->inputs[0]);
    for (int32_t i = 2; i < inf_build_rank(&s->b, x); i++)
        axes.values[axes.count++] = i;
    x = inf_build_binary_number(&s->b, INF_BINARY_POW, x, p);
    x = inf_build_reduce(&s->b, INF_REDUCE_SUM, x, &axes, true);
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_POW, x, 1 / p);
}

static const struct inf_onnx_op ops[] = {
    {"MaxPool", lower_pool, 1, 1, 2, INF_POOL_MAX},
    {"AveragePool", lower_pool, 1, 1, 1, INF_POOL_AVERAGE},
    {"LpPool", lower_pool, 1, 1, 1, INF_POOL_LP},
    {"GlobalLpPool", lower_global_lp_pool, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_pool = {ops, INF_ARRAY_LENGTH(ops)};
