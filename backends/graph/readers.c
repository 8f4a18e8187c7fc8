// SPDX-License-Identifier: Apache-2.0
// Finds for each node the only node that reads its output.
#include "backends/graph/readers.h"

// Marks in `readers` a node whose output is read by several nodes, or is an output of the graph.
#define SEVERAL (INF_NODE_NONE - 1)

// Returns the element readers[n] of the node n whose first output is `value`; NULL if no node has
// `value` as its first output.
static uint32_t *place_of(const struct inf_graph *graph, uint32_t value, uint32_t *readers)
{
    uint32_t maker = value == INF_VALUE_NONE ? INF_NODE_NONE : graph->values[value].producer;
    return maker != INF_NODE_NONE && graph->nodes[maker].outputs[0] == value ? &readers[maker]
                                                                             : NULL;
}

void inf_graph_sole_readers(const struct inf_graph *graph, uint32_t *readers)
{
    for (uint32_t n = 0; n < graph->node_count; n++)
        readers[n] = INF_NODE_NONE;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
            uint32_t *place = place_of(graph, graph->nodes[n].inputs[i], readers);
            if (place != NULL)
                *place = *place == INF_NODE_NONE || *place == n ? n : SEVERAL;
        }
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t *place = place_of(graph, graph->outputs[i].value, readers);
        if (place != NULL)
            *place = SEVERAL;
    }
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (readers[n] == SEVERAL)
            readers[n] = INF_NODE_NONE;
}
