// SPDX-License-Identifier: Apache-2.0
// Edits of a graph during one pass. Keeps the number of uses of each value, so that a pass can ask
// whether a value has one reader, and so that the bytes of a constant are freed with its last use.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/pass/rewrite.h"
#include "proto/core/span.h"

static enum inf_code no_memory(struct inf_rewrite *rewrite)
{
    return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory to rewrite a graph of %u values",
                           rewrite->graph->value_count);
}

// Extends rewrite->uses, which counts the uses of each value, to the graph's capacity for values.
static bool grow_uses(struct inf_rewrite *rewrite)
{
    uint32_t wanted = rewrite->graph->value_capacity + 1;
    if (wanted <= rewrite->uses_capacity)
        return true;
    size_t size_bytes;
    if (!inf_size_mul(wanted, sizeof *rewrite->uses, &size_bytes))
        return false;
    uint32_t *grown = realloc(rewrite->uses, size_bytes);
    if (grown == NULL)
        return false;
    memset(grown + rewrite->uses_capacity, 0,
           (wanted - rewrite->uses_capacity) * sizeof *rewrite->uses);
    rewrite->uses = grown;
    rewrite->uses_capacity = wanted;
    return true;
}

enum inf_code inf_rewrite_begin(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    rewrite->removed = calloc((size_t)graph->node_count + 1, sizeof *rewrite->removed);
    if (rewrite->removed == NULL || !grow_uses(rewrite))
        return no_memory(rewrite);
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] != INF_VALUE_NONE)
                rewrite->uses[graph->nodes[i].inputs[j]]++;
    for (uint32_t i = 0; i < graph->output_count; i++)
        rewrite->uses[graph->outputs[i].value]++;
    return INF_OK;
}

enum inf_code inf_rewrite_end(struct inf_rewrite *rewrite)
{
    uint32_t node_count = rewrite->graph->node_count;
    uint32_t *map = calloc((size_t)node_count + 1, sizeof *map);
    if (map == NULL)
        return no_memory(rewrite);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < node_count; i++)
        map[i] = rewrite->removed[i] ? INF_NODE_NONE : kept++;
    inf_graph_compact_nodes(rewrite->graph, map);
    (void)inf_graph_compact_subgraphs(rewrite->graph);
    free(map);
    return INF_OK;
}

void inf_rewrite_fini(struct inf_rewrite *rewrite)
{
    free(rewrite->uses);
    free(rewrite->removed);
    rewrite->uses = NULL;
    rewrite->uses_capacity = 0;
    rewrite->removed = NULL;
}

void inf_rewrite_drop_use(struct inf_rewrite *rewrite, uint32_t value)
{
    if (value != INF_VALUE_NONE && --rewrite->uses[value] == 0)
        inf_blob_unref(&rewrite->graph->values[value].data);
}

void inf_rewrite_remove(struct inf_rewrite *rewrite, uint32_t node)
{
    const struct inf_node *gone = &rewrite->graph->nodes[node];
    for (uint32_t i = 0; i < gone->input_count; i++)
        inf_rewrite_drop_use(rewrite, gone->inputs[i]);
    for (uint32_t i = 0; i < gone->output_count; i++)
        if (rewrite->graph->values[gone->outputs[i]].producer == node)
            rewrite->graph->values[gone->outputs[i]].producer = INF_NODE_NONE;
    rewrite->removed[node] = true;
    rewrite->changed = true;
}

void inf_rewrite_absorb(struct inf_rewrite *rewrite, uint32_t keep, uint32_t absorbed)
{
    struct inf_graph *graph = rewrite->graph;
    uint32_t output = graph->nodes[absorbed].outputs[0];
    graph->values[graph->nodes[keep].outputs[0]].producer = INF_NODE_NONE;
    inf_rewrite_remove(rewrite, absorbed);
    graph->nodes[keep].outputs[0] = output;
    graph->values[output].producer = keep;
}

enum inf_code inf_rewrite_set_input(struct inf_rewrite *rewrite, uint32_t node, uint32_t index,
                                    uint32_t value)
{
    struct inf_node *changed = &rewrite->graph->nodes[node];
    if (index >= changed->input_count) {
        uint32_t *longer =
            inf_arena_alloc(&rewrite->graph->arena, ((size_t)index + 1) * sizeof *longer);
        if (longer == NULL)
            return no_memory(rewrite);
        for (uint32_t i = 0; i <= index; i++)
            longer[i] = i < changed->input_count ? changed->inputs[i] : INF_VALUE_NONE;
        changed->inputs = longer;
        changed->input_count = index + 1;
    }
    // increment first: `value` may be the old input, whose last use would free its data
    rewrite->uses[value]++;
    inf_rewrite_drop_use(rewrite, changed->inputs[index]);
    changed->inputs[index] = value;
    rewrite->changed = true;
    return INF_OK;
}

enum inf_code inf_rewrite_add_const(struct inf_rewrite *rewrite, const char *name,
                                    enum inf_dtype dtype, const struct inf_shape *shape,
                                    struct inf_blob *data, uint32_t *out_value)
{
    INF_TRY(inf_graph_add_const(rewrite->graph, name, dtype, shape, data, out_value, rewrite->err));
    return grow_uses(rewrite) ? INF_OK : no_memory(rewrite);
}

bool inf_rewrite_read_scalar(const struct inf_graph *graph, uint32_t value, int32_t rank,
                             float *scalar)
{
    size_t count;
    if (!inf_graph_is_const(graph, value) || graph->values[value].dtype != INF_DTYPE_F32 ||
        graph->values[value].shape.rank > rank ||
        !inf_shape_count(&graph->values[value].shape, &count) || count != 1)
        return false;
    *scalar = *(const float *)graph->values[value].data->data;
    return !isnan(*scalar);
}

uint32_t inf_rewrite_sole_producer(const struct inf_rewrite *rewrite, uint32_t value)
{
    if (value == INF_VALUE_NONE || rewrite->uses[value] != 1)
        return INF_NODE_NONE;
    return rewrite->graph->values[value].producer;
}
