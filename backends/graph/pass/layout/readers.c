// SPDX-License-Identifier: Apache-2.0
// Searches the nodes behind a reshape for those that read its result, which decide in which order
// of axes the result is computed (reshape.c).
#include "backends/graph/pass/layout/readers.h"

// How many nodes behind the reshape are searched for readers of its result. The search ends there,
// so that the pass takes a time proportional to the size of the graph.
#define NODES_AHEAD 64
// How many values, which lead from the reshape to a transpose, are followed at a time.
#define VALUES_AHEAD 8

static bool has_value(const uint32_t *values, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        if (values[i] == value)
            return true;
    return false;
}

// Returns true if the pass can move a transpose past the node, which leaves the rank unchanged.
static bool is_passed(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_UNARY:
    case INF_OP_BINARY:
    case INF_OP_CLIP:
    case INF_OP_PRELU:
    case INF_OP_CONCAT:
    case INF_OP_SPLIT:
    case INF_OP_SLICE:
    case INF_OP_PAD:
    case INF_OP_SOFTMAX:
        return true;
    default:
        return false;
    }
}

// Returns true if the node reads its operand in any order of axes, and its result is not followed.
static bool takes_any_order(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_REDUCE:
    case INF_OP_ARG:
    case INF_OP_GATHER:
    case INF_OP_SQUEEZE:
    case INF_OP_EXPAND_DIMS:
    case INF_OP_RESHAPE:
    case INF_OP_NORMALIZE:
    case INF_OP_COMPARE:
    case INF_OP_SELECT:
    case INF_OP_CAST:
    case INF_OP_IDENTITY:
    case INF_OP_TILE:
    case INF_OP_BROADCAST:
    case INF_OP_REVERSE:
    case INF_OP_CUMULATE:
        return true;
    default:
        return false;
    }
}

// The values that lead from a reshape to its readers, and what another order of axes would do.
struct readers {
    uint32_t values[VALUES_AHEAD];
    uint32_t count;
    const struct inf_ints *perm; // of the first transpose; NULL: none was found
    uint32_t saved;              // transposes with this permutation, which would not be computed
    bool keeps_order;            // a reader needs the order of the result, so a copy would be added
};

// Notes a node that reads one of the values. `rank` is that of the result of the reshape.
static void note_reader(const struct inf_graph *graph, const struct inf_node *node, int32_t rank,
                        struct readers *readers)
{
    if (node->op == INF_OP_TRANSPOSE) {
        const struct inf_ints *perm = &node->attrs.transpose.perm;
        if (readers->perm == NULL && perm->count == rank)
            readers->perm = perm;
        readers->saved += readers->perm != NULL && inf_ints_equal(perm, readers->perm);
        return;
    }
    if (!is_passed(node)) {
        readers->keeps_order |= !takes_any_order(node);
        return;
    }
    for (uint32_t k = 0; k < node->output_count; k++)
        if (readers->count < VALUES_AHEAD && graph->values[node->outputs[k]].shape.rank == rank)
            readers->values[readers->count++] = node->outputs[k];
}

const struct inf_ints *inf_layout_find_reader_order(const struct inf_layout *layout,
                                                    const struct inf_node *reshape)
{
    const struct inf_graph *graph = layout->graph;
    struct readers readers = {.values = {reshape->outputs[0]}, .count = 1};
    int32_t rank = graph->values[reshape->outputs[0]].shape.rank;
    const struct inf_node *end = graph->nodes + graph->node_count;
    const struct inf_node *node = reshape + 1;
    for (int i = 0; i < NODES_AHEAD && node < end; i++, node++) {
        bool reads = false;
        for (uint32_t k = 0; k < node->input_count; k++)
            reads |= has_value(readers.values, readers.count, node->inputs[k]);
        if (reads)
            note_reader(graph, node, rank, &readers);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        readers.keeps_order |= has_value(readers.values, readers.count, graph->outputs[i].value);
    return readers.saved > readers.keeps_order ? readers.perm : NULL;
}

struct inf_node *inf_layout_find_product(const struct inf_layout *layout,
                                         const struct inf_node *reshape)
{
    struct inf_graph *graph = layout->graph;
    uint32_t result = reshape->outputs[0];
    size_t index = (size_t)(reshape - graph->nodes) + 1;
    if (layout->rewrite->uses[result] != 1 || layout->rewrite->evaluator == NULL)
        return NULL;
    for (size_t i = index; i < graph->node_count && i < index + NODES_AHEAD; i++) {
        struct inf_node *node = &graph->nodes[i];
        if (!has_value(node->inputs, node->input_count, result))
            continue;
        // Readers of one operand have no inputs[1].
        if (node->op != INF_OP_MATMUL || node->inputs[0] != result)
            return NULL;
        const struct inf_value *b = &graph->values[node->inputs[1]];
        bool fits = !node->attrs.matmul.transpose_a && b->data != NULL &&
                    inf_shape_known(&b->shape) && b->shape.rank == 2;
        return fits ? node : NULL;
    }
    return NULL;
}
