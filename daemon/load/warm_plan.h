// SPDX-License-Identifier: Apache-2.0
// The sets of shapes that a model is compiled for before it is ready. These are the sets that its
// settings name and the sets that it served last; if there are none, the model's own shapes with a
// guess for open dimensions.
#ifndef INF_DAEMON_LOAD_WARM_PLAN_H
#define INF_DAEMON_LOAD_WARM_PLAN_H

#include "backends/graph/graph.h"
#include "daemon/model/shapes.h"

struct inf_warm_plan {
    // Number of shape sets; 0: no set is known, because the model does not even give the ranks of
    // its inputs.
    uint32_t count;
    uint32_t given; // number of sets from the settings, which come first; each of them must work
    // Number of sets from earlier requests, which come next; a set that fails is dropped.
    uint32_t seen;
    bool guessed;             // true: there is only one set, and it guesses 1 for open dimensions
    uint32_t input_count;     // inputs of the model
    struct inf_shape *shapes; // all sets one after the other, with input_count shapes each
};

// Plans the shape sets for a graph. `given` is the text from the settings, with sets of
// "NAME=SHAPE" (daemon/model/shapes.h). `seen` is a text with the sets of earlier requests, in the
// order of the inputs; sets in `seen` that do not fit are left out. Call inf_warm_plan_fini() even
// after a failure.
//
// INF_INVALID    a set of `given` does not fit the model; the text gives the reason.
// INF_EXHAUSTED  memory.
enum inf_code inf_warm_plan_make(struct inf_warm_plan *plan, const struct inf_graph *graph,
                                 const char *given, const char *seen,
                                 struct inf_error *err) INF_NODISCARD;

// Returns the shapes of set `index`, one per input.
const struct inf_shape *inf_warm_plan_set(const struct inf_warm_plan *plan, uint32_t index);

// Frees the shape sets of the plan.
void inf_warm_plan_fini(struct inf_warm_plan *plan);

#endif
