// SPDX-License-Identifier: Apache-2.0
// Operators that sample pictures at positions that come from tensors: crop_and_resize, roi_align,
// grid_sample, image_transform. Clients send the positions, so each position is read once and
// clamped.
#include <inttypes.h>
#include <math.h>

#include "backends/ref/kernels.h"
#include "backends/ref/sample.h"

// Maximum number of samples along one axis in one output element (bin) of roi_align.
#define SAMPLES_MAX 4096

// Returns element [image, row, column, channel] of x. The indices must be within the shape of x.
static double read_pixel(const struct inf_ref_tensor *x, int64_t image, int64_t row, int64_t column,
                         int64_t channel)
{
    const int64_t *dims = x->shape->dims;
    return inf_ref_get(x,
                       (size_t)(((image * dims[1] + row) * dims[2] + column) * dims[3] + channel));
}

// Converts `value` to an index. This is safe even if `value` is NaN or far outside the axis.
static int64_t to_index(double value)
{
    return (int64_t)fmin(fmax(value, -1e9), 1e9);
}

static enum inf_code no_picture(int64_t index, size_t at, int64_t pictures, struct inf_error *err)
{
    return inf_fail(err, INF_INVALID,
                    "index %" PRId64 " (element %zu of the indices) is outside [0, %" PRId64 ")",
                    index, at, pictures);
}

// --- the crop_and_resize operator ---

// Returns the position of element `i` of `output` along an axis of `input` elements, between the
// fractions `from` and `to` of the axis.
static double crop_coordinate(double from, double to, int64_t input, int64_t output, int64_t i)
{
    double last = (double)(input - 1);
    if (output > 1)
        return from * last + (double)i * ((to - from) * last / (double)(output - 1));
    return (from + to) / 2 * last;
}

static double crop_value(const struct inf_ref_tensor *x, bool nearest, double row, double column,
                         int64_t image, int64_t channel)
{
    if (nearest)
        return read_pixel(x, image, (int64_t)floor(row + 0.5), (int64_t)floor(column + 0.5),
                          channel);
    int64_t top = (int64_t)floor(row), bottom = (int64_t)ceil(row);
    int64_t left = (int64_t)floor(column), right = (int64_t)ceil(column);
    double down = row - (double)top, across = column - (double)left;
    double above = read_pixel(x, image, top, left, channel) * (1 - across) +
                   read_pixel(x, image, top, right, channel) * across;
    double below = read_pixel(x, image, bottom, left, channel) * (1 - across) +
                   read_pixel(x, image, bottom, right, channel) * across;
    return above * (1 - down) + below * down;
}

enum inf_code inf_ref_crop_and_resize(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_crop_and_resize *attrs = &call->node->attrs.crop_and_resize;
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const int64_t *in = x->shape->dims, *out = y->shape->dims;
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t box = (size_t)walk.index[0];
        int64_t image = inf_ref_index(&call->inputs[2], box);
        if (image < 0 || image >= in[0])
            return no_picture(image, box, in[0], err);
        double edges[4];
        for (size_t j = 0; j < 4; j++)
            edges[j] = inf_ref_get(&call->inputs[1], 4 * box + j);
        double row = crop_coordinate(edges[0], edges[2], in[1], out[1], walk.index[1]);
        double column = crop_coordinate(edges[1], edges[3], in[2], out[2], walk.index[2]);
        bool inside =
            row >= 0 && row <= (double)(in[1] - 1) && column >= 0 && column <= (double)(in[2] - 1);
        inf_ref_put(y, i,
                    inside ? crop_value(x, attrs->kind == INF_RESIZE_NEAREST, row, column, image,
                                        walk.index[3])
                           : attrs->extrapolation);
    }
    return INF_OK;
}

// --- the roi_align operator ---

// One region of a picture, which roi_align divides into bins (one bin per output element).
struct region {
    const struct inf_ref_tensor *x;
    int64_t image;
    // top left corner of the region, and height and width of one bin, in pixels of x
    double top, left, bin_h, bin_w;
    int64_t samples_h, samples_w;
};

static enum inf_code read_region(const struct inf_ref_call *call, size_t index,
                                 struct region *region, struct inf_error *err)
{
    const struct inf_attrs_roi_align *attrs = &call->node->attrs.roi_align;
    *region =
        (struct region){.x = &call->inputs[0], .image = inf_ref_index(&call->inputs[2], index)};
    if (region->image < 0 || region->image >= region->x->shape->dims[0])
        return no_picture(region->image, index, region->x->shape->dims[0], err);
    double edges[4];
    for (size_t i = 0; i < 4; i++)
        edges[i] = inf_ref_get(&call->inputs[1], 4 * index + i) * attrs->scale -
                   (attrs->half_pixel ? 0.5 : 0);
    double least = attrs->half_pixel ? -INFINITY : 1;
    region->left = edges[0];
    region->top = edges[1];
    region->bin_w = fmax(edges[2] - edges[0], least) / attrs->output_w;
    region->bin_h = fmax(edges[3] - edges[1], least) / attrs->output_h;
    region->samples_w = attrs->samples > 0 ? attrs->samples : to_index(ceil(region->bin_w));
    region->samples_h = attrs->samples > 0 ? attrs->samples : to_index(ceil(region->bin_h));
    if (region->samples_w > SAMPLES_MAX || region->samples_h > SAMPLES_MAX)
        return inf_fail(err, INF_INVALID,
                        "region %zu has %" PRId64 " by %" PRId64
                        " pixels for one place, wanted at most %d",
                        index, region->samples_h, region->samples_w, SAMPLES_MAX);
    return INF_OK;
}

// Computes the values of the four pixels around a position, each times its interpolation weight.
// All four are 0 if the position is outside the picture.
static void find_neighbours(const struct inf_ref_tensor *x, int64_t image, int64_t channel,
                            double row, double column, double values[4])
{
    int64_t height = x->shape->dims[1], width = x->shape->dims[2];
    memset(values, 0, 4 * sizeof(*values));
    if (!(row >= -1 && row <= (double)height && column >= -1 && column <= (double)width))
        return;
    row = fmin(fmax(row, 0), (double)(height - 1));
    column = fmin(fmax(column, 0), (double)(width - 1));
    int64_t top = (int64_t)row, left = (int64_t)column;
    int64_t bottom = INF_MIN(top + 1, height - 1), right = INF_MIN(left + 1, width - 1);
    double down = row - (double)top, across = column - (double)left;
    values[0] = (1 - down) * (1 - across) * read_pixel(x, image, top, left, channel);
    values[1] = (1 - down) * across * read_pixel(x, image, top, right, channel);
    values[2] = down * (1 - across) * read_pixel(x, image, bottom, left, channel);
    values[3] = down * across * read_pixel(x, image, bottom, right, channel);
}

static double region_value(const struct region *region, bool largest, const int64_t *index)
{
    double sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < region->samples_h; i++) {
        double row = region->top + region->bin_h * ((double)index[1] +
                                                    ((double)i + 0.5) / (double)region->samples_h);
        for (int64_t j = 0; j < region->samples_w; j++) {
            double column =
                region->left +
                region->bin_w * ((double)index[2] + ((double)j + 0.5) / (double)region->samples_w);
            double values[4];
            find_neighbours(region->x, region->image, index[3], row, column, values);
            sum += values[0] + values[1] + values[2] + values[3];
            for (int k = 0; k < 4; k++)
                most = fmax(most, values[k]);
        }
    }
    int64_t count = INF_MAX(region->samples_h, (int64_t)0) * INF_MAX(region->samples_w, (int64_t)0);
    if (largest)
        return count > 0 ? most : 0;
    return sum / (double)INF_MAX(count, (int64_t)1);
}

enum inf_code inf_ref_roi_align(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_roi_align *attrs = &call->node->attrs.roi_align;
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct region region = {0};
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    size_t each = inf_ref_extent(y->shape, 1, 4);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        if (i % each == 0)
            INF_TRY(read_region(call, i / each, &region, err));
        bool empty = region.x->shape->dims[1] == 0 || region.x->shape->dims[2] == 0;
        inf_ref_put(y, i,
                    empty ? 0 : region_value(&region, attrs->kind == INF_POOL_MAX, walk.index));
    }
    return INF_OK;
}

// --- the grid_sample operator ---

// Reflects the coordinate `at` at the bounds `low` and `high` until it lies in [low, high].
static double reflect_coordinate(double at, double low, double high)
{
    double range = high - low;
    if (range <= 0)
        return low;
    double distance = fabs(at - low), over = fmod(distance, range);
    return fmod(floor(distance / range), 2) == 0 ? low + over : high - over;
}

// Converts a coordinate of -1 to 1 to pixels along an axis of `size` pixels; applies the border
// mode.
static double place_coordinate(const struct inf_attrs_grid_sample *attrs, double at, int64_t size)
{
    double last = (double)(size - 1);
    double low = attrs->align_corners ? 0 : -0.5, high = attrs->align_corners ? last : last + 0.5;
    double result = attrs->align_corners ? (at + 1) / 2 * last : ((at + 1) * (double)size - 1) / 2;
    if (attrs->kind == INF_SAMPLE_NEAREST)
        result = nearbyint(result);
    result = fmin(fmax(result, -1e9), 1e9);
    if (result >= low && result <= high)
        return result;
    if (attrs->border == INF_BORDER_EDGE)
        return fmin(fmax(result, 0), last);
    return attrs->border == INF_BORDER_REFLECT ? reflect_coordinate(result, low, high) : result;
}

// Applies the border mode to an index of a row or column. Returns false if the index is still
// outside the picture.
static bool bring_inside(const struct inf_attrs_grid_sample *attrs, int64_t *index, int64_t size)
{
    if (*index >= 0 && *index < size)
        return true;
    if (attrs->border == INF_BORDER_CONSTANT)
        return false;
    double last = (double)(size - 1), at = (double)*index;
    if (attrs->border == INF_BORDER_REFLECT)
        at = attrs->align_corners ? reflect_coordinate(at, 0, last)
                                  : reflect_coordinate(at, -0.5, last + 0.5);
    *index = to_index(fmin(fmax(nearbyint(at), 0), last));
    return true;
}

static double tap_weight(enum inf_sample_kind kind, double distance)
{
    if (kind == INF_SAMPLE_NEAREST)
        return 1;
    return kind == INF_SAMPLE_LINEAR ? fmax(1 - fabs(distance), 0) : inf_ref_cubic(distance, -0.75);
}

static double grid_value(const struct inf_attrs_grid_sample *attrs, const struct inf_ref_tensor *x,
                         double row, double column, const int64_t *index)
{
    static const int64_t half[] = {
        [INF_SAMPLE_NEAREST] = 0, [INF_SAMPLE_LINEAR] = 1, [INF_SAMPLE_CUBIC] = 2};
    int64_t before = half[attrs->kind] - (attrs->kind != INF_SAMPLE_NEAREST);
    int64_t top = to_index(floor(row)), left = to_index(floor(column));
    double sum = 0;
    for (int64_t i = -before; i <= half[attrs->kind]; i++) {
        for (int64_t j = -before; j <= half[attrs->kind]; j++) {
            int64_t at_row = top + i, at_column = left + j;
            double weight = tap_weight(attrs->kind, row - (double)at_row) *
                            tap_weight(attrs->kind, column - (double)at_column);
            if (bring_inside(attrs, &at_row, x->shape->dims[1]) &&
                bring_inside(attrs, &at_column, x->shape->dims[2]))
                sum += weight * read_pixel(x, index[0], at_row, at_column, index[3]);
        }
    }
    return sum;
}

enum inf_code inf_ref_grid_sample(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_grid_sample *attrs = &call->node->attrs.grid_sample;
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    size_t channels = (size_t)y->shape->dims[3];
    bool empty = x->shape->dims[1] == 0 || x->shape->dims[2] == 0;
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t at = i / channels * 2;
        double column =
            place_coordinate(attrs, inf_ref_get(&call->inputs[1], at), x->shape->dims[2]);
        double row =
            place_coordinate(attrs, inf_ref_get(&call->inputs[1], at + 1), x->shape->dims[1]);
        inf_ref_put(y, i, empty ? 0 : grid_value(attrs, x, row, column, walk.index));
    }
    return INF_OK;
}

// --- the image_transform operator ---

// Applies TensorFlow's fill modes to a coordinate along an axis of `size` pixels. As in TensorFlow,
// the period of wrapping is one pixel less than `size`.
static double bring_coordinate(enum inf_border_mode border, double at, int64_t size)
{
    double length = (double)size, last = length - 1;
    if (border == INF_BORDER_CONSTANT)
        return at;
    if (size <= 1)
        return 0;
    if (border == INF_BORDER_WRAP && at < 0)
        at += length * (trunc(-at / last) + 1);
    else if (border == INF_BORDER_WRAP && at > last)
        at -= length * trunc(at / last);
    if (border == INF_BORDER_REFLECT && at < 0) {
        at += 2 * length * trunc(-at / (2 * length));
        at = at < -length ? at + 2 * length : -at - 1;
    } else if (border == INF_BORDER_REFLECT && at > last) {
        at -= 2 * length * trunc(at / (2 * length));
        at = at >= length ? 2 * length - at - 1 : at;
    }
    return fmin(fmax(at, 0), last);
}

static double pixel_or(const struct inf_ref_tensor *x, const int64_t *index, double row,
                       double column, double otherwise)
{
    if (!(row >= 0 && row < (double)x->shape->dims[1] && column >= 0 &&
          column < (double)x->shape->dims[2]))
        return otherwise;
    return read_pixel(x, index[0], (int64_t)row, (int64_t)column, index[3]);
}

static double transform_point(const struct inf_attrs_image_transform *attrs,
                              const struct inf_ref_tensor *x, const double *t, const int64_t *index)
{
    double i = (double)index[1], j = (double)index[2], fill = attrs->fill;
    double divisor = t[6] * j + t[7] * i + 1;
    if (divisor == 0)
        return fill;
    double column =
        bring_coordinate(attrs->border, (t[0] * j + t[1] * i + t[2]) / divisor, x->shape->dims[2]);
    double row =
        bring_coordinate(attrs->border, (t[3] * j + t[4] * i + t[5]) / divisor, x->shape->dims[1]);
    if (attrs->kind == INF_RESIZE_NEAREST)
        return pixel_or(x, index, floor(row + 0.5), floor(column + 0.5), fill);
    double top = floor(row), left = floor(column);
    double down = row - top, across = column - left;
    double above = (1 - across) * pixel_or(x, index, top, left, fill) +
                   across * pixel_or(x, index, top, left + 1, fill);
    double below = (1 - across) * pixel_or(x, index, top + 1, left, fill) +
                   across * pixel_or(x, index, top + 1, left + 1, fill);
    return (1 - down) * above + down * below;
}

enum inf_code inf_ref_image_transform(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    const struct inf_ref_tensor *transforms = &call->inputs[1];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t row = transforms->shape->dims[0] == 1 ? 0 : (size_t)walk.index[0];
        double t[8];
        for (size_t j = 0; j < 8; j++)
            t[j] = inf_ref_get(transforms, 8 * row + j);
        inf_ref_put(y, i, transform_point(&call->node->attrs.image_transform, x, t, walk.index));
    }
    return INF_OK;
}
