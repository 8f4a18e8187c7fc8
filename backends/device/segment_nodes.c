// SPDX-License-Identifier: Apache-2.0
// Queries about the nodes of a segment: membership, and the only reader of a value.
#include "backends/device/segment_nodes.h"

#include "backends/base/sorted.h"

#define INPUTS_MAX 4u // a node with more inputs is never part of a group of nodes

bool inf_segment_has(const struct inf_segment *segment, uint32_t node)
{
    return segment == NULL || inf_sorted_has(segment->nodes, segment->node_count, node);
}

// Returns true if exactly one of the first INPUTS_MAX inputs of the node is `value`. Further
// inputs are not searched: nodes of groups have none, and other nodes may have thousands.
static bool reads_once(const struct inf_node *node, uint32_t value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < node->input_count && i < INPUTS_MAX; i++)
        count += node->inputs[i] == value;
    return count == 1;
}

uint32_t inf_segment_sole_reader(const struct inf_graph *graph, uint32_t value,
                                 const struct inf_segment *segment)
{
    uint32_t reader = INF_NODE_NONE;
    uint32_t producer = graph->values[value].producer;
    if (segment != NULL && segment->readers != NULL && producer != INF_NODE_NONE &&
        graph->nodes[producer].outputs[0] == value) {
        reader = inf_readers_sole(&segment->readers[producer]);
        return reader != INF_NODE_NONE && reads_once(&graph->nodes[reader], value) ? reader
                                                                                   : INF_NODE_NONE;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        if (graph->outputs[i].value == value)
            return INF_NODE_NONE;
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct inf_node *node = &graph->nodes[n];
        for (uint32_t i = 0; i < node->input_count; i++) {
            if (node->inputs[i] != value)
                continue;
            if (reader != INF_NODE_NONE)
                return INF_NODE_NONE;
            reader = n;
        }
    }
    return reader;
}
