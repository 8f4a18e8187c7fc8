// SPDX-License-Identifier: Apache-2.0
// Reductions, softmax, and positions of the minimum or maximum.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/axes.h"

// Kinds of reductions that the graph has no operator for; they are built from other reductions.
enum {
    KIND_L1 = 100,
    KIND_L2,
    KIND_LOG_SUM,
    KIND_LOG_SUM_EXP,
    KIND_SUM_SQUARE,
};

// Returns the first opset in which the node's operator takes the axes as an input.
static int64_t find_axes_input_opset(const struct inf_onnx_scope *s)
{
    return s->op->kind == INF_REDUCE_SUM ? 13 : 18;
}

// Reads the axes of a reduction, converted to nonnegative axes. Returns no axes if the reduction
// has no effect.
static struct inf_ints read_axes(struct inf_onnx_scope *s, int32_t rank)
{
    struct inf_build_ints listed = {.count = 0};
    struct inf_ints axes = {.count = 0};
    bool seen[INF_LIMIT_RANK] = {false};
    bool is_input = s->opset >= find_axes_input_opset(s);
    bool none_means_none = is_input && inf_onnx_attr_int(s, "noop_with_empty_axes", 0) != 0;
    if (!is_input)
        (void)inf_onnx_attr_ints(s, "axes", &listed);
    else if (inf_onnx_input(s, 1) != INF_VALUE_NONE)
        listed = inf_build_const_ints(&s->b, s->inputs[1], "axes");
    for (uint32_t i = 0; i < listed.count; i++)
        seen[inf_build_axis(&s->b, listed.values[i], rank)] = true;
    for (int32_t i = 0; i < rank; i++)
        if (seen[i] || (listed.count == 0 && !none_means_none))
            axes.values[axes.count++] = i;
    return axes;
}

static uint32_t add_reduction(struct inf_onnx_scope *s, enum inf_reduce_kind kind, uint32_t x,
                              const struct inf_ints *axes, bool keep)
{
    // For bools, the maximum is "any" and the minimum is "all".
    if (inf_build_dtype(&s->b, x) == INF_DTYPE_BOOL && kind == INF_REDUCE_MAX)
        kind = INF_REDUCE_ANY;
    else if (inf_build_dtype(&s->b, x) == INF_DTYPE_BOOL && kind == INF_REDUCE_MIN)
        kind = INF_REDUCE_ALL;
    return inf_build_reduce(&s->b, kind, x, axes, keep);
}

// Computes log(sum(exp(x))). Subtracts the largest element first unless it is infinite.
static uint32_t add_log_sum_exp(struct inf_onnx_scope *s, uint32_t x, const struct inf_ints *axes,
                                bool keep)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    uint32_t top = inf_build_reduce(&s->b, INF_REDUCE_MAX, x, axes, true);
    uint32_t size = inf_build_unary(&s->b, INF_UNARY_ABS, top);
    uint32_t finite =
        inf_build_compare(&s->b, INF_COMPARE_LESS, size, inf_build_scalar(&s->b, dtype, INFINITY));
    top = inf_build_select(&s->b, finite, top, inf_build_scalar(&s->b, dtype, 0));
    uint32_t sum = inf_build_unary(&s->b, INF_UNARY_EXP, inf_build_sub(&s->b, x, top));
    sum = inf_build_unary(&s->b, INF_UNARY_LOG,
                          inf_build_reduce(&s->b, INF_REDUCE_SUM, sum, axes, true));
    sum = inf_build_add(&s->b, sum, top);
    return keep ? sum : inf_build_squeeze(&s->b, sum, axes->values, axes->count);
}

static uint32_t lower_kind(struct inf_onnx_scope *s, uint32_t x, const struct inf_ints *axes,
                           bool keep)
{
    switch (s->op->kind) {
    case KIND_L1:
        return inf_build_reduce(&s->b, INF_REDUCE_SUM, inf_build_unary(&s->b, INF_UNARY_ABS, x),
                                axes, keep);
    case KIND_L2:
    case KIND_SUM_SQUARE:
        x = inf_build_reduce(&s->b, INF_REDUCE_SUM, inf_build_unary(&s->b, INF_UNARY_SQUARE, x),
                             axes, keep);
        return s->op->kind == KIND_L2 ? inf_build_unary(&s->b, INF_UNARY_SQRT, x) : x;
    case KIND_LOG_SUM:
        return inf_build_unary(&s->b, INF_UNARY_LOG,
                               inf_build_reduce(&s->b, INF_REDUCE_SUM, x, axes, keep));
    case KIND_LOG_SUM_EXP:
        return add_log_sum_exp(s, x, axes, keep);
    default:
        return add_reduction(s, (enum inf_reduce_kind)s->op->kind, x, axes, keep);
    }
}

// Lowers a kind whose axes a run computes.
static uint32_t lower_computed(struct inf_onnx_scope *s, uint32_t x, bool keep)
{
    enum inf_reduce_kind kind = INF_REDUCE_SUM;
    bool is_bool = inf_build_dtype(&s->b, x) == INF_DTYPE_BOOL;
    uint32_t count = INF_VALUE_NONE, *out_count = s->op->kind == INF_REDUCE_MEAN ? &count : NULL;
    if (s->op->kind == KIND_L1)
        x = inf_build_unary(&s->b, INF_UNARY_ABS, x);
    else if (s->op->kind == KIND_L2 || s->op->kind == KIND_SUM_SQUARE)
        x = inf_build_unary(&s->b, INF_UNARY_SQUARE, x);
    else if (s->op->kind == KIND_LOG_SUM_EXP)
        kind = INF_REDUCE_LOG_SUM_EXP;
    else if (s->op->kind == INF_REDUCE_MAX)
        kind = is_bool ? INF_REDUCE_ANY : INF_REDUCE_MAX;
    else if (s->op->kind == INF_REDUCE_MIN)
        kind = is_bool ? INF_REDUCE_ALL : INF_REDUCE_MIN;
    else if (s->op->kind == INF_REDUCE_PROD)
        kind = INF_REDUCE_PROD;
    (void)inf_onnx_attr_int(s, "noop_with_empty_axes", 0); // there are axes
    uint32_t y = inf_onnx_axes_reduce(s, kind, x, s->inputs[1], keep, out_count);
    if (s->op->kind == INF_REDUCE_MEAN)
        return inf_build_div(&s->b, y, inf_build_cast(&s->b, count, inf_build_dtype(&s->b, y)));
    if (s->op->kind == KIND_L2)
        return inf_build_unary(&s->b, INF_UNARY_SQRT, y);
    return s->op->kind == KIND_LOG_SUM ? inf_build_unary(&s->b, INF_UNARY_LOG, y) : y;
}

static void lower_reduce(struct inf_onnx_scope *s)
{
    bool computed = s->opset >= find_axes_input_opset(s) && inf_onnx_axes_computed(s, 1);
    struct inf_ints axes = {.count = 0};
    if (!computed)
        axes = read_axes(s, inf_build_rank(&s->b, s->inputs[0]));
    bool keep = inf_onnx_attr_int(s, "keepdims", 1) != 0;
    uint32_t x = s->inputs[0];
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    bool needs_float =
        s->op->kind == KIND_L2 || s->op->kind == KIND_LOG_SUM || s->op->kind == KIND_LOG_SUM_EXP;
    if (needs_float && !inf_dtype_is_float(dtype))
        x = inf_build_cast(&s->b, x, INF_DTYPE_F64);
    uint32_t y = computed ? lower_computed(s, x, keep) : lower_kind(s, x, &axes, keep);
    s->outputs[0] = inf_build_cast(&s->b, y, dtype);
}

// GlobalAveragePool and GlobalMaxPool: reduces all axes after the channels.
static void lower_global_pool(struct inf_onnx_scope *s)
{
    struct inf_ints axes = {.count = 0};
    for (int32_t i = 2; i < inf_build_rank(&s->b, s->inputs[0]); i++)
        axes.values[axes.count++] = i;
    s->outputs[0] =
        inf_build_reduce(&s->b, (enum inf_reduce_kind)s->op->kind, s->inputs[0], &axes, true);
}

static void lower_arg(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    int32_t rank = inf_build_rank(&s->b, x);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), rank);
    bool last = inf_onnx_attr_int(s, "select_last_index", 0) != 0;
    uint32_t size = last ? inf_build_dim_value(&s->b, x, axis) : INF_VALUE_NONE;
    if (last)
        x = inf_build_slice(&s->b, x, axis, INT32_MAX, -INT32_MAX, -1);
    struct inf_build_node node = inf_build_describe_list(INF_OP_ARG, &x, 1);
    node.attrs.arg.kind = (enum inf_arg_kind)s->op->kind;
    node.attrs.arg.axis = axis;
    node.attrs.arg.keep_dims = inf_onnx_attr_int(s, "keepdims", 1) != 0;
    node.attrs.arg.dtype = INF_DTYPE_I64;
    uint32_t y = inf_build_value(&s->b, &node);
    // `y` is the position of the first extreme in x reversed; the caller wants the last one in x.
    if (last) {
        uint32_t end =
            inf_build_reshape(&s->b, inf_build_cast(&s->b, size, INF_DTYPE_I64), NULL, 0);
        y = inf_build_sub(&s->b, inf_build_binary_number(&s->b, INF_BINARY_SUB, end, 1), y);
    }
    s->outputs[0] = y;
}

// Adds softmax, its logarithm, or hardmax along one axis.
static uint32_t add_softmax(struct inf_onnx_scope *s, uint32_t x, int32_t axis)
{
    if (s->op->kind < 2)
        return inf_build_softmax(&s->b, x, axis, s->op->kind == 1);
    // Lower Hardmax: 1 at the first largest element along the axis, 0 elsewhere.
    int32_t rank = inf_build_rank(&s->b, x);
    struct inf_build_node node = inf_build_describe_list(INF_OP_ARG, &x, 1);
    node.attrs.arg.axis = axis;
    node.attrs.arg.keep_dims = true;
    uint32_t best = inf_build_value(&s->b, &node);
    uint32_t index = inf_onnx_add_range(s, x, axis);
    index = inf_build_expand_dims(&s->b, index, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - 1 - axis);
    return inf_build_cast(&s->b, inf_build_compare(&s->b, INF_COMPARE_EQUAL, index, best),
                          inf_build_dtype(&s->b, x));
}

static void lower_softmax(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    int32_t rank = inf_build_rank(&s->b, x);
    bool flattens = s->opset < 13;
    int32_t given = inf_onnx_attr_int(s, "axis", flattens ? 1 : -1);
    int32_t axis = flattens && given == rank ? rank : inf_build_axis(&s->b, given, rank);
    // Before opset 13, all elements from the axis on form one row.
    if (!flattens || axis == rank - 1) {
        s->outputs[0] = add_softmax(s, x, axis);
        return;
    }
    uint32_t rows = add_softmax(s, inf_build_flatten(&s->b, x, axis), 1);
    s->outputs[0] = inf_build_reshape_to(&s->b, rows, inf_build_shape(&s->b, x));
}

static const struct inf_onnx_op ops[] = {
    {"ReduceSum", lower_reduce, 1, 2, 1, INF_REDUCE_SUM},
    {"ReduceMean", lower_reduce, 1, 2, 1, INF_REDUCE_MEAN},
    {"ReduceMax", lower_reduce, 1, 2, 1, INF_REDUCE_MAX},
    {"ReduceMin", lower_reduce, 1, 2, 1, INF_REDUCE_MIN},
    {"ReduceProd", lower_reduce, 1, 2, 1, INF_REDUCE_PROD},
    {"ReduceL1", lower_reduce, 1, 2, 1, KIND_L1},
    {"ReduceL2", lower_reduce, 1, 2, 1, KIND_L2},
    {"ReduceLogSum", lower_reduce, 1, 2, 1, KIND_LOG_SUM},
    {"ReduceLogSumExp", lower_reduce, 1, 2, 1, KIND_LOG_SUM_EXP},
    {"ReduceSumSquare", lower_reduce, 1, 2, 1, KIND_SUM_SQUARE},
    {"GlobalAveragePool", lower_global_pool, 1, 1, 1, INF_REDUCE_MEAN},
    {"GlobalMaxPool", lower_global_pool, 1, 1, 1, INF_REDUCE_MAX},
    {"ArgMax", lower_arg, 1, 1, 1, INF_ARG_MAX},
    {"ArgMin", lower_arg, 1, 1, 1, INF_ARG_MIN},
    {"Softmax", lower_softmax, 1, 1, 1, 0},
    {"LogSoftmax", lower_softmax, 1, 1, 1, 1},
    {"Hardmax", lower_softmax, 1, 1, 1, 2},
};

const struct inf_onnx_op_table inf_onnx_ops_reduce = {ops, INF_ARRAY_LENGTH(ops)};
