// SPDX-License-Identifier: Apache-2.0
// Keys and values that several heads share, and that a graph repeats for each of them. Private to
// history.h.
#ifndef INF_BACKENDS_GRAPH_HISTORY_HEADS_H
#define INF_BACKENDS_GRAPH_HISTORY_HEADS_H

#include "backends/graph/graph.h"

// A value [batch, heads, rows, size] that has each head of `source` [batch, heads / times, rows,
// size] several times.
struct inf_history_repeat {
    uint32_t source;
    int64_t times;
    bool swapped; // the last two axes of the value are swapped, but not those of `source`
};

// Returns true if `value` repeats heads. All shapes of the graph are known.
bool inf_history_find_repeat(const struct inf_graph *graph, uint32_t value,
                             struct inf_history_repeat *repeat);

#endif
