// SPDX-License-Identifier: Apache-2.0
// The sets of shapes that a model is compiled for before it is ready. These are the sets that its
// settings name and the sets that it served last; if there are none, the model's own shapes with a
// guess for open dimensions.
#ifndef INF_DAEMON_LOAD_WARM_PLAN_H
#define INF_DAEMON_LOAD_WARM_PLAN_H

#include "backends/graph/graph.h"
#include "daemon/model/shapes.h"

struct inf_warm_plan {
    uint32_t count;       // number of sets; 0: not even the ranks of the inputs are known
    uint32_t given;       // number of leading sets, which the settings name; each of them must work
    uint32_t seen;        // number of sets behind them, which the model served last
    bool guessed;         // the plan has one set, and it contains a guess
    uint32_t input_count; // inputs of the model
    struct inf_shape *shapes; // input_count shapes per set
};

// Plans the sets for a graph. `given` is a text of sets by input name (daemon/model/shapes.h).
// `seen` is a text of sets in the order of the inputs; sets in `seen` that do not fit are left out.
// Call inf_warm_plan_fini() even after a failure.
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
