// SPDX-License-Identifier: Apache-2.0
// A graph in two parts: the nodes that can be planned, because their shapes do not depend on
// values, and the rest, which runs after them. Private to dynamic.h.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SPLIT_H
#define INF_BACKENDS_EXEC_DYNAMIC_SPLIT_H

#include "backends/graph/graph.h"

#define INF_SPLIT_NONE UINT32_MAX

// The source of an input of the rest. One member is set; the other one is INF_SPLIT_NONE.
struct inf_split_source {
    uint32_t input;   // an input of the whole graph
    uint32_t planned; // an output of the planned part
};

// Embedded. An all-zero object holds nothing.
struct inf_split {
    struct inf_graph *planned; // has all inputs of the graph
    struct inf_graph *rest;
    uint32_t *planned_nodes;               // by node of the planned part: index in the whole graph
    struct inf_split_source *rest_sources; // by input of the rest
    // By output of the graph: index of the output of the rest that computes it, or INF_SPLIT_NONE.
    uint32_t *rest_outputs;
    // By output of the graph: index of the output of the planned part that computes it, or
    // INF_SPLIT_NONE.
    uint32_t *planned_outputs;
    // By output of the planned part: index of the same output of the graph, or INF_SPLIT_NONE.
    uint32_t *graph_outputs;
    bool *is_boundary; // by output of the planned part: true if the rest reads it
};

// Splits `graph`. The shapes of its inputs must be bound. The parts do not refer to it.
//
// INF_EXHAUSTED  memory; the caller calls inf_split_fini() in this case too.
enum inf_code inf_split_init(struct inf_split *split, const struct inf_graph *graph,
                             struct inf_error *err) INF_NODISCARD;

// Frees the parts. Accepts incomplete and all-zero objects.
void inf_split_fini(struct inf_split *split);

#endif
