// SPDX-License-Identifier: Apache-2.0
// The sets of shapes that a model is compiled for before it is ready: those that its settings name,
// those that it served last, or else its own shapes with a guess for open dimensions.
#ifndef INF_DAEMON_LOAD_WARM_PLAN_H
#define INF_DAEMON_LOAD_WARM_PLAN_H

#include "backends/graph/graph.h"
#include "daemon/model/shapes.h"

struct inf_warm_plan {
    uint32_t count;           // number of sets; 0: not even the ranks are known
    uint32_t given;           // number of leading sets that the settings name; they must work
    uint32_t seen;            // number of further sets, which the model served last
    bool guessed;             // the only set contains a guess
    uint32_t input_count;     // inputs of the model
    struct inf_shape *shapes; // input_count shapes per set
};

// Plans the sets for a graph. `given` is a text of sets by input name (daemon/model/shapes.h);
// `seen` is a text of sets in the order of the inputs, of which those that do not fit are left out.
// Call inf_warm_plan_fini() also after a failure.
//
// INF_INVALID    a set of `given` does not fit the model; the text gives the reason.
// INF_EXHAUSTED  memory.
enum inf_code inf_warm_plan_make(struct inf_warm_plan *plan, const struct inf_graph *graph,
                                 const char *given, const char *seen,
                                 struct inf_error *err) INF_NODISCARD;

// Returns the shapes of set `index`, one per input.
const struct inf_shape *inf_warm_plan_set(const struct inf_warm_plan *plan, uint32_t index);

// Frees the plan.
void inf_warm_plan_fini(struct inf_warm_plan *plan);

#endif
