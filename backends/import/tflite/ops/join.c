// SPDX-License-Identifier: Apache-2.0
// Joining tensors along an axis, and cutting them apart.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// Returns the data inputs from `first` on, in `values`.
static void collect_inputs(struct inf_tflite_scope *s, uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!inf_tflite_has_input(s, i))
            inf_build_fail(&s->b, INF_INVALID, "lacks input %u", i);
        values[i] = inf_tflite_data(s, i);
    }
}

static void lower_concatenation(struct inf_tflite_scope *s)
{
    uint32_t count = s->op->inputs.count;
    uint32_t *values = inf_arena_alloc(s->import->arena, count * sizeof *values);
    if (values == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %u inputs", count);
        return;
    }
    collect_inputs(s, values, count);
    int32_t axis = inf_build_axis(&s->b, inf_tflite_option_int(s, 0, "axis"),
                                  inf_build_rank(&s->b, values[0]));
    uint32_t y = inf_build_concat(&s->b, values, count, axis);
    s->outputs[0] = inf_tflite_activate(s, y, 1);
}

static void lower_pack(struct inf_tflite_scope *s)
{
    uint32_t count = s->op->inputs.count;
    uint32_t *values = inf_arena_alloc(s->import->arena, count * sizeof *values);
    if (values == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %u inputs", count);
        return;
    }
    collect_inputs(s, values, count);
    int64_t axis = inf_tflite_option_int(s, 1, "axis");
    axis = inf_build_axis(&s->b, axis, inf_build_rank(&s->b, values[0]) + 1);
    for (uint32_t i = 0; i < count; i++)
        values[i] = inf_build_expand_dims(&s->b, values[i], &axis, 1);
    s->outputs[0] = inf_build_concat(&s->b, values, count, (int32_t)axis);
}

// Adds a split along an axis into as many parts as the operator has outputs.
static void emit_split(struct inf_tflite_scope *s, uint32_t x, uint32_t sizes, int32_t axis)
{
    struct inf_build_node node = inf_build_describe(INF_OP_SPLIT, x, sizes, INF_VALUE_NONE);
    node.attrs.split.axis = axis;
    node.output_count = s->op->outputs.count;
    inf_build_emit(&s->b, &node, s->outputs);
}

static void lower_unpack(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0);
    int64_t axis =
        inf_build_axis(&s->b, inf_tflite_option_int(s, 1, "axis"), inf_build_rank(&s->b, x));
    emit_split(s, x, INF_VALUE_NONE, (int32_t)axis);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->op->outputs.count; i++)
        s->outputs[i] = inf_build_squeeze(&s->b, s->outputs[i], &axis, 1);
}

// Returns the axis that input `index` holds, of input `x`.
static int32_t read_axis(struct inf_tflite_scope *s, uint32_t index, uint32_t x)
{
    int64_t axis = inf_build_const_int(&s->b, inf_tflite_list(s, index), "the axis");
    return inf_build_axis(&s->b, axis, inf_build_rank(&s->b, x));
}

static void lower_split(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 1);
    int32_t count = inf_tflite_option_int(s, 0, "num_splits");
    if (count != (int64_t)s->op->outputs.count)
        inf_build_fail(&s->b, INF_INVALID, "option num_splits is %d, it has %u outputs", count,
                       s->op->outputs.count);
    emit_split(s, x, INF_VALUE_NONE, read_axis(s, 0, x));
}

static void lower_split_v(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0);
    emit_split(s, x, inf_tflite_list(s, 1), read_axis(s, 2, x));
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_CONCATENATION, NULL, lower_concatenation, 1, INF_LIMIT_NODE_INPUTS, 1,
     INF_TFLITE_MODE_MOVE, INF_TFLITE_OPTIONS_CONCATENATION, 0},
    {INF_TFLITE_PACK, NULL, lower_pack, 1, INF_LIMIT_NODE_INPUTS, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_PACK, 0},
    {INF_TFLITE_UNPACK, NULL, lower_unpack, 1, 1, INF_LIMIT_TENSORS, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_UNPACK, 0},
    {INF_TFLITE_SPLIT, NULL, lower_split, 2, 2, INF_LIMIT_TENSORS, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_SPLIT, 0},
    {INF_TFLITE_SPLIT_V, NULL, lower_split_v, 3, 3, INF_LIMIT_TENSORS, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_SPLIT_V, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_join = {ops, INF_ARRAY_LENGTH(ops)};
