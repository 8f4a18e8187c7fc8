// SPDX-License-Identifier: Apache-2.0
// Folding while a graph is built: the outputs of a node whose inputs are constants become
// constants. Later operators of the model file can then read shapes, axes and loop counts that the
// file computes.
#ifndef INF_BACKENDS_GRAPH_BUILD_FOLD_H
#define INF_BACKENDS_GRAPH_BUILD_FOLD_H

#include "backends/graph/pass/pass.h"

// State that all builders of one import share.
struct inf_fold {
    const struct inf_evaluator *evaluator; // NULL: only SHAPE nodes are folded
    size_t folded_bytes;                   // bytes of all constants made so far
};

// Folds the last node of the graph if it is cheap and small: its outputs become constants, and the
// node is removed.
void inf_fold_last_node(struct inf_fold *fold, struct inf_graph *graph);

#endif
