// SPDX-License-Identifier: Apache-2.0
// The graph of a single node, taken out of a larger one: what a program of it is compiled from.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_NODE_GRAPH_H
#define INF_BACKENDS_EXEC_DYNAMIC_NODE_GRAPH_H

#include "backends/graph/graph.h"

// Embedded; all zero is none.
struct inf_node_graph {
    struct inf_graph *graph;
    uint32_t *operands; // by input of the node: value of `graph`, or INF_VALUE_NONE
};

// Whether the node is a product of rows with a matrix, its operand 1: a matmul, or a convolution of
// single pixels, which is written as one.
bool inf_node_graph_is_product(const struct inf_graph *graph, const struct inf_node *node);

// Makes the graph of node `node` of `graph`, whose shapes are known; values that have data in
// `source`, the graph as it was before a run, are constants. The matrix of a product is one only
// where `packed` says that it is packed already: packed for this graph alone it would take as much
// memory again.
//
// INF_EXHAUSTED  no memory: what there is of it is the caller's to give back.
enum inf_code inf_node_graph_init(struct inf_node_graph *alone, const struct inf_graph *graph,
                                  const struct inf_graph *source, uint32_t node, bool packed,
                                  struct inf_error *err) INF_NODISCARD;

// Frees the graph; it is all zero then.
void inf_node_graph_fini(struct inf_node_graph *alone);

#endif
