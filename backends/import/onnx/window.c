// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of sliding windows.
#include "backends/import/onnx/window.h"

#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"

#define SIDE_MAX 65535

// Reads one number per spatial axis, within limits.
static void read_numbers(struct inf_onnx_scope *s, const char *name, int32_t axes, int64_t fallback,
                         int64_t *out)
{
    struct inf_build_ints ints;
    for (int32_t i = 0; i < axes; i++)
        out[i] = fallback;
    if (!inf_onnx_attr_ints(s, name, &ints))
        return;
    if (ints.count != (uint32_t)axes)
        inf_build_fail(&s->b, INF_INVALID, "%s has %u numbers, wanted %d", name, ints.count, axes);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < ints.count; i++) {
        out[i] = ints.values[i];
        if (out[i] < 1 || out[i] > SIDE_MAX)
            inf_build_fail(&s->b, INF_INVALID, "%s[%u] is %lld, wanted 1 to %d", name, i,
                           (long long)out[i], SIDE_MAX);
    }
}

static void read_pads(struct inf_onnx_scope *s, struct inf_onnx_window *window)
{
    struct inf_build_ints pads;
    if (!inf_onnx_attr_ints(s, "pads", &pads))
        return;
    if (pads.count != 2 * (uint32_t)window->axes)
        inf_build_fail(&s->b, INF_INVALID, "pads has %u numbers, wanted %d", pads.count,
                       2 * window->axes);
    for (int32_t i = 0; inf_build_ok(&s->b) && i < window->axes; i++) {
        window->before[i] = pads.values[i];
        window->after[i] = pads.values[i + window->axes];
        if (window->before[i] < 0 || window->before[i] > SIDE_MAX || window->after[i] < 0 ||
            window->after[i] > SIDE_MAX)
            inf_build_fail(&s->b, INF_UNSUPPORTED, "pads are %lld and %lld, wanted 0 to %d",
                           (long long)window->before[i], (long long)window->after[i], SIDE_MAX);
    }
}

int64_t inf_onnx_window_reach(const struct inf_onnx_window *window, int32_t axis)
{
    return (window->kernel[axis] - 1) * window->dilation[axis] + 1;
}

// Returns by how much the windows along an axis reach beyond x if there are ceil(size / stride) of
// them, or -1 if that depends on a size that is not known. At stride 1 it does not depend on it.
static int64_t find_missing(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                            uint32_t x, int32_t axis)
{
    int64_t reach = inf_onnx_window_reach(window, axis), stride = window->stride[axis];
    if (stride == 1)
        return reach - 1;
    int64_t size = inf_build_dim(&s->b, x, axis + 2);
    if (size == INF_DIM_UNKNOWN)
        return -1;
    return INF_MAX((size + stride - 1) / stride * stride - stride + reach - size, 0);
}

// Computes the padding that gives ceil(input / stride) windows. Returns false, without changing the
// window, if the size of an axis is needed and not known.
static bool compute_same_padding(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                 uint32_t x)
{
    int64_t missing[INF_ONNX_WINDOW_AXES];
    for (int32_t i = 0; i < window->axes; i++)
        if ((missing[i] = find_missing(s, window, x, i)) < 0)
            return false;
    for (int32_t i = 0; i < window->axes; i++) {
        window->before[i] = window->lower ? (missing[i] + 1) / 2 : missing[i] / 2;
        window->after[i] = missing[i] - window->before[i];
    }
    window->same = window->lower = false;
    return true;
}

bool inf_onnx_window_has_sizes(struct inf_onnx_scope *s, uint32_t x)
{
    for (int32_t i = 2; i < inf_build_rank(&s->b, x); i++)
        if (inf_build_dim(&s->b, x, i) == INF_DIM_UNKNOWN)
            return false;
    return true;
}

uint32_t inf_onnx_window_pad(struct inf_onnx_scope *s, uint32_t x, const uint32_t *amounts,
                             int32_t axes, uint32_t value)
{
    uint32_t all[2 * (INF_ONNX_WINDOW_AXES + 2)];
    uint32_t count = 2 * (uint32_t)axes + 4;
    for (uint32_t i = 0; i < count; i++)
        all[i] = i < 4 ? inf_build_list(&s->b, (int64_t[]){0}, 1) : amounts[i - 4];
    uint32_t pairs = inf_build_cast(&s->b, inf_build_concat(&s->b, all, count, 0), INF_DTYPE_I32);
    pairs = inf_build_reshape(&s->b, pairs, (int64_t[]){axes + 2, 2}, 2);
    return inf_build_pad_by(&s->b, x, pairs, INF_PAD_CONSTANT, value);
}

// Adds nodes that compute what find_missing() returns, i32 [1].
static uint32_t add_missing(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                            uint32_t x, int32_t axis)
{
    struct inf_builder *b = &s->b;
    double stride = (double)window->stride[axis];
    uint32_t size = inf_build_dim_value(b, x, axis + 2);
    uint32_t end = inf_build_binary_number(b, INF_BINARY_ADD, size, stride - 1);
    end = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, end, stride);
    end = inf_build_binary_number(b, INF_BINARY_MUL, end, stride);
    end = inf_build_binary_number(b, INF_BINARY_ADD, end,
                                  (double)inf_onnx_window_reach(window, axis) - stride);
    return inf_build_binary_number(b, INF_BINARY_MAX, inf_build_sub(b, end, size), 0);
}

uint32_t inf_onnx_window_resolve(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                 uint32_t x, uint32_t value)
{
    uint32_t amounts[2 * INF_ONNX_WINDOW_AXES];
    if ((!window->same && !window->lower) || compute_same_padding(s, window, x))
        return x;
    for (int32_t i = 0; i < window->axes; i++) {
        uint32_t missing = add_missing(s, window, x, i), half = missing;
        if (window->lower)
            half = inf_build_binary_number(&s->b, INF_BINARY_ADD, missing, 1);
        half = inf_build_binary_number(&s->b, INF_BINARY_FLOOR_DIV, half, 2);
        amounts[2 * i] = half;
        amounts[2 * i + 1] = inf_build_sub(&s->b, missing, half);
    }
    window->same = window->lower = false;
    return inf_onnx_window_pad(s, x, amounts, window->axes, value);
}

void inf_onnx_window_read_filter(struct inf_onnx_scope *s, uint32_t filter,
                                 int64_t kernel[INF_ONNX_WINDOW_AXES])
{
    bool is_given = inf_onnx_has_attr(s, "kernel_shape");
    int32_t rank = inf_build_rank(&s->b, filter);
    for (int32_t i = 2; inf_build_ok(&s->b) && i < rank && i < 2 + INF_ONNX_WINDOW_AXES; i++)
        kernel[i - 2] =
            is_given ? inf_build_dim(&s->b, filter, i) : inf_build_known_dim(&s->b, filter, i);
}

// Reads everything but the padding.
static void read_sizes(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x,
                       const int64_t *kernel)
{
    int32_t rank = inf_build_rank(&s->b, x);
    *window = (struct inf_onnx_window){.axes = INF_MAX(INF_MIN(rank - 2, INF_ONNX_WINDOW_AXES), 0)};
    if (rank < 3 || rank > 2 + INF_ONNX_WINDOW_AXES)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x has rank %d, wanted 3 to 5", rank);
    if (kernel == NULL && !inf_onnx_has_attr(s, "kernel_shape"))
        inf_build_fail(&s->b, INF_INVALID, "lacks attribute 'kernel_shape'");
    read_numbers(s, "kernel_shape", window->axes, 1, window->kernel);
    read_numbers(s, "strides", window->axes, 1, window->stride);
    read_numbers(s, "dilations", window->axes, 1, window->dilation);
    for (int32_t i = 0; kernel != NULL && inf_build_ok(&s->b) && i < window->axes; i++) {
        if (inf_onnx_has_attr(s, "kernel_shape") && kernel[i] == INF_DIM_UNKNOWN)
            continue;
        if (inf_onnx_has_attr(s, "kernel_shape") && window->kernel[i] != kernel[i])
            inf_build_fail(&s->b, INF_INVALID, "kernel_shape[%d] is %lld, the filter's is %lld", i,
                           (long long)window->kernel[i], (long long)kernel[i]);
        window->kernel[i] = kernel[i];
        if (kernel[i] < 1 || kernel[i] > SIDE_MAX)
            inf_build_fail(&s->b, INF_INVALID, "the filter is %lld along axis %d",
                           (long long)kernel[i], i);
    }
}

// Reads the padding. If `is_transposed`, that of SAME_UPPER and SAME_LOWER stays 0.
static void read_padding(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x,
                         bool is_transposed)
{
    const char *automatic = inf_onnx_attr_text(s, "auto_pad", "NOTSET");
    bool upper = strcmp(automatic, "SAME_UPPER") == 0, lower = strcmp(automatic, "SAME_LOWER") == 0;
    if (strcmp(automatic, "NOTSET") == 0 || *automatic == '\0')
        read_pads(s, window);
    else if (!upper && !lower && strcmp(automatic, "VALID") != 0)
        inf_build_fail(&s->b, INF_INVALID, "auto_pad is '%.20s'", automatic);
    window->same = !is_transposed && upper;
    window->lower = !is_transposed && lower;
    if (window->lower)
        (void)compute_same_padding(s, window, x);
    (void)inf_onnx_find_attr(s, "pads"); // has no effect if there is auto_pad
}

void inf_onnx_window_read(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x,
                          const int64_t *kernel)
{
    read_sizes(s, window, x, kernel);
    read_padding(s, window, x, false);
}

void inf_onnx_window_read_transposed(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                     uint32_t x, const int64_t *kernel)
{
    read_sizes(s, window, x, kernel);
    read_padding(s, window, x, true);
}

void inf_onnx_window_widen(struct inf_onnx_window *window)
{
    window->kernel[1] = window->kernel[0];
    window->stride[1] = window->stride[0];
    window->dilation[1] = window->dilation[0];
    window->before[1] = window->before[0];
    window->after[1] = window->after[0];
    window->kernel[0] = window->stride[0] = window->dilation[0] = 1;
    window->before[0] = window->after[0] = 0;
    window->axes = 2;
}
