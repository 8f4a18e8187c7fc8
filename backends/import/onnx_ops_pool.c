// SPDX-License-Identifier: Apache-2.0
// Poolings. Plain ones become pool2d; dilated and three-dimensional ones are taken apart axis by axis,
// which is the same thing: maxima and sums do not mind the order.
#include <math.h>

#include "backends/import/onnx_window.h"

enum {
    POOL_MAX,
    POOL_AVERAGE,
    POOL_LP
};

// How often a window fits along a spatial axis, and what ceil_mode adds behind the padding.
static int64_t count_windows(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                             uint32_t x, int32_t axis, bool ceil_mode)
{
    int64_t size = inf_ox_known_dim(s, x, axis + 2);
    int64_t stride = window->stride[axis];
    int64_t room =
        size + window->before[axis] + window->after[axis] - inf_onnx_window_reach(window, axis);
    if (room < 0) {
        inf_ox_fail(s, INF_INVALID, "the window is larger than axis %d of %lld", axis + 2,
                    (long long)size);
        return 1;
    }
    int64_t count = (ceil_mode ? room + stride - 1 : room) / stride + 1;
    // A window that would begin behind x and its padding before does not count.
    if (ceil_mode && (count - 1) * stride >= size + window->before[axis])
        count--;
    return count;
}

// Lengthens the padding behind so that the last window fits.
static void apply_ceil(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x)
{
    for (int32_t i = 0; i < window->axes; i++) {
        int64_t count = count_windows(s, window, x, i, true);
        int64_t size = inf_ox_known_dim(s, x, i + 2);
        int64_t end = (count - 1) * window->stride[i] + inf_onnx_window_reach(window, i);
        window->after[i] = INF_MAX(end - size - window->before[i], 0);
    }
}

// --- the graph's operator ---

static uint32_t emit_pool(struct inf_onnx_scope *s, uint32_t x,
                          const struct inf_onnx_window *window)
{
    bool narrow = window->axes == 1;
    int32_t h = 0, w = narrow ? 0 : 1;
    if (narrow)
        x = inf_ox_expand_dims(s, x, (int64_t[]){2}, 1);
    x = inf_ox_channels_last(s, x);
    struct inf_ox_call call = inf_ox_call(INF_OP_POOL2D, &x, 1);
    struct inf_attrs_pool2d *attrs = &call.attrs.pool2d;
    attrs->kind = s->op->kind == POOL_MAX ? INF_POOL_MAX : INF_POOL_AVERAGE;
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
    uint32_t y = inf_ox_channels_first(s, inf_ox_value(s, &call));
    return narrow ? inf_ox_squeeze(s, y, (int64_t[]){2}, 1) : y;
}

// Zeros that count as elements.
static uint32_t pad_for_real(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x)
{
    int64_t pairs[2 * INF_LIMIT_RANK] = {0};
    for (int32_t i = 0; i < window->axes; i++) {
        pairs[2 * (i + 2)] = window->before[i];
        pairs[2 * (i + 2) + 1] = window->after[i];
        window->before[i] = window->after[i] = 0;
    }
    return inf_ox_pad(s, x, pairs, window->axes + 2, INF_PAD_CONSTANT, INF_VALUE_NONE);
}

// --- axis by axis ---

// One over the number of taps inside x, for each window along an axis: shape [count, 1...].
static uint32_t inverse_counts(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                               uint32_t x, int32_t axis, int64_t count)
{
    int64_t size = inf_ox_known_dim(s, x, axis + 2);
    float *data;
    uint32_t value = inf_ox_const(s, INF_DTYPE_F32, &INF_SHAPE(count), &data);
    for (int64_t i = 0; data != NULL && i < count; i++) {
        int64_t inside = 0;
        for (int64_t tap = 0; tap < window->kernel[axis]; tap++) {
            int64_t at =
                i * window->stride[axis] + tap * window->dilation[axis] - window->before[axis];
            inside += at >= 0 && at < size;
        }
        data[i] = 1.0f / (float)INF_MAX(inside, 1);
    }
    value = inf_ox_cast(s, value, inf_ox_dtype(s, x));
    return inf_ox_expand_dims(s, value, (int64_t[]){1, 2, 3}, window->axes - 1 - axis);
}

// Pools along one axis by joining shifted slices.
static uint32_t pool_axis(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                          uint32_t x, int32_t axis)
{
    int64_t pairs[2 * INF_LIMIT_RANK] = {0};
    bool is_max = s->op->kind == POOL_MAX;
    enum inf_dtype dtype = inf_ox_dtype(s, x);
    bool is_signed = dtype >= INF_DTYPE_I8 && dtype <= INF_DTYPE_I64;
    double nothing = 0; // what no tap loses to
    if (is_max && inf_dtype_is_float(dtype))
        nothing = -(double)INFINITY;
    else if (is_max && is_signed)
        nothing = -ldexp(1, (int)(8 * inf_dtype_size(dtype)) - 1);
    int64_t count = count_windows(s, window, x, axis, false);
    uint32_t y = INF_VALUE_NONE;
    pairs[2 * (axis + 2)] = window->before[axis];
    pairs[2 * (axis + 2) + 1] = window->after[axis];
    uint32_t padded = inf_ox_pad(s, x, pairs, window->axes + 2, INF_PAD_CONSTANT,
                                 inf_ox_scalar(s, dtype, nothing));
    if (window->kernel[axis] > 256)
        inf_ox_fail(s, INF_UNSUPPORTED, "a window of %lld taps, at most 256 are built",
                    (long long)window->kernel[axis]);
    for (int64_t tap = 0; inf_ox_ok(s) && tap < window->kernel[axis]; tap++) {
        int64_t begin = tap * window->dilation[axis];
        int64_t end = begin + (count - 1) * window->stride[axis] + 1;
        uint32_t part = inf_ox_slice(s, padded, axis + 2, begin, end, window->stride[axis]);
        y = tap == 0 ? part : inf_ox_binary(s, is_max ? INF_BINARY_MAX : INF_BINARY_ADD, y, part);
    }
    if (s->op->kind == POOL_AVERAGE)
        y = inf_ox_mul(s, y, inverse_counts(s, window, x, axis, count));
    return y;
}

static uint32_t pool_axes(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                          uint32_t x)
{
    for (int32_t i = 0; i < window->axes; i++)
        x = pool_axis(s, window, x, i);
    return x;
}

static bool is_plain(const struct inf_onnx_window *window)
{
    for (int32_t i = 0; i < window->axes; i++)
        if (window->dilation[i] != 1)
            return false;
    return window->axes <= 2;
}

static void lower_pool(struct inf_onnx_scope *s)
{
    struct inf_onnx_window window;
    uint32_t x = s->inputs[0];
    inf_onnx_window_read(s, &window, x, NULL);
    bool ceil_mode = inf_ox_attr_int(s, "ceil_mode", 0) != 0;
    bool count_pads =
        s->op->kind == POOL_AVERAGE && inf_ox_attr_int(s, "count_include_pad", 0) != 0;
    (void)inf_ox_attr(s, "storage_order"); // of the indices, which are not built
    if (count_pads || ceil_mode || !is_plain(&window))
        inf_onnx_window_settle(s, &window, x);
    if (inf_ox_ok(s) && count_pads)
        x = pad_for_real(s, &window, x);
    if (inf_ox_ok(s) && ceil_mode)
        apply_ceil(s, &window, x);
    if (inf_ox_ok(s))
        s->outputs[0] = is_plain(&window) ? emit_pool(s, x, &window) : pool_axes(s, &window, x);
}

static void lower_lp_pool(struct inf_onnx_scope *s)
{
    struct inf_onnx_window window;
    uint32_t x = s->inputs[0];
    double p = s->opset < 2 ? (double)inf_ox_attr_float(s, "p", 2) : inf_ox_attr_int(s, "p", 2);
    inf_onnx_window_read(s, &window, x, NULL);
    bool ceil_mode = inf_ox_attr_int(s, "ceil_mode", 0) != 0;
    inf_onnx_window_settle(s, &window, x);
    if (inf_ox_ok(s) && ceil_mode)
        apply_ceil(s, &window, x);
    if (!inf_ox_ok(s))
        return;
    x = inf_ox_binary_number(s, INF_BINARY_POW, inf_ox_unary(s, INF_UNARY_ABS, x), p);
    s->outputs[0] = inf_ox_binary_number(s, INF_BINARY_POW, pool_axes(s, &window, x), 1 / p);
}

static void lower_global_lp_pool(struct inf_onnx_scope *s)
{
    struct inf_ints axes = {.count = 0};
    double p = s->opset < 2 ? (double)inf_ox_attr_float(s, "p", 2) : inf_ox_attr_int(s, "p", 2);
    uint32_t x = inf_ox_unary(s, INF_UNARY_ABS, s->inputs[0]);
    for (int32_t i = 2; i < inf_ox_rank(s, x); i++)
        axes.values[axes.count++] = i;
    x = inf_ox_reduce(s, INF_REDUCE_SUM, inf_ox_binary_number(s, INF_BINARY_POW, x, p), &axes,
                      true);
    s->outputs[0] = inf_ox_binary_number(s, INF_BINARY_POW, x, 1 / p);
}

static const struct inf_onnx_op ops[] = {
    {"MaxPool", lower_pool, 1, 1, 1, POOL_MAX},
    {"AveragePool", lower_pool, 1, 1, 1, POOL_AVERAGE},
    {"LpPool", lower_lp_pool, 1, 1, 1, POOL_LP},
    {"GlobalLpPool", lower_global_lp_pool, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_pool = {ops, INF_ARRAY_LENGTH(ops)};
