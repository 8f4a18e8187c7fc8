// SPDX-License-Identifier: Apache-2.0
// Makes random valid graphs of all operators, and computes each value with the reference device
// `ref`, node by node. The same seed gives the same graph.
//
// Different devices round differently, and a comparison or a floor can turn a rounding error into
// an arbitrarily large error. So each value is marked as *exact* or not. A value is exact if no
// node before it rounds, because then every device computes the same bits. Operators whose result
// may jump take exact values only. The error that an inexact value may have is measured: every
// value is computed in several *worlds*. The first world has the results of `ref`. In the other
// worlds, each rounded result is disturbed by more than the error of any device.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_GRAPH_H
#define INF_TESTS_CONFORMANCE_RANDOM_GRAPH_H

#include "backends/exec/dynamic/interpret.h"
#include "tests/conformance/cases.h"

#define RANDOM_WORLDS 4

// One value of a random graph, with its elements as computed in several worlds (a world disturbs
// each rounded result in its own way).
struct random_value {
    // tensor i has the elements in world i; this struct owns one reference to each tensor
    struct inf_tensor worlds[RANDOM_WORLDS];
    bool exact;
    bool constant, used;
};

struct random_graph {
    struct inf_graph *graph;     // shapes are inferred and outputs are named
    struct random_value *values; // values[v] describes value v of `graph`
    uint32_t value_capacity;
    struct random random;
    bool closed; // true for a subgraph, in which operands without a producer are constants
    int depth;   // nesting depth of subgraphs
};

// Describes how an operator changes rounding errors.
struct random_nature {
    uint32_t open; // bit i is set if any value of the right type and shape may be operand i
    bool jumps;    // a small input error may become a large one, so operands must be exact
    bool rounds;   // outputs of float type are rounded
    bool ordered;  // the result for NaN operands is undefined
};

// Returns how a node with these attributes and operand types changes the rounding errors of its
// operands.
struct random_nature random_nature(enum inf_op op, const union inf_attrs *attrs,
                                   enum inf_dtype first, uint32_t output_count);

// Makes a graph of about `nodes` nodes. Fails the test immediately on any error. The caller frees
// the graph with random_graph_free().
void random_graph_make(struct random_graph *random, uint64_t seed, uint32_t nodes);

// Frees the graph and its values.
void random_graph_free(struct random_graph *random);

// Returns by how much two devices may differ in an element of this value. Returns 0 if they must
// agree exactly.
double random_tolerance(const struct random_value *value);

#endif
