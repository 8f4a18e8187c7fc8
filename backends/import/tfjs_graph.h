// SPDX-License-Identifier: Apache-2.0
// The nodes of a TensorFlow.js graph model and how they hang together, before anything is known
// about operators: names looked up, inputs resolved, nodes put in an order.
#ifndef INF_BACKENDS_IMPORT_TFJS_GRAPH_H
#define INF_BACKENDS_IMPORT_TFJS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/import/json.h"

// A reference to an output: "name", "name:2" or "name:output:2".
struct inf_tfjs_ref {
    uint32_t node;
    uint32_t port;           // which output
    const char *output_name; // "" where the reference has none; the arena's
};

// One NodeDef.
struct inf_tfjs_node {
    const char *name;
    const char *op;
    struct inf_json json; // for attributes
    struct inf_tfjs_ref *inputs;
    uint32_t input_count; // without control inputs
    bool used;            // another node takes its data or waits for it
    bool reachable;       // an output of the model hangs on it
    // Filled while the graph is lowered: the graph's value of each output.
    uint32_t *values;
    uint32_t value_count;
};

// All of them. The JSON document, and the view it was made from, must outlive it.
struct inf_tfjs_graph {
    struct inf_arena arena; // reference lists and value lists
    struct inf_json list;   // the array of nodes
    struct inf_tfjs_node *nodes;
    uint32_t node_count;
    uint32_t *by_name; // node indices, sorted by name
};

// Reads `topology` (model.json's modelTopology). *out_graph is the caller's to destroy.
//
// INF_INVALID    wrong types, a name twice, an input that names no node.
// INF_EXHAUSTED  more than INF_LIMIT_GRAPH_NODES, or memory.
enum inf_code inf_tfjs_graph_create(struct inf_tfjs_graph **out_graph,
                                    const struct inf_json *topology,
                                    struct inf_error *err) INF_NODISCARD;

// Frees the graph. NULL is fine.
void inf_tfjs_graph_destroy(struct inf_tfjs_graph **graph);

// The index of the node named `name`; UINT32_MAX where there is none.
uint32_t inf_tfjs_graph_find(const struct inf_tfjs_graph *graph, const char *name);

// Resolves the text of a reference.
//
// INF_INVALID  no such node, or no number after the colon; `where` says who refers to it.
enum inf_code inf_tfjs_graph_resolve(struct inf_tfjs_graph *graph, const char *text,
                                     struct inf_tfjs_ref *out_ref, const char *where,
                                     struct inf_error *err) INF_NODISCARD;

// Marks the nodes that `roots` hang on, through data inputs, as reachable.
enum inf_code inf_tfjs_graph_reach(struct inf_tfjs_graph *graph, const struct inf_tfjs_ref *roots,
                                   uint32_t root_count, struct inf_error *err) INF_NODISCARD;

// *out_order = all reachable nodes (*out_count of them; the arena's), each after the ones it takes
// its inputs from.
//
// INF_INVALID  they form a cycle; the text names a node of it.
enum inf_code inf_tfjs_graph_order(struct inf_tfjs_graph *graph, uint32_t **out_order,
                                   uint32_t *out_count, struct inf_error *err) INF_NODISCARD;

#endif
