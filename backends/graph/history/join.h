// SPDX-License-Identifier: Apache-2.0
// The graph of several decoding steps in one run (docs/explanation/joined-steps.md).
#ifndef INF_BACKENDS_GRAPH_HISTORY_JOIN_H
#define INF_BACKENDS_GRAPH_HISTORY_JOIN_H

#include "backends/graph/graph.h"

// The most steps of one run.
#define INF_HISTORY_SESSIONS_MAX 8u

// Makes the graph that computes the same as `graph` for `count` sessions (2 to
// INF_HISTORY_SESSIONS_MAX), and reads the weights once. Shapes of `graph`, which
// inf_history_build() made, must be known, and its passes run. The inputs and outputs of session s
// follow those of session s - 1, in the order of `graph`. Two sessions may have the same memory for
// all their inputs and outputs. The caller destroys *out_graph, which shares the constants.
//
// INF_UNSUPPORTED  no product with constant weights can have the rows of several sessions, or the
//                  graph has subgraphs.
// INF_EXHAUSTED    no memory.
enum inf_code inf_history_join(const struct inf_graph *graph, uint32_t count,
                               struct inf_graph **out_graph, struct inf_error *err) INF_NODISCARD;

#endif
