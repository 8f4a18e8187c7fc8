// SPDX-License-Identifier: Apache-2.0
// The sets of shapes that a model is compiled for before it is ready: those its settings name,
// those it served last, or else its own with a guess for what it leaves open.
#ifndef INF_DAEMON_LOAD_WARM_PLAN_H
#define INF_DAEMON_LOAD_WARM_PLAN_H

#include "backends/graph/graph.h"
#include "daemon/model/shapes.h"

struct inf_warm_plan {
    uint32_t count;           // of sets; 0: not even the ranks are known
    uint32_t given;           // of them, the first, by settings: they have to fit
    uint32_t seen;            // of them, the rest, served last
    bool guessed;             // the only set has a guess in it
    uint32_t input_count;     // of the model
    struct inf_shape *shapes; // set by set
};

// Plans for a graph. `given` is a text of sets by name (daemon/model/shapes.h), `seen` one of sets
// by the model's order, of which those that do not fit are left out. inf_warm_plan_fini() ends it,
// also after a failure.
//
// INF_INVALID    a given set does not fit the model; the text says why.
// INF_EXHAUSTED  memory.
enum inf_code inf_warm_plan_make(struct inf_warm_plan *plan, const struct inf_graph *graph,
                                 const char *given, const char *seen,
                                 struct inf_error *err) INF_NODISCARD;

// The shapes of set `index`, one an input.
const struct inf_shape *inf_warm_plan_set(const struct inf_warm_plan *plan, uint32_t index);

// Frees the list.
void inf_warm_plan_fini(struct inf_warm_plan *plan);

#endif
