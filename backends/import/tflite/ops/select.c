// SPDX-License-Identifier: Apache-2.0
// Choosing between tensors, and positions of elements that are not 0.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// The condition of SELECT may be a vector with one element for each slice of the first axis.
static void lower_select(struct inf_tflite_scope *s)
{
    static const int64_t behind[] = {1, 2, 3, 4, 5, 6, 7};
    uint32_t condition = inf_tflite_stored(s, 0), x = inf_tflite_data(s, 1);
    int32_t rank = inf_build_rank(&s->b, x);
    if (inf_build_ok(&s->b) && inf_build_rank(&s->b, condition) == 1 && rank > 1)
        condition = inf_build_expand_dims(&s->b, condition, behind, rank - 1);
    s->outputs[0] = inf_build_select(&s->b, condition, x, inf_tflite_data(s, 2));
}

static void lower_select_v2(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_select(&s->b, inf_tflite_stored(s, 0), inf_tflite_data(s, 1),
                                     inf_tflite_data(s, 2));
}

static void lower_where(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_NONZERO, inf_tflite_stored(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_unique(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_UNIQUE, inf_tflite_stored(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    uint32_t results[4];
    node.output_count = 4;
    inf_build_emit(&s->b, &node, results);
    s->outputs[0] = results[0];
    s->outputs[1] = results[1];
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_SELECT, NULL, lower_select, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_SELECT_V2, NULL, lower_select_v2, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_STABLEHLO_SELECT, NULL, lower_select_v2, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_WHERE, NULL, lower_where, 1, 1, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_UNIQUE, NULL, lower_unique, 1, 1, 2, INF_TFLITE_MODE_STORED, 0, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_select = {ops, INF_ARRAY_LENGTH(ops)};
