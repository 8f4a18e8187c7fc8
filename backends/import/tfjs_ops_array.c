// SPDX-License-Identifier: Apache-2.0
// Operators that join, cut and pick from tensors.
#include <string.h>

#include "backends/import/tfjs_lower.h"

// Concat has its axis first, ConcatV2 last.
static enum inf_code lower_concat(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    bool axis_first = scope->op->kind != 0;
    uint32_t count = scope->input_count - 1;
    struct inf_tfjs_call call =
        inf_tfjs_call_list(INF_OP_CONCAT, scope->inputs + axis_first, count);
    INF_TRY(inf_tfjs_const_axis(scope, axis_first ? 0 : count, &call.attrs.concat.axis, err));
    return inf_tfjs_finish(scope, &call, err);
}

// Adds the split of `inputs` (x, and perhaps sizes) along the axis that input `axis_input` is.
static enum inf_code emit_split(struct inf_tfjs_scope *scope, uint32_t axis_input,
                                const uint32_t *inputs, uint32_t input_count, struct inf_error *err)
{
    int32_t count = 0;
    uint32_t *values = NULL;
    struct inf_tfjs_call call = inf_tfjs_call_list(INF_OP_SPLIT, inputs, input_count);
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

// A slice whose four operands are given.
static struct inf_tfjs_call slice_call(uint32_t x, uint32_t begin, uint32_t end, uint32_t strides)
{
    struct inf_tfjs_call call = inf_tfjs_call(INF_OP_SLICE, x, begin, end);
    call.inputs[3] = strides;
    call.input_count = 4;
    return call;
}

// *out_end = begin + size. Where both are constants, so is it.
static enum inf_code slice_end(struct inf_tfjs_scope *scope, const struct inf_tfjs_ints *size,
                               uint32_t *out_end, struct inf_error *err)
{
    struct inf_tfjs_ints begin = {.count = 0};
    if (!inf_graph_is_const(scope->graph, scope->inputs[1])) {
        struct inf_tfjs_call add =
            inf_tfjs_call(INF_OP_BINARY, scope->inputs[1], scope->inputs[2], INF_VALUE_NONE);
        return inf_tfjs_emit(scope, &add, out_end, err);
    }
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

static enum inf_code lower_slice(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_ints size = {.count = 0};
    int64_t ones[INF_LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    int32_t end_mask = 0;
    uint32_t end, strides;
    INF_TRY(inf_tfjs_const_ints(scope, 2, "size", &size, err));
    if (size.count > INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_INVALID, "size has %u elements, wanted at most %d",
                             size.count, INF_LIMIT_RANK);
    for (uint32_t i = 0; i < size.count; i++) {
        if (size.values[i] < -1 || size.values[i] >= INF_LIMIT_DIM)
            return inf_tfjs_fail(scope, err, INF_INVALID, "size[%u] is %lld, wanted at least -1", i,
                                 (long long)size.values[i]);
        if (size.values[i] == -1)
            end_mask |= 1 << i;
    }
    INF_TRY(slice_end(scope, &size, &end, err));
    INF_TRY(inf_tfjs_add_ints(scope, ones, size.count, &strides, err));
    struct inf_tfjs_call call = slice_call(scope->inputs[0], scope->inputs[1], end, strides);
    call.attrs.slice.end_mask = end_mask;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_strided_slice(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_call call =
        slice_call(scope->inputs[0], scope->inputs[1], scope->inputs[2], scope->inputs[3]);
    struct inf_attrs_slice *attrs = &call.attrs.slice;
    const struct inf_tfjs_node *node = scope->node;
    INF_TRY(inf_tfjs_attr_int(node, "begin_mask", 0, 255, &attrs->begin_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "end_mask", 0, 255, &attrs->end_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "ellipsis_mask", 0, 255, &attrs->ellipsis_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "new_axis_mask", 0, 255, &attrs->new_axis_mask, err));
    INF_TRY(inf_tfjs_attr_int(node, "shrink_axis_mask", 0, 255, &attrs->shrink_axis_mask, err));
    return inf_tfjs_finish(scope, &call, err);
}

// A slice that goes backwards along the axes named and takes all of the rest.
static enum inf_code lower_reverse(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_ints axes;
    int64_t zeros[INF_LIMIT_RANK] = {0}, steps[INF_LIMIT_RANK];
    uint32_t bounds, strides;
    int32_t rank = inf_tfjs_input(scope, 0)->shape.rank;
    INF_TRY(inf_tfjs_const_axes(scope, 1, "the list of axes", &axes, err));
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
    struct inf_tfjs_call call = slice_call(scope->inputs[0], bounds, bounds, strides);
    call.attrs.slice.begin_mask = (1 << rank) - 1;
    call.attrs.slice.end_mask = (1 << rank) - 1;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_pad(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_call call =
        inf_tfjs_call(INF_OP_PAD, scope->inputs[0], scope->inputs[1],
                      scope->input_count > 2 ? scope->inputs[2] : INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_mirror_pad(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_call call =
        inf_tfjs_call(INF_OP_PAD, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
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
    struct inf_tfjs_call call =
        inf_tfjs_call(INF_OP_TILE, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_gather(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_call call =
        inf_tfjs_call(INF_OP_GATHER, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    if (scope->input_count > 2)
        INF_TRY(inf_tfjs_const_axis(scope, 2, &call.attrs.gather.axis, err));
    INF_TRY(inf_tfjs_attr_int(scope->node, "batch_dims", 0, INF_LIMIT_RANK - 1,
                              &call.attrs.gather.batch_dims, err));
    return inf_tfjs_finish(scope, &call, err);
}

// For x whose first `depth` axes are to become one: steps[i] = how far apart neighbours along axis
// i lie in it, and shape = that of x then. False where dimensions are not known or too large.
static bool plan_gather_nd(const struct inf_shape *x, int32_t depth, int64_t *steps,
                           struct inf_shape *shape)
{
    struct inf_shape inner = {.rank = 0};
    size_t count = 1;
    for (int32_t i = depth - 1; i >= 0; i--) {
        steps[i] = (int64_t)count;
        inner.dims[inner.rank++] = x->dims[i];
        if (i == 0 && x->dims[0] == INF_DIM_UNKNOWN)
            break;
        if (!inf_shape_count(&inner, &count) || count >= (size_t)INF_LIMIT_DIM)
            return false;
    }
    *shape = (struct inf_shape){.rank = x->rank - depth + 1};
    shape->dims[0] = x->dims[0] == INF_DIM_UNKNOWN ? INF_DIM_UNKNOWN : (int64_t)count;
    memcpy(&shape->dims[1], &x->dims[depth], (size_t)(x->rank - depth) * sizeof *shape->dims);
    int32_t unknown_count = 0;
    for (int32_t i = 0; i < shape->rank; i++)
        unknown_count += shape->dims[i] == INF_DIM_UNKNOWN;
    return unknown_count <= 1;
}

// Positions in the indexed axes become positions in one axis, along which a gather picks. A
// position out of range within its axis is only noticed where the sum is out of range.
static enum inf_code lower_gather_nd(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    const struct inf_shape x = inf_tfjs_input(scope, 0)->shape;
    const struct inf_shape indices = inf_tfjs_input(scope, 1)->shape;
    int64_t depth = indices.rank > 0 ? indices.dims[indices.rank - 1] : INF_DIM_UNKNOWN;
    int64_t steps[INF_LIMIT_RANK];
    struct inf_shape shape;
    uint32_t steps_value, shape_value, positions, flat;
    if (x.rank < 0 || depth < 1 || depth > x.rank ||
        !plan_gather_nd(&x, (int32_t)depth, steps, &shape)) {
        char x_text[INF_SHAPE_TEXT_SIZE], indices_text[INF_SHAPE_TEXT_SIZE];
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "x %s and indices %s, wanted known dimensions where indices point",
                             inf_shape_print(&x, x_text), inf_shape_print(&indices, indices_text));
    }
    INF_TRY(inf_tfjs_add_ints(scope, steps, (uint32_t)depth, &steps_value, err));
    INF_TRY(inf_tfjs_add_ints(scope, shape.dims, (uint32_t)shape.rank, &shape_value, err));

    struct inf_tfjs_call call =
        inf_tfjs_call(INF_OP_BINARY, scope->inputs[1], steps_value, INF_VALUE_NONE);
    call.attrs.binary.kind = INF_BINARY_MUL;
    INF_TRY(inf_tfjs_emit(scope, &call, &positions, err));
    call = inf_tfjs_call(INF_OP_REDUCE, positions, INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.reduce.axes = (struct inf_ints){.count = 1, .values = {-1}};
    INF_TRY(inf_tfjs_emit(scope, &call, &positions, err));
    call = inf_tfjs_call(INF_OP_RESHAPE, scope->inputs[0], shape_value, INF_VALUE_NONE);
    INF_TRY(inf_tfjs_emit(scope, &call, &flat, err));
    call = inf_tfjs_call(INF_OP_GATHER, flat, positions, INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Concat", lower_concat, 2, INF_LIMIT_NODE_INPUTS, true},
    {"ConcatV2", lower_concat, 2, INF_LIMIT_NODE_INPUTS, false},
    {"Split", lower_split, 2, 2, 0},
    {"SplitV", lower_split_v, 3, 3, 0},
    {"Slice", lower_slice, 3, 3, 0},
    {"StridedSlice", lower_strided_slice, 4, 4, 0},
    {"ReverseV2", lower_reverse, 2, 2, 0},
    {"Pad", lower_pad, 2, 2, 0},
    {"PadV2", lower_pad, 3, 3, 0},
    {"MirrorPad", lower_mirror_pad, 2, 2, 0},
    {"Tile", lower_tile, 2, 2, 0},
    {"Gather", lower_gather, 2, 2, 0},
    {"GatherV2", lower_gather, 2, 3, 0},
    {"GatherNd", lower_gather_nd, 2, 2, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_array = {ops, INF_ARRAY_LENGTH(ops)};
