// SPDX-License-Identifier: Apache-2.0
// Element-wise operators, comparisons and reductions.
#include <math.h>

#include "backends/import/tfjs/layout.h"
#include "backends/import/tfjs/op_table.h"

static enum inf_code lower_unary(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_UNARY, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.unary.kind = (enum inf_unary_kind)scope->op->kind;
    if (call.attrs.unary.kind == INF_UNARY_ROUND &&
        !inf_dtype_is_float(inf_tfjs_input(scope, 0)->dtype))
        return inf_tfjs_result(scope, scope->inputs[0], err); // integers are round already
    if (call.attrs.unary.kind == INF_UNARY_ELU)
        call.attrs.unary.alpha = 1.0f;
    if (call.attrs.unary.kind == INF_UNARY_LEAKY_RELU) {
        call.attrs.unary.alpha = 0.2f;
        INF_TRY(inf_tfjs_attr_float(scope->node, "alpha", &call.attrs.unary.alpha, err));
    }
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_binary(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(inf_tfjs_binary(scope, (enum inf_binary_kind)scope->op->kind, scope->inputs[0],
                            scope->inputs[1], &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Lowers all division operators. As in TensorFlow.js, integer quotients are rounded towards minus
// infinity.
static enum inf_code lower_div(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    bool is_int = inf_tfjs_input(scope, 0)->dtype == INF_DTYPE_I32;
    INF_TRY(inf_tfjs_binary(scope, is_int ? INF_BINARY_FLOOR_DIV : INF_BINARY_DIV, scope->inputs[0],
                            scope->inputs[1], &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_bias_add(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 0, err));
    return lower_binary(scope, err);
}

static enum inf_code lower_add_n(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t sum = scope->inputs[0];
    for (uint32_t i = 1; i < scope->input_count; i++)
        INF_TRY(inf_tfjs_binary(scope, INF_BINARY_ADD, sum, scope->inputs[i], &sum, err));
    return inf_tfjs_result(scope, sum, err);
}

static enum inf_code lower_compare(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_COMPARE, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    call.attrs.compare.kind = (enum inf_compare_kind)scope->op->kind;
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers IsNan to x != x, which is true only for NaN.
static enum inf_code lower_is_nan(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_COMPARE, scope->inputs[0], scope->inputs[0], INF_VALUE_NONE);
    call.attrs.compare.kind = INF_COMPARE_NOT_EQUAL;
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers IsInf and IsFinite, which compare |x| with infinity.
static enum inf_code lower_against_infinity(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t infinity, magnitude;
    struct inf_build_node call =
        inf_build_describe(INF_OP_UNARY, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.unary.kind = INF_UNARY_ABS;
    INF_TRY(inf_tfjs_emit(scope, &call, &magnitude, err));
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_F32, INFINITY, &infinity, err));
    call = inf_build_describe(INF_OP_COMPARE, magnitude, infinity, INF_VALUE_NONE);
    call.attrs.compare.kind = (enum inf_compare_kind)scope->op->kind;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_clip(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_CLIP, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    if (inf_tfjs_input(scope, 0)->dtype == INF_DTYPE_F32 &&
        inf_tfjs_const_float(scope->graph, scope->inputs[1], &call.attrs.clip.min) &&
        inf_tfjs_const_float(scope->graph, scope->inputs[2], &call.attrs.clip.max))
        return inf_tfjs_finish(scope, &call, err);
    uint32_t value;
    INF_TRY(
        inf_tfjs_binary(scope, INF_BINARY_MAX, scope->inputs[0], scope->inputs[1], &value, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MIN, value, scope->inputs[2], &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_prelu(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_PRELU, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers Select of TensorFlow 1. If the condition is a vector, it selects whole rows; otherwise the
// operator equals SelectV2.
static enum inf_code lower_select(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t condition = scope->inputs[0];
    int32_t condition_rank = inf_tfjs_input(scope, 0)->shape.rank;
    int32_t rank = inf_tfjs_input(scope, 1)->shape.rank;
    if (condition_rank == 1 && rank > 1) {
        struct inf_build_node expand =
            inf_build_describe(INF_OP_EXPAND_DIMS, condition, INF_VALUE_NONE, INF_VALUE_NONE);
        expand.attrs.expand_dims.axes.count = rank - 1;
        for (int32_t i = 1; i < rank; i++)
            expand.attrs.expand_dims.axes.values[i - 1] = i;
        INF_TRY(inf_tfjs_emit(scope, &expand, &condition, err));
    } else if (condition_rank != 0 && (condition_rank < 0 || rank < 0)) {
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "the rank of its inputs is not known");
    }
    struct inf_build_node call =
        inf_build_describe(INF_OP_SELECT, condition, scope->inputs[1], scope->inputs[2]);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_select_v2(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_SELECT, scope->inputs[0], scope->inputs[1], scope->inputs[2]);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_cast(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_CAST, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    enum inf_dtype dtype = INF_DTYPE_NONE;
    INF_TRY(inf_tfjs_attr_dtype(scope->node, "DstT", &dtype, err));
    if (dtype == INF_DTYPE_NONE)
        return inf_tfjs_fail(scope, err, INF_INVALID, "has no attribute DstT");
    // No cast is needed between types that TensorFlow.js stores in the same way.
    if (inf_tfjs_input(scope, 0)->dtype == dtype)
        return inf_tfjs_result(scope, scope->inputs[0], err);
    call.attrs.cast.dtype = dtype;
    return inf_tfjs_finish(scope, &call, err);
}

// Reads the axes of a reduction. An empty list means that nothing is reduced, which the graph's
// REDUCE cannot express.
static enum inf_code read_reduction(struct inf_tfjs_scope *scope, struct inf_attrs_reduce *attrs,
                                    bool *is_identity, struct inf_error *err)
{
    INF_TRY(inf_tfjs_const_axes(scope, 1, "the list of axes", &attrs->axes, err));
    *is_identity = attrs->axes.count == 0;
    return inf_tfjs_attr_bool(scope->node, "keep_dims", &attrs->keep_dims, err);
}

static enum inf_code lower_reduce(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_REDUCE, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    bool is_identity;
    call.attrs.reduce.kind = (enum inf_reduce_kind)scope->op->kind;
    INF_TRY(read_reduction(scope, &call.attrs.reduce, &is_identity, err));
    if (is_identity)
        return inf_tfjs_result(scope, scope->inputs[0], err);
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers the Euclidean norm, the square root of the sum of squares.
static enum inf_code lower_euclidean_norm(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    bool is_identity;
    struct inf_build_node unary =
        inf_build_describe(INF_OP_UNARY, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    unary.attrs.unary.kind = INF_UNARY_SQUARE;
    INF_TRY(inf_tfjs_emit(scope, &unary, &value, err));
    struct inf_build_node reduce =
        inf_build_describe(INF_OP_REDUCE, value, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(read_reduction(scope, &reduce.attrs.reduce, &is_identity, err));
    if (!is_identity)
        INF_TRY(inf_tfjs_emit(scope, &reduce, &value, err));
    unary.inputs[0] = value;
    unary.attrs.unary.kind = INF_UNARY_SQRT;
    return inf_tfjs_finish(scope, &unary, err);
}

static enum inf_code lower_arg(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_ARG, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.arg.kind = (enum inf_arg_kind)scope->op->kind;
    if (scope->input_count > 1)
        INF_TRY(inf_tfjs_const_axis(scope, 1, &call.attrs.arg.axis, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_softmax(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_SOFTMAX, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    call.attrs.softmax.log = scope->op->kind != 0;
    return inf_tfjs_finish(scope, &call, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Abs", lower_unary, 1, 1, INF_UNARY_ABS},
    {"Acos", lower_unary, 1, 1, INF_UNARY_ACOS},
    {"Acosh", lower_unary, 1, 1, INF_UNARY_ACOSH},
    {"Asin", lower_unary, 1, 1, INF_UNARY_ASIN},
    {"Asinh", lower_unary, 1, 1, INF_UNARY_ASINH},
    {"Atan", lower_unary, 1, 1, INF_UNARY_ATAN},
    {"Atanh", lower_unary, 1, 1, INF_UNARY_ATANH},
    {"Ceil", lower_unary, 1, 1, INF_UNARY_CEIL},
    {"Cos", lower_unary, 1, 1, INF_UNARY_COS},
    {"Cosh", lower_unary, 1, 1, INF_UNARY_COSH},
    {"Elu", lower_unary, 1, 1, INF_UNARY_ELU},
    {"Erf", lower_unary, 1, 1, INF_UNARY_ERF},
    {"Exp", lower_unary, 1, 1, INF_UNARY_EXP},
    {"Expm1", lower_unary, 1, 1, INF_UNARY_EXPM1},
    {"Floor", lower_unary, 1, 1, INF_UNARY_FLOOR},
    {"LeakyRelu", lower_unary, 1, 1, INF_UNARY_LEAKY_RELU},
    {"Log", lower_unary, 1, 1, INF_UNARY_LOG},
    {"Log1p", lower_unary, 1, 1, INF_UNARY_LOG1P},
    {"LogicalNot", lower_unary, 1, 1, INF_UNARY_LOGICAL_NOT},
    {"Neg", lower_unary, 1, 1, INF_UNARY_NEG},
    {"Reciprocal", lower_unary, 1, 1, INF_UNARY_RECIPROCAL},
    {"Relu", lower_unary, 1, 1, INF_UNARY_RELU},
    {"Relu6", lower_unary, 1, 1, INF_UNARY_RELU6},
    {"Round", lower_unary, 1, 1, INF_UNARY_ROUND},
    {"Rsqrt", lower_unary, 1, 1, INF_UNARY_RSQRT},
    {"Selu", lower_unary, 1, 1, INF_UNARY_SELU},
    {"Sigmoid", lower_unary, 1, 1, INF_UNARY_SIGMOID},
    {"Sign", lower_unary, 1, 1, INF_UNARY_SIGN},
    {"Sin", lower_unary, 1, 1, INF_UNARY_SIN},
    {"Sinh", lower_unary, 1, 1, INF_UNARY_SINH},
    {"Softplus", lower_unary, 1, 1, INF_UNARY_SOFTPLUS},
    {"Sqrt", lower_unary, 1, 1, INF_UNARY_SQRT},
    {"Square", lower_unary, 1, 1, INF_UNARY_SQUARE},
    {"Tan", lower_unary, 1, 1, INF_UNARY_TAN},
    {"Tanh", lower_unary, 1, 1, INF_UNARY_TANH},
    {"Add", lower_binary, 2, 2, INF_BINARY_ADD},
    {"AddV2", lower_binary, 2, 2, INF_BINARY_ADD},
    {"Atan2", lower_binary, 2, 2, INF_BINARY_ATAN2},
    {"BitwiseAnd", lower_binary, 2, 2, INF_BINARY_BITWISE_AND},
    {"Div", lower_div, 2, 2, 0},
    {"DivNoNan", lower_binary, 2, 2, INF_BINARY_DIV_NO_NAN},
    {"FloorDiv", lower_binary, 2, 2, INF_BINARY_FLOOR_DIV},
    {"FloorMod", lower_binary, 2, 2, INF_BINARY_FLOOR_MOD},
    {"LogicalAnd", lower_binary, 2, 2, INF_BINARY_LOGICAL_AND},
    {"LogicalOr", lower_binary, 2, 2, INF_BINARY_LOGICAL_OR},
    {"LogicalXor", lower_binary, 2, 2, INF_BINARY_LOGICAL_XOR},
    {"Maximum", lower_binary, 2, 2, INF_BINARY_MAX},
    {"Minimum", lower_binary, 2, 2, INF_BINARY_MIN},
    // In TensorFlow.js, the result of Mod has the sign of the divisor, as for FloorMod.
    {"Mod", lower_binary, 2, 2, INF_BINARY_FLOOR_MOD},
    {"Mul", lower_binary, 2, 2, INF_BINARY_MUL},
    {"Pow", lower_binary, 2, 2, INF_BINARY_POW},
    {"RealDiv", lower_div, 2, 2, 0},
    {"SquaredDifference", lower_binary, 2, 2, INF_BINARY_SQUARED_DIFFERENCE},
    {"Sub", lower_binary, 2, 2, INF_BINARY_SUB},
    {"BiasAdd", lower_bias_add, 2, 2, INF_BINARY_ADD},
    {"AddN", lower_add_n, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"Equal", lower_compare, 2, 2, INF_COMPARE_EQUAL},
    {"Greater", lower_compare, 2, 2, INF_COMPARE_GREATER},
    {"GreaterEqual", lower_compare, 2, 2, INF_COMPARE_GREATER_EQUAL},
    {"Less", lower_compare, 2, 2, INF_COMPARE_LESS},
    {"LessEqual", lower_compare, 2, 2, INF_COMPARE_LESS_EQUAL},
    {"NotEqual", lower_compare, 2, 2, INF_COMPARE_NOT_EQUAL},
    {"IsNan", lower_is_nan, 1, 1, 0},
    {"IsFinite", lower_against_infinity, 1, 1, INF_COMPARE_LESS},
    {"IsInf", lower_against_infinity, 1, 1, INF_COMPARE_EQUAL},
    {"ClipByValue", lower_clip, 3, 3, 0},
    {"Prelu", lower_prelu, 2, 2, 0},
    {"Select", lower_select, 3, 3, 0},
    {"SelectV2", lower_select_v2, 3, 3, 0},
    {"Cast", lower_cast, 1, 1, 0},
    {"All", lower_reduce, 2, 2, INF_REDUCE_ALL},
    {"Any", lower_reduce, 2, 2, INF_REDUCE_ANY},
    {"Max", lower_reduce, 2, 2, INF_REDUCE_MAX},
    {"Mean", lower_reduce, 2, 2, INF_REDUCE_MEAN},
    {"Min", lower_reduce, 2, 2, INF_REDUCE_MIN},
    {"Prod", lower_reduce, 2, 2, INF_REDUCE_PROD},
    {"Sum", lower_reduce, 2, 2, INF_REDUCE_SUM},
    {"EuclideanNorm", lower_euclidean_norm, 2, 2, 0},
    {"ArgMax", lower_arg, 1, 2, INF_ARG_MAX},
    {"ArgMin", lower_arg, 1, 2, INF_ARG_MIN},
    {"Softmax", lower_softmax, 1, 1, false},
    {"LogSoftmax", lower_softmax, 1, 1, true},
};

const struct inf_tfjs_op_table inf_tfjs_ops_math = {ops, INF_ARRAY_LENGTH(ops)};
