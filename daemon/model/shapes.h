// SPDX-License-Identifier: Apache-2.0
// Input shapes in the notation of configuration files and command lines:
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

// One set of input shapes. Inputs of the model that have no entry get the model's own shape.
struct inf_shape_set {
    uint32_t count;
    struct {
        // Name of the input: points into the parsed text, so it has no final NUL. NULL: the text
        // gives no name, because the model has only one input.
        const char *name;
        uint32_t name_length;
        struct inf_shape shape;
    } entries[INF_LIMIT_TENSORS];
};

// Parses the next set of "NAME=SHAPE" and advances *text. At the end of the text, `set` becomes
// empty.
//
// INF_INVALID  a word of the text cannot be parsed; the error text names it and what is allowed.
enum inf_code inf_shape_set_next(struct inf_shape_set *set, const char **text,
                                 struct inf_error *err) INF_NODISCARD;

// Fills the shapes of all inputs of a graph. Inputs that are not in the set get the model's own
// shape.
//
// INF_INVALID  (SHAPE_MISMATCH, TENSOR_UNKNOWN, TENSOR_MISSING) a shape does not fit, there is no
//              such input, or an input is missing from the set although the model leaves its shape
//              open.
enum inf_code inf_shape_set_bind(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes, struct inf_error *err) INF_NODISCARD;

// Like inf_shape_set_bind(), for entries without names, in the order of the inputs. Returns false
// if the shapes do not fit the model.
bool inf_shape_set_bind_in_order(const struct inf_shape_set *set, const struct inf_graph *graph,
                                 struct inf_shape *shapes);

// Returns true if a text consists of at most INF_SHAPE_SETS valid sets. Otherwise `wanted`
// describes what is allowed.
bool inf_shape_sets_check(const char *text, char *wanted, size_t size);

#endif
