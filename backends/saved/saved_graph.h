// SPDX-License-Identifier: Apache-2.0
// A graph as bytes, for the file of a plan (plan_file.h): values, nodes, ports and subgraphs. The
// bytes of constants are not part of it; constants are numbered, and graphs share them by number.
// An element of a constant of strings is a handle in the pool of the graph, which is not part of it
// either.
#ifndef INF_BACKENDS_SAVED_SAVED_GRAPH_H
#define INF_BACKENDS_SAVED_SAVED_GRAPH_H

#include <stddef.h>

#include "backends/graph/graph.h"

// Growing bytes. Zeroed: empty.
struct inf_saved_bytes {
    uint8_t *data;
    size_t size, capacity;
    bool failed; // there was no memory; nothing more is appended
};

// Bytes that are read one part after another.
struct inf_saved_rest {
    const uint8_t *at;
    size_t left; // bytes from `at` on
};

// The distinct constants of graphs and of their subgraphs, sorted by address. Zeroed: none.
struct inf_saved_blobs {
    struct inf_blob **items; // borrowed from the graphs
    uint32_t count;
};

// Appends to `bytes`.
void inf_saved_append(struct inf_saved_bytes *bytes, const void *data, size_t size);

// Copies the next `size` bytes to `data`. Returns false, and copies nothing, if there are fewer.
bool inf_saved_take(struct inf_saved_rest *rest, void *data, size_t size) INF_NODISCARD;

// Lists the constants of graphs. The caller frees blobs->items with free().
//
// INF_EXHAUSTED  memory.
enum inf_code inf_saved_blobs_list(struct inf_saved_blobs *blobs,
                                   const struct inf_graph *const *graphs, size_t graph_count,
                                   struct inf_error *err) INF_NODISCARD;

// Returns the number of a constant in the list; UINT32_MAX if it is not in the list.
uint32_t inf_saved_blobs_find(const struct inf_saved_blobs *blobs, struct inf_blob *blob);

// Appends a graph. `blobs` lists its constants.
void inf_saved_graph_encode(struct inf_saved_bytes *bytes, const struct inf_graph *graph,
                            const struct inf_saved_blobs *blobs);

// Makes a graph from `size` bytes that inf_saved_graph_encode() wrote. `blobs` has the constants by
// number; the graph takes references of its own. The graph shares the strings of constants with
// `outer`. Constants of booleans, i32, i64 and strings must have their bytes, others may be
// evicted. Nothing in the bytes is trusted: the graph is verified before it is returned. The caller
// destroys *out_graph.
//
// INF_INVALID    the bytes are no graph.
// INF_EXHAUSTED  memory, or a limit of limits.h.
enum inf_code inf_saved_graph_decode(struct inf_graph **out_graph, const uint8_t *data, size_t size,
                                     const struct inf_saved_blobs *blobs,
                                     const struct inf_graph *outer,
                                     struct inf_error *err) INF_NODISCARD;

#endif
