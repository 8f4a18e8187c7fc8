// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one tensor.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/narrow.h"
#include "backends/import/onnx/op_table.h"

static void lower_unary(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_build_unary(&s->b, (enum inf_unary_kind)s->op->kind, s->inputs[0]);
}

static void lower_identity(struct inf_onnx_scope *s)
{
    s->outputs[0] = s->inputs[0];
}

// Adds a unary function of x with its alpha.
static uint32_t add_with_alpha(struct inf_onnx_scope *s, enum inf_unary_kind kind, float alpha)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_UNARY, s->inputs, 1);
    node.attrs.unary.kind = kind;
    node.attrs.unary.alpha = alpha;
    return inf_build_value(&s->b, &node);
}

static void lower_leaky_relu(struct inf_onnx_scope *s)
{
    s->outputs[0] = add_with_alpha(s, INF_UNARY_LEAKY_RELU, inf_onnx_attr_float(s, "alpha", 0.01f));
}

static void lower_elu(struct inf_onnx_scope *s)
{
    s->outputs[0] = add_with_alpha(s, INF_UNARY_ELU, inf_onnx_attr_float(s, "alpha", 1.0f));
}

static void lower_selu(struct inf_onnx_scope *s)
{
    bool old = s->opset < 6;
    float alpha = inf_onnx_attr_float(s, "alpha", old ? 1.6732f : 1.67326319217681884765625f);
    float gamma = inf_onnx_attr_float(s, "gamma", old ? 1.0507f : 1.05070102214813232421875f);
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_MUL,
                                            add_with_alpha(s, INF_UNARY_ELU, alpha), (double)gamma);
}

static void lower_celu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    double alpha = (double)inf_onnx_attr_float(s, "alpha", 1.0f);
    uint32_t low = inf_build_unary(&s->b, INF_UNARY_EXPM1,
                                   inf_build_binary_number(&s->b, INF_BINARY_DIV, x, alpha));
    low = inf_build_binary_number(&s->b, INF_BINARY_MUL, low, alpha);
    s->outputs[0] = inf_build_add(&s->b, inf_build_binary_number(&s->b, INF_BINARY_MAX, x, 0),
                                  inf_build_binary_number(&s->b, INF_BINARY_MIN, low, 0));
}

static void lower_hard_sigmoid(struct inf_onnx_scope *s)
{
    float alpha = inf_onnx_attr_float(s, "alpha", 0.2f),
          beta = inf_onnx_attr_float(s, "beta", 0.5f);
    uint32_t y = inf_build_binary_number(&s->b, INF_BINARY_MUL, s->inputs[0], (double)alpha);
    s->outputs[0] = inf_build_clip(
        &s->b, inf_build_binary_number(&s->b, INF_BINARY_ADD, y, (double)beta), 0, 1);
}

static void lower_thresholded_relu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    uint32_t alpha = inf_build_scalar(&s->b, dtype, (double)inf_onnx_attr_float(s, "alpha", 1.0f));
    s->outputs[0] = inf_build_select(&s->b, inf_build_compare(&s->b, INF_COMPARE_GREATER, x, alpha),
                                     x, inf_build_scalar(&s->b, dtype, 0));
}

static void lower_softsign(struct inf_onnx_scope *s)
{
    uint32_t size = inf_build_unary(&s->b, INF_UNARY_ABS, s->inputs[0]);
    s->outputs[0] =
        inf_build_div(&s->b, s->inputs[0], inf_build_binary_number(&s->b, INF_BINARY_ADD, size, 1));
}

static void lower_mish(struct inf_onnx_scope *s)
{
    uint32_t soft = inf_build_unary(&s->b, INF_UNARY_SOFTPLUS, s->inputs[0]);
    s->outputs[0] =
        inf_build_mul(&s->b, s->inputs[0], inf_build_unary(&s->b, INF_UNARY_TANH, soft));
}

static void lower_swish(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    float alpha = inf_onnx_attr_float(s, "alpha", 1.0f);
    uint32_t scaled = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, (double)alpha);
    s->outputs[0] = inf_build_mul(
        &s->b, x, inf_build_unary(&s->b, INF_UNARY_SIGMOID, alpha == 1.0f ? x : scaled));
}

static void lower_gelu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], inner;
    const char *form = inf_onnx_attr_text(s, "approximate", "none");
    if (form[0] == 't') {
        uint32_t cube = inf_build_mul(&s->b, x, inf_build_unary(&s->b, INF_UNARY_SQUARE, x));
        inner =
            inf_build_add(&s->b, x, inf_build_binary_number(&s->b, INF_BINARY_MUL, cube, 0.044715));
        inner = inf_build_binary_number(&s->b, INF_BINARY_MUL, inner, sqrt(2 / M_PI));
        inner = inf_build_unary(&s->b, INF_UNARY_TANH, inner);
    } else {
        inner = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, M_SQRT1_2);
        inner = inf_build_unary(&s->b, INF_UNARY_ERF, inner);
    }
    uint32_t half = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, 0.5);
    s->outputs[0] =
        inf_build_mul(&s->b, half, inf_build_binary_number(&s->b, INF_BINARY_ADD, inner, 1));
}

static void lower_shrink(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    double lambd = (double)inf_onnx_attr_float(s, "lambd", 0.5f);
    double bias = (double)inf_onnx_attr_float(s, "bias", 0.0f);
    uint32_t below =
        inf_build_compare(&s->b, INF_COMPARE_LESS, x, inf_build_scalar(&s->b, dtype, -lambd));
    uint32_t above =
        inf_build_compare(&s->b, INF_COMPARE_GREATER, x, inf_build_scalar(&s->b, dtype, lambd));
    uint32_t high =
        inf_build_select(&s->b, above, inf_build_binary_number(&s->b, INF_BINARY_SUB, x, bias),
                         inf_build_scalar(&s->b, dtype, 0));
    s->outputs[0] = inf_build_select(&s->b, below,
                                     inf_build_binary_number(&s->b, INF_BINARY_ADD, x, bias), high);
}

static void lower_is_nan(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, s->inputs[0], s->inputs[0]);
}

static void lower_is_inf(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    bool low = inf_onnx_attr_int(s, "detect_negative", 1) != 0;
    bool high = inf_onnx_attr_int(s, "detect_positive", 1) != 0;
    uint32_t is_low =
        inf_build_compare(&s->b, INF_COMPARE_EQUAL, x, inf_build_scalar(&s->b, dtype, -INFINITY));
    uint32_t is_high =
        inf_build_compare(&s->b, INF_COMPARE_EQUAL, x, inf_build_scalar(&s->b, dtype, INFINITY));
    if (!low && !high)
        s->outputs[0] = inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, is_low, is_high);
    else
        s->outputs[0] = low && high
                            ? inf_build_binary(&s->b, INF_BINARY_LOGICAL_OR, is_low, is_high)
                        : low ? is_low
                              : is_high;
}

// Lowers Dropout for inference: the outputs are x, and a mask that is true everywhere.
static void lower_dropout(struct inf_onnx_scope *s)
{
    double training = 0;
    (void)inf_onnx_find_attr(s, "ratio");
    (void)inf_onnx_find_attr(s, "seed");
    if (s->opset < 7 && inf_onnx_attr_int(s, "is_test", 0) == 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "is_test is not set, wanted a model made for inference");
    uint32_t flag = inf_onnx_input(s, 2);
    if (flag != INF_VALUE_NONE &&
        (!inf_build_const_number(&s->b, flag, &training) || training != 0))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "training_mode may be set, wanted inference");
    s->outputs[0] = s->inputs[0];
    if (inf_onnx_wants_output(s, 1)) {
        enum inf_dtype mask = s->opset < 10 ? inf_build_dtype(&s->b, s->inputs[0]) : INF_DTYPE_BOOL;
        s->outputs[1] = inf_build_fill(&s->b, inf_build_shape(&s->b, s->inputs[0]),
                                       inf_build_scalar(&s->b, mask, 1));
    }
}

// Returns the TensorProto.DataType that Cast converts to.
static int32_t read_cast_target(struct inf_onnx_scope *s)
{
    int32_t to = 0;
    const struct inf_onnx_attr *attr = inf_onnx_find_attr(s, "to");
    if (attr != NULL && attr->type == INF_ONNX_ATTR_STRING) {
        // In opset 1 the type is a string.
        const char *name = inf_onnx_attr_text(s, "to", "");
        for (int32_t i = 1; i < 32 && to == 0; i++)
            if (__builtin_strcmp(inf_onnx_type_name(i), name) == 0)
                to = i;
    } else {
        to = inf_onnx_attr_int(s, "to", 0);
    }
    if (inf_onnx_dtype(to) == INF_DTYPE_NONE && inf_onnx_narrow_dtype(to) == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "attribute 'to' is %s (%d)", inf_onnx_type_name(to),
                       to);
    return to;
}

// Adds the conversion of x, which may be narrow, to the narrow type `narrow`, or to `dtype` if
// `narrow` is 0.
static uint32_t add_cast(struct inf_onnx_scope *s, uint32_t x, enum inf_dtype dtype, int32_t narrow)
{
    // These attributes affect only narrow types.
    const struct inf_onnx_rounding rounding = {inf_onnx_attr_int(s, "saturate", 1) != 0,
                                               inf_onnx_attr_text(s, "round_mode", "up")};
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    if (inf_onnx_is_narrow(x)) {
        if (inf_onnx_narrow_type(x) == narrow)
            return x;
        x = inf_onnx_narrow_widen(s, x, narrow != 0 ? INF_DTYPE_F32 : dtype);
    }
    return narrow != 0 ? inf_onnx_narrow_round(s, x, narrow, &rounding)
                       : inf_build_cast(&s->b, x, dtype);
}

static void lower_cast(struct inf_onnx_scope *s)
{
    int32_t to = read_cast_target(s);
    bool is_narrow = inf_onnx_narrow_dtype(to) != INF_DTYPE_NONE;
    s->outputs[0] = add_cast(s, s->inputs[0], inf_onnx_dtype(to), is_narrow ? to : 0);
}

static void lower_cast_like(struct inf_onnx_scope *s)
{
    uint32_t like = s->inputs[1];
    if (inf_onnx_is_narrow(like))
        s->outputs[0] = add_cast(s, s->inputs[0], INF_DTYPE_NONE, inf_onnx_narrow_type(like));
    else
        s->outputs[0] = add_cast(s, s->inputs[0], inf_build_dtype(&s->b, like), 0);
}

// Returns a bound, which is an attribute (old versions) or an input (new versions).
static uint32_t read_clip_bound(struct inf_onnx_scope *s, const char *name, uint32_t input)
{
    if (s->opset >= 11)
        return inf_onnx_input(s, input);
    if (!inf_onnx_has_attr(s, name))
        return INF_VALUE_NONE;
    float bound = inf_onnx_attr_float(s, name, 0);
    return inf_build_scalar(&s->b, inf_build_dtype(&s->b, s->inputs[0]), (double)bound);
}

static void lower_clip(struct inf_onnx_scope *s)
{
    uint32_t y = s->inputs[0];
    uint32_t low = read_clip_bound(s, "min", 1), high = read_clip_bound(s, "max", 2);
    double min = -INFINITY, max = INFINITY;
    bool known = (low == INF_VALUE_NONE || inf_build_const_number(&s->b, low, &min)) &&
                 (high == INF_VALUE_NONE || inf_build_const_number(&s->b, high, &max));
    if (known && min <= max && inf_build_dtype(&s->b, y) == INF_DTYPE_F32) {
        s->outputs[0] = inf_build_clip(&s->b, y, min, max);
        return;
    }
    if (low != INF_VALUE_NONE)
        y = inf_build_binary(&s->b, INF_BINARY_MAX, y, low);
    if (high != INF_VALUE_NONE)
        y = inf_build_binary(&s->b, INF_BINARY_MIN, y, high);
    s->outputs[0] = y;
}

static const struct inf_onnx_op ops[] = {
    {"Abs", lower_unary, 1, 1, 1, INF_UNARY_ABS},
    {"Neg", lower_unary, 1, 1, 1, INF_UNARY_NEG},
    {"Sign", lower_unary, 1, 1, 1, INF_UNARY_SIGN},
    {"Floor", lower_unary, 1, 1, 1, INF_UNARY_FLOOR},
    {"Ceil", lower_unary, 1, 1, 1, INF_UNARY_CEIL},
    {"Round", lower_unary, 1, 1, 1, INF_UNARY_ROUND},
    {"Sqrt", lower_unary, 1, 1, 1, INF_UNARY_SQRT},
    {"Reciprocal", lower_unary, 1, 1, 1, INF_UNARY_RECIPROCAL},
    {"Exp", lower_unary, 1, 1, 1, INF_UNARY_EXP},
    {"Log", lower_unary, 1, 1, 1, INF_UNARY_LOG},
    {"Sin", lower_unary, 1, 1, 1, INF_UNARY_SIN},
    {"Cos", lower_unary, 1, 1, 1, INF_UNARY_COS},
    {"Tan", lower_unary, 1, 1, 1, INF_UNARY_TAN},
    {"Asin", lower_unary, 1, 1, 1, INF_UNARY_ASIN},
    {"Acos", lower_unary, 1, 1, 1, INF_UNARY_ACOS},
    {"Atan", lower_unary, 1, 1, 1, INF_UNARY_ATAN},
    {"Sinh", lower_unary, 1, 1, 1, INF_UNARY_SINH},
    {"Cosh", lower_unary, 1, 1, 1, INF_UNARY_COSH},
    {"Tanh", lower_unary, 1, 1, 1, INF_UNARY_TANH},
    {"Asinh", lower_unary, 1, 1, 1, INF_UNARY_ASINH},
    {"Acosh", lower_unary, 1, 1, 1, INF_UNARY_ACOSH},
    {"Atanh", lower_unary, 1, 1, 1, INF_UNARY_ATANH},
    {"Erf", lower_unary, 1, 1, 1, INF_UNARY_ERF},
    {"Sigmoid", lower_unary, 1, 1, 1, INF_UNARY_SIGMOID},
    {"Softplus", lower_unary, 1, 1, 1, INF_UNARY_SOFTPLUS},
    {"Relu", lower_unary, 1, 1, 1, INF_UNARY_RELU},
    {"HardSwish", lower_unary, 1, 1, 1, INF_UNARY_HARD_SWISH},
    {"Not", lower_unary, 1, 1, 1, INF_UNARY_LOGICAL_NOT},
    {"LeakyRelu", lower_leaky_relu, 1, 1, 1, 0},
    {"Elu", lower_elu, 1, 1, 1, 0},
    {"Selu", lower_selu, 1, 1, 1, 0},
    {"Celu", lower_celu, 1, 1, 1, 0},
    {"HardSigmoid", lower_hard_sigmoid, 1, 1, 1, 0},
    {"ThresholdedRelu", lower_thresholded_relu, 1, 1, 1, 0},
    {"Softsign", lower_softsign, 1, 1, 1, 0},
    {"Mish", lower_mish, 1, 1, 1, 0},
    {"Swish", lower_swish, 1, 1, 1, 0},
    {"Gelu", lower_gelu, 1, 1, 1, 0},
    {"Shrink", lower_shrink, 1, 1, 1, 0},
    {"IsNaN", lower_is_nan, 1, 1, 1, 0},
    {"IsInf", lower_is_inf, 1, 1, 1, 0},
    {"BitwiseNot", lower_unary, 1, 1, 1, INF_UNARY_BITWISE_NOT},
    {"Identity", lower_identity, 1, 1, 1, 0, true, INF_ONNX_NARROW_MOVED},
    {"Dropout", lower_dropout, 1, 3, 2, 0},
    {"Cast", lower_cast, 1, 1, 1, 0, .narrow = INF_ONNX_NARROW_HANDLE},
    {"CastLike", lower_cast_like, 2, 2, 1, 0, .narrow = INF_ONNX_NARROW_HANDLE},
    {"Clip", lower_clip, 1, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_unary = {ops, INF_ARRAY_LENGTH(ops)};
