// SPDX-License-Identifier: Apache-2.0
// A list of the constants of some graphs, and what executables do with each: read it as it is, or
// have it in a form of their own.
#ifndef INF_BACKENDS_EXEC_CONSTANTS_H
#define INF_BACKENDS_EXEC_CONSTANTS_H

#include "backends/graph/graph.h"

// Constants of fewer bytes always stay as they are: passes and shape inference look into them.
#define INF_CONSTANT_SMALL_BYTES 512u

// One use of a constant; neither read nor in a form: that it is there.
struct inf_constant_use {
    struct inf_blob *blob;      // borrowed from a graph
    struct inf_blob_form *form; // that it is used in, borrowed; NULL: none
    bool read;                  // as it is
};

// Embedded; all zero is empty.
struct inf_constants {
    struct inf_constant_use *uses;
    size_t count, capacity;
};

// Lists the constants of the graph, without those of its subgraphs, as there or as read.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add_values(struct inf_constants *constants,
                                       const struct inf_graph *graph, bool read,
                                       struct inf_error *err) INF_NODISCARD;

// Lists the constants of the graph and its subgraphs as there.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add_graph(struct inf_constants *constants,
                                      const struct inf_graph *graph,
                                      struct inf_error *err) INF_NODISCARD;

// Lists a use of a constant: in `form`, or NULL for as it is.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add(struct inf_constants *constants, struct inf_blob *blob,
                                struct inf_blob_form *form, struct inf_error *err) INF_NODISCARD;

// What forms take.
struct inf_form_cost {
    uint64_t bytes;
    uint64_t made_ns; // what making them took, one after the other
};

// Of all forms in the list, each once, and of those that stand in for constants of the list.
struct inf_form_cost inf_constants_form_cost(struct inf_constants *constants);

// Leaves one entry a constant: read if any of its uses reads it, and with one of its forms.
void inf_constants_merge(struct inf_constants *constants);

// Gives the graph and its subgraphs constants of their own: copies of those that it shares, one
// each. All of them are whole.
//
// INF_EXHAUSTED  memory; the graph is as it was.
enum inf_code inf_constants_copy(struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

// Whether the bytes of a constant may go, by the only entry there is of it.
bool inf_constant_is_evictable(const struct inf_constant_use *use);

// Frees the list.
void inf_constants_fini(struct inf_constants *constants);

#endif
