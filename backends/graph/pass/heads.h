// SPDX-License-Identifier: Apache-2.0
// Keys and values that several heads share, and that a graph repeats for each of them.
#ifndef INF_BACKENDS_GRAPH_PASS_HEADS_H
#define INF_BACKENDS_GRAPH_PASS_HEADS_H

#include "backends/graph/graph.h"

// How a value repeats heads: it is [batch, heads, rows, size] and has each head of `source`, which
// is [batch, heads / times, rows, size], `times` times in succession.
struct inf_heads_repeat {
    uint32_t source;
    int64_t times;
    bool swapped; // the last two axes of the value are swapped, but not those of `source`
};

// Finds out whether `value` repeats the heads of another value. Returns false, and leaves *repeat
// without meaning, if it does not. The shapes of all values of the graph must be known.
bool inf_heads_find_repeat(const struct inf_graph *graph, uint32_t value,
                           struct inf_heads_repeat *repeat);

#endif
