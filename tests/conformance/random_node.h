// SPDX-License-Identifier: Apache-2.0
// A part of random_graph.h: adds nodes to a random graph and computes each in every world.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_NODE_H
#define INF_TESTS_CONFORMANCE_RANDOM_NODE_H

#include "tests/conformance/random_value.h"

#define PLAN_SOURCES_MAX 40

// The source of an operand: a value of the graph, or a tensor that becomes an input or a constant.
struct source {
    uint32_t value; // INF_VALUE_NONE: see below
    struct inf_tensor tensor;
    bool constant;
};

// A node that is planned but not yet added.
struct plan {
    enum inf_op op;
    union inf_attrs attrs;
    struct source sources[PLAN_SOURCES_MAX];
    uint32_t source_count, output_count;
    struct random_graph *sides; // two: the subgraphs of a branch or loop; NULL: none
    struct random_nature nature;
};

// Returns a value of the graph as a source.
struct source source_value(uint32_t value);

// Returns a constant list of i32 as a source.
struct source source_list(const int32_t *elements, uint32_t count);

// Returns a constant or an input with a copy of the operand's elements. An absent operand stays
// absent.
struct source source_operand(const struct one_tensor *operand);

// Returns true if the source is an optional operand that is left out.
bool source_is_absent(const struct source *source);

// Adds the source to the graph, if it is no value yet, and returns the value.
uint32_t random_graph_settle(struct random_graph *random, struct source *source);

// Registers `value` as value `index` of the graph, which takes it over.
void random_graph_keep(struct random_graph *random, uint32_t index, struct random_value *value);

// Starts a node of one output with default attributes and no sources.
void plan_begin(struct plan *plan, enum inf_op op);

// Adds a source, which the plan takes over.
void plan_source(struct plan *plan, struct source source);

// Adds the node unless it is invalid or later nodes could not use its outputs. Frees the plan in
// both cases. Returns the node's first output; INF_VALUE_NONE if no node was added.
uint32_t plan_add(struct random_graph *random, struct plan *plan);

// Adds nodes that convert `value` to this type and shape. Returns INF_VALUE_NONE if no nodes can,
// or if it would take too many.
uint32_t random_graph_fit(struct random_graph *random, uint32_t value, enum inf_dtype dtype,
                          const struct inf_shape *shape);

#endif
