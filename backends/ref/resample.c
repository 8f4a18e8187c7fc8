// SPDX-License-Identifier: Apache-2.0
// Resizing in any number of dimensions, as ONNX defines it. The weights for one axis depend only on
// the position along that axis, and an element is the weighted sum over the taps of all axes.
#include <math.h>

#include "backends/ref/kernels.h"
#include "backends/ref/sample.h"

// The place along one axis of x from which one element of y is interpolated. `taps` elements of x
// contribute to it, from element `first` on; the other members determine their weights.
struct position {
    int64_t first, taps; // taps may be outside of x
    double fraction;     // distance from tap -first of the filter's window to the position
    double stretch;      // 1, or less if the filter is widened for downscaling
    double sum;          // sum of the weights of all taps that are used
    bool outside;        // the position is outside of x, so the result is the extrapolation value
};

struct resample {
    const struct inf_attrs_resample *attrs;
    const struct inf_ref_tensor *x;
    int64_t strides[INF_LIMIT_RANK];
    struct position positions[INF_LIMIT_RANK];
};

double inf_ref_cubic(double distance, double a)
{
    double x = fabs(distance);
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Returns the position along `axis` of x that corresponds to element `i` of that axis of y.
static double source_coordinate(const struct inf_ref_call *call, int32_t axis, int64_t i)
{
    double input = (double)call->inputs[0].shape->dims[axis];
    double output = (double)call->outputs[0].shape->dims[axis], at = (double)i;
    double scale =
        inf_ref_has_input(call, 2) ? inf_ref_get(&call->inputs[2], (size_t)axis) : output / input;
    double half_pixel = (at + 0.5) / scale - 0.5;
    // The length of y along this axis as the model's scale gives it; the size of y is rounded.
    double length = inf_ref_has_input(call, 2) ? input * scale : output;
    switch (call->node->attrs.resample.coordinates) {
    case INF_COORDINATES_HALF_PIXEL_SYMMETRIC:
        return input / 2 * (1 - output / (scale * input)) + half_pixel;
    case INF_COORDINATES_PYTORCH_HALF_PIXEL:
        return output > 1 ? half_pixel : 0;
    case INF_COORDINATES_ALIGN_CORNERS:
        return output > 1 && length != 1 ? at * (input - 1) / (length - 1) : 0;
    case INF_COORDINATES_ASYMMETRIC:
        return at / scale;
    case INF_COORDINATES_HALF_PIXEL_FOR_NEAREST:
        return (at + 0.5) / scale;
    case INF_COORDINATES_CROP: {
        const struct inf_ref_tensor *roi = &call->inputs[3];
        double start = inf_ref_get(roi, (size_t)axis);
        double end = inf_ref_get(roi, (size_t)(axis + call->inputs[0].shape->rank));
        return output > 1 ? start * (input - 1) + at * (end - start) * (input - 1) / (output - 1)
                          : (start + end) / 2 * (input - 1);
    }
    default:
        return half_pixel;
    }
}

static double round_coordinate(enum inf_rounding rounding, double at)
{
    switch (rounding) {
    case INF_ROUNDING_PREFER_CEIL:
        return floor(at + 0.5);
    case INF_ROUNDING_FLOOR:
        return floor(at);
    case INF_ROUNDING_CEIL:
        return ceil(at);
    default:
        return ceil(at - 0.5);
    }
}

// Returns the weight of tap `tap` (counted from 0) of a position; the tap may be outside of x.
static double filter_weight(const struct inf_attrs_resample *attrs, const struct position *position,
                            int64_t tap)
{
    double distance = ((double)tap - position->fraction) * position->stretch;
    switch (attrs->kind) {
    case INF_SAMPLE_LINEAR:
        return fmax(1 - fabs(distance), 0);
    case INF_SAMPLE_CUBIC:
        return inf_ref_cubic(distance, attrs->cubic_a);
    default:
        return 1;
    }
}

static double tap_weight(const struct resample *resample, int32_t axis, int64_t tap)
{
    const struct position *position = &resample->positions[axis];
    int64_t at = position->first + tap;
    bool outside = at < 0 || at >= resample->x->shape->dims[axis];
    if (outside && resample->attrs->exclude_outside)
        return 0;
    return filter_weight(resample->attrs, position, tap) / position->sum;
}

// Computes the position for element `i` of y. Coordinates are clamped so that they fit in int64.
static void settle_weights(const struct inf_ref_call *call, struct resample *resample, int32_t axis,
                           int64_t i)
{
    const struct inf_attrs_resample *attrs = resample->attrs;
    struct position *position = &resample->positions[axis];
    double input = (double)resample->x->shape->dims[axis];
    double output = (double)call->outputs[0].shape->dims[axis];
    double at = fmin(fmax(source_coordinate(call, axis, i), -1e15), 1e15);
    *position = (struct position){.taps = 1, .stretch = 1, .sum = 1};
    position->outside = attrs->coordinates == INF_COORDINATES_CROP && (at < 0 || at > input - 1);
    if (attrs->kind == INF_SAMPLE_NEAREST) {
        position->first = (int64_t)round_coordinate(attrs->rounding, at);
        return;
    }
    double scale =
        inf_ref_has_input(call, 2) ? inf_ref_get(&call->inputs[2], (size_t)axis) : output / input;
    if (attrs->antialias && scale < 1)
        position->stretch = fmax(scale, 1e-6);
    int64_t half = (int64_t)ceil((attrs->kind == INF_SAMPLE_CUBIC ? 2 : 1) / position->stretch);
    position->first = (int64_t)floor(at) + 1 - half;
    position->taps = 2 * half;
    position->fraction = at - (double)position->first;
    double sum = 0;
    for (int64_t tap = 0; tap < position->taps; tap++)
        sum += tap_weight(resample, axis, tap);
    position->sum = sum;
}

// Returns the weighted sum over the taps of the axes from `axis` on, in the part of x that starts
// at `base`.
static double sum_taps(const struct resample *resample, int32_t axis, size_t base)
{
    if (axis == resample->x->shape->rank)
        return inf_ref_get(resample->x, base);
    const struct position *position = &resample->positions[axis];
    double sum = 0;
    for (int64_t tap = 0; tap < position->taps; tap++) {
        double weight = tap_weight(resample, axis, tap);
        if (weight == 0)
            continue;
        int64_t last = resample->x->shape->dims[axis] - 1;
        int64_t at = INF_MIN(INF_MAX(position->first + tap, (int64_t)0), last);
        sum += weight * sum_taps(resample, axis + 1, base + (size_t)(at * resample->strides[axis]));
    }
    return sum;
}

enum inf_code inf_ref_resample(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct resample resample = {.attrs = &call->node->attrs.resample, .x = &call->inputs[0]};
    inf_shape_strides(resample.x->shape, resample.strides);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        bool outside = false;
        for (int32_t axis = 0; axis < walk.rank; axis++) {
            // The walk is in row-major order, so from one element to the next most axes keep their
            // position. Compute only the positions that changed.
            bool moved = i == 0 || axis == walk.rank - 1 || walk.index[axis + 1] == 0;
            if (moved)
                settle_weights(call, &resample, axis, walk.index[axis]);
            outside = outside || resample.positions[axis].outside;
        }
        inf_ref_put(y, i, outside ? resample.attrs->extrapolation : sum_taps(&resample, 0, 0));
    }
    return INF_OK;
}
