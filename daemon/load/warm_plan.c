// SPDX-License-Identifier: Apache-2.0
// Collects the shape sets of a warm-up without duplicates. A shape set has one shape per input of
// the model; the sets are stored one after the other in one array.
#include "daemon/load/warm_plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct inf_shape *inf_warm_plan_set(const struct inf_warm_plan *plan, uint32_t index)
{
    assert(index < plan->count);
    return &plan->shapes[(size_t)index * plan->input_count];
}

// Returns the free element of the array in which the next shape set is built.
static struct inf_shape *find_next_set(const struct inf_warm_plan *plan)
{
    return &plan->shapes[(size_t)plan->count * plan->input_count];
}

// Adds the shape set that was written to find_next_set() to the plan, unless the plan already
// contains the same set.
static void keep_set(struct inf_warm_plan *plan)
{
    const struct inf_shape *added = find_next_set(plan);
    for (uint32_t s = 0; s < plan->count; s++) {
        bool same = true;
        for (uint32_t i = 0; i < plan->input_count; i++)
            same &= inf_shape_equal(&inf_warm_plan_set(plan, s)[i], &added[i]);
        if (same)
            return;
    }
    plan->count++;
}

static enum inf_code add_given_sets(struct inf_warm_plan *plan, const struct inf_graph *graph,
                                    const char *text, struct inf_error *err)
{
    struct inf_shape_set set;
    while (*text != '\0' && plan->count < INF_SHAPE_SETS) {
        INF_TRY(inf_shape_set_next(&set, &text, err));
        if (set.count == 0)
            continue;
        enum inf_code code = inf_shape_set_bind(&set, graph, find_next_set(plan), err);
        if (code != INF_OK)
            return inf_error_prefix(err, code, "shapes to warm up with");
        keep_set(plan);
    }
    plan->given = plan->count;
    return INF_OK;
}

static void add_served_sets(struct inf_warm_plan *plan, const struct inf_graph *graph,
                            const char *text)
{
    struct inf_shape_set set;
    while (*text != '\0' && plan->count < INF_SHAPE_SETS) {
        if (inf_shape_set_next(&set, &text, NULL) != INF_OK)
            return;
        if (inf_shape_set_bind_in_order(&set, graph, find_next_set(plan)))
            keep_set(plan);
    }
}

// Adds one shape set, in which every input has the shape that the model declares, with 1 for each
// open dimension.
static void add_own_shapes(struct inf_warm_plan *plan, const struct inf_graph *graph)
{
    struct inf_shape *shapes = find_next_set(plan);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        shapes[i] = graph->values[graph->inputs[i].value].shape;
        plan->guessed |= !inf_shape_known(&shapes[i]);
        if (shapes[i].rank == INF_RANK_UNKNOWN)
            return;
        for (int32_t d = 0; d < shapes[i].rank; d++)
            if (shapes[i].dims[d] == INF_DIM_UNKNOWN)
                shapes[i].dims[d] = 1;
    }
    plan->count++;
}

enum inf_code inf_warm_plan_make(struct inf_warm_plan *plan, const struct inf_graph *graph,
                                 const char *given, const char *seen, struct inf_error *err)
{
    *plan = (struct inf_warm_plan){.input_count = graph->input_count};
    size_t shapes = (size_t)INF_MAX(graph->input_count, 1u) * (INF_SHAPE_SETS + 1);
    plan->shapes = calloc(shapes, sizeof *plan->shapes);
    if (plan->shapes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to warm up");
    INF_TRY(add_given_sets(plan, graph, given, err));
    add_served_sets(plan, graph, seen);
    plan->seen = plan->count - plan->given;
    if (plan->count == 0)
        add_own_shapes(plan, graph);
    return INF_OK;
}

void inf_warm_plan_fini(struct inf_warm_plan *plan)
{
    free(plan->shapes);
    *plan = (struct inf_warm_plan){0};
}
