// SPDX-License-Identifier: Apache-2.0
// Recovers the control flow of TensorFlow 1 from a graph of single nodes. Enter, Merge, Switch,
// NextIteration and Exit form loops; Switch and Merge alone form branches. For each loop and
// branch, the result has the values that cross its border, so that the inside can become a
// subgraph.
#ifndef INF_BACKENDS_IMPORT_TFJS_CONTROL_H
#define INF_BACKENDS_IMPORT_TFJS_CONTROL_H

#include "backends/import/tfjs/graph.h"

enum inf_tfjs_role {
    INF_TFJS_PLAIN,
    INF_TFJS_LOOP_ENTER,
    INF_TFJS_LOOP_MERGE, // a variable of a loop
    INF_TFJS_LOOP_SWITCH,
    INF_TFJS_LOOP_NEXT,
    INF_TFJS_LOOP_CONDITION,
    INF_TFJS_LOOP_EXIT,
    INF_TFJS_BRANCH_SWITCH,
    INF_TFJS_BRANCH_MERGE,
};

#define INF_TFJS_NO_FRAME UINT32_MAX

// A loop of TensorFlow 1, as indices of its nodes in the graph.
struct inf_tfjs_frame {
    uint32_t condition; // index of its LoopCond node
    uint32_t *enters;   // indices of all its Enter nodes
    uint32_t enter_count;
    // Indexed by loop variable: the indices of its Merge, NextIteration and Enter nodes.
    uint32_t *merges, *nexts, *entrances;
    uint32_t variable_count;
    uint32_t first_exit; // index of one of its Exit nodes, the head of the list next_exit
};

// A value that is computed outside a branch and used by one of its subgraphs (then or else).
struct inf_tfjs_capture {
    struct inf_tfjs_ref outer; // the reference to the value outside the branch
    // The reference by which the nodes of the branch name the value. If a Switch sends the value
    // into the branch, this is one of the two outputs of the Switch.
    struct inf_tfjs_ref inner;
};

// A branch that ends with a Merge: its predicate, and the value of each of its two alternatives.
struct inf_tfjs_branch {
    struct inf_tfjs_ref predicate;
    // The Merge's inputs: the value for a false and for a true predicate.
    struct inf_tfjs_ref sides[2];
    struct inf_tfjs_capture *captures;
    uint32_t capture_count;
};

// The role of a node in control flow, such as the variable of a loop or the end of a branch.
struct inf_tfjs_control {
    enum inf_tfjs_role role;
    uint32_t frame; // index of the loop; only for nodes of loops
    // LOOP_MERGE: index of the variable. LOOP_EXIT: index of the variable whose last value it
    // returns.
    uint32_t variable;
    // LOOP_ENTER: true for variables, false for values that stay the same in all iterations.
    bool is_entrance;
    uint32_t next_exit; // LOOP_EXIT: index of another Exit of the same loop, or UINT32_MAX
    struct inf_tfjs_branch *branch; // set for BRANCH_MERGE
    // Which alternatives of branches must have been taken for the node to run.
    const struct inf_tfjs_literals *context;
};

// Finds the control flow of the reachable nodes, and writes it to graph->control and graph->frames.
//
// INF_INVALID      a loop without entrance, condition or exit, or a Merge of values that no Switch
// separates.
// INF_UNSUPPORTED  a Merge of more than two values.
enum inf_code inf_tfjs_control_find(struct inf_tfjs_graph *graph,
                                    struct inf_error *err) INF_NODISCARD;

// Returns the number of references that must have values before `node` can be lowered. If `node`
// ends a loop or a branch, these are all values from outside.
uint32_t inf_tfjs_dependency_count(const struct inf_tfjs_graph *graph, uint32_t node);
// Returns reference `index` of those that must have values before `node` can be lowered.
struct inf_tfjs_ref inf_tfjs_dependency(const struct inf_tfjs_graph *graph, uint32_t node,
                                        uint32_t index);

#endif
