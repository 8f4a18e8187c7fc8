// SPDX-License-Identifier: Apache-2.0
// Input shapes in the notation that people write:
//
//   1x3x224x224                          of a model's only input
//   ids=1x128 mask=1x128                 of each input; "scalar" is a shape, too
//   ids=1x128 mask=1x128; ids=8x128 ...  several sets
#ifndef INF_DAEMON_MODEL_SHAPES_H
#define INF_DAEMON_MODEL_SHAPES_H

#include <stdbool.h>

#include "backends/graph/graph.h"
#include "proto/core/limits.h"

// The most sets of shapes in one text.
#define INF_SHAPE_SETS 8

// The shapes of one set; it may leave inputs out.
struct inf_shape_set {
    uint32_t count;
    struct {
        const char *name; // points into the text, without a NUL byte. NULL: the only input
        uint32_t name_length;
        struct inf_shape shape;
    } entries[INF_LIMIT_TENSORS];
};

// Parses the next set and advances *text, which is "" at the end; then `set` is empty.
//
// INF_INVALID  a part cannot be parsed; the text names it, and says what was wanted.
enum inf_code inf_shape_set_next(struct inf_shape_set *set, const char **text,
                                 struct inf_error *err) INF_NODISCARD;

// Fills the shapes of all inputs of a graph. Inputs that the set leaves out get the model's own
// shape.
//
// INF_INVALID  (SHAPE_MISMATCH, TENSOR_UNKNOWN, TENSOR_MISSING) a shape does not fit, there is no
//              such input, or one is left out whose shape the model leaves open.
enum inf_code inf_shape_set_bind(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes, struct inf_error *err) INF_NODISCARD;

// As inf_shape_set_bind(), for shapes without names, in the order of the inputs. Returns false if
// they do not fit.
bool inf_shape_set_bind_in_order(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes);

// Returns true if a text consists of at most INF_SHAPE_SETS valid sets; otherwise `wanted` says
// what is.
bool inf_shape_sets_check(const char *text, char *wanted, size_t size);

#endif
