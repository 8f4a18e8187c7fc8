// SPDX-License-Identifier: Apache-2.0
// Removes nodes that return their input unchanged: casts to the same type, reshapes to the same
// shape, padding of size 0, and so on. Nodes that read the output read the input instead.
#include <math.h>
#include <stdlib.h>

#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

// Returns true for operators that change no element, but may change the number of elements or the
// shape. Such a node returns its input unchanged if its output has the same shape as its input.
static bool keeps_elements(enum inf_op op)
{
    return op == INF_OP_RESHAPE || op == INF_OP_SQUEEZE || op == INF_OP_EXPAND_DIMS ||
           op == INF_OP_PAD || op == INF_OP_TILE || op == INF_OP_BROADCAST;
}

static bool is_trivial_perm(const struct inf_ints *perm, int32_t rank)
{
    if (perm->count == 0) // an empty permutation reverses the axes
        return rank == 0 || rank == 1;
    for (int32_t i = 0; i < perm->count; i++)
        if (perm->values[i] != i && perm->values[i] != i - perm->count)
            return false;
    return true;
}

static bool is_identity(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    const struct inf_value *y = &graph->values[node->outputs[0]];
    switch (node->op) {
    case INF_OP_IDENTITY:
        return true;
    case INF_OP_CAST:
        return x->dtype == y->dtype;
    case INF_OP_CLIP:
        return node->attrs.clip.min == -INFINITY && node->attrs.clip.max == INFINITY;
    case INF_OP_TRANSPOSE:
        return is_trivial_perm(&node->attrs.transpose.perm, x->shape.rank);
    case INF_OP_CONCAT:
        return node->input_count == 1;
    default:
        return keeps_elements(node->op) && inf_shape_known(&x->shape) &&
               inf_shape_equal(&x->shape, &y->shape);
    }
}

// Makes a node read map[*value] instead of *value, where `map` gives for each value its
// replacement. The caller visits the nodes in order, so no later step changes the replacement of a
// value that is already computed.
static void redirect_use(struct inf_rewrite *rewrite, const uint32_t *map, uint32_t *value)
{
    if (*value == INF_VALUE_NONE || map[*value] == *value)
        return;
    rewrite->uses[*value]--;
    *value = map[*value];
    rewrite->uses[*value]++;
}

enum inf_code inf_pass_drop_identities(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    uint32_t *map = calloc((size_t)graph->value_count + 1, sizeof *map);
    if (map == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to rewrite a graph of %u values", graph->value_count);
    for (uint32_t i = 0; i < graph->value_count; i++)
        map[i] = i;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct inf_node *node = &graph->nodes[i];
        for (uint32_t j = 0; j < node->input_count; j++)
            redirect_use(rewrite, map, &node->inputs[j]);
        if (is_identity(graph, node))
            map[node->outputs[0]] = node->inputs[0];
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        redirect_use(rewrite, map, &graph->outputs[i].value);
    // Drop uses only after redirecting: in the other order, an input could lose its last use, and
    // its data, before it gains the new uses.
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (map[graph->nodes[i].outputs[0]] != graph->nodes[i].outputs[0])
            inf_rewrite_remove(rewrite, i);
    free(map);
    return INF_OK;
}
