// SPDX-License-Identifier: Apache-2.0
// The graph IR: the computation of a model, independent of the model's file format and of the
// device that will run the graph. Each value is assigned once and named by its index. Nodes are
// ordered so that every value is computed before a node reads it. Only one thread at a time may
// change a graph; many threads may read an unchanged graph.
#ifndef INF_BACKENDS_GRAPH_GRAPH_H
#define INF_BACKENDS_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/arena.h"
#include "backends/base/blob.h"
#include "backends/base/string_pool.h"
#include "backends/graph/op.h"
#include "backends/graph/texts.h"
#include "proto/core/status.h"

// A value index that means "no value". It stands for an optional input that is absent.
#define INF_VALUE_NONE UINT32_MAX
// A node index that means "no node". The producer of an input or of a constant has this index.
#define INF_NODE_NONE UINT32_MAX

// One tensor of the graph: its name, element type and shape, and its elements if it is a constant.
struct inf_value {
    const char *name; // for messages; owned by the graph; never NULL, may be ""
    enum inf_dtype dtype;
    struct inf_shape shape;
    // index of the node that computes the value; INF_NODE_NONE for inputs and constants
    uint32_t producer;
    struct inf_blob *data; // row-major elements of a constant, one reference; NULL for other values
};

// One operation of the graph: an operator with its attributes, and the values that it reads and
// computes.
struct inf_node {
    enum inf_op op;
    const char *name;   // name of the node in the model's file; owned by the graph; never NULL
    const char *source; // the operator's name in the model's file; "" for nodes that a pass made
    uint32_t input_count;
    // value indices; INF_VALUE_NONE for an optional input that is absent; owned by the graph
    uint32_t *inputs;
    uint32_t output_count;
    uint32_t *outputs; // value indices; owned by the graph
    union inf_attrs attrs;
};

// A named input or output of the graph.
struct inf_port {
    const char *name; // owned by the graph
    uint32_t value;
};

// The graph owns all arrays. Adding an element may reallocate its array: keep indices, not
// pointers.
struct inf_graph {
    // Number of references. The first member, because inf_graph_view() copies all members behind
    // it. A graph with several references must not be changed.
    _Atomic size_t references;
    // reference-counted names of values and nodes; shared with the graphs from which this graph was
    // cloned
    struct inf_texts *texts;
    // The strings of constants; a counted reference, never NULL. A graph shares them with its
    // subgraphs and with the graphs that were cloned from it.
    struct inf_shared_strings *strings;
    // The strings of a run, in the copy of a graph with which the interpreter runs it; borrowed.
    // NULL in all other graphs, so that a node that makes strings is not folded.
    struct inf_string_pool *run_strings;
    struct inf_arena arena; // memory for the index lists of the nodes
    struct inf_value *values;
    uint32_t value_count, value_capacity;
    struct inf_node *nodes;
    uint32_t node_count, node_capacity;
    struct inf_port *inputs; // in the order of the model's signature
    uint32_t input_count, input_capacity;
    struct inf_port *outputs;
    uint32_t output_count, output_capacity;
    // Graphs that branch and loop nodes run, such as a loop's body. Exactly one attribute of one
    // node names each subgraph. A subgraph can read only its own inputs; it cannot use a value of
    // this graph.
    struct inf_graph **subgraphs;
    uint32_t subgraph_count, subgraph_capacity;
};

// Creates an empty graph. The caller destroys *out_graph.
enum inf_code inf_graph_create(struct inf_graph **out_graph, struct inf_error *err) INF_NODISCARD;

// Creates an empty graph that shares the strings of constants with `outer`: a future subgraph of
// it, or a graph that contains its nodes. The caller destroys *out_graph.
enum inf_code inf_graph_create_inside(struct inf_graph **out_graph, const struct inf_graph *outer,
                                      struct inf_error *err) INF_NODISCARD;

// Takes another reference to the graph, and returns the graph. The graph must not be changed after
// this call.
struct inf_graph *inf_graph_ref(struct inf_graph *graph) INF_NODISCARD;

// Drops a reference. The last one frees the graph and drops its references to constant data.
// Accepts NULL.
void inf_graph_destroy(struct inf_graph **graph);

// Initialises *view as a view of `graph`: a struct with the members of `graph` that borrows its
// arrays. The caller may let a member of *view point to an array of the caller. *view is valid as
// long as `graph`, and must not be passed to inf_graph_destroy(). Does not read the number of
// references, which other threads may change.
void inf_graph_view(struct inf_graph *view, const struct inf_graph *graph);

// Returns true if both graphs have equal nodes, values, inputs and outputs in the same order, with
// equal names, and share the data of all constants. Returns false if a graph has subgraphs.
bool inf_graph_equal(const struct inf_graph *a, const struct inf_graph *b);

// Copies a graph. The copy shares names and the data of constants with the original.
enum inf_code inf_graph_clone(struct inf_graph **out_graph, const struct inf_graph *graph,
                              struct inf_error *err) INF_NODISCARD;

// Adds a value that no node computes yet: an input, or the future output of a node.
//
// INF_EXHAUSTED  no memory, or more than INF_LIMIT_GRAPH_VALUES.
enum inf_code inf_graph_add_value(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                  const struct inf_shape *shape, uint32_t *out_value,
                                  struct inf_error *err) INF_NODISCARD;

// Adds a constant. `data` holds the elements, and its size must match the shape and dtype. The
// graph takes over the caller's reference to `data`, also on failure.
enum inf_code inf_graph_add_const(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                  const struct inf_shape *shape, struct inf_blob *data,
                                  uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds a constant list of i32 with shape [count]. Importers and passes use such lists for shapes,
// axes and sizes.
enum inf_code inf_graph_add_const_i32(struct inf_graph *graph, const char *name,
                                      const int32_t *elements, uint32_t count, uint32_t *out_value,
                                      struct inf_error *err) INF_NODISCARD;

// Appends a node with default attributes (set them through graph->nodes[*out_node].attrs) and
// `output_count` new values of unknown type and shape as its outputs, named "NAME" or "NAME:i". The
// input values must exist. `name` and `source` are copied.
//
// INF_INVALID    an input index is out of range, or the operator does not take that many inputs.
// INF_EXHAUSTED  no memory, or more than INF_LIMIT_GRAPH_NODES.
enum inf_code inf_graph_add_node(struct inf_graph *graph, enum inf_op op, const char *name,
                                 const char *source, const uint32_t *inputs, uint32_t input_count,
                                 uint32_t output_count, uint32_t *out_node,
                                 struct inf_error *err) INF_NODISCARD;

// Makes `value` an input of the graph with the given name.
//
// INF_EXISTS  an input already has that name.
enum inf_code inf_graph_add_input(struct inf_graph *graph, const char *name, uint32_t value,
                                  struct inf_error *err) INF_NODISCARD;
// Makes `value` an output of the graph with the given name.
//
// INF_EXISTS  an output already has that name.
enum inf_code inf_graph_add_output(struct inf_graph *graph, const char *name, uint32_t value,
                                   struct inf_error *err) INF_NODISCARD;

// Adds *subgraph to the graph's list of subgraphs and stores its index in *out_index. The graph
// takes ownership of *subgraph, also on failure. If the subgraph has constants of strings, it must
// have been created by inf_graph_create_inside().
//
// INF_EXHAUSTED  no memory, or more than INF_LIMIT_SUBGRAPHS.
enum inf_code inf_graph_add_subgraph(struct inf_graph *graph, struct inf_graph **subgraph,
                                     uint32_t *out_index, struct inf_error *err) INF_NODISCARD;

// Stores in `indices` pointers to the two attributes of a branch (then and else) or loop (condition
// and body) that name subgraphs. Returns false for other nodes.
bool inf_node_subgraphs(struct inf_node *node, int32_t *indices[2]) INF_NODISCARD;

// Frees the subgraphs that no node uses and renumbers the others. Returns true if it freed any.
bool inf_graph_compact_subgraphs(struct inf_graph *graph);

// Returns true if `value` is a constant whose data is in memory.
bool inf_graph_is_const(const struct inf_graph *graph, uint32_t value);

// Reads an i32 or i64 constant of at most `capacity` elements as int64, and stores the number of
// elements in *out_count. Returns false if `value` is not such a constant.
bool inf_graph_const_ints(const struct inf_graph *graph, uint32_t value, int64_t *elements,
                          uint32_t capacity, uint32_t *out_count) INF_NODISCARD;

// Replaces every use of value `from`, in nodes and in the graph's outputs, by `to`.
void inf_graph_replace_uses(struct inf_graph *graph, uint32_t from, uint32_t to);

// Removes values that no node uses and that are neither input nor output of the graph, and frees
// memory that was reserved for growth. Does the same in subgraphs. The indices of the remaining
// values change. Call it for a graph that will not grow again.
void inf_graph_trim(struct inf_graph *graph);

// Frees the names and index lists of removed nodes, and keeps one copy of equal names and of equal
// small constants. Also compacts the subgraphs. Names and index lists move, so pointers to them
// become invalid. Without memory, the graph stays as it is, or is compacted in part.
void inf_graph_compact(struct inf_graph *graph);

// Moves the node at index i to index map[i], and removes it if map[i] is INF_NODE_NONE. Updates the
// producers of all values. `map` must keep the order of the remaining nodes.
void inf_graph_compact_nodes(struct inf_graph *graph, const uint32_t *map);

// Returns the number of multiply-adds of a convolution, matrix product or recurrent network,
// computed from its shapes. Returns 0 for other operators and for unknown shapes.
uint64_t inf_node_macs(const struct inf_graph *graph, const struct inf_node *node);

// Returns a hash of a node's name, which identifies the node before and after passes. Nodes with
// equal names have equal hashes.
uint64_t inf_node_hash(const struct inf_node *node);

// Estimates how many elements a plain kernel reads to compute a node, from shapes and attributes.
// An unknown size counts as 0. Callers refuse nodes whose estimate is too large.
uint64_t inf_node_work(const struct inf_graph *graph, const struct inf_node *node);

// The cost of one run of the graph, computed from shapes. Nodes of unknown shape count as 0.
struct inf_graph_cost {
    uint64_t macs;        // multiply-adds of all nodes, by inf_node_macs()
    uint64_t parameters;  // number of elements in all float constants
    uint64_t const_bytes; // bytes of all constants
};

// Adds up the cost of all nodes. A branch counts both of its subgraphs, and a loop counts one
// iteration. The recursion is as deep as the nesting of subgraphs.
struct inf_graph_cost inf_graph_cost(const struct inf_graph *graph);

#endif
