// SPDX-License-Identifier: Apache-2.0
// Calls of lowering functions of ai.onnx. The called function gets a copy of the scope with its own
// inputs, outputs and opset. It reads the attributes of the node that is lowered.
#include "backends/import/onnx/contrib/call.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"

// The most inputs of a called operator. The array of inputs always has this size, because a
// lowering function reads the inputs that its operator requires without checking input_count.
#define CALL_INPUTS 16

void inf_onnx_call(struct inf_onnx_scope *s, const char *name, int64_t opset,
                   const uint32_t *inputs, uint32_t input_count, uint32_t *outputs,
                   uint32_t output_count)
{
    uint32_t operands[CALL_INPUTS];
    struct inf_onnx_scope inner = *s;
    assert(input_count <= CALL_INPUTS);
    for (uint32_t i = 0; i < CALL_INPUTS; i++)
        operands[i] = i < input_count ? inputs[i] : INF_VALUE_NONE;
    for (uint32_t i = 0; i < output_count; i++)
        outputs[i] = INF_VALUE_NONE;
    while (input_count > 0 && operands[input_count - 1] == INF_VALUE_NONE)
        input_count--;
    inner.op = s->import->find_op("", name);
    assert(inner.op != NULL);
    inner.opset = opset;
    inner.inputs = operands;
    inner.input_count = input_count;
    inner.outputs = outputs;
    inner.output_count = output_count;
    if (inf_build_ok(&s->b))
        inner.op->lower(&inner);
    s->b = inner.b;
}

uint32_t inf_onnx_call_value(struct inf_onnx_scope *s, const char *name, int64_t opset,
                             const uint32_t *inputs, uint32_t input_count)
{
    uint32_t output;
    inf_onnx_call(s, name, opset, inputs, input_count, &output, 1);
    return output;
}

uint32_t inf_onnx_needed_input(struct inf_onnx_scope *s, uint32_t index)
{
    uint32_t value = inf_onnx_input(s, index);
    if (value == INF_VALUE_NONE)
        inf_build_fail(&s->b, INF_INVALID, "lacks input %u", index);
    return value;
}

static float pick_parameter(float given, float fallback)
{
    return isnan(given) ? fallback : given;
}

// Activations that become one UNARY node, with the default values of alpha and beta.
static const struct {
    const char *name;
    enum inf_unary_kind kind;
    float alpha, beta;
} functions[] = {
    {"Relu", INF_UNARY_RELU, 0, 0},
    {"Tanh", INF_UNARY_TANH, 0, 0},
    {"Sigmoid", INF_UNARY_SIGMOID, 0, 0},
    {"LeakyRelu", INF_UNARY_LEAKY_RELU, 0.01f, 0},
    {"HardSigmoid", INF_UNARY_HARD_SIGMOID, 0.2f, 0.5f},
    {"Elu", INF_UNARY_ELU, 1, 0},
    {"Softplus", INF_UNARY_SOFTPLUS, 0, 0},
    {"Softsign", INF_UNARY_SOFTSIGN, 0, 0},
    {"ThresholdedRelu", INF_UNARY_THRESHOLDED_RELU, 1, 0},
    {"HardSwish", INF_UNARY_HARD_SWISH, 0, 0},
    {"Gelu", INF_UNARY_GELU, 0, 0},
};

uint32_t inf_onnx_activate(struct inf_onnx_scope *s, uint32_t x,
                           const struct inf_onnx_activation *activation)
{
    const char *name = activation->name;
    float alpha = activation->alpha, beta = activation->beta;
    if (*name == '\0')
        return x;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(functions); i++) {
        if (strcmp(functions[i].name, name) != 0)
            continue;
        struct inf_build_node node =
            inf_build_describe(INF_OP_UNARY, x, INF_VALUE_NONE, INF_VALUE_NONE);
        node.attrs.unary.kind = functions[i].kind;
        node.attrs.unary.alpha = pick_parameter(alpha, functions[i].alpha);
        node.attrs.unary.beta = pick_parameter(beta, functions[i].beta);
        return inf_build_value(&s->b, &node);
    }
    if (strcmp(name, "Clip") == 0)
        return inf_build_clip(&s->b, x, (double)pick_parameter(alpha, -INFINITY),
                              (double)pick_parameter(beta, INFINITY));
    if (strcmp(name, "ScaledTanh") == 0) {
        x = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, (double)pick_parameter(beta, 1));
        x = inf_build_unary(&s->b, INF_UNARY_TANH, x);
        return inf_build_binary_number(&s->b, INF_BINARY_MUL, x, (double)pick_parameter(alpha, 1));
    }
    inf_build_fail(&s->b, INF_UNSUPPORTED, "activation '%.60s' is not built", name);
    return INF_VALUE_NONE;
}
