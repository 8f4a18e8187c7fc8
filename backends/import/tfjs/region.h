// SPDX-License-Identifier: Apache-2.0
// Regions. A region is a graph that is being built: the model's graph, or the subgraph of a branch
// or loop body. A node of the model has separate values in each region: inside a branch, the node
// `x` is an input of the subgraph. Beginning a region saves the values that
// nodes have in the outer region; ending it restores them. This header also declares the lowering
// of references, branches, loops and functions within a region.
#ifndef INF_BACKENDS_IMPORT_TFJS_REGION_H
#define INF_BACKENDS_IMPORT_TFJS_REGION_H

#include "backends/import/tfjs/lower.h"

// A function of the model's library.
struct inf_tfjs_function {
    struct inf_json json;
    const char *name;
    struct inf_tfjs_graph *graph; // NULL until the function is first called
    struct inf_tfjs_ref *results;
    uint32_t result_count;
    bool active; // true while it is being lowered; used to detect recursion
};

// State that all regions of a model share.
struct inf_tfjs_library {
    struct inf_arena arena;
    struct inf_json list; // the functions of the document
    struct inf_tfjs_function *functions;
    uint32_t function_count;
    uint32_t region_count; // number of regions created so far; the latest region has this number
    // Number of nodes added and regions begun so far. The number is limited, because functions that
    // call each other could make the graph grow without end.
    uint64_t work_count;
    const atomic_bool *cancelled; // checked between nodes; NULL: not cancellable
    // Finds how an operator is lowered; NULL if it is not supported. lower_merge() and lower_exit()
    // lower the branch or loop that a node ends. All three are pointers, because this avoids a
    // cyclic dependency: operators with bodies lower nodes themselves.
    const struct inf_tfjs_op *(*find_op)(const char *name);
    enum inf_code (*lower_merge)(struct inf_tfjs_scope *scope, struct inf_error *err);
    enum inf_code (*lower_exit)(struct inf_tfjs_scope *scope, struct inf_error *err);
};

// Reads the names of the functions of `topology`, which must outlive the library.
enum inf_code inf_tfjs_library_init(struct inf_tfjs_library *library,
                                    const struct inf_json *topology,
                                    struct inf_error *err) INF_NODISCARD;
// Frees the library.
void inf_tfjs_library_fini(struct inf_tfjs_library *library);

// Adds `work` to the number of nodes and regions that the import has created. Returns INF_EXHAUSTED
// if the total exceeds INF_LIMIT_GRAPH_NODES.
enum inf_code inf_tfjs_library_count(struct inf_tfjs_library *library, uint32_t work,
                                     struct inf_error *err) INF_NODISCARD;

// Begins a region (a graph that is being built, such as a loop body) and stores it in
// scope->region. The caller ends it with inf_tfjs_region_end().
enum inf_code inf_tfjs_region_begin(struct inf_tfjs_scope *scope,
                                    struct inf_error *err) INF_NODISCARD;
// Ends the scope's region (the subgraph that is being built). Nodes get back the values that they
// have in the outer region.
void inf_tfjs_region_end(struct inf_tfjs_scope *scope);

// Returns the number of a region. No two regions of an import have the same number.
uint32_t inf_tfjs_region_id(const struct inf_tfjs_region *region);

// Saves the values that `node` has in the outer region, before it gets values in this region.
enum inf_code inf_tfjs_region_take(struct inf_tfjs_region *region, struct inf_tfjs_node *node,
                                   struct inf_error *err) INF_NODISCARD;

// Lowers all nodes on which `refs` depend and that have no value in the scope's region.
//
// INF_INVALID  a cycle that is not a loop, and all errors of lowering functions.
enum inf_code inf_tfjs_lower_refs(struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *refs,
                                  uint32_t count, struct inf_error *err) INF_NODISCARD;

// Sets *out_value to the value of a reference whose node was lowered. `where` names the object that
// has the reference in error texts.
enum inf_code inf_tfjs_value(const struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *ref,
                             uint32_t *out_value, const char *where,
                             struct inf_error *err) INF_NODISCARD;

// A callback that builds the two subgraphs of a branch (else and then) or of a loop (condition and
// body). `build` adds the nodes of subgraph number `side` through the scope `inside`, and sets
// outputs[]. values[i] is the value in the subgraph for value i of the outer graph.
struct inf_tfjs_inside {
    enum inf_code (*build)(void *context, struct inf_tfjs_scope *inside, int side,
                           const uint32_t *values, uint32_t *outputs, struct inf_error *err);
    void *context;
};

// A branch with two subgraphs: subgraph 1 runs if `predicate` is true, otherwise subgraph 0.
struct inf_tfjs_branch_call {
    struct inf_tfjs_inside inside;
    uint32_t predicate;
    const uint32_t *values; // values of the outer graph that the two subgraphs use
    uint32_t value_count;
    uint32_t output_count;
};
// Adds a branch. out_values must have room for its outputs.
enum inf_code inf_tfjs_emit_branch(struct inf_tfjs_scope *scope,
                                   const struct inf_tfjs_branch_call *call, uint32_t *out_values,
                                   struct inf_error *err) INF_NODISCARD;

// A loop with two subgraphs: subgraph 0 is the condition and has one output; subgraph 1 is the
// body.
struct inf_tfjs_loop_call {
    struct inf_tfjs_inside inside;
    const uint32_t *values; // initial values of the variables, then values that do not change
    uint32_t value_count;
    uint32_t variable_count; // number of variables, which is also the number of outputs
};
// Adds a loop. out_values must have room for its outputs.
enum inf_code inf_tfjs_emit_loop(struct inf_tfjs_scope *scope,
                                 const struct inf_tfjs_loop_call *call, uint32_t *out_values,
                                 struct inf_error *err) INF_NODISCARD;

// Lowers the function `name` with the given arguments. It must have `output_count` results.
enum inf_code inf_tfjs_call_function(struct inf_tfjs_scope *scope, const char *name,
                                     const uint32_t *arguments, uint32_t argument_count,
                                     uint32_t *out_values, uint32_t output_count,
                                     struct inf_error *err) INF_NODISCARD;

// Lowers the branch that ends with the scope's node, a Merge.
enum inf_code inf_tfjs_lower_merge(struct inf_tfjs_scope *scope,
                                   struct inf_error *err) INF_NODISCARD;
// Lowers the loop that ends with the scope's node, an Exit.
enum inf_code inf_tfjs_lower_exit(struct inf_tfjs_scope *scope,
                                  struct inf_error *err) INF_NODISCARD;

#endif
