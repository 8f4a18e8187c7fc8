// SPDX-License-Identifier: Apache-2.0
// Finds repeated heads: a gather of heads, or a new axis that is stretched and joined with the axis
// of the heads. A product with repeated keys equals a product of more rows with the keys as they
// are, which does not copy the history:
//
//   [batch, heads, rows, size] * [batch, heads, size, keys]
//   [batch, heads / times, times * rows, size] * [batch, heads / times, size, keys]
#include "backends/graph/pass/heads.h"

#include "backends/graph/shape/infer.h"

static const struct inf_node *maker_of(const struct inf_graph *graph, uint32_t value)
{
    uint32_t node = graph->values[value].producer;
    return node != INF_NODE_NONE ? &graph->nodes[node] : NULL;
}

static bool is_repeating_gather(const struct inf_graph *graph, const struct inf_node *node)
{
    int64_t indices[256];
    uint32_t count;
    int64_t own = graph->values[node->inputs[0]].shape.dims[1];
    if (node->attrs.gather.axis != 1 || node->attrs.gather.batch_dims != 0 ||
        !inf_graph_const_ints(graph, node->inputs[1], indices, INF_ARRAY_LENGTH(indices), &count) ||
        own < 1 || count % own != 0)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (indices[i] != i / (count / own))
            return false;
    return true;
}

// Returns true if all elements of a value are 1, as far as it has elements.
static bool is_ones(const struct inf_graph *graph, uint32_t value)
{
    const struct inf_value *ones = &graph->values[value];
    if (ones->data == NULL || ones->data->data == NULL || ones->dtype != INF_DTYPE_F32)
        return false;
    for (size_t i = 0; i < inf_shape_elements(&ones->shape); i++)
        if (((const float *)ones->data->data)[i] != 1)
            return false;
    return true;
}

// Returns the value that the node stretches, by a broadcast or a product with ones, which is how an
// Expand of unknown shape is imported; INF_VALUE_NONE if it does something else.
static uint32_t find_stretch_operand(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->op == INF_OP_BROADCAST)
        return node->inputs[0];
    if (node->op != INF_OP_BINARY || node->attrs.binary.kind != INF_BINARY_MUL ||
        node->attrs.binary.activation != INF_ACTIVATION_NONE)
        return INF_VALUE_NONE;
    for (uint32_t i = 0; i < 2; i++)
        if (is_ones(graph, node->inputs[1 - i]))
            return node->inputs[i];
    return INF_VALUE_NONE;
}

// Returns the value whose heads a reshape of a stretched value repeats; INF_VALUE_NONE if it does
// something else.
static uint32_t find_stretched(const struct inf_graph *graph, const struct inf_node *reshape)
{
    const struct inf_node *stretch = maker_of(graph, reshape->inputs[0]);
    uint32_t stretched = stretch != NULL ? find_stretch_operand(graph, stretch) : INF_VALUE_NONE;
    if (stretched == INF_VALUE_NONE)
        return INF_VALUE_NONE;
    const struct inf_node *insert = maker_of(graph, stretched);
    if (insert == NULL || (insert->op != INF_OP_EXPAND_DIMS && insert->op != INF_OP_RESHAPE))
        return INF_VALUE_NONE;
    const struct inf_shape *x = &graph->values[insert->inputs[0]].shape;
    const struct inf_shape *wide = &graph->values[stretch->outputs[0]].shape;
    const struct inf_shape *narrow = &graph->values[stretched].shape;
    const struct inf_shape *y = &graph->values[reshape->outputs[0]].shape;
    if (x->rank != 4 || wide->rank != 5 || narrow->rank != 5 || y->rank != 4)
        return INF_VALUE_NONE;
    const int64_t wanted[] = {x->dims[0], x->dims[1], wide->dims[2], x->dims[2], x->dims[3]};
    const int64_t joined[] = {x->dims[0], x->dims[1] * wide->dims[2], x->dims[2], x->dims[3]};
    for (int i = 0; i < 5; i++)
        if (wide->dims[i] != wanted[i] || narrow->dims[i] != (i == 2 ? 1 : wanted[i]))
            return INF_VALUE_NONE;
    for (int i = 0; i < 4; i++)
        if (y->dims[i] != joined[i])
            return INF_VALUE_NONE;
    return insert->inputs[0];
}

bool inf_heads_find_repeat(const struct inf_graph *graph, uint32_t value,
                           struct inf_heads_repeat *repeat)
{
    const struct inf_node *node = maker_of(graph, value);
    *repeat = (struct inf_heads_repeat){.source = INF_VALUE_NONE};
    if (node != NULL && graph->values[value].shape.rank == 4 && inf_node_swaps_last_axes(node, 4)) {
        repeat->swapped = true;
        node = maker_of(graph, node->inputs[0]);
    }
    if (node == NULL || graph->values[node->outputs[0]].shape.rank != 4)
        return false;
    if (node->op == INF_OP_GATHER && graph->values[node->inputs[0]].shape.rank == 4 &&
        is_repeating_gather(graph, node))
        repeat->source = node->inputs[0];
    else if (node->op == INF_OP_RESHAPE)
        repeat->source = find_stretched(graph, node);
    if (repeat->source == INF_VALUE_NONE || graph->values[repeat->source].shape.dims[1] < 1)
        return false;
    repeat->times =
        graph->values[node->outputs[0]].shape.dims[1] / graph->values[repeat->source].shape.dims[1];
    return repeat->times > 1;
}
