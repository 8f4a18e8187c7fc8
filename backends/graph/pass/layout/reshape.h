// SPDX-License-Identifier: Apache-2.0
// Reshapes of views: how a reshape of permuted axes becomes a reshape of the source.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_RESHAPE_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_RESHAPE_H

#include "backends/graph/pass/layout/writer.h"

// If `node` is a reshape of a view that can work on the source of the view without more copies than
// before, appends what computes it, records its output as a view, and sets *out_done to true.
// Otherwise *out_done is false and nothing is changed. `node` must be a node of the graph that is
// rewritten. May replace the constant operand of the matmul that reads the output.
enum inf_code inf_layout_rewrite_reshape(struct inf_layout *layout, const struct inf_node *node,
                                         bool *out_done) INF_NODISCARD;

#endif
