// SPDX-License-Identifier: Apache-2.0
// Lets products read shared keys and values once. Decoders with fewer heads of keys than of queries
// repeat the keys for each head before they multiply (heads.h), which copies the whole history in
// each step. The heads of queries that share keys become rows of one product instead:
//
//     scores [batch, heads, rows, keys] = q [batch, heads, rows, size] * repeated keys
//     scores = reshape(reshape(q, [batch, groups, times * rows, size]) * keys)
//
// Each result is the sum of the same products in the same order. New nodes are added at the end of
// the graph's list, and the list is put in order at the end of the pass.
#include <stdlib.h>

#include "backends/graph/pass/heads.h"
#include "backends/graph/pass/passes.h"

struct sharing {
    struct inf_graph *graph;
    uint32_t count; // nodes before the pass
    // before[n], after[n]: the new nodes before and behind node n; INF_NODE_NONE: none
    uint32_t *before, *after;
    bool any;
    struct inf_error *err;
};

static enum inf_code no_memory(const struct sharing *sharing)
{
    return inf_fail_reason(sharing->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory to rewrite a graph of %u nodes", sharing->count);
}

// Finds out whether the node is a product with repeated heads, whose shapes are known.
static bool find_repeat(const struct inf_graph *graph, const struct inf_node *node,
                        struct inf_heads_repeat *repeat)
{
    if (node->op != INF_OP_MATMUL || node->input_count != 2 || node->attrs.matmul.transpose_a)
        return false;
    const struct inf_shape *x = &graph->values[node->inputs[0]].shape;
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    if (!inf_shape_known(x) || !inf_shape_known(y) || x->rank != 4 || y->rank != 4 ||
        !inf_shape_known(&graph->values[node->inputs[1]].shape) ||
        !inf_heads_find_repeat(graph, node->inputs[1], repeat))
        return false;
    const struct inf_shape *keys = &graph->values[repeat->source].shape;
    return inf_shape_known(keys) && keys->rank == 4 && x->dims[0] == keys->dims[0] &&
           x->dims[1] == repeat->times * keys->dims[1];
}

// Adds a node that reshapes `x` to these dimensions.
static enum inf_code add_reshape(const struct sharing *sharing, const struct inf_node *like,
                                 uint32_t x, const int32_t dims[4], uint32_t *out_node)
{
    uint32_t inputs[2] = {x};
    const char *name = like->name, *source = like->source;
    INF_TRY(inf_graph_add_const_i32(sharing->graph, name, dims, 4, &inputs[1], sharing->err));
    return inf_graph_add_node(sharing->graph, INF_OP_RESHAPE, name, source, inputs, 2, 1, out_node,
                              sharing->err);
}

static enum inf_code share_product(struct sharing *sharing, uint32_t index,
                                   const struct inf_heads_repeat *repeat)
{
    struct inf_graph *graph = sharing->graph;
    const struct inf_node *node = &graph->nodes[index];
    const struct inf_shape x = graph->values[node->inputs[0]].shape;
    const struct inf_shape y = graph->values[node->outputs[0]].shape;
    int32_t groups = (int32_t)(x.dims[1] / repeat->times);
    const int32_t joined[] = {(int32_t)x.dims[0], groups, (int32_t)(repeat->times * x.dims[2]),
                              (int32_t)x.dims[3]};
    const int32_t split[] = {(int32_t)y.dims[0], (int32_t)y.dims[1], (int32_t)y.dims[2],
                             (int32_t)y.dims[3]};
    INF_TRY(add_reshape(sharing, node, node->inputs[0], joined, &sharing->before[index]));
    node = &graph->nodes[index]; // the list may have moved
    INF_TRY(add_reshape(sharing, node, node->outputs[0], split, &sharing->after[index]));
    struct inf_node *product = &graph->nodes[index];
    struct inf_node *after = &graph->nodes[sharing->after[index]];
    product->inputs[0] = graph->nodes[sharing->before[index]].outputs[0];
    product->inputs[1] = repeat->source;
    product->attrs.matmul.transpose_b ^= repeat->swapped;
    // Readers of the product read the result of the second reshape.
    uint32_t result = product->outputs[0];
    product->outputs[0] = after->outputs[0];
    after->inputs[0] = after->outputs[0];
    after->outputs[0] = result;
    sharing->any = true;
    return INF_OK;
}

static enum inf_code share_products(struct sharing *sharing)
{
    struct inf_heads_repeat repeat;
    for (uint32_t i = 0; i < sharing->count; i++) {
        sharing->before[i] = sharing->after[i] = INF_NODE_NONE;
        if (find_repeat(sharing->graph, &sharing->graph->nodes[i], &repeat))
            INF_TRY(share_product(sharing, i, &repeat));
    }
    return INF_OK;
}

// Moves the new nodes to their places.
static enum inf_code order_nodes(struct sharing *sharing)
{
    struct inf_graph *graph = sharing->graph;
    struct inf_node *ordered = calloc(graph->node_capacity, sizeof *ordered);
    uint32_t count = 0;
    if (ordered == NULL)
        return no_memory(sharing);
    for (uint32_t i = 0; i < sharing->count; i++) {
        const uint32_t nodes[] = {sharing->before[i], i, sharing->after[i]};
        for (int k = 0; k < 3; k++)
            if (nodes[k] != INF_NODE_NONE)
                ordered[count++] = graph->nodes[nodes[k]];
    }
    free(graph->nodes);
    graph->nodes = ordered;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < ordered[i].output_count; k++)
            graph->values[ordered[i].outputs[k]].producer = i;
    return INF_OK;
}

enum inf_code inf_pass_share_heads(struct inf_rewrite *rewrite)
{
    struct sharing sharing = {
        .graph = rewrite->graph, .count = rewrite->graph->node_count, .err = rewrite->err};
    sharing.before = calloc((size_t)sharing.count + 1, sizeof *sharing.before);
    sharing.after = calloc((size_t)sharing.count + 1, sizeof *sharing.after);
    bool allocated = sharing.before != NULL && sharing.after != NULL;
    enum inf_code code = allocated ? share_products(&sharing) : no_memory(&sharing);
    if (code == INF_OK && sharing.any)
        code = order_nodes(&sharing);
    rewrite->changed = sharing.any;
    free(sharing.before);
    free(sharing.after);
    return code;
}
