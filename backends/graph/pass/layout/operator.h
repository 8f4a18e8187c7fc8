// SPDX-License-Identifier: Apache-2.0
// Moves the permutation of a view from the operands of an operator to its outputs.
#ifndef INF_BACKENDS_GRAPH_PASS_LAYOUT_OPERATOR_H
#define INF_BACKENDS_GRAPH_PASS_LAYOUT_OPERATOR_H

#include "backends/graph/pass/layout/writer.h"

// If the operands of `node` are views of one permutation and the operator allows it, appends a node
// that works on the sources of the views; the outputs of `node` become views. If the node needs its
// operands as they are, *out_done is false and nothing is changed.
enum inf_code inf_layout_rewrite_operator(struct inf_layout *layout, const struct inf_node *node,
                                          bool *out_done) INF_NODISCARD;

#endif
