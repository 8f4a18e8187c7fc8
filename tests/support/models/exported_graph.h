// SPDX-License-Identifier: Apache-2.0
// Random graphs like those that exporters write, for tests of passes.
#ifndef INF_TESTS_SUPPORT_MODELS_EXPORTED_GRAPH_H
#define INF_TESTS_SUPPORT_MODELS_EXPORTED_GRAPH_H

#include "backends/graph/graph.h"

#define EXPORTED_OUTPUTS_MAX 8 // most outputs of a graph

// A graph that is being made.
struct exported_graph {
    struct inf_graph *graph;
    uint64_t state;
    uint32_t x; // the value that the next node reads
    bool plain; // true: no function or normalisation is written as several nodes
};

// Returns a number below the bound from the SplitMix64 generator.
uint32_t exported_draw(struct exported_graph *maker, uint32_t bound);

// Append a convolution, or a pad of rank 4, with random attributes. They read the current value,
// and their result becomes the current value.
void exported_append_conv(struct exported_graph *maker);
void exported_append_pad(struct exported_graph *maker);

// Makes the current value an output of the graph.
void exported_add_output(struct exported_graph *maker);

// Returns a random graph with known shapes; equal seeds give equal graphs. If `plain` is true, the
// graph has no function or normalisation that is written as several nodes. The caller owns the
// graph.
struct inf_graph *exported_graph_make(uint64_t seed, bool plain);

#endif
