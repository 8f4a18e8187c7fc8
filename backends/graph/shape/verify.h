// SPDX-License-Identifier: Apache-2.0
// Verifies every invariant of a graph. Runs on the graphs of importers and after every pass.
#ifndef INF_BACKENDS_GRAPH_SHAPE_VERIFY_H
#define INF_BACKENDS_GRAPH_SHAPE_VERIFY_H

#include "backends/graph/graph.h"

// Checks: indices in range; each value made once and before its use; operand counts and attribute
// ranges as in ops.def; axes and permutations within rank; constants of the size their shape says;
// element types by the operator's rule; shapes valid; port names unique. Run shape inference first.
//
// INF_INVALID  the first fault; the text names the node or value, the actual and the wanted state.
enum inf_code inf_graph_verify(const struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

#endif
