// SPDX-License-Identifier: Apache-2.0
// A graph in two parts: nodes that can be planned, because no shape depends on values, and the
// rest, which runs after it. Behind dynamic.h.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SPLIT_H
#define INF_BACKENDS_EXEC_DYNAMIC_SPLIT_H

#include "backends/graph/graph.h"

#define INF_SPLIT_NONE UINT32_MAX

// Where a tensor of the rest comes from: one of these is set, the other is INF_SPLIT_NONE.
struct inf_split_source {
    uint32_t input;   // of the whole graph
    uint32_t planned; // output of the planned part
};

// Embedded; all zero is none.
struct inf_split {
    struct inf_graph *planned; // takes all inputs of the graph
    struct inf_graph *rest;
    uint32_t *planned_nodes;               // by node of the planned part: index in the whole graph
    struct inf_split_source *rest_sources; // by input of the rest
    uint32_t *rest_outputs;    // by output of the graph: output of the rest, or INF_SPLIT_NONE
    uint32_t *planned_outputs; // by output of the graph: of the planned part, or INF_SPLIT_NONE
    uint32_t *graph_outputs;   // by output of the planned part: of the graph, or INF_SPLIT_NONE
    bool *is_boundary;         // by output of the planned part: the rest takes it
};

// Splits `graph`, whose inputs' shapes are bound and which the parts do not refer to.
//
// INF_EXHAUSTED  memory; inf_split_fini() frees what is there.
enum inf_code inf_split_init(struct inf_split *split, const struct inf_graph *graph,
                             struct inf_error *err) INF_NODISCARD;

// Frees what is there; half-made and all zero are fine.
void inf_split_fini(struct inf_split *split);

#endif
