// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that resample pictures, and of normalisations.
#include "backends/graph/shape/rules.h"

// Checks that input `index` is absent or has shape [elements].
static enum inf_code check_vector(struct inf_infer *infer, uint32_t index, int64_t elements)
{
    if (!inf_infer_has_input(infer, index))
        return INF_OK;
    const struct inf_shape *shape = inf_infer_input(infer, index);
    int64_t merged;
    if (shape->rank < 0 || (shape->rank == 1 && inf_dim_merge(shape->dims[0], elements, &merged)))
        return INF_OK;
    char text[INF_SHAPE_TEXT_SIZE];
    return inf_shape_fault(infer, "input %u has shape %s, wanted [%lld]", index,
                           inf_shape_print(shape, text), (long long)elements);
}

enum inf_code inf_infer_resample(struct inf_infer *infer)
{
    const struct inf_attrs_resample *attrs = &infer->node->attrs.resample;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    struct inf_shape y;
    bool known;
    INF_TRY(inf_infer_listed(infer, 1, 0, &y, &known));
    if (attrs->coordinates == INF_COORDINATES_CROP && !inf_infer_has_input(infer, 3))
        return inf_fail(infer->err, INF_INVALID, "coordinates are crop without a roi input");
    if (x->rank < 0)
        return inf_infer_output(infer, 0, &y);
    if (y.rank >= 0 && y.rank != x->rank)
        return inf_shape_fault(infer, "%d sizes for x of rank %d", y.rank, x->rank);
    INF_TRY(check_vector(infer, 2, x->rank));
    INF_TRY(check_vector(infer, 3, 2 * (int64_t)x->rank));
    for (int32_t i = 0; known && i < y.rank; i++)
        if (x->dims[i] == 0 && y.dims[i] > 0)
            return inf_shape_fault(infer, "axis %d has no elements to make %lld of", i,
                                   (long long)y.dims[i]);
    return inf_infer_output(infer, 0, &y);
}

// Reads the height and width of y from the list of two elements at input `index`.
static enum inf_code read_size(struct inf_infer *infer, uint32_t index, struct inf_shape *y)
{
    struct inf_operand size;
    INF_TRY(inf_infer_operand(infer, index, 0, &size));
    if (size.count != INF_DIM_UNKNOWN && size.count != 2)
        return inf_shape_fault(infer, "the size has %lld elements, wanted 2",
                               (long long)size.count);
    for (int32_t i = 0; i < 2; i++) {
        y->dims[1 + i] = size.known ? size.values[i] : INF_DIM_UNKNOWN;
        if (size.known && (size.values[i] < 1 || size.values[i] >= INF_LIMIT_DIM))
            return inf_shape_fault(infer, "the size has %lld, wanted 1 or more",
                                   (long long)size.values[i]);
    }
    return INF_OK;
}

// Checks that input `index` is a matrix with `columns` columns, and sets *rows to its number of
// rows.
static enum inf_code check_rows(struct inf_infer *infer, uint32_t index, int64_t columns,
                                int64_t *rows)
{
    const struct inf_shape *shape = inf_infer_input(infer, index);
    int64_t merged;
    *rows = INF_DIM_UNKNOWN;
    if (shape->rank < 0)
        return INF_OK;
    char text[INF_SHAPE_TEXT_SIZE];
    if (shape->rank != 2 || !inf_dim_merge(shape->dims[1], columns, &merged))
        return inf_shape_fault(infer, "input %u has shape %s, wanted [n,%lld]", index,
                               inf_shape_print(shape, text), (long long)columns);
    *rows = shape->dims[0];
    return INF_OK;
}

enum inf_code inf_infer_crop_and_resize(struct inf_infer *infer)
{
    struct inf_shape y;
    int64_t boxes;
    INF_TRY(inf_infer_image(infer, 0, &y));
    INF_TRY(check_rows(infer, 1, 4, &boxes));
    INF_TRY(check_vector(infer, 2, boxes));
    INF_TRY(read_size(infer, 3, &y));
    y.dims[0] = boxes;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_roi_align(struct inf_infer *infer)
{
    const struct inf_attrs_roi_align *attrs = &infer->node->attrs.roi_align;
    struct inf_shape y;
    int64_t regions;
    if (attrs->kind == INF_POOL_LP)
        return inf_fail(infer->err, INF_INVALID, "kind is lp, wanted max or average");
    INF_TRY(inf_infer_image(infer, 0, &y));
    INF_TRY(check_rows(infer, 1, 4, &regions));
    INF_TRY(check_vector(infer, 2, regions));
    y.dims[0] = regions;
    y.dims[1] = attrs->output_h;
    y.dims[2] = attrs->output_w;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_grid_sample(struct inf_infer *infer)
{
    struct inf_shape x;
    struct inf_shape grid;
    int64_t merged;
    if (infer->node->attrs.grid_sample.border == INF_BORDER_WRAP)
        return inf_fail(infer->err, INF_INVALID,
                        "border is wrap, wanted constant, edge or reflect");
    INF_TRY(inf_infer_image(infer, 0, &x));
    INF_TRY(inf_infer_image(infer, 1, &grid));
    struct inf_shape y = INF_SHAPE(x.dims[0], grid.dims[1], grid.dims[2], x.dims[3]);
    if (!inf_dim_merge(x.dims[0], grid.dims[0], &y.dims[0]) ||
        !inf_dim_merge(grid.dims[3], 2, &merged)) {
        char a[INF_SHAPE_TEXT_SIZE];
        char b[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "a grid of shape %s for x of shape %s",
                               inf_shape_print(&grid, a), inf_shape_print(&x, b));
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_image_transform(struct inf_infer *infer)
{
    struct inf_shape y;
    int64_t rows;
    INF_TRY(inf_infer_image(infer, 0, &y));
    INF_TRY(check_rows(infer, 1, 8, &rows));
    if (rows > 1 && y.dims[0] >= 0 && rows != y.dims[0])
        return inf_shape_fault(infer, "%lld transforms for %lld pictures", (long long)rows,
                               (long long)y.dims[0]);
    INF_TRY(read_size(infer, 2, &y));
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_lrn(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank == 0)
        return inf_shape_fault(infer, "x is a scalar, wanted rank 1 or more");
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_normalize(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    uint32_t set;
    if (x->rank < 0)
        return inf_infer_output(infer, 0, x);
    INF_TRY(inf_infer_axes(infer, &infer->node->attrs.normalize.axes, x->rank, &set));
    for (uint32_t i = 1; i < 3; i++) {
        struct inf_shape joined;
        if (!inf_infer_has_input(infer, i) || !inf_shape_known(x) ||
            !inf_shape_known(inf_infer_input(infer, i)))
            continue;
        if (!inf_shape_broadcast(x, inf_infer_input(infer, i), &joined) ||
            !inf_shape_equal(x, &joined)) {
            char a[INF_SHAPE_TEXT_SIZE];
            char b[INF_SHAPE_TEXT_SIZE];
            return inf_shape_fault(infer, "input %u of shape %s does not broadcast to %s", i,
                                   inf_shape_print(inf_infer_input(infer, i), a),
                                   inf_shape_print(x, b));
        }
    }
    return inf_infer_output(infer, 0, x);
}

// Checks scale and zero point of quantize and dequantize: each has one element, or one per index of
// the axis.
static enum inf_code check_quantization(struct inf_infer *infer, int32_t axis_attr)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    for (uint32_t i = 1; i < 3; i++) {
        size_t count;
        if (!inf_infer_has_input(infer, i) || !inf_shape_known(inf_infer_input(infer, i)) ||
            x->rank < 0)
            continue;
        const struct inf_shape *shape = inf_infer_input(infer, i);
        int32_t axis;
        int64_t merged;
        if (inf_shape_count(shape, &count) && count == 1)
            continue;
        if (shape->rank != 1 || !inf_axis_resolve(axis_attr, x->rank, &axis) ||
            !inf_dim_merge(shape->dims[0], x->dims[axis], &merged)) {
            char a[INF_SHAPE_TEXT_SIZE];
            char b[INF_SHAPE_TEXT_SIZE];
            return inf_shape_fault(infer, "input %u has shape %s, x %s and axis %d", i,
                                   inf_shape_print(shape, a), inf_shape_print(x, b), axis_attr);
        }
    }
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_quantize(struct inf_infer *infer)
{
    return check_quantization(infer, infer->node->attrs.quantize.axis);
}

enum inf_code inf_infer_dequantize(struct inf_infer *infer)
{
    return check_quantization(infer, infer->node->attrs.dequantize.axis);
}
