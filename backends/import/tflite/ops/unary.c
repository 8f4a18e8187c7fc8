// SPDX-License-Identifier: Apache-2.0
// Functions of one number, and conversions between quantised and real numbers. From 8 bits they
// become tables.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/quantize.h"

static void lower_unary(struct inf_tflite_scope *s)
{
    s->outputs[0] =
        inf_build_unary(&s->b, (enum inf_unary_kind)s->row->kind, inf_tflite_data(s, 0));
}

// Adds a unary node with the parameter `alpha`.
static void emit_alpha(struct inf_tflite_scope *s, enum inf_unary_kind kind, float alpha)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_UNARY, inf_tflite_data(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.unary.kind = kind;
    node.attrs.unary.alpha = alpha;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_elu(struct inf_tflite_scope *s)
{
    emit_alpha(s, INF_UNARY_ELU, 1);
}

static void lower_leaky_relu(struct inf_tflite_scope *s)
{
    emit_alpha(s, INF_UNARY_LEAKY_RELU, inf_tflite_option_float(s, 0, "alpha"));
}

static void lower_gelu(struct inf_tflite_scope *s)
{
    bool approximate = inf_tflite_option_bool(s, 0, "approximate");
    s->outputs[0] = inf_build_unary(&s->b, approximate ? INF_UNARY_GELU_TANH : INF_UNARY_GELU,
                                    inf_tflite_data(s, 0));
}

// Cuts to kind..1.
static void lower_clip(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_clip(&s->b, inf_tflite_data(s, 0), s->row->kind, 1);
}

// The cube root, also of negative numbers: of NaN and infinity as pow() says, with the sign of x.
static void lower_cbrt(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0);
    uint32_t size = inf_build_unary(b, INF_UNARY_ABS, x);
    uint32_t root = inf_build_binary_number(b, INF_BINARY_POW, size, 1.0 / 3);
    uint32_t sign = inf_build_unary(b, INF_UNARY_SIGN, x);
    s->outputs[0] = inf_build_mul(b, root, sign);
}

// QUANTIZE and DEQUANTIZE: the input as a real number, quantised if the output is. Only here do
// integers of 32 bits have scales.
static void lower_convert(struct inf_tflite_scope *s)
{
    const struct inf_tflite_tensor *x = inf_tflite_input_tensor(s, 0);
    s->outputs[0] = inf_tflite_real(s, 0);
    if (inf_build_ok(&s->b) && x->quantization.count > 0 &&
        inf_build_dtype(&s->b, s->outputs[0]) == INF_DTYPE_I32)
        s->outputs[0] = inf_tflite_dequantize(&s->b, s->outputs[0], x, x->quantization.axis);
}

// FAKE_QUANT: rounds to one of 2^num_bits numbers from min to max, moved so that 0 is one of them.
static void lower_fake_quant(struct inf_tflite_scope *s)
{
    double min = inf_tflite_option_float(s, 0, "min"), max = inf_tflite_option_float(s, 1, "max");
    int32_t bits = inf_tflite_option_int(s, 2, "num_bits");
    double low = inf_tflite_option_bool(s, 3, "narrow_range") ? 1 : 0;
    if (bits < 2 || bits > 16 || min > 0 || max < 0 || !(max > min)) {
        inf_build_fail(&s->b, INF_INVALID,
                       "quantises %g to %g in %d bits, wanted 0 in the range "
                       "and 2 to 16 bits",
                       min, max, bits);
        return;
    }
    double high = (double)((1 << bits) - 1), scale = (max - min) / (high - low);
    double zero = __builtin_nearbyint(low - min / scale);
    zero = zero < low ? low : zero > high ? high : zero;
    uint32_t x =
        inf_build_clip(&s->b, inf_tflite_data(s, 0), (low - zero) * scale, (high - zero) * scale);
    x = inf_build_binary_number(&s->b, INF_BINARY_DIV, x, scale);
    x = inf_build_unary(&s->b, INF_UNARY_ROUND, x);
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, scale);
}

#define UNARY(name, unary_kind)                                                                    \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower_unary, 1, 1, 1, INF_TFLITE_MODE_TABLE,                      \
            INF_TFLITE_OPTIONS_NONE, INF_UNARY_##unary_kind                                        \
    }

static const struct inf_tflite_op ops[] = {
    UNARY(ABS, ABS),
    UNARY(NEG, NEG),
    UNARY(SIGN, SIGN_OR_ZERO),
    UNARY(FLOOR, FLOOR),
    UNARY(CEIL, CEIL),
    UNARY(ROUND, ROUND),
    UNARY(SQUARE, SQUARE),
    UNARY(SQRT, SQRT),
    UNARY(RSQRT, RSQRT),
    UNARY(EXP, EXP),
    UNARY(LOG, LOG),
    UNARY(SIN, SIN),
    UNARY(COS, COS),
    UNARY(TANH, TANH),
    UNARY(LOGISTIC, SIGMOID),
    UNARY(RELU, RELU),
    UNARY(RELU6, RELU6),
    UNARY(HARD_SWISH, HARD_SWISH),
    UNARY(LOGICAL_NOT, LOGICAL_NOT),
    UNARY(STABLEHLO_LOGISTIC, SIGMOID),
    UNARY(STABLEHLO_ABS, ABS),
    UNARY(STABLEHLO_COSINE, COS),
    UNARY(STABLEHLO_EXPONENTIAL, EXP),
    UNARY(STABLEHLO_FLOOR, FLOOR),
    UNARY(STABLEHLO_LOG, LOG),
    UNARY(STABLEHLO_NEGATE, NEG),
    UNARY(STABLEHLO_RSQRT, RSQRT),
    UNARY(STABLEHLO_TANH, TANH),
    {INF_TFLITE_STABLEHLO_CBRT, NULL, lower_cbrt, 1, 1, 1, INF_TFLITE_MODE_TABLE, 0, 0},
    {INF_TFLITE_RELU_N1_TO_1, NULL, lower_clip, 1, 1, 1, INF_TFLITE_MODE_TABLE, 0, -1},
    {INF_TFLITE_RELU_0_TO_1, NULL, lower_clip, 1, 1, 1, INF_TFLITE_MODE_TABLE, 0, 0},
    {INF_TFLITE_ELU, NULL, lower_elu, 1, 1, 1, INF_TFLITE_MODE_TABLE, 0, 0},
    {INF_TFLITE_LEAKY_RELU, NULL, lower_leaky_relu, 1, 1, 1, INF_TFLITE_MODE_TABLE,
     INF_TFLITE_OPTIONS_LEAKY_RELU, 0},
    {INF_TFLITE_GELU, NULL, lower_gelu, 1, 1, 1, INF_TFLITE_MODE_TABLE, INF_TFLITE_OPTIONS_GELU, 0},
    {INF_TFLITE_QUANTIZE, NULL, lower_convert, 1, 1, 1, INF_TFLITE_MODE_TABLE, 0, 0},
    {INF_TFLITE_DEQUANTIZE, NULL, lower_convert, 1, 1, 1, INF_TFLITE_MODE_REAL, 0, 0},
    {INF_TFLITE_DENSIFY, NULL, lower_convert, 1, 1, 1, INF_TFLITE_MODE_REAL, 0, 0},
    {INF_TFLITE_FAKE_QUANT, NULL, lower_fake_quant, 1, 1, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_FAKE_QUANT, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_unary = {ops, INF_ARRAY_LENGTH(ops)};
