// SPDX-License-Identifier: Apache-2.0
// Copies a graph. The copy shares the bytes of constants with the original.
#include <stdlib.h>
#include <string.h>

#include "backends/graph/graph.h"

// Copies an array of `count` elements to newly allocated memory. *copy is NULL if the array is
// empty. Returns false if there is no memory.
static bool copy_array(void **copy, const void *source, uint32_t count, size_t element_bytes)
{
    *copy = NULL;
    if (count == 0)
        return true;
    *copy = calloc(count, element_bytes);
    if (*copy == NULL)
        return false;
    memcpy(*copy, source, count * element_bytes);
    return true;
}

// Lets the copy of a graph use the names of the original: the copy holds a reference to the set of
// texts, and no name is copied.
static bool inherit_texts(struct inf_graph *copy, const struct inf_graph *graph)
{
    struct inf_texts *texts = inf_texts_create(graph->texts);
    if (texts == NULL)
        return false;
    inf_texts_unref(&copy->texts);
    copy->texts = texts;
    return true;
}

static bool clone_indices(struct inf_graph *graph, uint32_t **indices, uint32_t count)
{
    uint32_t *copy = inf_arena_alloc(&graph->arena, count * sizeof *copy);
    if (copy == NULL)
        return false;
    memcpy(copy, *indices, count * sizeof *copy);
    *indices = copy;
    return true;
}

static bool clone_values(struct inf_graph *copy, const struct inf_graph *graph)
{
    if (!copy_array((void **)&copy->values, graph->values, graph->value_count,
                    sizeof *graph->values))
        return false;
    copy->value_count = copy->value_capacity = graph->value_count;
    for (uint32_t i = 0; i < copy->value_count; i++)
        if (copy->values[i].data != NULL)
            copy->values[i].data = inf_blob_ref(copy->values[i].data);
    return true;
}

static bool clone_nodes(struct inf_graph *copy, const struct inf_graph *graph)
{
    if (!copy_array((void **)&copy->nodes, graph->nodes, graph->node_count, sizeof *graph->nodes))
        return false;
    copy->node_count = copy->node_capacity = graph->node_count;
    for (uint32_t i = 0; i < copy->node_count; i++) {
        struct inf_node *node = &copy->nodes[i];
        if (!clone_indices(copy, &node->inputs, node->input_count) ||
            !clone_indices(copy, &node->outputs, node->output_count))
            return false;
    }
    return true;
}

static bool clone_ports(struct inf_graph *copy, const struct inf_graph *graph)
{
    if (!copy_array((void **)&copy->inputs, graph->inputs, graph->input_count,
                    sizeof *graph->inputs))
        return false;
    copy->input_count = copy->input_capacity = graph->input_count;
    if (!copy_array((void **)&copy->outputs, graph->outputs, graph->output_count,
                    sizeof *graph->outputs))
        return false;
    copy->output_count = copy->output_capacity = graph->output_count;
    return true;
}

// Clones the subgraphs recursively. The verifier limits the recursion depth to
// INF_LIMIT_GRAPH_DEPTH.
static enum inf_code clone_subgraphs(struct inf_graph *copy, const struct inf_graph *graph,
                                     struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        struct inf_graph *subgraph = NULL;
        uint32_t index;
        INF_TRY(inf_graph_clone(&subgraph, graph->subgraphs[i], err));
        INF_TRY(inf_graph_add_subgraph(copy, &subgraph, &index, err));
    }
    return INF_OK;
}

enum inf_code inf_graph_clone(struct inf_graph **out_graph, const struct inf_graph *graph,
                              struct inf_error *err)
{
    struct inf_graph *copy;
    INF_TRY(inf_graph_create_inside(&copy, graph, err));
    if (!inherit_texts(copy, graph) || !clone_values(copy, graph) || !clone_nodes(copy, graph) ||
        !clone_ports(copy, graph)) {
        inf_graph_destroy(&copy);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to copy a graph of %u values", graph->value_count);
    }
    enum inf_code code = clone_subgraphs(copy, graph, err);
    if (code == INF_OK)
        *out_graph = copy;
    else
        inf_graph_destroy(&copy);
    return code;
}
