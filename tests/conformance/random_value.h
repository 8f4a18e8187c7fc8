// SPDX-License-Identifier: Apache-2.0
// A part of random_graph.h: elements of float tensors, and the worlds in which values are computed.
// Each world disturbs rounded results in its own way, to imitate the rounding errors of devices.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_VALUE_H
#define INF_TESTS_CONFORMANCE_RANDOM_VALUE_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/conformance/random_graph.h"

// Fails the test unless the condition holds. A graph that cannot be made is a fault of this program
// or of the code under test.
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "random graph: " __VA_ARGS__);                                         \
            fprintf(stderr, " (%s:%d)\n", __FILE__, __LINE__);                                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#define must_be_ok(code) must((code) == INF_OK, "a call failed: %s", #code)

// The largest magnitude that later nodes may read, because larger values soon lead to infinities.
#define RANDOM_LARGEST_MAX 1e6

// The context of an evaluator for one world: it runs the kernels of `ref` and disturbs their
// rounded results.
struct world {
    struct random random;
    bool disturbed;
};

// Returns an evaluator that computes nodes in this world, that is with its disturbances of rounded
// results. The world must outlive the evaluator.
struct inf_evaluator world_evaluator(struct world *world);

// Returns element `i` of a tensor of floats.
double tensor_element(const struct inf_tensor *tensor, size_t i);

// Makes the first tensor refer to the data of the second tensor, and takes a reference to that
// data.
void tensor_share(struct inf_tensor *tensor, const struct inf_tensor *of);

// Drops the references to the value's tensors.
void random_value_free(struct random_value *value);

// Returns true if later nodes may use the value, that is its elements are neither too large nor so
// sensitive to rounding that devices could not be compared. Fails the test if an exact value
// differs between worlds. `op` is the operator that computed the value.
bool random_value_is_sound(enum inf_op op, const struct random_value *value);

#endif
