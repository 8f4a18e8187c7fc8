// SPDX-License-Identifier: Apache-2.0
// Finds attention in a graph. Starts at the product with the values and follows the scores back to
// the product of queries and keys. Reshapes between these nodes take no step, and are passed if
// they keep the last axis: rows of scores then keep their order.
#include "backends/device/attention_nodes.h"

#include <math.h>

#include "backends/device/segment_nodes.h"

#define SCALE_MAX 0x1p20f
#define HOPS_MAX  12 // most nodes between the first and the last node, with reshapes

static const struct inf_shape *input_shape(const struct inf_graph *graph,
                                           const struct inf_node *node, uint32_t index)
{
    return &graph->values[node->inputs[index]].shape;
}

static const struct inf_shape *output_shape(const struct inf_graph *graph,
                                            const struct inf_node *node)
{
    return &graph->values[node->outputs[0]].shape;
}

static bool is_f32(const struct inf_graph *graph, uint32_t value)
{
    return graph->values[value].dtype == INF_DTYPE_F32;
}

// Returns true if the node is a plain product of f32 matrices with the same leading dimensions.
static bool is_product(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_attrs_matmul *attrs = &node->attrs.matmul;
    if (node->op != INF_OP_MATMUL || attrs->activation != INF_ACTIVATION_NONE ||
        attrs->transpose_a || node->input_count != 2 || !is_f32(graph, node->inputs[0]) ||
        !is_f32(graph, node->inputs[1]))
        return false;
    const struct inf_shape *a = input_shape(graph, node, 0);
    const struct inf_shape *b = input_shape(graph, node, 1);
    size_t count;
    bool alike = a->rank >= 2 && a->rank == b->rank && inf_shape_count(a, &count) && count > 0 &&
                 inf_shape_count(b, &count) && count > 0;
    for (int32_t i = 0; alike && i < a->rank - 2; i++)
        alike = a->dims[i] == b->dims[i];
    return alike;
}

static size_t count_products(const struct inf_shape *shape)
{
    size_t count = 1;
    for (int32_t i = 0; i < shape->rank - 2; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

// Reads a constant of one f32 element. Returns false if `value` is no such constant, or if the
// queries cannot be scaled by it in advance, because a product might become infinite or 0.
static bool read_scale(const struct inf_graph *graph, uint32_t value, float *number)
{
    const struct inf_value *constant = &graph->values[value];
    if (constant->data == NULL || constant->dtype != INF_DTYPE_F32 ||
        inf_shape_elements(&constant->shape) != 1)
        return false;
    *number = *(const float *)constant->data->data;
    return fabsf(*number) >= 1 / SCALE_MAX && fabsf(*number) <= SCALE_MAX;
}

// Takes a node that scales the scores or adds a mask to them. Sets *scores to the scores before the
// node. Returns false for any other node. Nodes are visited from the last to the first, so that a
// scale is visited after the mask.
static bool take_binary(struct inf_attention *attention, const struct inf_graph *graph,
                        const struct inf_node *node, uint32_t *scores)
{
    const struct inf_attrs_binary *attrs = &node->attrs.binary;
    const struct inf_shape *y = output_shape(graph, node);
    float number;
    if (attrs->activation != INF_ACTIVATION_NONE)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t other = node->inputs[1 - i];
        if (!inf_shape_equal(input_shape(graph, node, i), y) ||
            graph->values[other].dtype != INF_DTYPE_F32 ||
            graph->values[node->inputs[i]].producer == INF_NODE_NONE)
            continue;
        bool divides = attrs->kind == INF_BINARY_DIV && i == 0;
        if ((attrs->kind == INF_BINARY_MUL || divides) && read_scale(graph, other, &number)) {
            attention->scale *= divides ? 1 / number : number;
        } else if (attrs->kind == INF_BINARY_ADD && attention->mask == INF_VALUE_NONE &&
                   attention->scale == 1) {
            attention->mask = other;
            attention->scores = *y;
        } else {
            continue;
        }
        *scores = node->inputs[i];
        return true;
    }
    return false;
}

// Adds node `index` to the attention. Returns false if it cannot be part of it: it is not in the
// segment, or its result has other readers than `reader`.
static bool add_node(struct inf_attention *attention, const struct inf_graph *graph, uint32_t index,
                     uint32_t reader, const struct inf_segment *segment)
{
    if (attention->count == INF_ATTENTION_NODES || !inf_segment_has(segment, index) ||
        inf_segment_sole_reader(graph, graph->nodes[index].outputs[0], segment) != reader)
        return false;
    attention->nodes[attention->count++] = index;
    return true;
}

// Follows the scores from the input of node `last` to the product that computes them, and returns
// that node; INF_NODE_NONE if they do not come from one, or not through one softmax.
static uint32_t follow_scores(struct inf_attention *attention, const struct inf_graph *graph,
                              uint32_t last, const struct inf_segment *segment)
{
    uint32_t value = graph->nodes[last].inputs[0], reader = last;
    bool normalised = false;
    for (uint32_t hop = 0; hop < HOPS_MAX; hop++) {
        uint32_t index = graph->values[value].producer;
        if (index == INF_NODE_NONE)
            return INF_NODE_NONE;
        const struct inf_node *node = &graph->nodes[index];
        const struct inf_shape *y = output_shape(graph, node);
        if (node->op == INF_OP_RESHAPE) {
            const struct inf_shape *x = input_shape(graph, node, 0);
            if (x->rank < 1 || y->rank < 1 || x->dims[x->rank - 1] != y->dims[y->rank - 1] ||
                inf_segment_sole_reader(graph, value, segment) != reader)
                return INF_NODE_NONE;
            value = node->inputs[0];
            reader = index;
            continue;
        }
        if (!add_node(attention, graph, index, reader, segment))
            return INF_NODE_NONE;
        if (node->op == INF_OP_MATMUL)
            return normalised ? index : INF_NODE_NONE;
        int32_t axis = node->attrs.softmax.axis;
        if (node->op == INF_OP_SOFTMAX && !normalised && !node->attrs.softmax.log && y->rank > 0 &&
            (axis == -1 || axis == y->rank - 1)) {
            normalised = true;
            value = node->inputs[0];
        } else if (node->op != INF_OP_BINARY || !normalised ||
                   !take_binary(attention, graph, node, &value)) {
            return INF_NODE_NONE;
        }
        reader = index;
    }
    return INF_NODE_NONE;
}

bool inf_attention_find(struct inf_attention *attention, const struct inf_graph *graph,
                        uint32_t node, const struct inf_segment *segment, size_t least)
{
    const struct inf_node *last = &graph->nodes[node];
    *attention =
        (struct inf_attention){.nodes = {node}, .count = 1, .scale = 1, .mask = INF_VALUE_NONE};
    if (last->op != INF_OP_MATMUL || !is_product(graph, last) || last->attrs.matmul.transpose_b ||
        !inf_segment_has(segment, node))
        return false;
    uint32_t first = follow_scores(attention, graph, node, segment);
    if (first == INF_NODE_NONE || !is_product(graph, &graph->nodes[first]))
        return false;
    const struct inf_node *product = &graph->nodes[first];
    const struct inf_shape *q = input_shape(graph, product, 0);
    const struct inf_shape *weights = input_shape(graph, last, 0);
    attention->q = product->inputs[0];
    attention->keys = product->inputs[1];
    attention->values = last->inputs[1];
    attention->keys_by_row = product->attrs.matmul.transpose_b;
    attention->products = count_products(q);
    attention->rows = (size_t)q->dims[q->rank - 2];
    attention->depth = (size_t)q->dims[q->rank - 1];
    attention->key_count = (size_t)weights->dims[weights->rank - 1];
    attention->width = (size_t)output_shape(graph, last)->dims[weights->rank - 1];
    return attention->products == count_products(weights) && attention->rows >= least &&
           attention->rows == (size_t)weights->dims[weights->rank - 2] &&
           attention->key_count >= least;
}

uint32_t inf_attention_end(const struct inf_graph *graph, uint32_t node,
                           const struct inf_segment *segment, size_t least)
{
    struct inf_attention attention;
    enum inf_op op = graph->nodes[node].op;
    if (op != INF_OP_MATMUL && op != INF_OP_BINARY && op != INF_OP_SOFTMAX)
        return INF_NODE_NONE;
    uint32_t end = node;
    for (uint32_t hop = 0; hop < HOPS_MAX; hop++) {
        end = inf_segment_sole_reader(graph, graph->nodes[end].outputs[0], segment);
        if (end == INF_NODE_NONE)
            return INF_NODE_NONE;
        op = graph->nodes[end].op;
        if (op == INF_OP_MATMUL)
            break;
        if (op != INF_OP_BINARY && op != INF_OP_SOFTMAX && op != INF_OP_RESHAPE)
            return INF_NODE_NONE;
    }
    if (op != INF_OP_MATMUL || !inf_attention_find(&attention, graph, end, segment, least))
        return INF_NODE_NONE;
    for (uint32_t i = 1; i < attention.count; i++)
        if (attention.nodes[i] == node)
            return end;
    return INF_NODE_NONE;
}
