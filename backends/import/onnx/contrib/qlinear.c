// SPDX-License-Identifier: Apache-2.0
// Operators on quantised tensors. The inputs are dequantised, the operator is computed in floats,
// and the result is quantised. The pass `quantize` replaces these nodes by one operator on bytes if
// the result is the same.
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/op_table.h"

// The version of ai.onnx in which inf_onnx_call_value() lowers operators.
#define OPSET 13

// Adds a node that reshapes a scale or zero point of one element to a scalar.
static uint32_t add_scalar(struct inf_onnx_scope *s, uint32_t x)
{
    return inf_build_rank(&s->b, x) == 0 ? x : inf_build_reshape(&s->b, x, NULL, 0);
}

// Adds nodes that dequantise input `index`. Its scale is input `index` + 1 and its zero point,
// which is optional, is input `index` + 2.
static uint32_t add_dequantized(struct inf_onnx_scope *s, uint32_t index)
{
    uint32_t x = inf_onnx_needed_input(s, index), scale = inf_onnx_needed_input(s, index + 1);
    uint32_t zero = inf_onnx_input(s, index + 2);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    const uint32_t inputs[] = {x, add_scalar(s, scale),
                               zero != INF_VALUE_NONE ? add_scalar(s, zero) : INF_VALUE_NONE};
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_DEQUANTIZE, inputs, zero != INF_VALUE_NONE ? 3 : 2);
    node.attrs.dequantize.axis = 0;
    return inf_build_value(&s->b, &node);
}

// Adds nodes that quantise x. The scale is input `index` and the zero point, which is optional, is
// input `index` + 1. The result has the type of the zero point or, if that is absent, of `like`.
static uint32_t add_quantized(struct inf_onnx_scope *s, uint32_t x, uint32_t index, uint32_t like)
{
    uint32_t scale = inf_onnx_needed_input(s, index), zero = inf_onnx_input(s, index + 1);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    const uint32_t inputs[] = {x, add_scalar(s, scale),
                               zero != INF_VALUE_NONE ? add_scalar(s, zero) : INF_VALUE_NONE};
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_QUANTIZE, inputs, zero != INF_VALUE_NONE ? 3 : 2);
    node.attrs.quantize.axis = 0;
    node.attrs.quantize.dtype = inf_build_dtype(&s->b, zero != INF_VALUE_NONE ? zero : like);
    return inf_build_value(&s->b, &node);
}

// Lowers QLinearAdd and QLinearMul. Inputs: a, its scale, its zero point, the same for b, scale and
// zero point of the result.
static void lower_qlinear_binary(struct inf_onnx_scope *s)
{
    uint32_t y = inf_build_binary(&s->b, (enum inf_binary_kind)s->op->kind, add_dequantized(s, 0),
                                  add_dequantized(s, 3));
    s->outputs[0] = add_quantized(s, y, 6, s->inputs[0]);
}

// Lowers QLinearSigmoid and QLinearLeakyRelu.
static void lower_qlinear_unary(struct inf_onnx_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_UNARY, add_dequantized(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.unary.kind = (enum inf_unary_kind)s->op->kind;
    if (node.attrs.unary.kind == INF_UNARY_LEAKY_RELU)
        node.attrs.unary.alpha = inf_onnx_attr_float(s, "alpha", 0.01f);
    s->outputs[0] = add_quantized(s, inf_build_value(&s->b, &node), 3, s->inputs[0]);
}

static void lower_qlinear_softmax(struct inf_onnx_scope *s)
{
    int32_t opset = inf_onnx_attr_int(s, "opset", OPSET);
    uint32_t x = add_dequantized(s, 0);
    s->outputs[0] =
        add_quantized(s, inf_onnx_call_value(s, "Softmax", opset, &x, 1), 3, s->inputs[0]);
}

// Lowers QLinearAveragePool and QLinearGlobalAveragePool.
static void lower_qlinear_pool(struct inf_onnx_scope *s)
{
    static const char *const names[] = {"AveragePool", "GlobalAveragePool"};
    bool last = inf_onnx_attr_int(s, "channels_last", 0) != 0;
    uint32_t x = add_dequantized(s, 0);
    x = last ? inf_build_channels_first(&s->b, x) : x;
    x = inf_onnx_call_value(s, names[s->op->kind], OPSET, &x, 1);
    x = last ? inf_build_channels_last(&s->b, x) : x;
    s->outputs[0] = add_quantized(s, x, 3, s->inputs[0]);
}

static void lower_qlinear_reduce(struct inf_onnx_scope *s)
{
    uint32_t x = add_dequantized(s, 0);
    s->outputs[0] =
        add_quantized(s, inf_onnx_call_value(s, "ReduceMean", OPSET, &x, 1), 3, s->inputs[0]);
}

// Lowers QLinearConcat. Inputs: scale and zero point of the result, then for each tensor that is
// concatenated the tensor, its scale and its zero point.
static void lower_qlinear_concat(struct inf_onnx_scope *s)
{
    uint32_t parts[INF_LIMIT_NODE_INPUTS / 3 + 1], count = 0;
    if (s->input_count < 5 || (s->input_count - 2) % 3 != 0)
        inf_build_fail(&s->b, INF_INVALID, "has %u inputs, wanted 2 and 3 for each tensor",
                       s->input_count);
    for (uint32_t i = 2; inf_build_ok(&s->b) && i + 2 < s->input_count; i += 3)
        parts[count++] = add_dequantized(s, i);
    if (!inf_build_ok(&s->b))
        return;
    int32_t axis =
        inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), inf_build_rank(&s->b, parts[0]));
    s->outputs[0] = add_quantized(s, inf_build_concat(&s->b, parts, count, axis), 0, s->inputs[2]);
}

// Lowers QLinearWhere. Inputs: the condition; x, its scale, its zero point; the same for y; scale
// and zero point of the result.
static void lower_qlinear_where(struct inf_onnx_scope *s)
{
    uint32_t y =
        inf_build_select(&s->b, s->inputs[0], add_dequantized(s, 1), add_dequantized(s, 4));
    s->outputs[0] = add_quantized(s, y, 7, s->inputs[1]);
}

// Lowers QLinearConv of com.microsoft: QLinearConv of ai.onnx, on pictures [n,h,w,c] if the
// attribute channels_last is set.
static void lower_qlinear_conv(struct inf_onnx_scope *s)
{
    bool last = inf_onnx_attr_int(s, "channels_last", 0) != 0;
    uint32_t inputs[9];
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(inputs); i++)
        inputs[i] = inf_onnx_input(s, i);
    inputs[0] = last ? inf_build_channels_first(&s->b, inputs[0]) : inputs[0];
    uint32_t y = inf_onnx_call_value(s, "QLinearConv", OPSET, inputs, s->input_count);
    s->outputs[0] = last ? inf_build_channels_last(&s->b, y) : y;
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::QLinearAdd", lower_qlinear_binary, 1, 8, 1, INF_BINARY_ADD},
    {"com.microsoft::QLinearMul", lower_qlinear_binary, 1, 8, 1, INF_BINARY_MUL},
    {"com.microsoft::QLinearSigmoid", lower_qlinear_unary, 1, 5, 1, INF_UNARY_SIGMOID},
    {"com.microsoft::QLinearLeakyRelu", lower_qlinear_unary, 1, 5, 1, INF_UNARY_LEAKY_RELU},
    {"com.microsoft::QLinearSoftmax", lower_qlinear_softmax, 1, 5, 1, 0},
    {"com.microsoft::QLinearAveragePool", lower_qlinear_pool, 1, 5, 1, 0},
    {"com.microsoft::QLinearGlobalAveragePool", lower_qlinear_pool, 1, 5, 1, 1},
    {"com.microsoft::QLinearReduceMean", lower_qlinear_reduce, 1, 5, 1, 0},
    {"com.microsoft::QLinearConcat", lower_qlinear_concat, 1, INF_LIMIT_NODE_INPUTS, 1, 0},
    {"com.microsoft::QLinearWhere", lower_qlinear_where, 2, 9, 1, 0},
    {"com.microsoft::QLinearConv", lower_qlinear_conv, 8, 9, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_qlinear = {ops, INF_ARRAY_LENGTH(ops)};
