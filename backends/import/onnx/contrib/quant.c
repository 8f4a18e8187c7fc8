// SPDX-License-Identifier: Apache-2.0
// Matrix products of integers, and LSTMs with quantised weights.
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/op_table.h"

// The version of ai.onnx in which inf_onnx_call() lowers operators.
#define OPSET 13

// The operands of a product of integer matrices a and b. A scale or zero point is one number, or
// one number for each column of b. Zero points and bias can be INF_VALUE_NONE: absent.
struct product {
    uint32_t a, b, a_scale, b_scale, a_zero, b_zero, bias;
};

// Adds nodes that compute (a - a_zero) * (b - b_zero) * a_scale * b_scale + bias in floats.
static uint32_t add_float_product(struct inf_onnx_scope *s, const struct product *product)
{
    const uint32_t inputs[] = {product->a, product->b, product->a_zero, product->b_zero};
    uint32_t sum = inf_onnx_call_value(s, "MatMulInteger", OPSET, inputs, 4);
    uint32_t scale = inf_build_mul(&s->b, product->a_scale, product->b_scale);
    uint32_t y = inf_build_cast(&s->b, sum, inf_build_dtype(&s->b, scale));
    y = inf_build_mul(&s->b, y, scale);
    return product->bias == INF_VALUE_NONE ? y : inf_build_add(&s->b, y, product->bias);
}

// Lowers MatMulIntegerToFloat. Inputs: a, b, scale of a, scale of b, zero point of a, zero point of
// b, bias.
static void lower_integer_to_float(struct inf_onnx_scope *s)
{
    const struct product product = {s->inputs[0],        s->inputs[1],         s->inputs[2],
                                    s->inputs[3],        inf_onnx_input(s, 4), inf_onnx_input(s, 5),
                                    inf_onnx_input(s, 6)};
    s->outputs[0] = add_float_product(s, &product);
}

// Lowers DynamicQuantizeMatMul. Inputs: a (floats), b, scale of b, zero point of b, bias. In each
// run, a is quantised to 8 bits with a scale and zero point computed from its range.
static void lower_dynamic_matmul(struct inf_onnx_scope *s)
{
    uint32_t parts[3]; // a in 8 bits, its scale, its zero point
    inf_onnx_call(s, "DynamicQuantizeLinear", OPSET, s->inputs, 1, parts, 3);
    const struct product product = {parts[0],
                                    s->inputs[1],
                                    parts[1],
                                    s->inputs[2],
                                    parts[2],
                                    inf_onnx_input(s, 3),
                                    inf_onnx_input(s, 4)};
    if (inf_build_ok(&s->b))
        s->outputs[0] = add_float_product(s, &product);
}

// Adds a node that quantises x. The result has the type of `zero`; U8 if `zero` is INF_VALUE_NONE.
static uint32_t add_quantized(struct inf_onnx_scope *s, uint32_t x, uint32_t scale, uint32_t zero)
{
    struct inf_build_node node = inf_build_describe(INF_OP_QUANTIZE, x, scale, zero);
    node.attrs.quantize.axis = 0;
    node.attrs.quantize.dtype =
        zero == INF_VALUE_NONE ? INF_DTYPE_U8 : inf_build_dtype(&s->b, zero);
    return inf_build_value(&s->b, &node);
}

// Lowers QGemm. Inputs: a, scale of a, zero point of a, b, scale of b, zero point of b, c (i32,
// which is added to the integer product), scale of y, zero point of y. If the scale of y is absent,
// y is a float.
static void lower_qgemm(struct inf_onnx_scope *s)
{
    uint32_t a = s->inputs[0], b = s->inputs[3], c = inf_onnx_input(s, 6);
    uint32_t y_scale = inf_onnx_input(s, 7);
    float alpha = inf_onnx_attr_float(s, "alpha", 1);
    if (inf_onnx_attr_int(s, "transA", 0) != 0)
        a = inf_build_transpose(&s->b, a, (int64_t[]){1, 0}, 2);
    if (inf_onnx_attr_int(s, "transB", 0) != 0)
        b = inf_build_transpose(&s->b, b, (int64_t[]){1, 0}, 2);
    const uint32_t inputs[] = {a, b, s->inputs[2], s->inputs[5]};
    uint32_t sum = inf_onnx_call_value(s, "MatMulInteger", OPSET, inputs, 4);
    if (c != INF_VALUE_NONE)
        sum = inf_build_add(&s->b, sum, c);
    uint32_t scale = inf_build_mul(&s->b, s->inputs[1], s->inputs[4]);
    if (alpha != 1)
        scale = inf_build_binary_number(&s->b, INF_BINARY_MUL, scale, (double)alpha);
    uint32_t y = inf_build_mul(&s->b, inf_build_cast(&s->b, sum, INF_DTYPE_F32), scale);
    s->outputs[0] =
        y_scale == INF_VALUE_NONE ? y : add_quantized(s, y, y_scale, inf_onnx_input(s, 8));
}

// Lowers MatMulInteger16. It is computed in f64, which represents sums of 2^21 products of 16-bit
// integers exactly.
static void lower_integer16(struct inf_onnx_scope *s)
{
    uint32_t a = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_F64);
    uint32_t b = inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_F64);
    s->outputs[0] = inf_build_cast(&s->b, inf_build_matmul(&s->b, a, b), INF_DTYPE_I32);
}

// Adds nodes that dequantise and transpose weights [directions, inputs, gates] to [directions,
// gates, inputs]. The scale is input `index` and the zero point is input `index` + 1 of the
// operator; each is [directions] or [directions, gates].
static uint32_t add_weights(struct inf_onnx_scope *s, uint32_t weights, uint32_t index)
{
    uint32_t parts[] = {weights, inf_onnx_needed_input(s, index),
                        inf_onnx_needed_input(s, index + 1)};
    for (uint32_t i = 1; inf_build_ok(&s->b) && i < 3; i++)
        parts[i] = inf_build_rank(&s->b, parts[i]) == 1
                       ? inf_build_expand_dims(&s->b, parts[i], (int64_t[]){1, 2}, 2)
                       : inf_build_expand_dims(&s->b, parts[i], (int64_t[]){1}, 1);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t x = inf_build_cast(&s->b, parts[0], INF_DTYPE_F32);
    x = inf_build_sub(&s->b, x, inf_build_cast(&s->b, parts[2], INF_DTYPE_F32));
    return inf_build_transpose(&s->b, inf_build_mul(&s->b, x, parts[1]), (int64_t[]){0, 2, 1}, 3);
}

// Lowers DynamicQuantizeLSTM: an LSTM whose weights W and R have 8 bits. ONNX Runtime also
// quantises x, and this lowering does not, so results differ by the rounding of x. Inputs: those of
// LSTM, scale of W, zero point of W, scale of R, zero point of R.
static void lower_dynamic_lstm(struct inf_onnx_scope *s)
{
    uint32_t inputs[8];
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(inputs); i++)
        inputs[i] = inf_onnx_input(s, i);
    inputs[1] = add_weights(s, s->inputs[1], 8);
    inputs[2] = add_weights(s, s->inputs[2], 10);
    inf_onnx_call(s, "LSTM", OPSET, inputs, 8, s->outputs, s->output_count);
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::MatMulIntegerToFloat", lower_integer_to_float, 4, 7, 1, 0},
    {"com.microsoft::DynamicQuantizeMatMul", lower_dynamic_matmul, 3, 5, 1, 0},
    {"com.microsoft::QGemm", lower_qgemm, 6, 9, 1, 0},
    {"com.microsoft::MatMulInteger16", lower_integer16, 2, 2, 1, 0},
    {"com.microsoft::DynamicQuantizeLSTM", lower_dynamic_lstm, 3, 12, 3, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_quant = {ops, INF_ARRAY_LENGTH(ops)};
