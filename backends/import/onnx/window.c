// SPDX-License-Identifier: Apache-2.0
// Reads the attributes of sliding windows.
#include "backends/import/onnx/window.h"

#include <string.h>

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
// them. At stride 1 this does not depend on the size.
static int64_t find_missing(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                            uint32_t x, int32_t axis)
{
    int64_t reach = inf_onnx_window_reach(window, axis), stride = window->stride[axis];
    if (stride == 1)
        return reach - 1;
    int64_t size = inf_build_known_dim(&s->b, x, axis + 2);
    return INF_MAX((size + stride - 1) / stride * stride - stride + reach - size, 0);
}

// Computes the padding that gives ceil(input / stride) windows.
static void compute_same_padding(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                 uint32_t x, bool odd_before)
{
    window->same = false;
    for (int32_t i = 0; i < window->axes; i++) {
        int64_t missing = find_missing(s, window, x, i);
        window->before[i] = odd_before ? (missing + 1) / 2 : missing / 2;
        window->after[i] = missing - window->before[i];
    }
}

void inf_onnx_window_settle(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x)
{
    if (window->same)
        compute_same_padding(s, window, x, false);
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
    if (!is_transposed && upper)
        window->same = true;
    if (!is_transposed && lower)
        compute_same_padding(s, window, x, true);
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
