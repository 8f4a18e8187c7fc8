// SPDX-License-Identifier: Apache-2.0
// The nodes of a TensorFlow.js graph model and how they hang together, before anything is known
// about operators: names looked up, inputs resolved, nodes put in an order.
#ifndef INF_BACKENDS_IMPORT_TFJS_GRAPH_H
#define INF_BACKENDS_IMPORT_TFJS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/import/common/json.h"

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
    uint32_t *controls;   // nodes it waits for
    uint32_t control_count;
    bool used;      // another node takes its data or waits for it
    bool reachable; // an output of the model hangs on it
    // Filled while the graph is lowered: the value of each output in the graph that is being made
    // in the region of that number.
    uint32_t region;
    uint32_t *values;
    uint32_t value_count;
    const struct inf_tfjs_table *table; // that the node stands for; NULL for most
    bool is_complex;                    // its output is a pair of floats, along a last axis of 2
    // Of a walk through the nodes.
    uint32_t walk; // the last one that came by
    uint32_t next; // the input to look at next; UINT32_MAX when done
};

struct inf_tfjs_control;
struct inf_tfjs_table;
struct inf_tfjs_frame;

// The operator of nodes that stand for the arguments of a function.
#define INF_TFJS_ARGUMENT "_Arg"

// All of them. The JSON document, and the view it was made from, must outlive it.
struct inf_tfjs_graph {
    struct inf_arena arena; // reference lists and value lists
    struct inf_json list;   // the array of nodes
    struct inf_tfjs_node *nodes;
    uint32_t node_count;
    uint32_t *by_name;                    // node indices, sorted by name
    struct inf_json signature, arguments; // of a function
    uint32_t argument_count;              // of a function: they are the last nodes
    struct inf_tfjs_control *control;     // by node, once inf_tfjs_control_find() made it
    struct inf_tfjs_frame *frames;
    uint32_t frame_count;
    uint32_t walk_count;
};

// Reads `topology` (model.json's modelTopology). *out_graph is the caller's to destroy.
//
// INF_INVALID    wrong types, a name twice, an input that names no node.
// INF_EXHAUSTED  more than INF_LIMIT_GRAPH_NODES, or memory.
enum inf_code inf_tfjs_graph_create(struct inf_tfjs_graph **out_graph,
                                    const struct inf_json *topology,
                                    struct inf_error *err) INF_NODISCARD;

// As inf_tfjs_graph_create(), from an entry of the function library: its nodes, and one of the
// operator INF_TFJS_ARGUMENT for each argument, in order, after them.
enum inf_code inf_tfjs_graph_create_function(struct inf_tfjs_graph **out_graph,
                                             const struct inf_json *function,
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

#endif
