// SPDX-License-Identifier: Apache-2.0
// Pooling. Only elements inside the picture count, so padding enters neither the mean nor the
// maximum.
#include <math.h>

#include "backends/graph/shape/infer.h"
#include "backends/ref/kernels.h"

// The taps of a window that lie inside the picture along one axis: the pixels from `first` to `end`
// - 1.
struct stretch {
    int64_t first, end;
};

static struct stretch is_inside(const struct inf_window *window, int64_t position)
{
    int64_t first = position * window->stride - window->pad_before;
    return (struct stretch){.first = INF_MAX(first, (int64_t)0),
                            .end = INF_MIN(first + window->kernel, window->input)};
}

// Computes the result of one window. If the window has no element inside the picture, the mean is
// NaN and the maximum is the smallest number of the type.
static double pool_window(const struct inf_ref_tensor *x, const struct inf_attrs_pool2d *attrs,
                          size_t picture_at, const struct stretch *rows,
                          const struct stretch *columns)
{
    const int64_t *dims = x->shape->dims;
    bool is_float = inf_dtype_is_float(x->dtype);
    double largest = is_float ? -INFINITY : (double)inf_ref_int_min(x->dtype);
    double sum = 0;
    int64_t count = 0;
    for (int64_t row = rows->first; row < rows->end; row++) {
        for (int64_t column = columns->first; column < columns->end; column++) {
            double value =
                inf_ref_get(x, picture_at + (size_t)((row * dims[2] + column) * dims[3]));
            // A comparison with NaN is false, so max pooling skips NaN, as in TensorFlow.js.
            if (value > largest)
                largest = value;
            sum += value;
            count++;
        }
    }
    return attrs->kind == INF_POOL_MAX ? largest : sum / (double)count;
}

enum inf_code inf_ref_pool2d(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_window height, width;
    inf_node_windows(call->graph, call->node, &height, &width);
    struct inf_ref_walk walk; // visits the elements of y: [n, h', w', c]
    inf_ref_walk_init(&walk, y->shape);
    walk.strides[0][0] = x->shape->dims[1] * x->shape->dims[2] * x->shape->dims[3];
    walk.strides[0][3] = 1;
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        struct stretch rows = is_inside(&height, walk.index[1]);
        struct stretch columns = is_inside(&width, walk.index[2]);
        inf_ref_put(
            y, i,
            pool_window(x, &call->node->attrs.pool2d, (size_t)walk.offsets[0], &rows, &columns));
    }
    return INF_OK;
}
