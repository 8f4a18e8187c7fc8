// SPDX-License-Identifier: Apache-2.0
// The graph of a single node, extracted from a larger graph. A device compiles a program from it.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_NODE_GRAPH_H
#define INF_BACKENDS_EXEC_DYNAMIC_NODE_GRAPH_H

#include "backends/graph/graph.h"

// A graph with one node. Embedded in its owner. A zeroed struct holds no graph.
struct inf_node_graph {
    struct inf_graph *graph;
    // operands[i]: value of the larger graph that is input i of the node, or INF_VALUE_NONE
    uint32_t *operands;
};

// Returns true if the node multiplies rows with a matrix, its operand 1. The node is a matmul, or a
// convolution of single pixels, which is converted to a matmul.
bool inf_node_graph_is_product(const struct inf_graph *graph, const struct inf_node *node);

// Creates a graph with only node `node` of `graph`, whose shapes must be known. `source` is the
// graph before the run; its values that have data become constants. The matrix of a product becomes
// a constant only if `packed` is set, that is, if it is already packed. Otherwise packing it for
// this graph alone would need as much memory again.
//
// INF_EXHAUSTED  no memory; the caller must still call inf_node_graph_fini().
enum inf_code inf_node_graph_init(struct inf_node_graph *alone, const struct inf_graph *graph,
                                  const struct inf_graph *source, uint32_t node, bool packed,
                                  struct inf_error *err) INF_NODISCARD;

// Frees the graph and zeroes the struct.
void inf_node_graph_fini(struct inf_node_graph *alone);

#endif
