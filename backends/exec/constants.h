// SPDX-License-Identifier: Apache-2.0
// A list of constants and how executables use each of them: by reading its bytes, or in another
// form such as a packed weight.
#ifndef INF_BACKENDS_EXEC_CONSTANTS_H
#define INF_BACKENDS_EXEC_CONSTANTS_H

#include "backends/graph/graph.h"

// Smaller constants are never evicted: passes and shape inference read them.
#define INF_CONSTANT_SMALL_BYTES 512u

// One use of a constant. Neither `read` nor `form`: the graph has the constant, but no run uses it.
struct inf_constant_use {
    struct inf_blob *blob;      // borrowed from a graph
    struct inf_blob_form *form; // the form that runs read, borrowed; NULL: none
    bool read;                  // runs read the bytes of the blob
};

// Embedded in its owner. All zero: empty.
struct inf_constants {
    struct inf_constant_use *uses;
    size_t count, capacity;
};

// Adds the constants of the graph, without its subgraphs; `read` says whether runs read their
// bytes.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add_values(struct inf_constants *constants,
                                       const struct inf_graph *graph, bool read,
                                       struct inf_error *err) INF_NODISCARD;

// Adds the constants of the graph and its subgraphs, as not used by runs.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add_graph(struct inf_constants *constants,
                                      const struct inf_graph *graph,
                                      struct inf_error *err) INF_NODISCARD;

// Adds a use of a constant in `form`; NULL: runs read its bytes.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_constants_add(struct inf_constants *constants, struct inf_blob *blob,
                                struct inf_blob_form *form, struct inf_error *err) INF_NODISCARD;

// Cost of forms.
struct inf_form_cost {
    uint64_t bytes;
    uint64_t made_ns; // time to make them, summed
};

// Returns the cost of all forms in the list, each counted once, including the forms of evicted
// blobs.
struct inf_form_cost inf_constants_form_cost(struct inf_constants *constants);

// Merges the entries of each constant: `read` if any use reads it, `form` one of its forms.
void inf_constants_merge(struct inf_constants *constants);

// Replaces the shared constants of the graph and its subgraphs by copies. All of them must have
// their bytes.
//
// INF_EXHAUSTED  no memory; the graph is unchanged.
enum inf_code inf_constants_copy(struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

// Returns whether the bytes of a constant may be evicted. The list must be merged.
bool inf_constant_is_evictable(const struct inf_constant_use *use);

// Frees the list.
void inf_constants_fini(struct inf_constants *constants);

#endif
