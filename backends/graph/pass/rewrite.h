// SPDX-License-Identifier: Apache-2.0
// A rewrite in progress: the changes of one pass to one graph. Removed nodes are only marked until
// the pass ends, so that node indices remain valid during the pass. Private to the passes.
#ifndef INF_BACKENDS_GRAPH_PASS_REWRITE_H
#define INF_BACKENDS_GRAPH_PASS_REWRITE_H

#include "backends/graph/graph.h"
#include "backends/graph/pass/pass.h"

struct inf_rewrite {
    struct inf_graph *graph;
    const struct inf_evaluator *evaluator; // NULL disables folding
    const atomic_bool *cancelled;          // checked before each node that is folded; may be NULL
    size_t *fold_budget_bytes;             // bytes that folding may still add to the graph
    // Bytes that copies of shared filters may still add to the graph. A filter that several nodes
    // read is copied if it is scaled for one of them.
    size_t *copy_budget_bytes;
    uint64_t *fold_budget_work; // work that folding may still do, by inf_node_work()
    uint32_t *uses; // number of uses of each value, as input of a node or as output of the graph
    uint32_t uses_capacity;
    bool *removed; // removed[n]: node n is marked as removed
    bool changed;  // true: the pass changed the graph
    // true: dequantize nodes of 8-bit constants stay, so that passes can use the bytes
    bool keep_bytes;
    struct inf_error *err;
};

// Starts a rewrite of rewrite->graph. The caller has set graph, evaluator, cancelled, budgets and
// err.
enum inf_code inf_rewrite_begin(struct inf_rewrite *rewrite) INF_NODISCARD;

// Takes the removed nodes and the unused subgraphs out of the graph. Node indices change.
enum inf_code inf_rewrite_end(struct inf_rewrite *rewrite) INF_NODISCARD;

// Frees the memory that inf_rewrite_begin() allocated. Call it after a failure too.
void inf_rewrite_fini(struct inf_rewrite *rewrite);

// Decrements the use count of `value`. The data of a constant is freed with its last use.
void inf_rewrite_drop_use(struct inf_rewrite *rewrite, uint32_t value);

// Marks a node as removed and drops its uses. Nothing may use its outputs.
void inf_rewrite_remove(struct inf_rewrite *rewrite, uint32_t node);

// Fuses two nodes: node `keep` gets the output of node `absorbed`, which is the only reader of the
// output of `keep`. Removes `absorbed`; `keep` now computes both operations.
void inf_rewrite_absorb(struct inf_rewrite *rewrite, uint32_t keep, uint32_t absorbed);

// Sets input `index` of `node` to `value`. Missing inputs before `index` become absent ones.
enum inf_code inf_rewrite_set_input(struct inf_rewrite *rewrite, uint32_t node, uint32_t index,
                                    uint32_t value) INF_NODISCARD;

// Adds a constant to the graph like inf_graph_add_const(), and extends the table of use counts by
// the new value.
enum inf_code inf_rewrite_add_const(struct inf_rewrite *rewrite, const char *name,
                                    enum inf_dtype dtype, const struct inf_shape *shape,
                                    struct inf_blob *data, uint32_t *out_value) INF_NODISCARD;

// Reads the only element of an FP32 constant. Returns false if `value` is no such constant, is NaN,
// or has a rank above `rank`: broadcasting it would give the result of a node a higher rank.
bool inf_rewrite_read_scalar(const struct inf_graph *graph, uint32_t value, int32_t rank,
                             float *scalar) INF_NODISCARD;

// Returns the node that computes `value`, if `value` is used exactly once, by a node or as a graph
// output. Such a node can be fused with its reader. Returns INF_NODE_NONE otherwise.
uint32_t inf_rewrite_sole_producer(const struct inf_rewrite *rewrite, uint32_t value);

#endif
