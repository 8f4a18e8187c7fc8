// SPDX-License-Identifier: Apache-2.0
// The graph IR: what is to be computed, whatever the format it came from or the device it will run
// on. Values are single-assignment and named by index; nodes stand in an order in which every value
// is made before it is used. One thread at a time may change a graph; an unchanged one may be read
// by many.
#ifndef INF_BACKENDS_GRAPH_GRAPH_H
#define INF_BACKENDS_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/base/blob.h"
#include "backends/graph/op.h"
#include "backends/graph/texts.h"
#include "proto/core/status.h"

// "No value": an optional input that is absent.
#define INF_VALUE_NONE UINT32_MAX
// "No node": the producer of an input or a constant.
#define INF_NODE_NONE UINT32_MAX

// One tensor of the graph.
struct inf_value {
    const char *name; // for messages; the graph's; never NULL, may be ""
    enum inf_dtype dtype;
    struct inf_shape shape;
    uint32_t producer; // index of the node that makes it; INF_NODE_NONE for inputs and constants
    struct inf_blob *data; // constants: row-major elements, one reference is the value's; else NULL
};

// One operation.
struct inf_node {
    enum inf_op op;
    const char *name;   // as in the model's file; the graph's; never NULL
    const char *source; // the operator's name in the model's file, "" for nodes of our own making
    uint32_t input_count;
    uint32_t *inputs; // value indices; INF_VALUE_NONE for absent optional ones; the graph's
    uint32_t output_count;
    uint32_t *outputs; // value indices; the graph's
    union inf_attrs attrs;
};

// A named end of the graph: what clients feed or fetch.
struct inf_port {
    const char *name; // the graph's
    uint32_t value;
};

// All arrays are the graph's and may move whenever something is added: keep indices, not pointers.
struct inf_graph {
    struct inf_texts *texts; // names, and those of the graph that this one is a copy of
    struct inf_arena arena;  // index lists
    struct inf_value *values;
    uint32_t value_count, value_capacity;
    struct inf_node *nodes;
    uint32_t node_count, node_capacity;
    struct inf_port *inputs; // in the order of the model's signature
    uint32_t input_count, input_capacity;
    struct inf_port *outputs;
    uint32_t output_count, output_capacity;
    // What branch and loop nodes run, each named by one attribute of one node. Nothing but their
    // inputs comes in: they know no value of this graph.
    struct inf_graph **subgraphs;
    uint32_t subgraph_count, subgraph_capacity;
};

// Makes an empty graph. *out_graph is the caller's to destroy.
enum inf_code inf_graph_create(struct inf_graph **out_graph, struct inf_error *err) INF_NODISCARD;

// Frees the graph and drops its references to constant data. NULL is fine.
void inf_graph_destroy(struct inf_graph **graph);

// Copies a graph; names and the data of constants are shared, not copied.
enum inf_code inf_graph_clone(struct inf_graph **out_graph, const struct inf_graph *graph,
                              struct inf_error *err) INF_NODISCARD;

// Adds a value that no node makes yet: an input's, or one a node will be given as output.
//
// INF_EXHAUSTED  no memory, or more than INF_LIMIT_GRAPH_VALUES.
enum inf_code inf_graph_add_value(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                  const struct inf_shape *shape, uint32_t *out_value,
                                  struct inf_error *err) INF_NODISCARD;

// Adds a constant. `data` holds the elements; its size must be that of shape and dtype. Takes over
// the caller's reference, also on failure.
enum inf_code inf_graph_add_const(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                  const struct inf_shape *shape, struct inf_blob *data,
                                  uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a constant list of i32: shape [count]. For shapes, axes, sizes made by importers and passes.
enum inf_code inf_graph_add_const_i32(struct inf_graph *graph, const char *name,
                                      const int32_t *elements, uint32_t count, uint32_t *out_value,
                                      struct inf_error *err) INF_NODISCARD;

// Appends a node with default attributes (set them through graph->nodes[*out_node].attrs) and
// `output_count` new values of unknown type and shape as its outputs, named "NAME" or "NAME:i".
// Inputs must exist already. `name` and `source` are copied.
//
// INF_INVALID    an input index is out of range, or the operator does not take that many.
// INF_EXHAUSTED  no memory, or more than INF_LIMIT_GRAPH_NODES.
enum inf_code inf_graph_add_node(struct inf_graph *graph, enum inf_op op, const char *name,
                                 const char *source, const uint32_t *inputs, uint32_t input_count,
                                 uint32_t output_count, uint32_t *out_node,
                                 struct inf_error *err) INF_NODISCARD;

// Names `value` as an input (output) of the whole graph.
//
// INF_EXISTS  there is an input (output) of that name already.
enum inf_code inf_graph_add_input(struct inf_graph *graph, const char *name, uint32_t value,
                                  struct inf_error *err) INF_NODISCARD;
// As inf_graph_add_input(), for outputs.
enum inf_code inf_graph_add_output(struct inf_graph *graph, const char *name, uint32_t value,
                                   struct inf_error *err) INF_NODISCARD;

// Makes *subgraph one of the graph's, at *out_index. Takes it over, also on failure.
//
// INF_EXHAUSTED  no memory, or more than INF_LIMIT_SUBGRAPHS.
enum inf_code inf_graph_add_subgraph(struct inf_graph *graph, struct inf_graph **subgraph,
                                     uint32_t *out_index, struct inf_error *err) INF_NODISCARD;

// The attributes of a branch or loop node that name subgraphs, two of them (then and else, or
// condition and body); false for other nodes.
bool inf_node_subgraphs(struct inf_node *node, int32_t *indices[2]) INF_NODISCARD;

// Frees the subgraphs that no node uses and renumbers the others. Returns whether there were any.
bool inf_graph_compact_subgraphs(struct inf_graph *graph);

// Whether `value` is a constant whose data is at hand.
bool inf_graph_is_const(const struct inf_graph *graph, uint32_t value);

// The elements of an i32 or i64 constant of at most `capacity` elements as int64, count in
// *out_count. False where `value` is no such constant.
bool inf_graph_const_ints(const struct inf_graph *graph, uint32_t value, int64_t *elements,
                          uint32_t capacity, uint32_t *out_count) INF_NODISCARD;

// Replaces every use of value `from`, in nodes and in the graph's outputs, by `to`.
void inf_graph_replace_uses(struct inf_graph *graph, uint32_t from, uint32_t to);

// Drops values that no node and no port uses, which changes the indices of the others, and memory
// that was kept for growth. For a graph that is finished; its subgraphs too.
void inf_graph_trim(struct inf_graph *graph);

// Makes nodes[i] have the index map[i], dropping nodes whose map is INF_NODE_NONE, and keeps
// producers right. `map` must keep the order of the nodes that stay.
void inf_graph_compact_nodes(struct inf_graph *graph, const uint32_t *map);

// Multiply-adds of a convolution, matrix product or recurrent network, from shapes; 0 for other
// operators, and where shapes are not known.
uint64_t inf_node_macs(const struct inf_graph *graph, const struct inf_node *node);

// A number for a node that goes by its name, which it keeps through passes; nodes of one name have
// one.
uint64_t inf_node_hash(const struct inf_node *node);

// About how many elements a plain kernel looks at to compute a node, from shapes and attributes;
// what is not known counts nothing. For telling work that is too much from work that is not.
uint64_t inf_node_work(const struct inf_graph *graph, const struct inf_node *node);

// What running the graph once costs, from shapes; nodes of unknown shape count nothing.
struct inf_graph_cost {
    uint64_t macs;        // multiply-adds of all nodes: inf_node_macs()
    uint64_t parameters;  // elements of float constants
    uint64_t const_bytes; // bytes of all constants
};

// Adds up the cost of all nodes; both sides of a branch and one turn of a loop count. Recurses as
// deep as subgraphs nest.
struct inf_graph_cost inf_graph_cost(const struct inf_graph *graph);

#endif
