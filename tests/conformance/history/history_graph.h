// SPDX-License-Identifier: Apache-2.0
// Parts of the graphs of test_history and test_join. All functions assert that they succeed.
#ifndef INF_TESTS_CONFORMANCE_HISTORY_HISTORY_GRAPH_H
#define INF_TESTS_CONFORMANCE_HISTORY_HISTORY_GRAPH_H

#include "backends/graph/build/operators.h"

// Creates a graph, and returns a builder that adds nodes to it. Errors are written to *err.
struct inf_builder begin_graph(struct inf_error *err);

// Adds an input of the graph, and returns its value.
uint32_t add_typed_input(struct inf_builder *b, const char *name, enum inf_dtype dtype,
                         struct inf_shape shape);

// Adds an input of f32.
uint32_t add_input(struct inf_builder *b, const char *name, struct inf_shape shape);

// Adds x * rows^T: the scores of attention.
uint32_t add_scores(struct inf_builder *b, uint32_t x, uint32_t rows);

// Ends the graph, whose outputs are "y" and "rows". The caller destroys it.
struct inf_graph *end_graph(struct inf_builder *b, uint32_t y, uint32_t rows);

#endif
