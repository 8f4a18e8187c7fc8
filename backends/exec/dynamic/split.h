// SPDX-License-Identifier: Apache-2.0
// Splits a graph into two parts. The nodes whose shapes do not depend on values are planned before
// a run. The other nodes are interpreted after them. Only the implementation of dynamic.h uses
// this.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SPLIT_H
#define INF_BACKENDS_EXEC_DYNAMIC_SPLIT_H

#include "backends/graph/graph.h"

#define INF_SPLIT_NONE UINT32_MAX

// Where an input of the interpreted part comes from. One member is set; the other one is
// INF_SPLIT_NONE.
struct inf_split_source {
    uint32_t input;   // an input of the whole graph
    uint32_t planned; // an output of the planned part
};

// The two parts of a graph. Embedded in its owner. A zeroed struct holds no graph.
struct inf_split {
    struct inf_graph *planned; // has all inputs of the graph
    struct inf_graph *rest;
    uint32_t *planned_nodes; // planned_nodes[n]: index in the whole graph of node n of `planned`
    struct inf_split_source *rest_sources; // one for each input of `rest`
    // rest_outputs[i]: the output of `rest` that computes output i of the graph, or INF_SPLIT_NONE
    uint32_t *rest_outputs;
    // planned_outputs[i]: the output of `planned` that computes output i of the graph, or
    // INF_SPLIT_NONE
    uint32_t *planned_outputs;
    // graph_outputs[i]: the output of the graph that output i of `planned` is, or INF_SPLIT_NONE
    uint32_t *graph_outputs;
    bool *is_boundary; // is_boundary[i]: `rest` reads output i of `planned`
};

// Splits `graph`. The shapes of its inputs must be bound. The two parts hold no pointer to `graph`.
//
// INF_EXHAUSTED  memory; the caller calls inf_split_fini() in this case too.
enum inf_code inf_split_init(struct inf_split *split, const struct inf_graph *graph,
                             struct inf_error *err) INF_NODISCARD;

// Frees the parts. Accepts incomplete and all-zero objects.
void inf_split_fini(struct inf_split *split);

#endif
