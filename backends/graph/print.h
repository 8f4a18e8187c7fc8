// SPDX-License-Identifier: Apache-2.0
// A stable text form of a graph, for tests, dumps and inferctl.
#ifndef INF_BACKENDS_GRAPH_PRINT_H
#define INF_BACKENDS_GRAPH_PRINT_H

#include <stdio.h>

#include "backends/graph/graph.h"

// Writes one line for each input, node and output:
//   input  %0 "x" FP32 [1,4,4,3]
//   %5 = conv2d(%0, %1, %2) {stride_h=2, padding=same} FP32 [1,2,2,8] "conv"
//   output %5 "y"
// Subgraphs follow, each after a line "graph INDEX". Attributes that have their default value are
// left out. A constant appears as its number ("%1"), with its shape in a `const` line; its data is
// not printed.
void inf_graph_print(const struct inf_graph *graph, FILE *file);

#endif
