// SPDX-License-Identifier: Apache-2.0
// Outputs that are an input with new rows behind it, or over rows of it. Private to history.h.
#ifndef INF_BACKENDS_GRAPH_HISTORY_APPEND_H
#define INF_BACKENDS_GRAPH_HISTORY_APPEND_H

#include "backends/graph/graph.h"

// How a value appends rows to an input of the graph.
struct inf_history_append {
    uint32_t input; // the input, by its value
    uint32_t rows;  // the value with the new rows
    // [batch]: the row at which the new rows begin; INF_VALUE_NONE: behind the input's rows
    uint32_t positions;
    int32_t axis;
    bool grows;      // the value may have more rows than the input
    bool overwrites; // the value may have as many rows as the input; there are positions
    bool ring;       // positions count modulo the rows of the input
    // The rows that stay are those for which `kept` is true, that is, keys < positions + count.
    // INF_VALUE_NONE: all stay.
    uint32_t kept, keys, count;
};

// Returns true if `value` is an input of the graph with new rows behind it, along an axis whose
// size is not known, or over rows of it, and fills *append. If append->kept is set, the caller must
// also call inf_history_append_keeps_rows().
bool inf_history_find_append(const struct inf_graph *graph, uint32_t value,
                             struct inf_history_append *append);

// Returns true if the batch is one sequence, and the rows that stay are all rows up to the last new
// one. `sample` is a copy of the graph in which shapes are known, and so are the elements of values
// that depend on shapes only.
bool inf_history_append_keeps_rows(const struct inf_graph *sample,
                                   const struct inf_history_append *append);

#endif
