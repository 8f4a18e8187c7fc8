// SPDX-License-Identifier: Apache-2.0
// Finds outputs that append rows to an input. They have one of two forms: a concatenation of the
// input and the rows; or rows that are written to positions that a run computes, over the input and
// zeros behind it, with zeros behind the rows. The latter is how GroupQueryAttention is imported,
// whose inputs tell how much of its cache is used:
//
//     input       k k k            past 3
//     with zeros  k k k 0 0
//     append      k k k n n
//     select      k k k n n        zeros from position 5 on
//
// In the second form, a run must find the positions behind the rows of the input. Other ones would
// overwrite rows that the session has, and would leave rows that must be zeros.
#include "backends/graph/history/append.h"

static const struct inf_node *maker_of(const struct inf_graph *graph, uint32_t value)
{
    uint32_t node = value != INF_VALUE_NONE ? graph->values[value].producer : INF_NODE_NONE;
    return node != INF_NODE_NONE ? &graph->nodes[node] : NULL;
}

// Fills *append from a concatenation of two values. Returns false if the first one does not fit.
static bool take_concat(const struct inf_graph *graph, const struct inf_node *node,
                        struct inf_history_append *append)
{
    if (node == NULL || node->op != INF_OP_CONCAT || node->input_count != 2)
        return false;
    const struct inf_value *input = &graph->values[node->inputs[0]];
    append->input = node->inputs[0];
    append->rows = node->inputs[1];
    append->positions = INF_VALUE_NONE;
    append->axis = node->attrs.concat.axis;
    if (append->axis < 0)
        append->axis += input->shape.rank;
    return append->input != append->rows && input->producer == INF_NODE_NONE &&
           input->data == NULL && input->shape.rank >= 1 && append->axis >= 1 &&
           input->shape.dims[append->axis] == INF_DIM_UNKNOWN;
}

// Returns true if all elements of a value are 0.
static bool is_zeros(const struct inf_graph *graph, uint32_t value)
{
    const struct inf_value *zeros = &graph->values[value];
    const struct inf_node *fill = maker_of(graph, value);
    if (fill != NULL && fill->op == INF_OP_FILL)
        return is_zeros(graph, fill->inputs[1]);
    if (zeros->data == NULL || zeros->data->data == NULL)
        return false;
    for (size_t i = 0; i < zeros->data->size_bytes; i++)
        if (((const char *)zeros->data->data)[i] != 0)
            return false;
    return true;
}

bool inf_history_find_append(const struct inf_graph *graph, uint32_t value,
                             struct inf_history_append *append)
{
    const struct inf_node *node = maker_of(graph, value);
    if (node == NULL || node->op != INF_OP_SELECT)
        return take_concat(graph, node, append);
    const struct inf_node *write = maker_of(graph, node->inputs[1]);
    if (write == NULL || write->op != INF_OP_APPEND || !is_zeros(graph, node->inputs[2]) ||
        !take_concat(graph, maker_of(graph, write->inputs[0]), append) ||
        !is_zeros(graph, append->rows) || graph->values[write->inputs[1]].dtype != INF_DTYPE_I32)
        return false;
    int32_t axis = write->attrs.append.axis;
    if ((axis < 0 ? axis + graph->values[append->input].shape.rank : axis) != append->axis)
        return false;
    append->rows = write->inputs[2];
    append->positions = write->inputs[1];
    return true;
}
