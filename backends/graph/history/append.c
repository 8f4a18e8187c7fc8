// SPDX-License-Identifier: Apache-2.0
// Finds outputs that append rows to an input. They have one of three forms: a concatenation of the
// input and the rows; the operator append alone, which writes over rows of the input; or rows that
// are written to positions that a run computes. In the last form, zeros are put behind the input,
// the rows are written over them, and all rows behind the new ones are set to zero.
// GroupQueryAttention is imported in this form, because its inputs tell how much of its cache is
// used:
//
//     input       k k k            past 3
//     with zeros  k k k 0 0
//     append      k k k n n
//     select      k k k n n        zeros from position 5 on
//
// If the last form grows, a run must find the positions behind the rows of the input. Other ones
// would overwrite rows that the session has, and would leave rows that must be zeros. If there are
// no zeros to put behind the input, it overwrites rows.
#include "backends/graph/history/append.h"

#include "backends/graph/history/sample.h"

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
    append->positions = append->kept = INF_VALUE_NONE;
    append->grows = true;
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

// Returns the value whose elements `value` has in another shape.
static uint32_t find_root(const struct inf_graph *graph, uint32_t value)
{
    const struct inf_node *node = maker_of(graph, value);
    while (node != NULL && (node->op == INF_OP_RESHAPE || node->op == INF_OP_EXPAND_DIMS ||
                            node->op == INF_OP_SQUEEZE || node->op == INF_OP_IDENTITY)) {
        value = node->inputs[0];
        node = maker_of(graph, value);
    }
    return value;
}

// Fills the members of *append that describe which rows stay. Returns false if they are not those
// before positions + count.
static bool take_kept(const struct inf_graph *graph, uint32_t kept,
                      struct inf_history_append *append)
{
    const struct inf_node *compare = maker_of(graph, find_root(graph, kept));
    if (compare == NULL || compare->op != INF_OP_COMPARE ||
        compare->attrs.compare.kind != INF_COMPARE_LESS)
        return false;
    const struct inf_node *end = maker_of(graph, find_root(graph, compare->inputs[1]));
    if (end == NULL || end->op != INF_OP_BINARY || end->attrs.binary.kind != INF_BINARY_ADD ||
        end->attrs.binary.activation != INF_ACTIVATION_NONE)
        return false;
    uint32_t positions = find_root(graph, append->positions);
    append->kept = kept;
    append->keys = compare->inputs[0];
    append->count = end->inputs[find_root(graph, end->inputs[0]) == positions];
    return find_root(graph, end->inputs[0]) == positions ||
           find_root(graph, end->inputs[1]) == positions;
}

// Fills *append from a node that writes rows over an input of the graph. Returns false if the node
// does something else.
static bool take_write(const struct inf_graph *graph, const struct inf_node *node,
                       struct inf_history_append *append)
{
    const struct inf_value *input = &graph->values[node->inputs[0]];
    int32_t axis = node->attrs.append.axis, rank = input->shape.rank;
    *append = (struct inf_history_append){.input = node->inputs[0],
                                          .rows = node->inputs[2],
                                          .positions = node->inputs[1],
                                          .axis = axis < 0 ? axis + rank : axis,
                                          .overwrites = true,
                                          .ring = node->attrs.append.ring,
                                          .kept = INF_VALUE_NONE};
    return input->producer == INF_NODE_NONE && input->data == NULL && rank >= 1 &&
           append->axis >= 1;
}

bool inf_history_find_append(const struct inf_graph *graph, uint32_t value,
                             struct inf_history_append *append)
{
    const struct inf_node *node = maker_of(graph, value);
    *append = (struct inf_history_append){.input = INF_VALUE_NONE};
    if (node != NULL && node->op == INF_OP_APPEND)
        return take_write(graph, node, append);
    if (node == NULL || node->op != INF_OP_SELECT)
        return take_concat(graph, node, append);
    const struct inf_node *write = maker_of(graph, node->inputs[1]);
    if (write == NULL || write->op != INF_OP_APPEND || write->attrs.append.ring ||
        !is_zeros(graph, node->inputs[2]) ||
        !take_concat(graph, maker_of(graph, write->inputs[0]), append) ||
        !is_zeros(graph, append->rows) || graph->values[write->inputs[1]].dtype != INF_DTYPE_I32)
        return false;
    int32_t axis = write->attrs.append.axis;
    if ((axis < 0 ? axis + graph->values[append->input].shape.rank : axis) != append->axis)
        return false;
    append->rows = write->inputs[2];
    append->positions = write->inputs[1];
    append->overwrites = true;
    return take_kept(graph, node->inputs[0], append);
}

bool inf_history_append_keeps_rows(const struct inf_graph *sample,
                                   const struct inf_history_append *append)
{
    const struct inf_value *keys = &sample->values[append->keys];
    const struct inf_value *count = &sample->values[append->count];
    const struct inf_shape *kept = &sample->values[append->kept].shape;
    const struct inf_shape *rows = &sample->values[append->rows].shape;
    if (keys->data == NULL || keys->dtype != INF_DTYPE_I32 || count->data == NULL ||
        count->dtype != INF_DTYPE_I32 || inf_shape_elements(&count->shape) != 1 ||
        inf_history_element(count, 0) != rows->dims[append->axis] || kept->rank != rows->rank)
        return false;
    for (int32_t i = 0; i < kept->rank; i++)
        if (i != append->axis && kept->dims[i] != 1)
            return false;
    for (size_t i = 0; i < inf_shape_elements(&keys->shape); i++)
        if (inf_history_element(keys, i) != (int64_t)i)
            return false;
    return true;
}
