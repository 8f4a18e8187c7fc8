// SPDX-License-Identifier: Apache-2.0
// Shapes: reading them, changing them, and moving elements between axes.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// Reads an option that is a list of integers. Returns false if it is absent.
static bool read_option_list(struct inf_tflite_scope *s, uint32_t id, const char *field,
                             struct inf_build_ints *list)
{
    struct inf_fb_vector values = inf_fb_vector(&s->op->options, id, field, 4);
    if (values.count > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_INVALID, "option %s has %u elements, at most %d are allowed",
                       field, values.count, INF_LIMIT_RANK);
    list->count = inf_build_ok(&s->b) ? values.count : 0;
    for (uint32_t i = 0; i < list->count; i++)
        list->values[i] = inf_fb_int_at(&values, INF_FB_I32, i);
    return values.count > 0;
}

static void lower_reshape(struct inf_tflite_scope *s)
{
    struct inf_build_ints dims = {0};
    uint32_t x = inf_tflite_data(s, 0), shape = inf_tflite_list(s, 1);
    if (shape != INF_VALUE_NONE && !inf_build_is_const(&s->b, shape)) {
        s->outputs[0] = inf_build_reshape_to(&s->b, x, shape);
        return;
    }
    if (shape != INF_VALUE_NONE)
        dims = inf_build_const_ints(&s->b, shape, "the shape");
    else
        (void)read_option_list(s, 0, "new_shape", &dims);
    // Old converters write a shape of one 0 for a scalar.
    size_t count;
    bool is_empty =
        inf_build_ok(&s->b) && inf_shape_count(inf_build_shape_of(&s->b, x), &count) && count == 0;
    if (dims.count == 1 && dims.values[0] == 0 && !is_empty)
        dims.count = 0;
    if (dims.count > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_INVALID, "the shape has %u axes, at most %d are supported",
                       dims.count, INF_LIMIT_RANK);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_reshape(&s->b, x, dims.values, (int32_t)dims.count);
}

static void lower_squeeze(struct inf_tflite_scope *s)
{
    struct inf_build_ints axes = {0};
    struct inf_build_node node =
        inf_build_describe(INF_OP_SQUEEZE, inf_tflite_data(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    (void)read_option_list(s, 0, "squeeze_dims", &axes);
    node.attrs.squeeze.axes.count = (int32_t)axes.count;
    for (uint32_t i = 0; i < axes.count; i++)
        node.attrs.squeeze.axes.values[i] = (int32_t)axes.values[i];
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_expand_dims(struct inf_tflite_scope *s)
{
    int64_t axis = inf_build_const_int(&s->b, inf_tflite_list(s, 1), "the axis");
    s->outputs[0] = inf_build_expand_dims(&s->b, inf_tflite_data(s, 0), &axis, 1);
}

static void lower_shape(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_shape(&s->b, inf_tflite_stored(s, 0));
}

static void lower_rank(struct inf_tflite_scope *s)
{
    s->outputs[0] =
        inf_build_scalar(&s->b, INF_DTYPE_I32, inf_build_rank(&s->b, inf_tflite_stored(s, 0)));
}

static void lower_transpose(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0);
    struct inf_build_ints perm =
        inf_build_const_ints(&s->b, inf_tflite_list(s, 1), "the permutation");
    int32_t rank = inf_build_rank(&s->b, x);
    if (inf_build_ok(&s->b) && perm.count != (uint32_t)rank)
        inf_build_fail(&s->b, INF_INVALID, "the permutation has %u elements for %d axes",
                       perm.count, rank);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < perm.count; i++)
        perm.values[i] = inf_build_axis(&s->b, perm.values[i], rank);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_transpose(&s->b, x, perm.values, rank);
}

// SPACE_TO_DEPTH and DEPTH_TO_SPACE.
static void lower_blocks(struct inf_tflite_scope *s)
{
    struct inf_build_node node = inf_build_describe(
        (enum inf_op)s->row->kind, inf_tflite_data(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    int32_t block = inf_tflite_option_int(s, 0, "block_size");
    if (node.op == INF_OP_SPACE_TO_DEPTH)
        node.attrs.space_to_depth.block = block;
    else
        node.attrs.depth_to_space.block = block;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND. Padding of a quantised picture is its zero point, so the
// bytes cannot be padded with 0.
static void lower_batch_blocks(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe((enum inf_op)s->row->kind, inf_tflite_data(s, 0), inf_tflite_list(s, 1),
                           inf_tflite_list(s, 2));
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_broadcast_to(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_broadcast(&s->b, inf_tflite_data(s, 0), inf_tflite_list(s, 1));
}

static void lower_tile(struct inf_tflite_scope *s)
{
    struct inf_build_node node = inf_build_describe(INF_OP_TILE, inf_tflite_data(s, 0),
                                                    inf_tflite_list(s, 1), INF_VALUE_NONE);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_RESHAPE, NULL, lower_reshape, 1, 2, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_RESHAPE, 0},
    {INF_TFLITE_SQUEEZE, NULL, lower_squeeze, 1, 1, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_SQUEEZE, 0},
    {INF_TFLITE_EXPAND_DIMS, NULL, lower_expand_dims, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_SHAPE, NULL, lower_shape, 1, 1, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_RANK, NULL, lower_rank, 1, 1, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_TRANSPOSE, NULL, lower_transpose, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_SPACE_TO_DEPTH, NULL, lower_blocks, 1, 1, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_SPACE_TO_DEPTH, INF_OP_SPACE_TO_DEPTH},
    {INF_TFLITE_DEPTH_TO_SPACE, NULL, lower_blocks, 1, 1, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_DEPTH_TO_SPACE, INF_OP_DEPTH_TO_SPACE},
    {INF_TFLITE_SPACE_TO_BATCH_ND, NULL, lower_batch_blocks, 3, 3, 1, INF_TFLITE_MODE_REAL, 0,
     INF_OP_SPACE_TO_BATCH},
    {INF_TFLITE_BATCH_TO_SPACE_ND, NULL, lower_batch_blocks, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0,
     INF_OP_BATCH_TO_SPACE},
    {INF_TFLITE_BROADCAST_TO, NULL, lower_broadcast_to, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_TILE, NULL, lower_tile, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_shape = {ops, INF_ARRAY_LENGTH(ops)};
