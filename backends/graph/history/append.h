// SPDX-License-Identifier: Apache-2.0
// Outputs that are an input with new rows behind it. Private to history.h.
#ifndef INF_BACKENDS_GRAPH_HISTORY_APPEND_H
#define INF_BACKENDS_GRAPH_HISTORY_APPEND_H

#include "backends/graph/graph.h"

// How a value appends rows to an input of the graph.
struct inf_history_append {
    uint32_t input; // the input, by its value
    uint32_t rows;  // the value with the new rows
    uint32_t
        positions; // i32 [batch]: where the rows begin; INF_VALUE_NONE: behind the input's rows
    int32_t axis;
    // Valid if there are positions: the rows that stay are those for which `kept` is true, that is,
    // keys < positions + count.
    uint32_t kept, keys, count;
};

// Finds out whether `value` is a value that no node computes, followed by new rows along an axis of
// unknown size. Returns false if it is something else. If there are positions, the caller asks
// inf_history_append_keeps_rows() too.
bool inf_history_find_append(const struct inf_graph *graph, uint32_t value,
                             struct inf_history_append *append);

// Returns true if the rows that stay are those up to the last new one, in one sequence. `sample` is
// the graph with known shapes, and with the elements that follow from them.
bool inf_history_append_keeps_rows(const struct inf_graph *sample,
                                   const struct inf_history_append *append);

#endif
