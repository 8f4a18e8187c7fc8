// SPDX-License-Identifier: Apache-2.0
// A part of random_graph.h: adds nodes to a random graph and computes each node in every world. A
// world disturbs rounded results in its own way, to imitate the rounding errors of devices.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_NODE_H
#define INF_TESTS_CONFORMANCE_RANDOM_NODE_H

#include "tests/conformance/random_value.h"

#define PLAN_SOURCES_MAX 40

// The source of an operand: a value of the graph, or a tensor that becomes an input or a constant.
struct source {
    uint32_t value; // INF_VALUE_NONE if the source is `tensor`
    struct inf_tensor tensor;
    bool constant;
};

// A node that is planned but not yet added.
struct plan {
    enum inf_op op;
    union inf_attrs attrs;
    struct source sources[PLAN_SOURCES_MAX];
    uint32_t source_count, output_count;
    // the two subgraphs of a branch or loop node; NULL for other operators
    struct random_graph *sides;
    struct random_nature nature;
};

// Returns a source (the origin of an operand) that refers to a value of the graph.
struct source source_value(uint32_t value);

// Returns a source (the origin of an operand) that is a constant list of i32.
struct source source_list(const int32_t *elements, uint32_t count);

// Returns a constant or input source with a copy of the operand's elements. Returns an absent
// source for an absent operand.
struct source source_operand(const struct one_tensor *operand);

// Returns true if the source is an omitted optional operand.
bool source_is_absent(const struct source *source);

// If the source is a tensor, adds the tensor to the graph as an input or constant. Returns the
// value of the graph that the source refers to.
uint32_t random_graph_settle(struct random_graph *random, struct source *source);

// Registers `value` as value `index` of the graph. The graph takes ownership of `value`.
void random_graph_keep(struct random_graph *random, uint32_t index, struct random_value *value);

// Starts the description of a node with one output, default attributes and no operands.
void plan_begin(struct plan *plan, enum inf_op op);

// Appends an operand, given by its source, to the planned node. The plan takes ownership of the
// source.
void plan_source(struct plan *plan, struct source source);

// Adds the node to the graph, unless the node is invalid or later nodes could not use its outputs.
// Always frees the plan. Returns the node's first output, or INF_VALUE_NONE if no node was added.
uint32_t plan_add(struct random_graph *random, struct plan *plan);

// Adds nodes that convert `value` to this type and shape. Returns INF_VALUE_NONE if the conversion
// is impossible or needs too many nodes.
uint32_t random_graph_fit(struct random_graph *random, uint32_t value, enum inf_dtype dtype,
                          const struct inf_shape *shape);

#endif
