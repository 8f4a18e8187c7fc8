// SPDX-License-Identifier: Apache-2.0
// Lowering of what an output hangs on, into the model's graph or into a subgraph of a branch or
// loop. Each graph that is being made is a region: nodes have values of their own in each, and what
// was known of the outer region comes back when the inner one ends.
#ifndef INF_BACKENDS_IMPORT_TFJS_REGION_H
#define INF_BACKENDS_IMPORT_TFJS_REGION_H

#include "backends/import/tfjs/lower.h"

// A function of the model's library, once it is used.
struct inf_tfjs_function {
    struct inf_json json;
    const char *name;
    struct inf_tfjs_graph *graph; // NULL until then
    struct inf_tfjs_ref *results;
    uint32_t result_count;
    bool active; // being lowered just now
};

// What all regions of a model share. Embedded.
struct inf_tfjs_library {
    struct inf_arena arena;
    struct inf_json list; // of functions
    struct inf_tfjs_function *functions;
    uint32_t function_count;
    uint32_t region_count; // so far
    uint64_t work_count;   // nodes made and regions begun: functions could multiply without end
    // What lowering reaches through pointers, because operators with bodies lower nodes themselves:
    // the row of an operator (NULL if it is not supported), and the branch or loop that a node
    // ends.
    const struct inf_tfjs_op *(*find_op)(const char *name);
    enum inf_code (*lower_merge)(struct inf_tfjs_scope *scope, struct inf_error *err);
    enum inf_code (*lower_exit)(struct inf_tfjs_scope *scope, struct inf_error *err);
};

// Reads the names of the functions that `topology` has. It must outlive the library.
enum inf_code inf_tfjs_library_init(struct inf_tfjs_library *library,
                                    const struct inf_json *topology,
                                    struct inf_error *err) INF_NODISCARD;
// Frees what it has made.
void inf_tfjs_library_fini(struct inf_tfjs_library *library);

// Counts work. INF_EXHAUSTED beyond INF_LIMIT_GRAPH_NODES.
enum inf_code inf_tfjs_library_count(struct inf_tfjs_library *library, uint32_t work,
                                     struct inf_error *err) INF_NODISCARD;

// Begins the region of a model's own graph in scope->region, to be ended with
// inf_tfjs_region_end().
enum inf_code inf_tfjs_region_begin(struct inf_tfjs_scope *scope,
                                    struct inf_error *err) INF_NODISCARD;
// Ends the scope's region: nodes have the values again that they had in the outer one.
void inf_tfjs_region_end(struct inf_tfjs_scope *scope);

// Tells regions apart.
uint32_t inf_tfjs_region_id(const struct inf_tfjs_region *region);

// Notes that `node` is about to get values in this region.
enum inf_code inf_tfjs_region_take(struct inf_tfjs_region *region, struct inf_tfjs_node *node,
                                   struct inf_error *err) INF_NODISCARD;

// Lowers whatever `refs` hang on and has no value in the scope's region yet.
//
// INF_INVALID  a cycle that is no loop, and whatever lowering functions find.
enum inf_code inf_tfjs_lower_refs(struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *refs,
                                  uint32_t count, struct inf_error *err) INF_NODISCARD;

// *out_value = the value of a reference whose node has been lowered. `where` says who refers to it.
enum inf_code inf_tfjs_value(const struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *ref,
                             uint32_t *out_value, const char *where,
                             struct inf_error *err) INF_NODISCARD;

// Makes both sides of a branch, or condition and body of a loop: `build` fills the subgraph that
// `inside` lowers into. values[i] is there what the outer value i is; outputs[] is to be filled.
struct inf_tfjs_inside {
    enum inf_code (*build)(void *context, struct inf_tfjs_scope *inside, int side,
                           const uint32_t *values, uint32_t *outputs, struct inf_error *err);
    void *context;
};

// Adds a branch: side 1 where `predicate` is true, side 0 else.
struct inf_tfjs_branch_call {
    struct inf_tfjs_inside inside;
    uint32_t predicate;
    const uint32_t *values; // that the sides use
    uint32_t value_count;
    uint32_t output_count;
};
// As struct inf_tfjs_branch_call says. out_values has room for its outputs.
enum inf_code inf_tfjs_emit_branch(struct inf_tfjs_scope *scope,
                                   const struct inf_tfjs_branch_call *call, uint32_t *out_values,
                                   struct inf_error *err) INF_NODISCARD;

// Adds a loop: side 0 is its condition, with one output, side 1 its body.
struct inf_tfjs_loop_call {
    struct inf_tfjs_inside inside;
    const uint32_t *values; // first the variables' initial ones, then those that stay
    uint32_t value_count;
    uint32_t variable_count; // and outputs
};
// As struct inf_tfjs_loop_call says. out_values has room for its outputs.
enum inf_code inf_tfjs_emit_loop(struct inf_tfjs_scope *scope,
                                 const struct inf_tfjs_loop_call *call, uint32_t *out_values,
                                 struct inf_error *err) INF_NODISCARD;

// Lowers the function `name` with these arguments; out_values has room for `output_count` values,
// as many as it must have.
enum inf_code inf_tfjs_call_function(struct inf_tfjs_scope *scope, const char *name,
                                     const uint32_t *arguments, uint32_t argument_count,
                                     uint32_t *out_values, uint32_t output_count,
                                     struct inf_error *err) INF_NODISCARD;

// Lowers the branch or loop that the scope's node ends: a Merge or an Exit.
enum inf_code inf_tfjs_lower_merge(struct inf_tfjs_scope *scope,
                                   struct inf_error *err) INF_NODISCARD;
// As inf_tfjs_lower_merge().
enum inf_code inf_tfjs_lower_exit(struct inf_tfjs_scope *scope,
                                  struct inf_error *err) INF_NODISCARD;

#endif
