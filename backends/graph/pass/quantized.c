// SPDX-License-Identifier: Apache-2.0
// Reads scales and zero points of quantize and dequantize nodes, and clamps between them.
#include "backends/graph/pass/quantized.h"

#include <math.h>

bool inf_quantized_is_byte(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

static uint32_t find_input(const struct inf_node *node, uint32_t index)
{
    return index < node->input_count ? node->inputs[index] : INF_VALUE_NONE;
}

bool inf_quantized_read(const struct inf_graph *graph, const struct inf_node *node, uint32_t bytes,
                        struct inf_quantized *quantized)
{
    uint32_t scale = node->inputs[1];
    uint32_t zero = find_input(node, 2);
    if (!inf_quantized_is_byte(graph->values[bytes].dtype) || !inf_graph_is_const(graph, scale) ||
        graph->values[scale].dtype != INF_DTYPE_F32 ||
        (zero != INF_VALUE_NONE && !inf_graph_is_const(graph, zero)))
        return false;
    *quantized = (struct inf_quantized){bytes, scale, zero, 0, graph->values[scale].data->data, 0};
    quantized->axis =
        node->op == INF_OP_QUANTIZE ? node->attrs.quantize.axis : node->attrs.dequantize.axis;
    if (!inf_shape_count(&graph->values[scale].shape, &quantized->scale_count) ||
        quantized->scale_count == 0)
        return false;
    size_t zero_count;
    if (zero != INF_VALUE_NONE && (!inf_shape_count(&graph->values[zero].shape, &zero_count) ||
                                   zero_count != quantized->scale_count ||
                                   graph->values[zero].dtype != graph->values[bytes].dtype))
        return false;
    for (size_t i = 0; i < quantized->scale_count; i++)
        if (!isnormal(quantized->scales[i]) || quantized->scales[i] < 0)
            return false;
    return true;
}

bool inf_quantized_find(const struct inf_graph *graph, uint32_t value,
                        struct inf_quantized *quantized)
{
    uint32_t producer = value != INF_VALUE_NONE ? graph->values[value].producer : INF_NODE_NONE;
    if (producer == INF_NODE_NONE || graph->nodes[producer].op != INF_OP_DEQUANTIZE ||
        graph->values[value].dtype != INF_DTYPE_F32)
        return false;
    const struct inf_node *node = &graph->nodes[producer];
    return inf_quantized_read(graph, node, node->inputs[0], quantized);
}

int32_t inf_quantized_zero(const struct inf_graph *graph, const struct inf_quantized *quantized)
{
    if (quantized->zero == INF_VALUE_NONE)
        return 0;
    const uint8_t *zero = graph->values[quantized->zero].data->data;
    return graph->values[quantized->zero].dtype == INF_DTYPE_I8 ? (int8_t)*zero : *zero;
}

bool inf_quantized_equal(const struct inf_graph *graph, const struct inf_quantized *a,
                         const struct inf_quantized *b)
{
    return graph->values[a->bytes].dtype == graph->values[b->bytes].dtype && a->scale_count == 1 &&
           b->scale_count == 1 && a->scales[0] == b->scales[0] &&
           inf_quantized_zero(graph, a) == inf_quantized_zero(graph, b);
}

// --- reading nodes that clamp their input ---

bool inf_clamp_narrow(struct inf_clamp *clamp, enum inf_activation activation, float min, float max)
{
    switch (activation) {
    case INF_ACTIVATION_NONE:
        return true;
    case INF_ACTIVATION_RELU:
        min = 0, max = INFINITY;
        break;
    case INF_ACTIVATION_RELU6:
        min = 0, max = 6;
        break;
    case INF_ACTIVATION_CLIP:
        break;
    default:
        return false;
    }
    // *clamp is applied after this activation, so clamp the bounds of the activation by *clamp.
    clamp->min = fminf(fmaxf(min, clamp->min), clamp->max);
    clamp->max = fminf(fmaxf(max, clamp->min), clamp->max);
    return true;
}

bool inf_clamp_read(const struct inf_node *node, struct inf_clamp *clamp)
{
    if (node->op == INF_OP_CLIP)
        return inf_clamp_narrow(clamp, INF_ACTIVATION_CLIP, node->attrs.clip.min,
                                node->attrs.clip.max);
    if (node->op != INF_OP_UNARY)
        return false;
    if (node->attrs.unary.kind == INF_UNARY_RELU)
        return inf_clamp_narrow(clamp, INF_ACTIVATION_RELU, 0, 0);
    return node->attrs.unary.kind == INF_UNARY_RELU6 &&
           inf_clamp_narrow(clamp, INF_ACTIVATION_RELU6, 0, 0);
}

int32_t inf_clamp_to_byte(const struct inf_graph *graph, const struct inf_quantized *y, float bound)
{
    bool is_signed = graph->values[y->bytes].dtype == INF_DTYPE_I8;
    float value = nearbyintf(bound / y->scales[0]) + (float)inf_quantized_zero(graph, y);
    return (int32_t)fminf(fmaxf(value, is_signed ? -128 : 0), is_signed ? 127 : 255);
}

// --- replacing the inputs of a node ---

// Sets input `index` of a node to `value`, which may be INF_VALUE_NONE.
static enum inf_code set_input(struct inf_rewrite *rewrite, uint32_t node, uint32_t index,
                               uint32_t value)
{
    if (value != INF_VALUE_NONE)
        return inf_rewrite_set_input(rewrite, node, index, value);
    struct inf_node *changed = &rewrite->graph->nodes[node];
    if (index < changed->input_count) {
        inf_rewrite_drop_use(rewrite, changed->inputs[index]);
        changed->inputs[index] = INF_VALUE_NONE;
    }
    return INF_OK;
}

enum inf_code inf_quantize_set_inputs(struct inf_rewrite *rewrite, uint32_t node,
                                      const uint32_t *inputs, uint32_t count)
{
    while (count-- > 0)
        INF_TRY(set_input(rewrite, node, count, inputs[count]));
    return INF_OK;
}
