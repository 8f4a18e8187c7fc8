// SPDX-License-Identifier: Apache-2.0
// Lets a matrix product read its second operand transposed instead of transposing it first, by
// setting transpose_b. A constant that is too large to be folded, such as the tied weights of an
// embedding and of the last product of a language model, is then packed once from its stored form.
// A computed operand is read transposed if the other operand has few rows, as the keys in a
// decoding step: then the transpose would take longer than the product.
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"
#include "backends/graph/shape/infer.h"

// Most rows of the first operand for which a computed second operand is read transposed.
#define FEW_ROWS 4

// Returns the attribute of a product that tells whether its second operand is transposed; NULL if
// the node is no product.
static bool *find_transpose_b(struct inf_node *node)
{
    if (node->op == INF_OP_MATMUL)
        return &node->attrs.matmul.transpose_b;
    return node->op == INF_OP_QMATMUL ? &node->attrs.qmatmul.transpose_b : NULL;
}

// Returns true if the first operand of the product has at most FEW_ROWS rows.
static bool has_few_rows(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *a = &graph->values[node->inputs[0]].shape;
    int64_t rows = a->rank >= 2 ? a->dims[a->rank - 2] : -1;
    return node->op == INF_OP_MATMUL && !node->attrs.matmul.transpose_a && rows >= 1 &&
           rows <= FEW_ROWS;
}

enum inf_code inf_pass_fuse_transpose(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        bool *transpose_b = find_transpose_b(&graph->nodes[i]);
        if (transpose_b == NULL)
            continue;
        uint32_t maker = graph->values[graph->nodes[i].inputs[1]].producer;
        if (maker == INF_NODE_NONE)
            continue;
        uint32_t source = graph->nodes[maker].inputs[0];
        if (!inf_node_swaps_last_axes(&graph->nodes[maker], graph->values[source].shape.rank))
            continue;
        if (!inf_graph_is_const(graph, source) && !has_few_rows(graph, &graph->nodes[i]))
            continue;
        INF_TRY(inf_rewrite_set_input(rewrite, i, 1, source));
        *transpose_b = !*transpose_b;
        rewrite->changed = true;
    }
    return INF_OK;
}
