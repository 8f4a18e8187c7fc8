// SPDX-License-Identifier: Apache-2.0
// Col2Im: adds patches back into images.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

// The largest number of elements in a patch. The filter has the square of this number.
#define PATCH_MAX 1024

// The arrangement of patches in an image; arrays are indexed by spatial axis.
struct columns {
    int32_t axes;
    int64_t image[INF_LIMIT_RANK], block[INF_LIMIT_RANK];
    struct inf_ints strides, dilations, before, after;
    int64_t patch; // number of elements in one patch
};

static struct inf_ints read_axes(struct inf_onnx_scope *s, const char *name, uint32_t count,
                                 int64_t fallback)
{
    struct inf_ints result = {.count = (int32_t)count};
    struct inf_build_ints ints;
    bool there = inf_onnx_attr_ints(s, name, &ints);
    if (there && ints.count != count)
        inf_build_fail(&s->b, INF_INVALID, "%s has %u numbers, wanted %u", name, ints.count, count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        result.values[i] = there ? ints.values[i] : fallback;
        if (result.values[i] < fallback || result.values[i] > 65535)
            inf_build_fail(&s->b, INF_INVALID, "%s[%u] is %lld", name, i,
                           (long long)result.values[i]);
    }
    return result;
}

static void read_columns(struct inf_onnx_scope *s, struct columns *columns)
{
    struct inf_build_ints image = inf_build_const_ints(&s->b, s->inputs[1], "image_shape");
    struct inf_build_ints block = inf_build_const_ints(&s->b, s->inputs[2], "block_shape");
    uint32_t axes = image.count;
    // A tensor of rank 8 would have six spatial axes, but the convolution supports three.
    if (inf_build_ok(&s->b) && (axes < 1 || axes > 3 || block.count != axes))
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "image_shape has %u axes and block_shape %u, wanted 1 to 3", axes,
                       block.count);
    if (!inf_build_ok(&s->b))
        return;
    *columns = (struct columns){.axes = (int32_t)axes, .patch = 1};
    columns->strides = read_axes(s, "strides", axes, 1);
    columns->dilations = read_axes(s, "dilations", axes, 1);
    struct inf_ints pads = read_axes(s, "pads", 2 * axes, 0);
    columns->before = columns->after = (struct inf_ints){.count = (int32_t)axes};
    for (uint32_t i = 0; i < axes; i++) {
        columns->image[i] = image.values[i];
        columns->block[i] = block.values[i];
        columns->before.values[i] = pads.values[i];
        columns->after.values[i] = pads.values[i + axes];
        if (block.values[i] < 1 || block.values[i] > PATCH_MAX / columns->patch ||
            image.values[i] < 1 || image.values[i] >= INF_LIMIT_DIM)
            inf_build_fail(&s->b, INF_UNSUPPORTED,
                           "image_shape[%u] is %lld and block_shape[%u] %lld, wanted at most %d "
                           "elements of a block",
                           i, (long long)image.values[i], i, (long long)block.values[i], PATCH_MAX);
        columns->patch *= inf_build_ok(&s->b) ? block.values[i] : 1;
    }
}

// Returns the number of patches along an axis.
static int64_t count_patches(struct inf_onnx_scope *s, const struct columns *columns, int32_t axis)
{
    int64_t room = columns->image[axis] + columns->before.values[axis] +
                   columns->after.values[axis] -
                   columns->dilations.values[axis] * (columns->block[axis] - 1) - 1;
    if (room < 0)
        inf_build_fail(&s->b, INF_INVALID, "a block is larger than the image along axis %d", axis);
    return inf_build_ok(&s->b) ? room / columns->strides.values[axis] + 1 : 1;
}

// Adds a filter [block..., 1, patch] of zeros and ones that puts element i of a patch at position i
// of the patch's block in the image.
static uint32_t add_placing_filter(struct inf_onnx_scope *s, const struct columns *columns,
                                   enum inf_dtype dtype)
{
    struct inf_shape shape = {.rank = columns->axes + 2};
    float *data;
    for (int32_t i = 0; i < columns->axes; i++)
        shape.dims[i] = columns->block[i];
    shape.dims[columns->axes] = 1;
    shape.dims[columns->axes + 1] = columns->patch;
    uint32_t filter = inf_build_const(&s->b, INF_DTYPE_F32, &shape, &data);
    for (int64_t i = 0; data != NULL && i < columns->patch; i++)
        data[i * columns->patch + i] = 1;
    return inf_build_cast(&s->b, filter, dtype);
}

// Lowers Col2Im: sums patches [n, c * patch, places] at their positions. This is a transposed
// convolution of each channel with a filter of ones and zeros.
static void lower_col2im(struct inf_onnx_scope *s)
{
    struct columns columns = {0};
    int64_t dims[INF_LIMIT_RANK] = {-1, 0};
    read_columns(s, &columns);
    int64_t rows = inf_build_known_dim(&s->b, s->inputs[0], 1);
    if (inf_build_ok(&s->b) && rows % columns.patch != 0)
        inf_build_fail(&s->b, INF_INVALID, "%lld rows are no patches of %lld", (long long)rows,
                       (long long)columns.patch);
    if (!inf_build_ok(&s->b))
        return;
    dims[1] = columns.patch;
    for (int32_t i = 0; i < columns.axes; i++)
        dims[i + 2] = count_patches(s, &columns, i);
    uint32_t x = inf_build_channels_last(
        &s->b, inf_build_reshape(&s->b, s->inputs[0], dims, columns.axes + 2));
    for (int32_t i = 0; i < columns.axes; i++)
        dims[i] = columns.image[i];
    dims[columns.axes] = 1;
    const uint32_t shape[] = {inf_build_dim_value(&s->b, x, 0),
                              inf_build_list(&s->b, dims, (uint32_t)columns.axes + 1)};
    const uint32_t inputs[] = {x, add_placing_filter(s, &columns, inf_build_dtype(&s->b, x)),
                               inf_build_concat(&s->b, shape, 2, 0)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_CONV_ND_TRANSPOSE, inputs, 3);
    node.attrs.conv_nd_transpose.strides = columns.strides;
    node.attrs.conv_nd_transpose.dilations = columns.dilations;
    node.attrs.conv_nd_transpose.pads_before = columns.before;
    node.attrs.conv_nd_transpose.pads_after = columns.after;
    uint32_t y = inf_build_value(&s->b, &node);
    dims[0] = -1;
    dims[1] = rows / columns.patch;
    for (int32_t i = 0; i < columns.axes; i++)
        dims[i + 2] = columns.image[i];
    s->outputs[0] = inf_build_reshape(&s->b, y, dims, columns.axes + 2);
}

static const struct inf_onnx_op ops[] = {
    {"Col2Im", lower_col2im, 3, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_patch = {ops, INF_ARRAY_LENGTH(ops)};
