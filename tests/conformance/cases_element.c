// SPDX-License-Identifier: Apache-2.0
// Makes cases for operators that gather or scatter elements, have windows of any rank, resample,
// normalise, quantise, or are recurrent.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/conformance/cases.h"

static struct inf_shape add_x(struct one_node *one, struct random *random, unsigned types,
                              int32_t rank_min, int32_t rank_max)
{
    struct operand x = {.dtype = random_dtype(random, types),
                        .shape = random_shape(random, random_rank(random, rank_min, rank_max)),
                        .extremes = EXTREME_ZERO};
    add_operand(one, random, &x);
    return x.shape;
}

// Adds an operand with the same element type as input 0 and with random elements.
static void add_like(struct one_node *one, struct random *random, struct inf_shape shape)
{
    struct operand operand = {.dtype = one->inputs[0].dtype, .shape = shape};
    add_operand(one, random, &operand);
}

static void add_scalar(struct one_node *one, int32_t value)
{
    one_node_const(one, INF_DTYPE_I32, (struct inf_shape){0}, &value);
}

// Adds an operand of i32 indices below `bound`.
static void add_indices(struct one_node *one, struct random *random, struct inf_shape shape,
                        const int64_t *bounds, int64_t columns)
{
    int32_t indices[CASE_ELEMENTS_MAX];
    size_t count = inf_shape_elements(&shape);
    cr_assert_leq(count, INF_ARRAY_LENGTH(indices));
    for (size_t i = 0; i < count; i++) {
        int64_t bound = bounds[i % (size_t)columns];
        indices[i] = bound == 0 ? 0 : (int32_t)random_in(random, 0, bound - 1);
    }
    one_node_input(one, INF_DTYPE_I32, shape, indices);
}

// Returns true if none of the first `count` axes is empty, so that valid indices exist.
static bool has_elements(const int64_t *dims, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (dims[i] == 0)
            return false;
    return true;
}

static int32_t axis_in(struct random *random, int32_t rank)
{
    return (int32_t)random_in(random, -rank, rank - 1);
}

void make_reverse(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_ANY, 0, 5);
    struct inf_ints *axes = &one->attrs.reverse.axes;
    for (int32_t i = 0; i < shape.rank; i++)
        if ((number >> i & 1) != 0)
            axes->values[axes->count++] = i;
}

void make_reverse_sequence(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_ANY, 2, 4);
    one->attrs.reverse_sequence.axis = (int32_t)(number % 2);
    one->attrs.reverse_sequence.batch_axis = 1 - (int32_t)(number % 2);
    int64_t bound = shape.dims[number % 2] + 2;
    add_indices(one, random, INF_SHAPE(shape.dims[1 - number % 2]), &bound, 1);
}

void make_cumulate(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_NUMBER, 1, 4);
    one->attrs.cumulate.kind = (enum inf_cumulate_kind)(number % INF_CUMULATE_COUNT);
    one->attrs.cumulate.axis = axis_in(random, shape.rank);
    one->attrs.cumulate.exclusive = random_once_in(random, 2);
    one->attrs.cumulate.reverse = random_once_in(random, 2);
}

void make_topk(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_NUMBER, 1, 4);
    int32_t axis = (int32_t)random_in(random, 0, shape.rank - 1);
    one->output_count = 2;
    one->attrs.topk.axis = axis;
    one->attrs.topk.smallest = number % 3 == 0;
    add_scalar(one, (int32_t)random_in(random, 0, shape.dims[axis]));
}

void make_search_sorted(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_NUMBER, 1, 3);
    shape.dims[shape.rank - 1] = random_in(random, 0, 7);
    one->attrs.search_sorted.right = number % 2 == 0;
    add_like(one, random, shape);
}

void make_pair_coupling(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = INF_SHAPE(random_in(random, 0, 5), 1 + number % 7, 1 + number % 7),
                        .filling = FILL_POSITIVE};
    add_operand(one, random, &x);
}

// Boxes on a grid of quarters, so that overlaps at the threshold and equal scores occur; a third of
// the cases has pictures and classes.
void make_nms(struct one_node *one, struct random *random, uint32_t number)
{
    int64_t count = random_in(random, 0, 70);
    float threshold = (float)random_in(random, 0, 4) / 4, lowest = (float)(number % 3) - 1;
    unsigned extremes = number % 5 == 0 ? EXTREME_ALL : EXTREME_ZERO;
    bool is_grouped = number / 3 % 3 == 0;
    int64_t pictures = random_in(random, 0, 3), classes = random_in(random, 1, 4);
    struct operand boxes = {.dtype = INF_DTYPE_F32,
                            .shape =
                                is_grouped ? INF_SHAPE(pictures, count, 4) : INF_SHAPE(count, 4),
                            .filling = FILL_QUARTERS,
                            .extremes = extremes};
    struct operand scores = {.dtype = INF_DTYPE_F32,
                             .shape = is_grouped ? INF_SHAPE(pictures, classes, count)
                                                 : INF_SHAPE(count),
                             .filling = number % 2 == 0 ? FILL_QUARTERS : FILL_UNIFORM,
                             .extremes = extremes};
    one->output_count = 3;
    one->attrs.nms.pad = true;
    one->attrs.nms.strict = number % 4 < 2;
    add_operand(one, random, &boxes);
    add_operand(one, random, &scores);
    add_scalar(one, (int32_t)random_in(random, 0, 80));
    one_node_const(one, INF_DTYPE_F32, (struct inf_shape){0}, &threshold);
    one_node_const(one, INF_DTYPE_F32, (struct inf_shape){0}, &lowest);
}

void make_bincount(struct one_node *one, struct random *random, uint32_t number)
{
    int32_t size = (int32_t)random_in(random, 0, 9);
    int64_t bound = 12;
    struct inf_shape shape = random_shape(random, random_rank(random, 1, 2));
    add_indices(one, random, shape, &bound, 1);
    add_scalar(one, size);
    struct operand weights = {.dtype = INF_DTYPE_F32,
                              .shape = number % 2 == 0 ? shape : INF_SHAPE(0),
                              .filling = FILL_QUARTERS};
    add_operand(one, random, &weights);
    one->attrs.bincount.binary = random_once_in(random, 3);
}

void make_one_hot(struct one_node *one, struct random *random, uint32_t number)
{
    const float on = 2, off = -1;
    int64_t bound = 9;
    struct inf_shape shape = random_shape(random, random_rank(random, 0, 3));
    add_indices(one, random, shape, &bound, 1);
    add_scalar(one, (int32_t)random_in(random, 0, 9));
    one_node_const(one, INF_DTYPE_F32, (struct inf_shape){0}, &on);
    one_node_const(one, INF_DTYPE_F32, (struct inf_shape){0}, &off);
    one->attrs.one_hot.axis = axis_in(random, shape.rank + 1);
    one->attrs.one_hot.from_end = number % 2 == 0;
}

void make_band(struct one_node *one, struct random *random, uint32_t number)
{
    add_x(one, random, DTYPES_ANY, 2, 4);
    if (number % 3 != 0)
        one->attrs.band.low = (int32_t)random_in(random, -4, 2);
    if (number % 3 != 1)
        one->attrs.band.high = (int32_t)random_in(random, -2, 4);
}

void make_gather_nd(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_ANY, 1, 4);
    int32_t shared = number % 4 == 0 ? 1 : 0;
    int64_t depth = random_in(random, 1, shape.rank);
    one->attrs.gather_nd.batch_dims = shared;
    struct inf_shape picks = INF_SHAPE(shared ? shape.dims[0] : random_in(random, 0, 7), depth);
    if (depth + shared <= shape.rank && has_elements(shape.dims, shape.rank))
        add_indices(one, random, picks, shape.dims + shared, depth);
}

void make_scatter_nd(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_NUMBER, 1, 4);
    int64_t depth = random_in(random, 1, shape.rank);
    int64_t rows = has_elements(shape.dims, depth) ? random_in(random, 0, 7) : 0;
    one->attrs.scatter_nd.kind = (enum inf_scatter_kind)(number % INF_SCATTER_COUNT);
    add_indices(one, random, INF_SHAPE(rows, depth), shape.dims, depth);
    struct inf_shape updates = {.rank = shape.rank - (int32_t)depth + 1, .dims = {rows}};
    memcpy(&updates.dims[1], &shape.dims[depth], sizeof(int64_t) * (size_t)(shape.rank - depth));
    add_like(one, random, updates);
}

void make_append(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_ANY, 1, 4);
    int32_t axis = (int32_t)random_in(random, 0, shape.rank - 1);
    bool several = number % 3 == 0 && axis > 0;
    struct inf_shape rows = shape;
    rows.dims[axis] = random_in(random, 0, shape.dims[axis]);
    int64_t bound = shape.dims[axis] - rows.dims[axis] + 1;
    one->attrs.append.axis = number % 2 == 0 ? axis : axis - shape.rank;
    one->attrs.append.ring = number % 4 >= 2;
    if (one->attrs.append.ring)
        bound = 3 * shape.dims[axis];
    add_indices(one, random, INF_SHAPE(several ? shape.dims[0] : 1), &bound, 1);
    add_like(one, random, rows);
}

void make_gather_elements(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct inf_shape shape = add_x(one, random, DTYPES_ANY, 1, 4), picks = shape;
    int32_t axis = (int32_t)random_in(random, 0, shape.rank - 1);
    one->attrs.gather_elements.axis = axis;
    picks.dims[axis] = random_in(random, 0, INF_MIN(shape.dims[axis], (int64_t)5));
    add_indices(one, random, picks, &shape.dims[axis], 1);
}

void make_scatter_elements(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_NUMBER, 1, 4), places = shape;
    int32_t axis = (int32_t)random_in(random, 0, shape.rank - 1);
    one->attrs.scatter_elements.axis = axis;
    one->attrs.scatter_elements.kind = (enum inf_scatter_kind)(number % INF_SCATTER_COUNT);
    places.dims[axis] = random_in(random, 0, INF_MIN(shape.dims[axis], (int64_t)5));
    add_indices(one, random, places, &shape.dims[axis], 1);
    add_like(one, random, places);
}

// Adds the block sizes for two axes of x [n,h,w,c], and the paddings or crops of those axes as
// [2,2].
static void add_blocks(struct one_node *one, const int32_t *blocks, const int32_t *edges)
{
    add_list(one, blocks, 2);
    one_node_const(one, INF_DTYPE_I32, INF_SHAPE(2, 2), edges);
}

void make_space_to_batch(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    int32_t blocks[2], edges[4];
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, 4)};
    for (int i = 0; i < 2; i++) {
        blocks[i] = (int32_t)random_in(random, 1, 3);
        edges[2 * i] = (int32_t)random_in(random, 0, 2);
        int64_t rest = (x.shape.dims[1 + i] + edges[2 * i]) % blocks[i];
        edges[2 * i + 1] = rest == 0 ? 0 : blocks[i] - (int32_t)rest;
    }
    add_operand(one, random, &x);
    add_blocks(one, blocks, edges);
}

void make_batch_to_space(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    int32_t blocks[2] = {(int32_t)random_in(random, 1, 3), (int32_t)random_in(random, 1, 3)};
    int32_t edges[4] = {(int32_t)random_in(random, 0, 1), 0, 0, (int32_t)random_in(random, 0, 1)};
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, 4)};
    x.shape.dims[0] = blocks[0] * blocks[1];
    add_operand(one, random, &x);
    add_blocks(one, blocks, edges);
}

// Returns a list of `axes` random numbers in [low, high], one for each axis.
static struct inf_ints random_list(struct random *random, int32_t axes, int64_t low, int64_t high)
{
    struct inf_ints list = {.count = axes};
    for (int32_t i = 0; i < axes; i++)
        list.values[i] = random_in(random, low, high);
    return list;
}

// Returns the shape [n,spatial...,c] of a picture with `axes` spatial axes.
static struct inf_shape draw_picture_shape(struct random *random, int32_t axes, int64_t channels)
{
    struct inf_shape shape = {.rank = axes + 2, .dims = {random_in(random, 1, 2)}};
    for (int32_t i = 0; i < axes; i++)
        shape.dims[1 + i] = random_in(random, 1, 7);
    shape.dims[axes + 1] = channels;
    random_wished_shape(random, shape.rank, &shape);
    return shape;
}

void make_conv_nd(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_conv_nd *attrs = &one->attrs.conv_nd;
    int32_t axes = 1 + (int32_t)(number % 3);
    attrs->groups = (int32_t)random_in(random, 1, 2);
    int64_t in = random_in(random, 1, 9), out = random_in(random, 1, 20) * attrs->groups;
    attrs->strides = random_list(random, axes, 1, 3);
    attrs->dilations = random_list(random, axes, 1, 2);
    attrs->padding = (enum inf_padding)random_in(random, 0, INF_PADDING_COUNT - 1);
    attrs->pads_before = random_list(random, axes, 0, 2);
    attrs->pads_after = random_list(random, axes, 0, 2);
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = draw_picture_shape(random, axes, in * attrs->groups)};
    struct inf_shape filter = {.rank = axes + 2};
    for (int32_t i = 0; i < axes; i++)
        filter.dims[i] = random_in(random, 1, 3);
    filter.dims[axes] = in;
    filter.dims[axes + 1] = out;
    struct operand w = {.dtype = x.dtype,
                        .shape = filter,
                        .filling = FILL_UNIT,
                        .constant = !random_once_in(random, 4)};
    struct operand bias = {.dtype = x.dtype, .shape = INF_SHAPE(out), .constant = w.constant};
    add_operand(one, random, &x);
    add_operand(one, random, &w);
    if (random_once_in(random, 2))
        add_operand(one, random, &bias);
}

void make_conv_nd_transpose(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_conv_nd_transpose *attrs = &one->attrs.conv_nd_transpose;
    int32_t axes = 1 + (int32_t)(number % 3), size[INF_LIMIT_RANK];
    attrs->groups = (int32_t)random_in(random, 1, 2);
    int64_t in = random_in(random, 1, 9) * attrs->groups, out = random_in(random, 1, 9);
    attrs->strides = random_list(random, axes, 1, 3);
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = draw_picture_shape(random, axes, in)};
    struct inf_shape filter = {.rank = axes + 2};
    size[0] = (int32_t)x.shape.dims[0];
    for (int32_t i = 0; i < axes; i++) {
        filter.dims[i] = random_in(random, 1, 3);
        size[1 + i] =
            (int32_t)((x.shape.dims[1 + i] - 1) * attrs->strides.values[i] + filter.dims[i]);
    }
    filter.dims[axes] = out;
    filter.dims[axes + 1] = in;
    size[axes + 1] = (int32_t)out * attrs->groups;
    struct operand w = {.dtype = x.dtype,
                        .shape = filter,
                        .filling = FILL_UNIT,
                        .constant = !random_once_in(random, 4)};
    struct operand bias = {
        .dtype = x.dtype, .shape = INF_SHAPE(size[axes + 1]), .constant = number % 4 == 0};
    add_operand(one, random, &x);
    add_operand(one, random, &w);
    add_list(one, size, axes + 2);
    if (random_once_in(random, 2))
        add_operand(one, random, &bias);
}

void make_pool_nd(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_pool_nd *attrs = &one->attrs.pool_nd;
    int32_t axes = 1 + (int32_t)(number / INF_POOL_COUNT % 3);
    attrs->kind = (enum inf_pool_kind)(number % INF_POOL_COUNT);
    one->output_count = attrs->kind == INF_POOL_MAX && random_once_in(random, 2) ? 2 : 1;
    attrs->kernel = random_list(random, axes, 1, 3);
    attrs->strides = random_list(random, axes, 1, 3);
    attrs->dilations = random_list(random, axes, 1, 2);
    attrs->padding = (enum inf_padding)random_in(random, 0, INF_PADDING_COUNT - 1);
    attrs->pads_before = random_list(random, axes, 0, 2);
    attrs->pads_after = random_list(random, axes, 0, 2);
    attrs->ceil = random_once_in(random, 3);
    attrs->count_padding = random_once_in(random, 3);
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER),
                        .shape = draw_picture_shape(random, axes, random_in(random, 1, 5))};
    add_operand(one, random, &x);
}

void make_dilation2d(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_dilation2d *attrs = &one->attrs.dilation2d;
    attrs->padding = (enum inf_padding)(number % INF_PADDING_COUNT);
    attrs->stride_h = (int32_t)random_in(random, 1, 2);
    attrs->dilation_w = (int32_t)random_in(random, 1, 2);
    attrs->pad_top = (int32_t)random_in(random, 0, 2);
    int64_t channels = random_in(random, 1, 5);
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = draw_picture_shape(random, 2, channels)};
    add_operand(one, random, &x);
    add_like(one, random, INF_SHAPE(random_in(random, 1, 3), random_in(random, 1, 3), channels));
}

void make_lrn(struct one_node *one, struct random *random, uint32_t number)
{
    add_x(one, random, DTYPES_FLOAT, 1, 4);
    one->attrs.lrn.before = (int32_t)random_in(random, 0, 3);
    one->attrs.lrn.after = (int32_t)random_in(random, 0, 3);
    one->attrs.lrn.beta = number % 2 == 0 ? 0.75f : 0.5f;
}

void make_normalize(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = add_x(one, random, DTYPES_FLOAT, 1, 4);
    one->attrs.normalize.kind = (enum inf_normalize_kind)(number % INF_NORMALIZE_COUNT);
    struct inf_ints *axes = &one->attrs.normalize.axes;
    int32_t first = (int32_t)random_in(random, 0, shape.rank - 1);
    int32_t end = (int32_t)random_in(random, first, shape.rank);
    bool together = !random_once_in(random, 4); // networks usually normalise over adjacent axes
    for (int32_t i = 0; i < shape.rank; i++)
        if (together ? i >= first && i < end : random_once_in(random, 2))
            axes->values[axes->count++] = random_once_in(random, 4) ? i - shape.rank : i;
    for (int parameter = 0; parameter < 2; parameter++) {
        struct inf_shape part = random_broadcastable(random, &shape);
        if (random_once_in(random, 4))
            one_node_absent(one);
        else if (together && random_once_in(random, 2))
            add_like(one, random, INF_SHAPE(shape.dims[shape.rank - 1]));
        else
            add_like(one, random, part);
    }
}

void make_resample(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_resample *attrs = &one->attrs.resample;
    attrs->kind = (enum inf_sample_kind)(number % INF_SAMPLE_COUNT);
    attrs->coordinates = (enum inf_coordinates)random_in(random, 0, INF_COORDINATES_CROP - 1);
    attrs->rounding = (enum inf_rounding)random_in(random, 0, INF_ROUNDING_COUNT - 1);
    attrs->antialias = random_once_in(random, 4);
    attrs->exclude_outside = attrs->antialias;
    struct inf_shape shape = add_x(one, random, DTYPES_FLOAT, 1, 4);
    int32_t sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape.rank; i++)
        sizes[i] = shape.dims[i] == 0 ? 0 : (int32_t)random_in(random, 1, 7);
    add_list(one, sizes, shape.rank);
}

void make_crop_and_resize(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = draw_picture_shape(random, 2, random_in(random, 1, 4));
    int32_t size[] = {(int32_t)random_in(random, 1, 5), (int32_t)random_in(random, 1, 5)};
    int64_t boxes = random_in(random, 0, 4);
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER), .shape = shape};
    struct operand places = {.dtype = INF_DTYPE_F32, .shape = INF_SHAPE(boxes, 4)};
    one->attrs.crop_and_resize.kind = (enum inf_resize_kind)(number % INF_RESIZE_COUNT);
    add_operand(one, random, &x);
    add_operand(one, random, &places);
    add_indices(one, random, INF_SHAPE(boxes), shape.dims, 1);
    add_list(one, size, 2);
}

void make_roi_align(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = draw_picture_shape(random, 2, random_in(random, 1, 4));
    int64_t regions = random_in(random, 0, 4);
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT), .shape = shape};
    one->attrs.roi_align.kind = (enum inf_pool_kind)(number % 2);
    one->attrs.roi_align.output_h = (int32_t)random_in(random, 1, 3);
    one->attrs.roi_align.output_w = (int32_t)random_in(random, 1, 3);
    one->attrs.roi_align.samples = (int32_t)random_in(random, 0, 2);
    add_operand(one, random, &x);
    add_like(one, random, INF_SHAPE(regions, 4));
    add_indices(one, random, INF_SHAPE(regions), shape.dims, 1);
}

void make_grid_sample(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = draw_picture_shape(random, 2, random_in(random, 1, 4));
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT), .shape = shape};
    one->attrs.grid_sample.kind = (enum inf_sample_kind)(number % INF_SAMPLE_COUNT);
    one->attrs.grid_sample.border = (enum inf_border_mode)random_in(random, 0, INF_BORDER_REFLECT);
    one->attrs.grid_sample.align_corners = random_once_in(random, 2);
    add_operand(one, random, &x);
    add_like(one, random,
             INF_SHAPE(shape.dims[0], random_in(random, 1, 5), random_in(random, 1, 5), 2));
}

void make_image_transform(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_shape shape = draw_picture_shape(random, 2, random_in(random, 1, 4));
    int32_t size[] = {(int32_t)random_in(random, 1, 5), (int32_t)random_in(random, 1, 5)};
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER), .shape = shape};
    struct operand transforms = {.dtype = INF_DTYPE_F32, .shape = INF_SHAPE(1, 8)};
    one->attrs.image_transform.kind = (enum inf_resize_kind)(number % INF_RESIZE_COUNT);
    one->attrs.image_transform.border =
        (enum inf_border_mode)random_in(random, 0, INF_BORDER_COUNT - 1);
    add_operand(one, random, &x);
    add_operand(one, random, &transforms);
    add_list(one, size, 2);
}

void make_quantize(struct one_node *one, struct random *random, uint32_t number)
{
    static const enum inf_dtype dtypes[] = {INF_DTYPE_U8, INF_DTYPE_I8, INF_DTYPE_U16,
                                            INF_DTYPE_I16, INF_DTYPE_I32};
    struct inf_shape shape = add_x(one, random, DTYPES_FLOAT, 1, 4);
    one->attrs.quantize.dtype = dtypes[number % INF_ARRAY_LENGTH(dtypes)];
    one->attrs.quantize.axis = axis_in(random, shape.rank);
    int32_t axis = (one->attrs.quantize.axis + shape.rank) % shape.rank;
    struct operand scale = {.dtype = one->inputs[0].dtype,
                            .shape = INF_SHAPE(random_once_in(random, 2) ? 1 : shape.dims[axis]),
                            .filling = FILL_POWERS,
                            .constant = random_once_in(random, 2)};
    add_operand(one, random, &scale);
    struct operand zero = {.dtype = one->attrs.quantize.dtype,
                           .shape = scale.shape,
                           .constant = random_once_in(random, 2)};
    if (random_once_in(random, 2))
        add_operand(one, random, &zero);
}

void make_dequantize(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = number % 2 == 0 ? INF_DTYPE_U8 : INF_DTYPE_I8,
                        .shape = random_shape(random, random_rank(random, 1, 4))};
    add_operand(one, random, &x);
    one->attrs.dequantize.axis = 0;
    struct inf_shape each = INF_SHAPE(random_once_in(random, 2) ? 1 : x.shape.dims[0]);
    struct operand scale = {.dtype = INF_DTYPE_F32,
                            .shape = each,
                            .filling = FILL_POSITIVE,
                            .constant = random_once_in(random, 2)};
    add_operand(one, random, &scale);
    if (random_once_in(random, 2))
        add_like(one, random, each);
}

// Adds a weight operand of an rnn node. The operand is usually constant.
static void add_weights(struct one_node *one, struct random *random, bool constant,
                        struct inf_shape shape)
{
    struct operand operand = {
        .dtype = INF_DTYPE_F32, .shape = shape, .filling = FILL_UNIT, .constant = constant};
    add_operand(one, random, &operand);
}

static void add_or_leave_out(struct one_node *one, struct random *random, bool constant,
                             struct inf_shape shape)
{
    if (random_once_in(random, 2))
        add_weights(one, random, constant, shape);
    else
        one_node_absent(one);
}

static void add_lengths(struct one_node *one, struct random *random, int64_t batch, int64_t steps)
{
    int32_t lengths[3];
    if (random_once_in(random, 2)) {
        one_node_absent(one);
        return;
    }
    for (int64_t i = 0; i < batch; i++)
        lengths[i] = (int32_t)random_in(random, -1, steps + 1);
    one_node_input(one, INF_DTYPE_I32, INF_SHAPE(batch), lengths);
}

static void choose_activations(struct inf_attrs_rnn *attrs, struct random *random, int64_t ways)
{
    static const enum inf_unary_kind kinds[] = {INF_UNARY_SIGMOID, INF_UNARY_TANH, INF_UNARY_RELU,
                                                INF_UNARY_HARD_SIGMOID, INF_UNARY_SOFTSIGN};
    static const int32_t counts[] = {3, 2, 1};
    attrs->activation_alpha = 0.25f;
    attrs->activation_beta = 0.5f;
    if (random_once_in(random, 2))
        return;
    attrs->activations.count = (int32_t)ways * counts[attrs->kind];
    for (int32_t i = 0; i < attrs->activations.count; i++)
        attrs->activations.values[i] =
            kinds[random_in(random, 0, (int64_t)(sizeof(kinds) / sizeof(kinds[0])) - 1)];
}

void make_rnn(struct one_node *one, struct random *random, uint32_t number)
{
    static const int64_t gates[] = {4, 3, 1};
    struct inf_attrs_rnn *attrs = &one->attrs.rnn;
    attrs->kind = (enum inf_rnn_kind)(number % INF_RNN_COUNT);
    attrs->direction = (enum inf_direction)random_in(random, 0, INF_DIRECTION_COUNT - 1);
    attrs->linear_before_reset = random_once_in(random, 2);
    attrs->input_forget = random_once_in(random, 4);
    attrs->clip = random_once_in(random, 4) ? 0.75f : 0.0f;
    one->output_count = attrs->kind == INF_RNN_LSTM ? 3 : 2;
    int64_t ways = attrs->direction == INF_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    choose_activations(attrs, random, ways);
    bool large = random_once_in(random, 4), constant = !random_once_in(random, 4);
    int64_t steps = random_in(random, 0, 4), batch = random_in(random, 1, 3);
    int64_t in = random_in(random, 1, large ? 19 : 5);
    int64_t hidden = random_in(random, 1, large ? 37 : 5);
    int64_t rows = gates[attrs->kind] * hidden;
    struct operand x = {.dtype = INF_DTYPE_F32,
                        .shape = INF_SHAPE(steps, batch, in),
                        .extremes = random_once_in(random, 4) ? EXTREME_ZERO | EXTREME_INFINITE |
                                                                    EXTREME_NAN | EXTREME_DENORM
                                                              : 0};
    add_operand(one, random, &x);
    add_weights(one, random, constant, INF_SHAPE(ways, rows, in));
    add_weights(one, random, constant, INF_SHAPE(ways, rows, hidden));
    add_or_leave_out(one, random, constant, INF_SHAPE(ways, 2 * rows));
    add_lengths(one, random, batch, steps);
    add_or_leave_out(one, random, false, INF_SHAPE(ways, batch, hidden));
    if (attrs->kind != INF_RNN_LSTM)
        return;
    add_or_leave_out(one, random, false, INF_SHAPE(ways, batch, hidden));
    add_or_leave_out(one, random, constant, INF_SHAPE(ways, 3 * hidden));
}
