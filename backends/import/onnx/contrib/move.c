// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that move or compare elements: ExpandDims, Unique, UnfoldTensor, CDist
// and CropAndResize.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

static void lower_expand_dims(struct inf_onnx_scope *s)
{
    int64_t axis = inf_build_const_int(&s->b, s->inputs[1], "axis");
    axis = inf_build_axis(&s->b, axis, inf_build_rank(&s->b, s->inputs[0]) + 1);
    s->outputs[0] = inf_build_expand_dims(&s->b, s->inputs[0], &axis, 1);
}

// Lowers Unique. Outputs: the distinct elements of a list in order of their first appearance; for
// each element of the list, its index in output 0; for each distinct element, how often it occurs.
static void lower_unique(struct inf_onnx_scope *s)
{
    uint32_t parts[4]; // distinct elements, indices into them, first positions, counts
    struct inf_build_node node =
        inf_build_describe(INF_OP_UNIQUE, s->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    node.output_count = 4;
    node.attrs.unique.axis = 0;
    inf_build_emit(&s->b, &node, parts);
    s->outputs[0] = parts[0];
    if (s->output_count > 1)
        s->outputs[1] = inf_build_cast(&s->b, parts[1], INF_DTYPE_I64);
    if (s->output_count > 2)
        s->outputs[2] = inf_build_cast(&s->b, parts[3], INF_DTYPE_I64);
}

// Lowers UnfoldTensor: windows of `size` elements along axis `dim`, whose starts are `step` apart.
// The result has one more axis, the last, which holds the elements of a window.
static void lower_unfold(struct inf_onnx_scope *s)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "dim", -1), rank);
    int32_t size = inf_onnx_attr_int(s, "size", 0), step = inf_onnx_attr_int(s, "step", 1);
    int64_t length = inf_build_known_dim(&s->b, s->inputs[0], axis), perm[INF_LIMIT_RANK];
    int32_t *index;
    if (inf_build_ok(&s->b) && (size < 1 || step < 1 || size > length || rank + 1 > INF_LIMIT_RANK))
        inf_build_fail(&s->b, INF_INVALID, "size is %d, step %d, of an axis of %lld", size, step,
                       (long long)length);
    if (!inf_build_ok(&s->b))
        return;
    int64_t count = (length - size) / step + 1;
    uint32_t indices = inf_build_const(&s->b, INF_DTYPE_I32, &INF_SHAPE(count, size), &index);
    for (int64_t i = 0; index != NULL && i < count * size; i++)
        index[i] = (int32_t)(i / size * step + i % size);
    uint32_t y = inf_build_gather(&s->b, s->inputs[0], indices, axis);
    for (int32_t i = 0; i < rank; i++)
        perm[i] = i <= axis ? i : i + 1;
    perm[rank] = axis + 1;
    s->outputs[0] = inf_build_transpose(&s->b, y, perm, rank + 1);
}

// Lowers CDist: the distance between each row of a and each row of b, [rows of a, rows of b].
static void lower_cdist(struct inf_onnx_scope *s)
{
    const char *metric = inf_onnx_attr_text(s, "metric", "sqeuclidean");
    bool is_square = strcmp(metric, "sqeuclidean") == 0;
    if (!is_square && strcmp(metric, "euclidean") != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "metric is '%.40s'", metric);
    uint32_t a = inf_build_expand_dims(&s->b, s->inputs[0], (int64_t[]){1}, 1);
    uint32_t b = inf_build_expand_dims(&s->b, s->inputs[1], (int64_t[]){0}, 1);
    uint32_t y = inf_build_binary(&s->b, INF_BINARY_SQUARED_DIFFERENCE, a, b);
    y = inf_build_reduce(&s->b, INF_REDUCE_SUM, y, &(struct inf_ints){.count = 1, .values = {2}},
                         false);
    s->outputs[0] = is_square ? y : inf_build_unary(&s->b, INF_UNARY_SQRT, y);
}

// Lowers CropAndResize. Inputs: pictures [n,c,h,w], boxes [r,4], the index of the picture that each
// box is cut from [r], and height and width of the results [2].
static void lower_crop(struct inf_onnx_scope *s)
{
    const char *mode = inf_onnx_attr_text(s, "mode", "bilinear");
    const uint32_t inputs[] = {inf_build_channels_last(&s->b, s->inputs[0]), s->inputs[1],
                               s->inputs[2], inf_build_cast(&s->b, s->inputs[3], INF_DTYPE_I32)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_CROP_AND_RESIZE, inputs, 4);
    if (strcmp(mode, "nearest") == 0)
        node.attrs.crop_and_resize.kind = INF_RESIZE_NEAREST;
    else if (strcmp(mode, "bilinear") != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "mode is '%.40s'", mode);
    node.attrs.crop_and_resize.extrapolation = inf_onnx_attr_float(s, "extrapolation_value", 0);
    s->outputs[0] = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::ExpandDims", lower_expand_dims, 2, 2, 1, 0},
    {"com.microsoft::Unique", lower_unique, 1, 1, 3, 0},
    {"com.microsoft::UnfoldTensor", lower_unfold, 1, 1, 1, 0},
    {"com.microsoft::CDist", lower_cdist, 2, 2, 1, 0},
    {"com.microsoft::CropAndResize", lower_crop, 4, 4, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_move = {ops, INF_ARRAY_LENGTH(ops)};
