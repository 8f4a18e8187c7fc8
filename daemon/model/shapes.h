// SPDX-License-Identifier: Apache-2.0
// Shapes of a model's inputs as people write them:
//
//   1x3x224x224                          of a model's only input
//   ids=1x128 mask=1x128                 of each input; "scalar" is a shape, too
//   ids=1x128 mask=1x128; ids=8x128 ...  several sets
#ifndef INF_DAEMON_MODEL_SHAPES_H
#define INF_DAEMON_MODEL_SHAPES_H

#include <stdbool.h>

#include "backends/graph/graph.h"
#include "proto/core/limits.h"

// Sets of shapes in one text.
#define INF_SHAPE_SETS 8

// The shapes of one set, as far as it names them.
struct inf_shape_set {
    uint32_t count;
    struct {
        const char *name; // in the text; not ended. NULL: the only input
        uint32_t name_length;
        struct inf_shape shape;
    } entries[INF_LIMIT_TENSORS];
};

// Takes the next set off *text, which is "" at the end, where `set` is left empty.
//
// INF_INVALID  it cannot be read; the text says which part, and what was wanted.
enum inf_code inf_shape_set_next(struct inf_shape_set *set, const char **text,
                                 struct inf_error *err) INF_NODISCARD;

// Fills the shapes of all inputs of a graph. Those that the set does not name are the model's own.
//
// INF_INVALID  (SHAPE_MISMATCH, TENSOR_UNKNOWN, TENSOR_MISSING) a shape does not fit, there is no such
//              input, or one is left out whose shape the model leaves open.
enum inf_code inf_shape_set_bind(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes, struct inf_error *err) INF_NODISCARD;

// As inf_shape_set_bind(), where the shapes have no names: in the order of the inputs. False where
// they do not fit.
bool inf_shape_set_bind_in_order(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes);

// Whether a text is of sets that can be read, at most INF_SHAPE_SETS of them; says what was wanted
// otherwise.
bool inf_shape_sets_check(const char *text, char *wanted, size_t size);

#endif
