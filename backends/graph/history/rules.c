// SPDX-License-Identifier: Apache-2.0
// The rules for operands with unused rows. An element-wise operator keeps unused elements where
// they are, and must keep them finite. A product of matrices may add over the unused rows if one
// operand is 0 there: the other one is finite, as all memory of a session is. A softmax or a
// maximum over them needs -infinity there. All operators without a rule are refused, as are rows
// that move or mix.
#include "backends/graph/history/rules.h"

#include "backends/graph/shape/infer.h"

static int32_t axis_of(const struct inf_history_facts *facts, uint32_t value)
{
    return value == INF_VALUE_NONE ? -1 : facts->values[value].axis;
}

static const struct inf_shape *shape_of(const struct inf_history_facts *facts, uint32_t value)
{
    return &facts->graph->values[value].shape;
}

// Returns true if the operand has no unused rows, or has them along the axis of the output's when
// the last axes are aligned, as in a broadcast.
static bool is_aligned(const struct inf_history_facts *facts, uint32_t value, uint32_t output)
{
    int32_t axis = axis_of(facts, value), y_axis = axis_of(facts, output);
    return axis < 0 || (y_axis >= 0 && shape_of(facts, value)->rank - axis ==
                                           shape_of(facts, output)->rank - y_axis);
}

static bool are_aligned(const struct inf_history_facts *facts, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && !inf_history_is_size(node->op, i) &&
            !is_aligned(facts, node->inputs[i], node->outputs[0]))
            return false;
    return true;
}

static int64_t count_before(const struct inf_shape *shape, int32_t axis)
{
    int64_t count = 1;
    for (int32_t i = 0; i < axis; i++)
        count *= shape->dims[i];
    return count;
}

// Returns true if a reshape keeps the axis with unused rows, and all elements before it.
static bool keeps_axis(const struct inf_history_facts *facts, const struct inf_node *node)
{
    int32_t axis = axis_of(facts, node->inputs[0]), y_axis = axis_of(facts, node->outputs[0]);
    const struct inf_shape *x = shape_of(facts, node->inputs[0]);
    const struct inf_shape *y = shape_of(facts, node->outputs[0]);
    return axis < 0 || (y_axis >= 0 && x->dims[axis] == y->dims[y_axis] &&
                        count_before(x, axis) == count_before(y, y_axis));
}

static bool moves_axis(const struct inf_history_facts *facts, const struct inf_node *node)
{
    int32_t axis = axis_of(facts, node->inputs[0]), y_axis = axis_of(facts, node->outputs[0]);
    const struct inf_ints *perm = &node->attrs.transpose.perm;
    int32_t rank = shape_of(facts, node->inputs[0])->rank;
    if (axis < 0)
        return true;
    if (y_axis < 0)
        return false;
    int64_t from = perm->count == 0 ? rank - 1 - y_axis : perm->values[y_axis];
    return (from < 0 ? from + rank : from) == axis;
}

static bool is_named(const struct inf_ints *axes, int32_t axis, int32_t rank)
{
    for (int32_t i = 0; i < axes->count; i++)
        if ((axes->values[i] < 0 ? axes->values[i] + rank : axes->values[i]) == axis)
            return true;
    return axes->count == 0;
}

static bool check_product(const struct inf_history_facts *facts, const struct inf_node *node)
{
    uint32_t a = node->inputs[0], b = node->inputs[1];
    int32_t a_rank = shape_of(facts, a)->rank, b_rank = shape_of(facts, b)->rank;
    int32_t a_depth = node->attrs.matmul.transpose_a ? a_rank - 2 : a_rank - 1;
    int32_t b_depth = node->attrs.matmul.transpose_b ? b_rank - 1 : b_rank - 2;
    for (uint32_t i = 2; i < node->input_count; i++)
        if (axis_of(facts, node->inputs[i]) >= 0)
            return false;
    bool adds = axis_of(facts, a) >= 0 && axis_of(facts, a) == a_depth;
    if (adds != (axis_of(facts, b) >= 0 && axis_of(facts, b) == b_depth))
        return false;
    if (adds)
        return facts->zero[a] && axis_of(facts, node->outputs[0]) < 0;
    return axis_of(facts, node->outputs[0]) >= 0;
}

static bool check_softmax(const struct inf_history_facts *facts, const struct inf_node *node,
                          struct inf_history_rule *rule)
{
    const struct inf_value *x = &facts->graph->values[node->inputs[0]];
    int32_t axis = node->attrs.softmax.axis, rank = x->shape.rank;
    axis = axis < 0 ? axis + rank : axis;
    if (axis_of(facts, node->inputs[0]) != axis)
        return is_aligned(facts, node->inputs[0], node->outputs[0]);
    rule->hides = rule->zero = true;
    return axis == rank - 1 && !node->attrs.softmax.log && x->dtype == INF_DTYPE_F32;
}

static bool check_reduce(const struct inf_history_facts *facts, const struct inf_node *node,
                         struct inf_history_rule *rule)
{
    const struct inf_value *x = &facts->graph->values[node->inputs[0]];
    int32_t axis = axis_of(facts, node->inputs[0]);
    if (axis < 0)
        return true;
    if (!is_named(&node->attrs.reduce.axes, axis, x->shape.rank))
        return axis_of(facts, node->outputs[0]) >= 0 &&
               node->attrs.reduce.kind != INF_REDUCE_LOG_SUM; // not finite for unused rows
    if (node->attrs.reduce.kind == INF_REDUCE_SUM)
        return facts->zero[node->inputs[0]];
    rule->hides = true;
    return node->attrs.reduce.kind == INF_REDUCE_MAX && axis == x->shape.rank - 1 &&
           x->dtype == INF_DTYPE_F32;
}

// Returns true if the node selects slices along other axes than that with unused rows.
static bool check_gather(const struct inf_history_facts *facts, const struct inf_node *node)
{
    int32_t rank = shape_of(facts, node->inputs[0])->rank, axis = node->attrs.gather.axis;
    return axis_of(facts, node->inputs[1]) < 0 &&
           axis_of(facts, node->inputs[0]) != (axis < 0 ? axis + rank : axis);
}

static bool check_slice(const struct inf_history_facts *facts, const struct inf_node *node)
{
    struct inf_slice_plan plan;
    int32_t axis = axis_of(facts, node->inputs[0]), y_axis = axis_of(facts, node->outputs[0]);
    if (!inf_node_slice_plan(facts->graph, node, &plan))
        return false;
    // The first columns of a table, as many as there are keys: a longer slice has the same ones
    // first if it begins at the same place.
    if (axis < 0)
        return facts->values[node->inputs[1]].kind == INF_HISTORY_CONSTANT &&
               facts->values[node->inputs[3]].kind == INF_HISTORY_CONSTANT &&
               (y_axis < 0 ||
                (plan.rank == shape_of(facts, node->outputs[0])->rank && plan.stride[y_axis] == 1));
    return plan.begin[axis] == 0 && plan.stride[axis] == 1 &&
           plan.count[axis] == shape_of(facts, node->inputs[0])->dims[axis] &&
           axis_of(facts, node->outputs[0]) >= 0;
}

static bool check_concat(const struct inf_history_facts *facts, const struct inf_node *node)
{
    int32_t axis = node->attrs.concat.axis, rank = shape_of(facts, node->outputs[0])->rank;
    axis = axis < 0 ? axis + rank : axis;
    return are_aligned(facts, node) && axis_of(facts, node->outputs[0]) != axis;
}

// Returns true if the unused rows of the output are 0 because those of an operand are.
static bool passes_zero(const struct inf_history_facts *facts, const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_CAST:
    case INF_OP_TRANSPOSE:
    case INF_OP_RESHAPE:
    case INF_OP_EXPAND_DIMS:
    case INF_OP_SQUEEZE:
    case INF_OP_IDENTITY:
        return facts->zero[node->inputs[0]];
    case INF_OP_SELECT: {
        // A constant of one element is the 0 that a row without visible keys has.
        const struct inf_value *other = &facts->graph->values[node->inputs[1]];
        return facts->zero[node->inputs[2]] && other->data != NULL &&
               other->dtype == INF_DTYPE_F32 && inf_shape_elements(&other->shape) == 1 &&
               *(const float *)other->data->data == 0;
    }
    default:
        return false;
    }
}

// Returns true if finite elements give finite results. 1 / 0 and the logarithm of 0 are not finite:
// in unused rows they would become NaN when they are multiplied by 0 or -infinity is added. A
// division of integers by 0 fails the run.
static bool stays_finite(const struct inf_history_facts *facts, const struct inf_node *node)
{
    if (node->op == INF_OP_UNARY)
        switch (node->attrs.unary.kind) {
        case INF_UNARY_SQRT:
        case INF_UNARY_RSQRT:
        case INF_UNARY_RECIPROCAL:
        case INF_UNARY_EXP:
        case INF_UNARY_EXPM1:
        case INF_UNARY_LOG:
        case INF_UNARY_LOG1P:
        case INF_UNARY_TAN:
        case INF_UNARY_ASIN:
        case INF_UNARY_ACOS:
        case INF_UNARY_SINH:
        case INF_UNARY_COSH:
        case INF_UNARY_ACOSH:
        case INF_UNARY_ATANH:
            return false;
        default:
            return true;
        }
    switch (node->attrs.binary.kind) {
    case INF_BINARY_POW:
        return false;
    case INF_BINARY_DIV:
    case INF_BINARY_FLOOR_DIV:
    case INF_BINARY_FLOOR_MOD:
    case INF_BINARY_MOD:
        return axis_of(facts, node->inputs[1]) < 0;
    default:
        return true;
    }
}

static bool follows_rule(const struct inf_history_facts *facts, const struct inf_node *node,
                         struct inf_history_rule *rule)
{
    switch (node->op) {
    case INF_OP_UNARY:
    case INF_OP_BINARY:
        return are_aligned(facts, node) && stays_finite(facts, node);
    case INF_OP_COMPARE:
    case INF_OP_SELECT:
    case INF_OP_CLIP:
    case INF_OP_CAST:
    case INF_OP_IDENTITY:
    case INF_OP_BROADCAST:
    case INF_OP_FILL:
        return are_aligned(facts, node);
    case INF_OP_RESHAPE:
    case INF_OP_EXPAND_DIMS:
    case INF_OP_SQUEEZE:
        return keeps_axis(facts, node);
    case INF_OP_TRANSPOSE:
        return moves_axis(facts, node);
    case INF_OP_CONCAT:
        return check_concat(facts, node);
    case INF_OP_MATMUL:
        return check_product(facts, node);
    case INF_OP_SOFTMAX:
        return check_softmax(facts, node, rule);
    case INF_OP_REDUCE:
        return check_reduce(facts, node, rule);
    case INF_OP_GATHER:
        return check_gather(facts, node);
    case INF_OP_SLICE:
        return check_slice(facts, node);
    default:
        return false;
    }
}

bool inf_history_is_size(enum inf_op op, uint32_t index)
{
    switch (op) {
    case INF_OP_RESHAPE:
    case INF_OP_BROADCAST:
        return index == 1;
    case INF_OP_FILL:
        return index == 0;
    case INF_OP_SLICE:
        return index > 0;
    default:
        return false;
    }
}

enum inf_code inf_history_check_node(const struct inf_history_facts *facts,
                                     const struct inf_node *node, struct inf_history_rule *rule,
                                     struct inf_error *err)
{
    bool grows = false;
    *rule = (struct inf_history_rule){false, false};
    for (uint32_t i = 0; i < node->input_count; i++)
        grows = grows || axis_of(facts, node->inputs[i]) >= 0;
    for (uint32_t i = 0; i < node->output_count; i++)
        grows = grows || axis_of(facts, node->outputs[i]) >= 0;
    bool slides = node->op == INF_OP_SLICE; // a slice may begin where the history ends
    if ((grows || slides) && (node->output_count != 1 || !follows_rule(facts, node, rule)))
        return inf_fail(err, INF_UNSUPPORTED, "node '%s' (%s): no rule for unused rows", node->name,
                        inf_op_info(node->op)->name);
    rule->zero = rule->zero || passes_zero(facts, node);
    return INF_OK;
}
