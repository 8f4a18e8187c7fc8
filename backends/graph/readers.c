// SPDX-License-Identifier: Apache-2.0
// Lists for each node the nodes that read its output, up to a small number.
#include "backends/graph/readers.h"

// Returns the element readers[n] of the node n whose first output is `value`; NULL if no node has
// `value` as its first output.
static struct inf_readers *find_place(const struct inf_graph *graph, uint32_t value,
                                      struct inf_readers *readers)
{
    uint32_t maker = value == INF_VALUE_NONE ? INF_NODE_NONE : graph->values[value].producer;
    return maker != INF_NODE_NONE && graph->nodes[maker].outputs[0] == value ? &readers[maker]
                                                                             : NULL;
}

// Adds a reader, unless it was the last one that was added.
static void add_reader(struct inf_readers *readers, uint32_t node)
{
    if (readers->count > INF_READERS_MAX ||
        (readers->count > 0 && readers->nodes[readers->count - 1] == node))
        return;
    if (readers->count < INF_READERS_MAX)
        readers->nodes[readers->count] = node;
    readers->count++;
}

void inf_graph_list_readers(const struct inf_graph *graph, struct inf_readers *readers)
{
    for (uint32_t n = 0; n < graph->node_count; n++)
        readers[n] = (struct inf_readers){.count = 0};
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
            struct inf_readers *place = find_place(graph, graph->nodes[n].inputs[i], readers);
            if (place != NULL)
                add_reader(place, n);
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        struct inf_readers *place = find_place(graph, graph->outputs[i].value, readers);
        if (place != NULL)
            place->count = INF_READERS_MAX + 1;
    }
}
