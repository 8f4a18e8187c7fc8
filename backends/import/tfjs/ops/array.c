// SPDX-License-Identifier: Apache-2.0
// Operators that join, split, slice, reverse, pad, tile and gather.
#include <string.h>

#include "backends/import/tfjs/lower.h"
#include "backends/import/tfjs/op_table.h"

// The axis is the first input of Concat and the last of ConcatV2.
static enum inf_code lower_concat(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    bool axis_first = scope->op->kind != 0;
    uint32_t count = scope->input_count - 1;
    struct inf_build_node call =
        inf_build_describe_list(INF_OP_CONCAT, scope->inputs + axis_first, count);
    INF_TRY(inf_tfjs_const_axis(scope, axis_first ? 0 : count, &call.attrs.concat.axis, err));
    return inf_tfjs_finish(scope, &call, err);
}

// Splits `inputs` (x and, optionally, sizes) along the axis in input `axis_input`.
static enum inf_code emit_split(struct inf_tfjs_scope *scope, uint32_t axis_input,
                                const uint32_t *inputs, uint32_t input_count, struct inf_error *err)
{
    int32_t count = 0;
    uint32_t *values = NULL;
    struct inf_build_node call = inf_build_describe_list(INF_OP_SPLIT, inputs, input_count);
    INF_TRY(inf_tfjs_const_axis(scope, axis_input, &call.attrs.split.axis, err));
    INF_TRY(inf_tfjs_attr_int(scope->node, "num_split", 1, INF_LIMIT_NODE_INPUTS, &count, err));
    if (count == 0)
        return inf_tfjs_fail(scope, err, INF_INVALID, "has no attribute num_split");
    INF_TRY(inf_tfjs_outputs(scope, (uint32_t)count, &values, err));
    call.output_count = (uint32_t)count;
    return inf_tfjs_emit(scope, &call, values, err);
}

static enum inf_code lower_split(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    return emit_split(scope, 0, &scope->inputs[1], 1, err);
}

static enum inf_code lower_split_v(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    return emit_split(scope, 2, scope->inputs, 2, err);
}

// Describes a slice with its four operands.
static struct inf_build_node describe_slice(uint32_t x, uint32_t begin, uint32_t end,
                                            uint32_t strides)
{
    struct inf_build_node call = inf_build_describe(INF_OP_SLICE, x, begin, end);
    call.inputs[3] = strides;
    call.input_count = 4;
    return call;
}

// Sets *out_end to begin + size, both of which are constants.
static enum inf_code add_const_slice_end(struct inf_tfjs_scope *scope,
                                         const struct inf_tfjs_ints *size, uint32_t *out_end,
                                         struct inf_error *err)
{
    struct inf_tfjs_ints begin = {.count = 0};
    INF_TRY(inf_tfjs_const_ints(scope, 1, "begin", &begin, err));
    if (begin.count != size->count)
        return inf_tfjs_fail(scope, err, INF_INVALID, "begin has %u elements and size %u",
                             begin.count, size->count);
    for (uint32_t i = 0; i < begin.count; i++) {
        if (begin.values[i] < 0 || begin.values[i] >= INF_LIMIT_DIM)
            return inf_tfjs_fail(scope, err, INF_INVALID, "begin[%u] is %lld, wanted at least 0", i,
                                 (long long)begin.values[i]);
        begin.values[i] += size->values[i];
        if (begin.values[i] >= INF_LIMIT_DIM)
            return inf_tfjs_fail(scope, err, INF_INVALID, "begin[%u] + size[%u] is %lld", i, i,
                                 (long long)begin.values[i]);
    }
    return inf_tfjs_add_ints(scope, begin.values, begin.count, out_end, err);
}

// Sets *out_end to begin + size, or to the end of the axis if the computed size is negative.
static enum inf_code add_slice_end(struct inf_tfjs_scope *scope, bool size_is_const,
                                   uint32_t *out_end, struct inf_error *err)
{
    uint32_t sum, zero, is_negative, shape;
    struct inf_build_node call =
        inf_build_describe(INF_OP_BINARY, scope->inputs[1], scope->inputs[2], INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &call, &sum, err));
    *out_end = sum;
    if (size_is_const)
        return INF_OK;
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, 0, &zero, err));
    call = inf_build_describe(INF_OP_COMPARE, scope->inputs[2], zero, INF_VALUE_NONE);
    call.attrs.compare.kind = INF_COMPARE_LESS;
    INF_TRY(inf_tfjs_emit(scope, &call, &is_negative, err));
    call = inf_build_describe(INF_OP_SHAPE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &call, &shape, err));
    call = inf_build_describe(INF_OP_SELECT, is_negative, shape, sum);
    return inf_tfjs_emit(scope, &call, out_end, err);
}

// Reads a constant size. -1 means up to the end of the axis.
static enum inf_code read_size(struct inf_tfjs_scope *scope, struct inf_tfjs_ints *size,
                               int32_t *end_mask, struct inf_error *err)
{
    INF_TRY(inf_tfjs_const_ints(scope, 2, "size", size, err));
    if (size->count > INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_INVALID, "size has %u elements, wanted at most %d",
                             size->count, INF_LIMIT_RANK);
    for (uint32_t i = 0; i < size->count; i++) {
        if (size->values[i] < -1 || size->values[i] >= INF_LIMIT_DIM)
            return inf_tfjs_fail(scope, err, INF_INVALID, "size[%u] is %lld, wanted at least -1", i,
                                 (long long)size->values[i]);
        if (size->values[i] == -1)
            *end_mask |= 1 << i;
    }
    return INF_OK;
}

static enum inf_code lower_slice(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_ints size = {.count = 0};
    int64_t ones[INF_LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    int32_t end_mask = 0;
    uint32_t end, strides;
    bool size_is_const = inf_graph_is_const(scope->graph, scope->inputs[2]);
    const struct inf_shape *list = &inf_tfjs_input(scope, 2)->shape;
    int64_t count = list->rank == 1 ? list->dims[0] : INF_DIM_UNKNOWN;
    if (count < 0 || count > INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "how many elements size has is not known");
    if (size_is_const)
        INF_TRY(read_size(scope, &size, &end_mask, err));
    if (size_is_const && inf_graph_is_const(scope->graph, scope->inputs[1]))
        INF_TRY(add_const_slice_end(scope, &size, &end, err));
    else
        INF_TRY(add_slice_end(scope, size_is_const, &end, err));
    INF_TRY(inf_tfjs_add_ints(scope, ones, (uint32_t)count, &strides, err));
    struct inf_build_node call = describe_slice(scope->inputs[0], scope->inputs[1], end, strides);
    call.attrs.slice.end_mask = end_mask;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_strided_slice(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        describe_slice(scope->inputs[0], scope->inputs[1], scope->inputs[2], scope->inputs[3]);
    struct inf_attrs_slice *attrs = &call.attrs.slice;
    const struct inf_tfjs_node *node = scope->node;
    INF_TRY(inf_tfjs_attr_int(node, "begin_mask", 0, 255, &attrs->begin_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "end_mask", 0, 255, &attrs->end_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "ellipsis_mask", 0, 255, &attrs->ellipsis_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "new_axis_mask", 0, 255, &attrs->new_axis_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "shrink_axis_mask", 0, 255, &attrs->shrink_axis_mask, err));
    return inf_tfjs_finish(scope, &call, err);
}

// Reads the axes of Reverse (a list of bools) and ReverseV2 (a list of axes).
static enum inf_code read_reversed(struct inf_tfjs_scope *scope, struct inf_ints *axes,
                                   struct inf_error *err)
{
    const struct inf_value *marks = inf_tfjs_input(scope, 1);
    if (marks->dtype != INF_DTYPE_BOOL)
        return inf_tfjs_const_axes(scope, 1, "the list of axes", axes, err);
    if (!inf_graph_is_const(scope->graph, scope->inputs[1]) || marks->shape.rank != 1 ||
        marks->shape.dims[0] > INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "which axes is no constant list of at most %d", INF_LIMIT_RANK);
    *axes = (struct inf_ints){.count = 0};
    for (int32_t i = 0; i < marks->shape.dims[0]; i++)
        if (((const uint8_t *)marks->data->data)[i] != 0)
            axes->values[axes->count++] = i;
    return INF_OK;
}

// Lowers Reverse to a slice with step -1 along the named axes.
static enum inf_code lower_reverse(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_ints axes;
    int64_t zeros[INF_LIMIT_RANK] = {0}, steps[INF_LIMIT_RANK];
    uint32_t bounds, strides;
    int32_t rank = inf_tfjs_input(scope, 0)->shape.rank;
    INF_TRY(read_reversed(scope, &axes, err));
    if (rank < 0)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "the rank of its input is not known");
    for (int32_t i = 0; i < rank; i++)
        steps[i] = 1;
    for (int32_t i = 0; i < axes.count; i++) {
        int64_t axis = axes.values[i] < 0 ? axes.values[i] + rank : axes.values[i];
        if (axis < 0 || axis >= rank)
            return inf_tfjs_fail(scope, err, INF_INVALID, "axis %lld, and its input has rank %d",
                                 (long long)axes.values[i], rank);
        steps[axis] = -1;
    }
    INF_TRY(inf_tfjs_add_ints(scope, zeros, (uint32_t)rank, &bounds, err));
    INF_TRY(inf_tfjs_add_ints(scope, steps, (uint32_t)rank, &strides, err));
    struct inf_build_node call = describe_slice(scope->inputs[0], bounds, bounds, strides);
    call.attrs.slice.begin_mask = (1 << rank) - 1;
    call.attrs.slice.end_mask = (1 << rank) - 1;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_pad(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_PAD, scope->inputs[0], scope->inputs[1],
                           scope->input_count > 2 ? scope->inputs[2] : INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_mirror_pad(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_PAD, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_tfjs_text mode = {"nothing"};
    INF_TRY(inf_tfjs_attr_text(scope->node, "mode", &mode, err));
    if (strcmp(mode.text, "reflect") == 0)
        call.attrs.pad.mode = INF_PAD_REFLECT;
    else if (strcmp(mode.text, "symmetric") == 0)
        call.attrs.pad.mode = INF_PAD_SYMMETRIC;
    else
        return inf_tfjs_fail(scope, err, INF_INVALID, "mode is '%s', wanted REFLECT or SYMMETRIC",
                             mode.text);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_tile(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_TILE, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_gather(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_GATHER, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    if (scope->input_count > 2)
        INF_TRY(inf_tfjs_const_axis(scope, 2, &call.attrs.gather.axis, err));
    int32_t *batches = &call.attrs.gather.batch_dims;
    INF_TRY(inf_tfjs_attr_int(scope->node, "batch_dims", -INF_LIMIT_RANK, INF_LIMIT_RANK - 1,
                              batches, err));
    // A negative number counts from the end of the indices' shape.
    int32_t rank = inf_tfjs_input(scope, 1)->shape.rank;
    if (*batches < -rank)
        return inf_tfjs_fail(scope, err, INF_INVALID,
                             "batch_dims is %d, wanted at least -%d, the indices' rank", *batches,
                             rank);
    *batches += *batches < 0 ? rank : 0;
    return inf_tfjs_finish(scope, &call, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Concat", lower_concat, 2, INF_LIMIT_NODE_INPUTS, true},
    {"ConcatV2", lower_concat, 2, INF_LIMIT_NODE_INPUTS, false},
    {"Split", lower_split, 2, 2, 0},
    {"SplitV", lower_split_v, 3, 3, 0},
    {"Slice", lower_slice, 3, 3, 0},
    {"StridedSlice", lower_strided_slice, 4, 4, 0},
    {"Reverse", lower_reverse, 2, 2, 0},
    {"ReverseV2", lower_reverse, 2, 2, 0},
    {"Pad", lower_pad, 2, 2, 0},
    {"PadV2", lower_pad, 3, 3, 0},
    {"MirrorPad", lower_mirror_pad, 2, 2, 0},
    {"Tile", lower_tile, 2, 2, 0},
    {"Gather", lower_gather, 2, 2, 0},
    {"GatherV2", lower_gather, 2, 3, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_array = {ops, INF_ARRAY_LENGTH(ops)};
