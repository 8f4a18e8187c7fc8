// SPDX-License-Identifier: Apache-2.0
// Folding while a graph is built: a node whose inputs are constants becomes constants itself. Later
// operators of the model file can then read shapes, axes and loop counts that the file computes.
#ifndef INF_BACKENDS_GRAPH_BUILD_FOLD_H
#define INF_BACKENDS_GRAPH_BUILD_FOLD_H

#include "backends/graph/pass/pass.h"

// What all builders of one import share.
struct inf_fold {
    const struct inf_evaluator *evaluator; // NULL: only shapes of values are folded
    size_t folded_bytes;                   // bytes of all constants made so far
};

// Folds the last node of the graph if it is cheap and small. Removes the node then; its outputs
// become constants.
void inf_fold_last_node(struct inf_fold *fold, struct inf_graph *graph);

#endif
