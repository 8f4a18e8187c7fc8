// SPDX-License-Identifier: Apache-2.0
#ifndef INF_BACKENDS_GRAPH_READERS_H
#define INF_BACKENDS_GRAPH_READERS_H

#include "backends/graph/graph.h"

// readers[n] = the one node that reads what node n of the graph makes, its first output, however often; INF_NODE_NONE
// where none or several do, or the graph gives it out. `readers` has room for all nodes. One pass over the graph.
void inf_graph_sole_readers(const struct inf_graph *graph, uint32_t *readers);

#endif
