// SPDX-License-Identifier: Apache-2.0
// Operators that change shapes, return them, or pack and unpack tensors.
#include "backends/import/tfjs/layout.h"
#include "backends/import/tfjs/op_table.h"

static enum inf_code lower_reshape(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_RESHAPE, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_broadcast(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_BROADCAST, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_expand_dims(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_EXPAND_DIMS, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    int32_t axis = 0;
    INF_TRY(inf_tfjs_const_axis(scope, 1, &axis, err));
    call.attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {axis}};
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_squeeze(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_SQUEEZE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    int32_t axes[INF_LIMIT_RANK];
    uint32_t count;
    INF_TRY(inf_tfjs_attr_ints(scope->node, "squeeze_dims", axes, INF_LIMIT_RANK, &count, err));
    if (count == 0)
        INF_TRY(inf_tfjs_attr_ints(scope->node, "axis", axes, INF_LIMIT_RANK, &count, err));
    call.attrs.squeeze.axes.count = (int32_t)count;
    for (uint32_t i = 0; i < count; i++)
        call.attrs.squeeze.axes.values[i] = axes[i];
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_transpose(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_TRANSPOSE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_const_axes(scope, 1, "perm", &call.attrs.transpose.perm, err));
    // If there are no axes to permute, pass x on, because the graph's TRANSPOSE would reverse the
    // axes.
    if (call.attrs.transpose.perm.count == 0)
        return inf_tfjs_result(scope, scope->inputs[0], err);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_depth_to_space(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 4, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_DEPTH_TO_SPACE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_attr_int(scope->node, "block_size", 1, 4096, &call.attrs.depth_to_space.block,
                              err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_space_to_depth(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 4, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_SPACE_TO_DEPTH, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_attr_int(scope->node, "block_size", 1, 4096, &call.attrs.space_to_depth.block,
                              err));
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers Pack: inserts a new axis into each tensor, then concatenates the tensors along this axis.
static enum inf_code lower_pack(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    int32_t axis = 0;
    INF_TRY(
        inf_tfjs_attr_int(scope->node, "axis", -INF_LIMIT_RANK, INF_LIMIT_RANK - 1, &axis, err));
    for (uint32_t i = 0; i < scope->input_count; i++) {
        struct inf_build_node expand = inf_build_describe(INF_OP_EXPAND_DIMS, scope->inputs[i],
                                                          INF_VALUE_NONE, INF_VALUE_NONE);
        expand.attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {axis}};
        INF_TRY(inf_tfjs_emit(scope, &expand, &scope->inputs[i], err));
    }
    struct inf_build_node concat =
        inf_build_describe_list(INF_OP_CONCAT, scope->inputs, scope->input_count);
    concat.attrs.concat.axis = axis;
    return inf_tfjs_finish(scope, &concat, err);
}

// Lowers Unpack: splits a tensor into slices of size 1 and removes the axis from each.
static enum inf_code lower_unpack(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    int32_t axis = 0, count = 0;
    uint32_t *values;
    INF_TRY(
        inf_tfjs_attr_int(scope->node, "axis", -INF_LIMIT_RANK, INF_LIMIT_RANK - 1, &axis, err));
    INF_TRY(inf_tfjs_attr_int(scope->node, "num", 0, INF_LIMIT_NODE_INPUTS, &count, err));
    const struct inf_shape *shape = &inf_tfjs_input(scope, 0)->shape;
    int32_t at = axis < 0 ? axis + shape->rank : axis;
    if (shape->rank >= 0 && (at < 0 || at >= shape->rank))
        return inf_tfjs_fail(scope, err, INF_INVALID, "axis is %d, and its input has %d dimensions",
                             axis, shape->rank);
    if (shape->rank >= 0 && shape->dims[at] != INF_DIM_UNKNOWN && shape->dims[at] != count)
        return inf_tfjs_fail(scope, err, INF_INVALID, "num is %d, and its input has %lld slices",
                             count, (long long)shape->dims[at]);
    INF_TRY(inf_tfjs_outputs(scope, (uint32_t)count, &values, err));
    if (count == 0)
        return INF_OK;
    struct inf_build_node split = inf_build_describe_list(INF_OP_SPLIT, scope->inputs, 1);
    split.attrs.split.axis = axis;
    split.output_count = (uint32_t)count;
    INF_TRY(inf_tfjs_emit(scope, &split, values, err));
    for (int32_t i = 0; i < count; i++) {
        struct inf_build_node squeeze =
            inf_build_describe(INF_OP_SQUEEZE, values[i], INF_VALUE_NONE, INF_VALUE_NONE);
        squeeze.attrs.squeeze.axes = (struct inf_ints){.count = 1, .values = {axis}};
        INF_TRY(inf_tfjs_emit(scope, &squeeze, &values[i], err));
    }
    return INF_OK;
}

static enum inf_code emit_shape(struct inf_tfjs_scope *scope, uint32_t input, uint32_t *out_value,
                                struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_SHAPE, input, INF_VALUE_NONE, INF_VALUE_NONE);
    return inf_tfjs_emit(scope, &call, out_value, err);
}

// Lowers Shape and ShapeN.
static enum inf_code lower_shape(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    INF_TRY(inf_tfjs_outputs(scope, scope->input_count, &values, err));
    for (uint32_t i = 0; i < scope->input_count; i++)
        INF_TRY(emit_shape(scope, scope->inputs[i], &values[i], err));
    return INF_OK;
}

// Lowers Rank: a constant if the rank is known, otherwise the size of the shape's shape.
static enum inf_code lower_rank(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    int32_t rank = inf_tfjs_input(scope, 0)->shape.rank;
    if (rank >= 0) {
        INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, rank, &value, err));
        return inf_tfjs_result(scope, value, err);
    }
    INF_TRY(emit_shape(scope, scope->inputs[0], &value, err));
    INF_TRY(emit_shape(scope, value, &value, err));
    struct inf_build_node squeeze =
        inf_build_describe(INF_OP_SQUEEZE, value, INF_VALUE_NONE, INF_VALUE_NONE);
    squeeze.attrs.squeeze.axes = (struct inf_ints){.count = 1};
    return inf_tfjs_finish(scope, &squeeze, err);
}

// Lowers Size, the product of all dimensions.
static enum inf_code lower_size(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t shape;
    INF_TRY(emit_shape(scope, scope->inputs[0], &shape, err));
    struct inf_build_node product =
        inf_build_describe(INF_OP_REDUCE, shape, INF_VALUE_NONE, INF_VALUE_NONE);
    product.attrs.reduce.kind = INF_REDUCE_PROD;
    product.attrs.reduce.axes = (struct inf_ints){.count = 1};
    return inf_tfjs_finish(scope, &product, err);
}

static enum inf_code lower_fill(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_FILL, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers ZerosLike and OnesLike: a tensor with the shape of x, filled with `kind`.
static enum inf_code lower_like(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t shape, number;
    enum inf_dtype dtype = inf_tfjs_input(scope, 0)->dtype;
    INF_TRY(emit_shape(scope, scope->inputs[0], &shape, err));
    INF_TRY(inf_tfjs_add_scalar(scope, dtype, scope->op->kind, &number, err));
    struct inf_build_node fill = inf_build_describe(INF_OP_FILL, shape, number, INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &fill, err);
}

static enum inf_code lower_range(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_RANGE, scope->inputs[0], scope->inputs[1], scope->inputs[2]);
    return inf_tfjs_finish(scope, &call, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Reshape", lower_reshape, 2, 2, 0},
    {"BroadcastTo", lower_broadcast, 2, 2, 0},
    {"ExpandDims", lower_expand_dims, 2, 2, 0},
    {"Squeeze", lower_squeeze, 1, 1, 0},
    {"Transpose", lower_transpose, 2, 2, 0},
    {"DepthToSpace", lower_depth_to_space, 1, 1, 0},
    {"SpaceToDepth", lower_space_to_depth, 1, 1, 0},
    {"Pack", lower_pack, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"Unpack", lower_unpack, 1, 1, 0},
    {"Shape", lower_shape, 1, 1, 0},
    {"ShapeN", lower_shape, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"Rank", lower_rank, 1, 1, 0},
    {"Size", lower_size, 1, 1, 0},
    {"Fill", lower_fill, 2, 2, 0},
    {"ZerosLike", lower_like, 1, 1, 0},
    {"OnesLike", lower_like, 1, 1, 1},
    {"Range", lower_range, 3, 3, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_shape = {ops, INF_ARRAY_LENGTH(ops)};
