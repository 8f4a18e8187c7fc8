// SPDX-License-Identifier: Apache-2.0
// Lists for each node the nodes that read its output.
#ifndef INF_BACKENDS_GRAPH_READERS_H
#define INF_BACKENDS_GRAPH_READERS_H

#include "backends/graph/graph.h"

// The most readers of one output that are listed. If an output has more readers, only the fact that
// there are more is recorded.
#define INF_READERS_MAX 2

// The nodes that read the first output of one node.
struct inf_readers {
    // Number of nodes that read this output; INF_READERS_MAX + 1 if there are more than
    // INF_READERS_MAX of them, or if the graph itself has it as an output. A node that reads the
    // output twice counts once.
    uint32_t count;
    uint32_t nodes[INF_READERS_MAX]; // ascending; valid if count <= INF_READERS_MAX
};

// Fills readers[n] for each node n of the graph. `readers` must have room for all nodes. Takes one
// pass over the graph.
void inf_graph_list_readers(const struct inf_graph *graph, struct inf_readers *readers);

// Returns the only reader; INF_NODE_NONE if there is none or more than one.
static inline uint32_t inf_readers_sole(const struct inf_readers *readers)
{
    return readers->count == 1 ? readers->nodes[0] : INF_NODE_NONE;
}

#endif
