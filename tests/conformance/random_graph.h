// SPDX-License-Identifier: Apache-2.0
// Random valid graphs of all operators, with what ref makes of every value, node by node. The same
// seed gives the same graph.
//
// Two devices never round alike, and a rounding error may grow to anything behind a comparison or a
// floor. So each value is known to be *exact* (every device has the same bits: nothing before it
// rounds) or not; operators that jump take exact values only; and how much an inexact value may
// differ is measured: every value is computed in several *worlds*, in all but the first of which what
// rounds is disturbed by more than a device may be off.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_GRAPH_H
#define INF_TESTS_CONFORMANCE_RANDOM_GRAPH_H

#include "backends/exec/dynamic/interpret.h"
#include "tests/conformance/cases.h"

#define RANDOM_WORLDS 4

// One value of a random graph.
struct random_value {
    struct inf_tensor worlds[RANDOM_WORLDS]; // a reference each
    bool exact;
    bool constant, used;
};

struct random_graph {
    struct inf_graph *graph;     // shapes inferred, outputs named
    struct random_value *values; // by value of the graph
    uint32_t value_capacity;
    struct random random;
    bool closed; // a subgraph: operands that no node gives are constants, not inputs
    int depth;   // of subgraphs
};

// What an operator does to errors.
struct random_nature {
    uint32_t open; // operands that may be any value of the right type and shape; bits
    bool jumps;    // a small error may become a large one: its operands must be exact
    bool rounds;   // outputs of float type are rounded
    bool ordered;  // what it makes of NaN nobody says
};

// The nature of a node with these attributes, whose operands are of these types.
struct random_nature random_nature(enum inf_op op, const union inf_attrs *attrs,
                                   enum inf_dtype first, uint32_t output_count);

// Makes a graph of about `nodes` nodes. Whatever goes wrong fails the test at once. The caller frees
// it with random_graph_free().
void random_graph_make(struct random_graph *random, uint64_t seed, uint32_t nodes);

// Frees the graph and its values.
void random_graph_free(struct random_graph *random);

// How far apart two devices may be in an element of this value; 0 where they may not differ at all.
double random_tolerance(const struct random_value *value);

#endif
