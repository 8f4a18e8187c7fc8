// SPDX-License-Identifier: Apache-2.0
// Behind random_graph.h: elements of float tensors, and the worlds that they are computed in.
#ifndef INF_TESTS_CONFORMANCE_RANDOM_VALUE_H
#define INF_TESTS_CONFORMANCE_RANDOM_VALUE_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/conformance/random_graph.h"

// A graph that cannot be made is a fault of this program, or of what it tests.
#define must(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "random graph: " __VA_ARGS__);                                         \
            fprintf(stderr, " (%s:%d)\n", __FILE__, __LINE__);                                     \
            abort();                                                                               \
        }                                                                                          \
    } while (0)
#define must_be_ok(code) must((code) == INF_OK, "a call failed: %s", #code)

// Values beyond it lead to infinities soon.
#define RANDOM_LARGEST_MAX 1e6

// An evaluator's context: runs kernels of ref and disturbs what they round.
struct world {
    struct random random;
    bool disturbed;
};

// The evaluator of a world, which must stay as long.
struct inf_evaluator world_evaluator(struct world *world);

// Element `i` of a tensor of floats.
double tensor_element(const struct inf_tensor *tensor, size_t i);

// Another reference to the same tensor.
void tensor_share(struct inf_tensor *tensor, const struct inf_tensor *of);

// Drops all references.
void random_value_free(struct random_value *value);

// Whether the value can be gone on with: not too large, and not so sensitive to rounding that it
// could not be judged. Fails the test where an exact value differs between worlds; `op` made it.
bool random_value_is_sound(enum inf_op op, const struct random_value *value);

#endif
