// SPDX-License-Identifier: Apache-2.0
// The nodes of a TensorFlow.js graph model and their connections. Names are looked up and inputs
// are resolved here; operators are looked up later.
#ifndef INF_BACKENDS_IMPORT_TFJS_GRAPH_H
#define INF_BACKENDS_IMPORT_TFJS_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/import/common/json.h"

// A reference to an output of a node, which is written "name", "name:2" or "name:output:2".
struct inf_tfjs_ref {
    uint32_t node;
    uint32_t port;           // index of the output
    const char *output_name; // name of the output, in the arena; "" if the reference has none
};

// One node of a TensorFlow.js graph (a NodeDef).
struct inf_tfjs_node {
    const char *name;
    const char *op;
    struct inf_json json; // the NodeDef, for reading attributes
    struct inf_tfjs_ref *inputs;
    uint32_t input_count; // number of inputs, control inputs not counted
    uint32_t *controls;   // control inputs: nodes that must run before it
    uint32_t control_count;
    bool used;      // true: another node uses its output or waits for it
    bool reachable; // true: an output of the model depends on it
    // The graph values of the node's outputs, set while the node is lowered. They are valid only in
    // the region (the model's graph or a subgraph that is being built) with this number.
    uint32_t region;
    uint32_t *values;
    uint32_t value_count;
    const struct inf_tfjs_table *table; // hash table to which the node refers; NULL for most nodes
    bool is_complex;                    // true: the node's output is complex, so it has two values
    // State of searches that visit the nodes along their inputs.
    uint32_t walk; // number of the last search that reached the node
    uint32_t next; // index of the next input to visit; UINT32_MAX when all are visited
};

struct inf_tfjs_control;
struct inf_tfjs_table;
struct inf_tfjs_frame;

// The operator of nodes that are the arguments of a function.
#define INF_TFJS_ARGUMENT "_Arg"

// The graph of a model or of a function. The JSON document, and the struct inf_json from which it
// was read, must outlive it.
struct inf_tfjs_graph {
    struct inf_arena arena; // memory of the input lists, and of the values of nodes
    struct inf_json list;   // array of the nodes in the document
    struct inf_tfjs_node *nodes;
    uint32_t node_count;
    uint32_t *by_name; // node indices, sorted by name
    // Members of a function's definition; unused for the model's graph.
    struct inf_json signature, arguments;
    uint32_t argument_count; // for a function: number of arguments, which are the last nodes
    struct inf_tfjs_control *control; // indexed by node; set by inf_tfjs_control_find()
    struct inf_tfjs_frame *frames;
    uint32_t frame_count;
    uint32_t walk_count;
};

// Reads `topology` (model.json's modelTopology). The caller destroys *out_graph.
//
// INF_INVALID    wrong types, a duplicate name, or an input that names no node.
// INF_EXHAUSTED  more than INF_LIMIT_GRAPH_NODES, or memory.
enum inf_code inf_tfjs_graph_create(struct inf_tfjs_graph **out_graph,
                                    const struct inf_json *topology,
                                    struct inf_error *err) INF_NODISCARD;

// Reads a function of the model's function library as a graph. The graph has the nodes of the
// function, followed by one node INF_TFJS_ARGUMENT for each argument. Errors are those of
// inf_tfjs_graph_create().
enum inf_code inf_tfjs_graph_create_function(struct inf_tfjs_graph **out_graph,
                                             const struct inf_json *function,
                                             struct inf_error *err) INF_NODISCARD;

// Frees the graph. NULL is allowed.
void inf_tfjs_graph_destroy(struct inf_tfjs_graph **graph);

// Returns the index of the node named `name`; UINT32_MAX if there is none.
uint32_t inf_tfjs_graph_find(const struct inf_tfjs_graph *graph, const char *name);

// Resolves the string of a reference.
//
// INF_INVALID  no such node, or the part after the colon is not a number; `where` names the object
// that has the reference.
enum inf_code inf_tfjs_graph_resolve(struct inf_tfjs_graph *graph, const char *text,
                                     struct inf_tfjs_ref *out_ref, const char *where,
                                     struct inf_error *err) INF_NODISCARD;

// Marks all nodes on which `roots` depend through data inputs as reachable.
enum inf_code inf_tfjs_graph_reach(struct inf_tfjs_graph *graph, const struct inf_tfjs_ref *roots,
                                   uint32_t root_count, struct inf_error *err) INF_NODISCARD;

#endif
