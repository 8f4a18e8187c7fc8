// SPDX-License-Identifier: Apache-2.0
// What operators do with operands of which only the first rows along one axis are used. Private to
// history.h.
#ifndef INF_BACKENDS_GRAPH_HISTORY_RULES_H
#define INF_BACKENDS_GRAPH_HISTORY_RULES_H

#include "backends/graph/history/sample.h"

// What is known about the values of a graph.
struct inf_history_facts {
    const struct inf_graph *graph;          // the sample for the greatest length
    const struct inf_history_value *values; // one for each value
    // zero[v]: the unused rows of value v are 0
    const bool *zero;
};

// What the unused rows of a node's operands mean for its results.
struct inf_history_rule {
    // True: -infinity must be added to the unused elements of operand 0, which are along its last
    // axis, because the node takes a maximum or a softmax over them.
    bool hides;
    bool zero; // the unused rows of the output are 0
};

// Decides whether a node computes the used rows of its results from the used rows of its operands
// only, so that unused rows may have any finite elements.
//
// INF_UNSUPPORTED  it does not, or there is no rule for it.
enum inf_code inf_history_check_node(const struct inf_history_facts *facts,
                                     const struct inf_node *node, struct inf_history_rule *rule,
                                     struct inf_error *err) INF_NODISCARD;

// Returns true if operand `index` of the operator is a list of sizes, which stays that of the
// buffers whatever the length of the history.
bool inf_history_is_size(enum inf_op op, uint32_t index);

#endif
