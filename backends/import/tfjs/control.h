// SPDX-License-Identifier: Apache-2.0
// The control flow of TensorFlow 1 found again: Enter, Merge, Switch, NextIteration and Exit are
// loops, Switch and Merge alone are branches. What is found is where values cross the borders of
// their inside, so that it can be made a subgraph.
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

// A loop.
struct inf_tfjs_frame {
    uint32_t condition; // its LoopCond node
    uint32_t *enters;   // all its Enter nodes
    uint32_t enter_count;
    uint32_t *merges, *nexts, *entrances; // by variable: Merge, NextIteration and Enter nodes
    uint32_t variable_count;
    uint32_t first_exit; // an Exit node
};

// A value from outside that a side of a branch uses.
struct inf_tfjs_capture {
    struct inf_tfjs_ref outer; // outside
    struct inf_tfjs_ref inner; // what stands for it inside; of a Switch, both outputs do
};

// What a Merge chooses between.
struct inf_tfjs_branch {
    struct inf_tfjs_ref predicate;
    struct inf_tfjs_ref sides[2]; // where the predicate is false, and true
    struct inf_tfjs_capture *captures;
    uint32_t capture_count;
};

// What a node means for control flow.
struct inf_tfjs_control {
    enum inf_tfjs_role role;
    uint32_t frame;     // of all roles of loops
    uint32_t variable;  // LOOP_MERGE: which; LOOP_EXIT: whose last value
    bool is_entrance;   // LOOP_ENTER: of a variable; others stay what they are in all iterations
    uint32_t next_exit; // LOOP_EXIT: another one of the loop, or UINT32_MAX
    struct inf_tfjs_branch *branch;          // BRANCH_MERGE
    const struct inf_tfjs_literals *context; // what must have been chosen for the node to run
};

// Finds the control flow of the reachable nodes into graph->control and graph->frames.
//
// INF_INVALID      loops without entrance, condition or exit, merges of what no Switch parts.
// INF_UNSUPPORTED  merges of more than two values.
enum inf_code inf_tfjs_control_find(struct inf_tfjs_graph *graph,
                                    struct inf_error *err) INF_NODISCARD;

// How many references must have values before `node` can be lowered, and which. For a node that
// ends a loop or a branch, these are what goes into all of it.
uint32_t inf_tfjs_dependency_count(const struct inf_tfjs_graph *graph, uint32_t node);
// As inf_tfjs_dependency_count() says.
struct inf_tfjs_ref inf_tfjs_dependency(const struct inf_tfjs_graph *graph, uint32_t node,
                                        uint32_t index);

#endif
