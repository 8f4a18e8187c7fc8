// SPDX-License-Identifier: Apache-2.0
// Behind random_graph.h: adding nodes to a random graph, each computed in every world as it is added.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_NODE_H
#define INF_TESTS_CONFORMANCE_RANDOM_NODE_H

#include "tests/conformance/random_value.h"

#define PLAN_SOURCES_MAX 40

// What feeds an operand: a value of the graph, or a tensor that becomes an input or a constant.
struct source {
    uint32_t value; // INF_VALUE_NONE: see below
    struct inf_tensor tensor;
    bool constant;
};

// A node that is to be.
struct plan {
    enum inf_op op;
    union inf_attrs attrs;
    struct source sources[PLAN_SOURCES_MAX];
    uint32_t source_count, output_count;
    struct random_graph *sides; // two: the subgraphs of a branch or loop; NULL: none
    struct random_nature nature;
};

// A value of the graph as a source.
struct source source_value(uint32_t value);

// A constant list of i32.
struct source source_list(const int32_t *elements, uint32_t count);

// A constant or input with a copy of the operand's elements; an absent one stays absent.
struct source source_operand(const struct one_tensor *operand);

// Whether it is an optional operand that is left out.
bool source_is_absent(const struct source *source);

// Makes the source a value of the graph and returns it.
uint32_t random_graph_settle(struct random_graph *random, struct source *source);

// Makes `value` known as value `index` of the graph; takes it over.
void random_graph_keep(struct random_graph *random, uint32_t index, struct random_value *value);

// Starts a node of one output with default attributes and no sources.
void plan_begin(struct plan *plan, enum inf_op op);

// Adds a source, which the plan takes over.
void plan_source(struct plan *plan, struct source source);

// Adds the node, unless it is not valid or nothing to go on with, and ends the plan. Returns its first
// output; INF_VALUE_NONE where nothing is added.
uint32_t plan_add(struct random_graph *random, struct plan *plan);

// Adds nodes that make a value of this type and shape out of `value`; INF_VALUE_NONE where none do, or
// they would be too many for now.
uint32_t random_graph_fit(struct random_graph *random, uint32_t value, enum inf_dtype dtype,
                          const struct inf_shape *shape);

#endif
