// SPDX-License-Identifier: Apache-2.0
// Recognises normalisations for the pass `recognize`:
//
//     d = x - mean(x)
//     d / sqrt(mean(d^2) + epsilon)                 layer normalisation
//     x / sqrt(mean(x^2) + epsilon)                 RMS normalisation
//
// Exporters write the division as such, as a product with the reciprocal of the root, or with
// rsqrt. A product with a constant scale and a sum with a constant offset may follow. The two
// constants become operands of the normalisation if it has no such operand yet.
#include "backends/graph/pass/recognize.h"

// Returns the node that computes `value` if it is a mean over axes that are kept with size 1; NULL
// otherwise.
static const struct inf_node *find_mean(const struct inf_graph *graph, uint32_t value)
{
    uint32_t producer = graph->values[value].producer;
    if (producer == INF_NODE_NONE || graph->values[value].dtype != INF_DTYPE_F32)
        return NULL;
    const struct inf_node *node = &graph->nodes[producer];
    bool found = node->op == INF_OP_REDUCE && node->attrs.reduce.kind == INF_REDUCE_MEAN &&
                 node->attrs.reduce.keep_dims;
    return found ? node : NULL;
}

// Returns the value whose square root, or whose reciprocal square root if `inverse`, is `value`;
// INF_VALUE_NONE if there is none.
static uint32_t find_root(const struct inf_graph *graph, uint32_t value, bool inverse)
{
    float one;
    const struct inf_node *node;
    if (!inverse) {
        node = inf_recognize_unary(graph, value, INF_UNARY_SQRT);
        return node != NULL ? node->inputs[0] : INF_VALUE_NONE;
    }
    node = inf_recognize_unary(graph, value, INF_UNARY_RSQRT);
    if (node != NULL)
        return node->inputs[0];
    node = inf_recognize_unary(graph, value, INF_UNARY_RECIPROCAL);
    if (node != NULL)
        return find_root(graph, node->inputs[0], false);
    node = inf_recognize_binary(graph, value, INF_BINARY_DIV);
    if (node != NULL && inf_rewrite_read_scalar(graph, node->inputs[0], INF_LIMIT_RANK, &one) &&
        one == 1.0f)
        return find_root(graph, node->inputs[1], false);
    return INF_VALUE_NONE;
}

static bool same_axes(const struct inf_graph *graph, const struct inf_node *a,
                      const struct inf_node *b)
{
    int32_t rank = graph->values[a->inputs[0]].shape.rank;
    uint32_t masks[2] = {0, 0};
    const struct inf_node *const nodes[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        const struct inf_ints *axes = &nodes[i]->attrs.reduce.axes;
        for (int32_t k = 0; k < axes->count; k++)
            masks[i] |= 1u << (axes->values[k] < 0 ? axes->values[k] + rank : axes->values[k]);
    }
    return rank > 0 && rank == graph->values[b->inputs[0]].shape.rank && masks[0] == masks[1];
}

// A normalisation that was found.
struct norm {
    enum inf_normalize_kind kind;
    uint32_t x;
    // node that computes the mean of squares; its axes are the axes of the normalisation
    const struct inf_node *mean;
    double epsilon;
};

// Returns true if `top` (the dividend) and `root` (the value below the square root) form a
// normalisation.
static bool find_norm(const struct inf_graph *graph, uint32_t top, uint32_t root, struct norm *norm)
{
    uint32_t sum, squared;
    if (root == INF_VALUE_NONE ||
        !inf_recognize_scalar(graph, root, INF_BINARY_ADD, &sum, &norm->epsilon) ||
        norm->epsilon < 0 || (norm->mean = find_mean(graph, sum)) == NULL ||
        !inf_recognize_square(graph, norm->mean->inputs[0], &squared))
        return false;
    const struct inf_node *centred = inf_recognize_binary(graph, squared, INF_BINARY_SUB);
    const struct inf_node *also = inf_recognize_binary(graph, top, INF_BINARY_SUB);
    const struct inf_node *mean = centred != NULL ? find_mean(graph, centred->inputs[1]) : NULL;
    norm->kind = INF_NORMALIZE_STANDARD;
    norm->x = centred != NULL ? centred->inputs[0] : squared;
    // The difference may be computed twice, once to be squared and once to be divided.
    if (mean != NULL && also != NULL && also->inputs[0] == norm->x &&
        (also == centred || also->inputs[1] == centred->inputs[1]) && mean->inputs[0] == norm->x &&
        same_axes(graph, mean, norm->mean))
        return true;
    norm->kind = INF_NORMALIZE_RMS;
    norm->x = squared;
    return top == squared;
}

static enum inf_code become_norm(struct inf_rewrite *rewrite, uint32_t index,
                                 const struct norm *norm)
{
    struct inf_node *node = &rewrite->graph->nodes[index];
    struct inf_ints axes = norm->mean->attrs.reduce.axes;
    INF_TRY(inf_recognize_replace(rewrite, index, INF_OP_NORMALIZE, norm->x));
    node->attrs.normalize.kind = norm->kind;
    node->attrs.normalize.axes = axes;
    node->attrs.normalize.epsilon = (float)norm->epsilon;
    return INF_OK;
}

// If the node multiplies a normalisation by a constant (input 1: scale) or adds a constant to it
// (input 2: offset), makes the constant an operand of the normalisation.
static enum inf_code take_parameter(struct inf_rewrite *rewrite, uint32_t index, uint32_t input)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[index];
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t before = inf_rewrite_sole_producer(rewrite, node->inputs[i]);
        uint32_t parameter = node->inputs[1 - i];
        if (before == INF_NODE_NONE || graph->nodes[before].op != INF_OP_NORMALIZE ||
            graph->nodes[before].input_count > input || !inf_graph_is_const(graph, parameter) ||
            !inf_shape_equal(&graph->values[node->inputs[i]].shape,
                             &graph->values[node->outputs[0]].shape))
            continue;
        INF_TRY(inf_rewrite_set_input(rewrite, before, input, parameter));
        inf_rewrite_absorb(rewrite, before, index);
        return INF_OK;
    }
    return INF_OK;
}

enum inf_code inf_recognize_norm(struct inf_rewrite *rewrite, uint32_t index)
{
    const struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[index];
    struct norm norm;
    if (node->op != INF_OP_BINARY || node->attrs.binary.activation != INF_ACTIVATION_NONE ||
        graph->values[node->outputs[0]].dtype != INF_DTYPE_F32)
        return INF_OK;
    enum inf_binary_kind kind = node->attrs.binary.kind;
    if (kind == INF_BINARY_DIV &&
        find_norm(graph, node->inputs[0], find_root(graph, node->inputs[1], false), &norm))
        return become_norm(rewrite, index, &norm);
    for (uint32_t i = 0; kind == INF_BINARY_MUL && i < 2; i++)
        if (find_norm(graph, node->inputs[i], find_root(graph, node->inputs[1 - i], true), &norm))
            return become_norm(rewrite, index, &norm);
    if (kind == INF_BINARY_MUL || kind == INF_BINARY_ADD)
        return take_parameter(rewrite, index, kind == INF_BINARY_MUL ? 1 : 2);
    return INF_OK;
}
