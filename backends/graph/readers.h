// SPDX-License-Identifier: Apache-2.0
#ifndef INF_BACKENDS_GRAPH_READERS_H
#define INF_BACKENDS_GRAPH_READERS_H

#include "backends/graph/graph.h"

// Sets readers[n] to the only node that reads the first output of node n. readers[n] is
// INF_NODE_NONE if no node or several nodes read that output, or if it is an output of the graph. A
// node that reads the output twice counts once. `readers` must have room for all nodes. Takes one
// pass over the graph.
void inf_graph_sole_readers(const struct inf_graph *graph, uint32_t *readers);

#endif
