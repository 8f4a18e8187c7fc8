// SPDX-License-Identifier: Apache-2.0
// Helpers for the tests of the layout pass. A maker holds the graph that a test makes. All
// functions assert that they succeed.
#ifndef INF_TESTS_CONFORMANCE_LAYOUT_LAYOUT_MAKER_H
#define INF_TESTS_CONFORMANCE_LAYOUT_LAYOUT_MAKER_H

#include "backends/device/device.h"
#include "backends/graph/pass/pass.h"

#define MAKER_VALUES_MAX 11 // most values of a maker

// The passes that the tests switch off: all but the layout pass and the one that drops dead nodes.
#define MAKER_OTHER_PASSES (~(1u << INF_PASS_LAYOUT | 1u << INF_PASS_DROP_DEAD))

struct maker {
    struct inf_graph *graph;
    uint64_t state;
    uint32_t values[MAKER_VALUES_MAX]; // the values that later nodes may read
    uint32_t count;
};

// Returns a number below `bound` from the SplitMix64 generator.
uint32_t draw_below(struct maker *maker, uint32_t bound);

// Returns the shape of a value.
const struct inf_shape *shape_of(const struct maker *maker, uint32_t value);

// Adds a node with one output. The caller sets its attributes through last_attrs().
uint32_t add_node(struct maker *maker, enum inf_op op, const uint32_t *inputs, uint32_t count);

// Returns the attributes of the node that was added last.
union inf_attrs *last_attrs(struct maker *maker);

// Adds a constant of random numbers from -2 to 2.
uint32_t add_constant(struct maker *maker, const struct inf_shape *shape);

// Adds a constant list of `count` i32 numbers.
uint32_t add_list(struct maker *maker, const int32_t *elements, int32_t count);

// Runs the graph and returns both outputs in one blob, one after the other. The caller releases the
// blob.
struct inf_blob *join_outputs(struct inf_device *ref, const struct inf_graph *graph);

// Returns the number of transposes in the graph.
uint32_t count_transposes(const struct inf_graph *graph);

// Runs the pass, and asserts that a round before the last possible one changes nothing.
void run_pass_until_settled(struct inf_graph *graph);

#endif
