// SPDX-License-Identifier: Apache-2.0
// A list of constants, and how executables use each of them: a use reads the bytes of the constant,
// or another form such as a packed weight.
#ifndef INF_BACKENDS_EXEC_CONSTANTS_H
#define INF_BACKENDS_EXEC_CONSTANTS_H

#include "backends/graph/graph.h"

// One way in which runs use a constant. If neither `read` nor `form` is set, the constant belongs
// to the graph, but no run uses it.
struct inf_constant_use {
    struct inf_blob *blob;      // borrowed from the graph
    struct inf_blob_form *form; // the form that runs read, borrowed; NULL: runs read no form
    bool read; // true: runs read the bytes of the blob, or `form` cannot restore them
};

// A list of uses. Embedded in its owner. A zeroed struct is an empty list.
struct inf_constants {
    struct inf_constant_use *uses;
    size_t count, capacity;
};

// Adds the constants of the graph, without the constants of its subgraphs. `read` is true if runs
// read the bytes of these constants.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add_values(struct inf_constants *constants,
                                       const struct inf_graph *graph, bool read,
                                       struct inf_error *err) INF_NODISCARD;

// Adds the constants of the graph and its subgraphs as constants that runs do not use.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add_graph(struct inf_constants *constants,
                                      const struct inf_graph *graph,
                                      struct inf_error *err) INF_NODISCARD;

// Adds a use of a constant in the form `form`. If `form` is NULL, runs read the bytes of the
// constant; if it cannot restore the bytes, they stay too.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add(struct inf_constants *constants, struct inf_blob *blob,
                                struct inf_blob_form *form, struct inf_error *err) INF_NODISCARD;

// Memory of packed forms, and the time that packing took.
struct inf_form_cost {
    uint64_t bytes;
    uint64_t made_ns; // total time to create the forms
};

// Returns the cost of all forms in the list, including the forms of evicted blobs. Each form is
// counted once, and so is memory that several forms share, unless memory is exhausted.
struct inf_form_cost inf_constants_form_cost(struct inf_constants *constants);

// Merges all entries for the same constant into one. Its `read` is true if any of the uses reads
// the bytes; its `form` is that of any of the merged entries.
void inf_constants_merge(struct inf_constants *constants);

// Replaces the shared constants of the graph and its subgraphs by copies. None of the constants may
// be evicted.
//
// INF_EXHAUSTED  no memory; the graph is unchanged.
enum inf_code inf_constants_copy(struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

// Returns true if the bytes of a constant may be evicted. The list must be merged.
bool inf_constant_is_evictable(const struct inf_constant_use *use);

// Frees the list of uses, but not the constants and forms in it.
void inf_constants_fini(struct inf_constants *constants);

#endif
