// SPDX-License-Identifier: Apache-2.0
// Verifies every invariant of a graph. Importers call it on finished graphs, and the pass manager
// calls it after every pass.
#ifndef INF_BACKENDS_GRAPH_SHAPE_VERIFY_H
#define INF_BACKENDS_GRAPH_SHAPE_VERIFY_H

#include "backends/graph/graph.h"

// Checks that indices are in range; that each value is computed once and before its use; that
// operand counts and attribute ranges agree with ops.def; that axes and permutations are within the
// rank; that constants have the size of their shape; that element types follow the operator's rule;
// that shapes are valid; that port names are unique. Run shape inference first.
//
// INF_INVALID  the first fault; the text names the node or value, the actual and the wanted state.
enum inf_code inf_graph_verify(const struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

// Verifies a part of a graph whose shapes were inferred in the whole graph. The recorded shape of a
// value may have more known dimensions than inference finds in the part: the node that makes a list
// of sizes, some of them constants, may be in another part.
enum inf_code inf_graph_verify_part(const struct inf_graph *graph,
                                    struct inf_error *err) INF_NODISCARD;

#endif
