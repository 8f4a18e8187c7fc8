// SPDX-License-Identifier: Apache-2.0
// Resizing pictures, with TensorFlow's three ways to align the pixels of the input and the output.
#include <math.h>

#include "backends/ref/kernels.h"

// Maps positions along one axis of y to positions along that axis of x.
struct scale {
    int64_t input;
    double ratio;
    bool align_corners, half_pixel_centers;
};

static struct scale scale_of(const struct inf_attrs_resize *attrs, int64_t input, int64_t output)
{
    bool corners = attrs->align_corners && output > 1;
    return (struct scale){
        .input = input,
        .ratio = (double)(corners ? input - 1 : input) / (double)(corners ? output - 1 : output),
        .align_corners = attrs->align_corners,
        .half_pixel_centers = attrs->half_pixel_centers,
    };
}

static int64_t clamp_index(double position, int64_t input)
{
    return (int64_t)fmin(fmax(position, 0), (double)(input - 1));
}

static int64_t resize_nearest(const struct scale *scale, int64_t position)
{
    double at = scale->ratio * ((double)position + (scale->half_pixel_centers ? 0.5 : 0.0));
    return clamp_index(scale->align_corners ? floor(at + 0.5) : floor(at), scale->input);
}

// The two elements next to a position, and the distance of the position from the first one as a
// fraction.
struct blend {
    int64_t low, high;
    double weight;
};

static struct blend blend_values(const struct scale *scale, int64_t position)
{
    double at = scale->half_pixel_centers ? scale->ratio * ((double)position + 0.5) - 0.5
                                          : scale->ratio * (double)position;
    struct blend result = {.low = clamp_index(floor(at), scale->input),
                           .high = clamp_index(ceil(at), scale->input)};
    result.weight = at - (double)result.low;
    return result;
}

static double mix_rows(double from, double to, double weight)
{
    return from + (to - from) * weight;
}

// Returns the number of the element [image, row, column, channel] in the row-major tensor x.
static size_t element_of(const struct inf_ref_tensor *x, const struct inf_ref_walk *walk,
                         int64_t row, int64_t column)
{
    const int64_t *dims = x->shape->dims;
    return (size_t)(((walk->index[0] * dims[1] + row) * dims[2] + column) * dims[3] +
                    walk->index[3]);
}

static double resize_bilinear(const struct inf_ref_tensor *x, const struct inf_ref_walk *walk,
                              const struct blend *row, const struct blend *column)
{
    double top_left = inf_ref_get(x, element_of(x, walk, row->low, column->low));
    double top_right = inf_ref_get(x, element_of(x, walk, row->low, column->high));
    double bottom_left = inf_ref_get(x, element_of(x, walk, row->high, column->low));
    double bottom_right = inf_ref_get(x, element_of(x, walk, row->high, column->high));
    return mix_rows(mix_rows(top_left, top_right, column->weight),
                    mix_rows(bottom_left, bottom_right, column->weight), row->weight);
}

enum inf_code inf_ref_resize(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_resize *attrs = &call->node->attrs.resize;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    if (x->count == 0 && y->count != 0)
        return inf_fail(err, INF_INVALID, "x has no elements to resize");
    struct scale height = scale_of(attrs, x->shape->dims[1], y->shape->dims[1]);
    struct scale width = scale_of(attrs, x->shape->dims[2], y->shape->dims[2]);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        if (attrs->kind == INF_RESIZE_NEAREST) {
            size_t at = element_of(x, &walk, resize_nearest(&height, walk.index[1]),
                                   resize_nearest(&width, walk.index[2]));
            inf_ref_copy(y, i, x, at, 1);
            continue;
        }
        struct blend row = blend_values(&height, walk.index[1]);
        struct blend column = blend_values(&width, walk.index[2]);
        inf_ref_put(y, i, resize_bilinear(x, &walk, &row, &column));
    }
    return INF_OK;
}
