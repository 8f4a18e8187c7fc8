// SPDX-License-Identifier: Apache-2.0
// A stable text form of a graph, for tests, dumps and inferctl.
#ifndef INF_BACKENDS_GRAPH_PRINT_H
#define INF_BACKENDS_GRAPH_PRINT_H

#include <stdio.h>

#include "backends/graph/graph.h"

// Writes one line an input, a node, an output:
//   input  %0 "x" FP32 [1,4,4,3]
//   %5 = conv2d(%0, %1, %2) {stride_h=2, padding=same} FP32 [1,2,2,8] "conv"
//   output %5 "y"
// Subgraphs follow, each headed by "graph INDEX".
// Attributes at their default are left out; constants are named where used ("%1" with its shape in
// a `const` line), their data is not printed.
void inf_graph_print(const struct inf_graph *graph, FILE *file);

#endif
