// SPDX-License-Identifier: Apache-2.0
// What a graph is for some lengths of its history: all shapes, and the elements of values that
// follow from shapes alone. The comparison of several lengths tells how each value depends on the
// length. Private to history.h.
#ifndef INF_BACKENDS_GRAPH_HISTORY_SAMPLE_H
#define INF_BACKENDS_GRAPH_HISTORY_SAMPLE_H

#include "backends/graph/history/history.h"

// Returns a copy of the graph in which all shapes follow from those of its inputs, and in which
// values that follow from shapes and constants have their elements (`data`), although a node
// computes them. The caller destroys it.
//
// INF_INVALID      the shapes of some inputs do not go together.
// INF_UNSUPPORTED  a size depends on elements of an input.
// INF_EXHAUSTED    no memory.
enum inf_code inf_history_sample(const struct inf_graph *graph,
                                 const struct inf_evaluator *evaluator,
                                 const struct inf_shape *shapes, struct inf_graph **out_sample,
                                 struct inf_error *err) INF_NODISCARD;

// How a value depends on the length of the history.
enum inf_history_kind {
    INF_HISTORY_CONSTANT, // its elements are the same for every length, or more of them come behind
    INF_HISTORY_LINEAR,   // integers: the elements grow in proportion to the length
    INF_HISTORY_COMPUTED, // its elements must be computed in each run
    INF_HISTORY_OTHER,    // its shape depends on the length in some other way than by one axis
};

struct inf_history_value {
    enum inf_history_kind kind;
    int32_t axis; // the axis that grows with the history; -1: none does
};

#define INF_HISTORY_SAMPLES 4

// Samples of one graph, the shortest history first. The last two lengths differ by 1.
struct inf_history_samples {
    struct inf_graph *graphs[INF_HISTORY_SAMPLES];
    int64_t lengths[INF_HISTORY_SAMPLES];
};

// Compares what value `value` is in the samples.
struct inf_history_value inf_history_compare(const struct inf_history_samples *samples,
                                             uint32_t value);

// Returns element `index` of an integer constant.
int64_t inf_history_element(const struct inf_value *value, size_t index);

#endif
