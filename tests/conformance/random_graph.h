// SPDX-License-Identifier: Apache-2.0
// Makes random valid graphs of all operators, with ref's result for every value, node by node. The
// same seed gives the same graph.
//
// Two devices never round alike, and a comparison or a floor can turn a rounding error into any
// error. So each value is known to be *exact* or not. It is exact if no node before it rounds: then
// every device computes the same bits. Operators that jump take exact values only. The error that
// an inexact value may have is measured: every value is computed in several *worlds*. The first
// world is ref's. In the others, each rounded result is disturbed by more than the error of any
// device.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_GRAPH_H
#define INF_TESTS_CONFORMANCE_RANDOM_GRAPH_H

#include "backends/exec/dynamic/interpret.h"
#include "tests/conformance/cases.h"

#define RANDOM_WORLDS 4

// One value of a random graph.
struct random_value {
    struct inf_tensor worlds[RANDOM_WORLDS]; // one reference each
    bool exact;
    bool constant, used;
};

struct random_graph {
    struct inf_graph *graph;     // shapes inferred, outputs named
    struct random_value *values; // by value of the graph
    uint32_t value_capacity;
    struct random random;
    bool closed; // true for a subgraph: operands that no node makes are constants, not inputs
    int depth;   // nesting of subgraphs
};

// How an operator changes errors.
struct random_nature {
    uint32_t open; // bit i: operand i may be any value of the right type and shape
    bool jumps;    // a small error may become a large one: its operands must be exact
    bool rounds;   // outputs of float type are rounded
    bool ordered;  // the result for NaN operands is not defined
};

// Returns the nature of a node with these attributes and these operand types.
struct random_nature random_nature(enum inf_op op, const union inf_attrs *attrs,
                                   enum inf_dtype first, uint32_t output_count);

// Makes a graph of about `nodes` nodes. Any error fails the test immediately. The caller frees the
// graph with random_graph_free().
void random_graph_make(struct random_graph *random, uint64_t seed, uint32_t nodes);

// Frees the graph and its values.
void random_graph_free(struct random_graph *random);

// Returns by how much two devices may differ in an element of this value; 0 if they must agree.
double random_tolerance(const struct random_value *value);

#endif
