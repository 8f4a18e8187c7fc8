// SPDX-License-Identifier: Apache-2.0
// The function library of a model, and the operators If and While, which call functions. A function
// is read when it is first used, and lowered in place at each call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/tfjs/control.h"
#include "backends/import/tfjs/op_table.h"
#include "backends/import/tfjs/region.h"

// --- reading and lowering the functions of the library ---

enum inf_code inf_tfjs_library_init(struct inf_tfjs_library *library,
                                    const struct inf_json *topology, struct inf_error *err)
{
    static const struct inf_json none;
    struct inf_json *object = inf_arena_alloc(&library->arena, sizeof *object);
    size_t count;
    if (object == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the functions of the model");
    *object = none;
    INF_TRY(inf_json_find(topology, "library", object, err));
    if (object->value == NULL)
        return INF_OK;
    INF_TRY(inf_json_find(object, "function", &library->list, err));
    if (library->list.value == NULL)
        return INF_OK;
    INF_TRY(inf_json_array(&library->list, &count, err));
    library->functions = inf_arena_alloc(&library->arena, (count + 1) * sizeof *library->functions);
    if (library->functions == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu functions", count);
    for (size_t i = 0; i < count; i++) {
        struct inf_tfjs_function *function = &library->functions[i];
        struct inf_json signature, name;
        function->json = inf_json_at(&library->list, i);
        INF_TRY(inf_json_get(&function->json, "signature", &signature, err));
        INF_TRY(inf_json_get(&signature, "name", &name, err));
        INF_TRY(inf_json_name(&name, &function->name, err));
        library->function_count++;
    }
    return INF_OK;
}

void inf_tfjs_library_fini(struct inf_tfjs_library *library)
{
    for (uint32_t i = 0; i < library->function_count; i++)
        inf_tfjs_graph_destroy(&library->functions[i].graph);
    inf_arena_fini(&library->arena);
}

// Sets *out to the result for output `argument` of the function's signature. The object `ret` has a
// reference for each name of an output.
static enum inf_code read_result(struct inf_tfjs_function *function, const struct inf_json *ret,
                                 const struct inf_json *argument, struct inf_tfjs_ref *out,
                                 struct inf_error *err)
{
    struct inf_json name, text;
    const char *key, *reference;
    char where[INF_JSON_PATH_SIZE];
    INF_TRY(inf_json_get(argument, "name", &name, err));
    INF_TRY(inf_json_name(&name, &key, err));
    INF_TRY(inf_json_get(ret, key, &text, err));
    INF_TRY(inf_json_name(&text, &reference, err));
    return inf_tfjs_graph_resolve(function->graph, reference, out, inf_json_path(&text, where),
                                  err);
}

// Reads the results of a function in the order of its signature.
static enum inf_code read_results(struct inf_tfjs_function *function, struct inf_error *err)
{
    struct inf_json ret, list;
    size_t count = 0;
    INF_TRY(inf_json_find(&function->graph->signature, "outputArg", &list, err));
    if (list.value != NULL)
        INF_TRY(inf_json_array(&list, &count, err));
    if (count > INF_LIMIT_NODE_INPUTS)
        return inf_json_fail(&list, err, "fewer results");
    function->results =
        inf_arena_alloc(&function->graph->arena, (count + 1) * sizeof *function->results);
    if (function->results == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the functions of the model");
    if (count > 0)
        INF_TRY(inf_json_get(&function->json, "ret", &ret, err));
    for (size_t i = 0; i < count; i++) {
        struct inf_json argument = inf_json_at(&list, i);
        INF_TRY(read_result(function, &ret, &argument, &function->results[i], err));
    }
    function->result_count = (uint32_t)count;
    return INF_OK;
}

// Reads a function's nodes when it is first used.
static enum inf_code prepare_function(struct inf_tfjs_function *function, struct inf_error *err)
{
    if (function->graph != NULL)
        return INF_OK;
    struct inf_tfjs_graph *graph = NULL;
    INF_TRY(inf_tfjs_graph_create_function(&graph, &function->json, err));
    function->graph = graph;
    INF_TRY(read_results(function, err));
    INF_TRY(inf_tfjs_graph_reach(graph, function->results, function->result_count, err));
    return inf_tfjs_control_find(graph, err);
}

static struct inf_tfjs_function *find_function(struct inf_tfjs_library *library, const char *name)
{
    for (uint32_t i = 0; i < library->function_count; i++)
        if (strcmp(library->functions[i].name, name) == 0)
            return &library->functions[i];
    return NULL;
}

// Lowers a function's results in a scope that belongs to the function.
static enum inf_code lower_results(struct inf_tfjs_scope *inside,
                                   const struct inf_tfjs_function *function,
                                   const uint32_t *arguments, uint32_t *out_values,
                                   struct inf_error *err)
{
    const struct inf_tfjs_graph *source = inside->source;
    uint32_t first = source->node_count - source->argument_count;
    for (uint32_t i = 0; i < source->argument_count; i++) {
        inside->node = &inside->source->nodes[first + i];
        INF_TRY(inf_tfjs_result(inside, arguments[i], err));
    }
    INF_TRY(inf_tfjs_lower_refs(inside, function->results, function->result_count, err));
    for (uint32_t i = 0; i < function->result_count; i++)
        INF_TRY(inf_tfjs_value(inside, &function->results[i], &out_values[i], function->name, err));
    return INF_OK;
}

enum inf_code inf_tfjs_call_function(struct inf_tfjs_scope *scope, const char *name,
                                     const uint32_t *arguments, uint32_t argument_count,
                                     uint32_t *out_values, uint32_t output_count,
                                     struct inf_error *err)
{
    struct inf_tfjs_function *function = find_function(scope->library, name);
    if (function == NULL)
        return inf_tfjs_fail(scope, err, INF_INVALID, "calls '%.100s', which is no function", name);
    if (function->active)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "calls '%.100s', which calls itself by that", name);
    INF_TRY(prepare_function(function, err));
    if (function->graph->argument_count != argument_count || function->result_count != output_count)
        return inf_tfjs_fail(
            scope, err, INF_INVALID,
            "calls '%.100s' with %u arguments for %u results, and it has %u and %u", name,
            argument_count, output_count, function->graph->argument_count, function->result_count);
    struct inf_tfjs_scope inside = *scope;
    inside.source = function->graph;
    function->active = true;
    enum inf_code code = lower_results(&inside, function, arguments, out_values, err);
    function->active = false;
    if (code != INF_OK)
        return inf_error_prefix(err, code, "function '%.100s'", name);
    return INF_OK;
}

// --- operators If and While ---

// An If or While node, which calls one of two functions: else and then, or condition and body.
struct caller {
    const char *names[2]; // the names of the functions: else and then, or condition and body
    uint32_t argument_count;
    uint32_t output_counts[2];
};

static enum inf_code build_call(void *context, struct inf_tfjs_scope *inside, int side,
                                const uint32_t *values, uint32_t *outputs, struct inf_error *err)
{
    const struct caller *caller = context;
    return inf_tfjs_call_function(inside, caller->names[side], values, caller->argument_count,
                                  outputs, caller->output_counts[side], err);
}

// Reads the number of outputs of the node from its attribute Tout.
static enum inf_code count_outputs(struct inf_tfjs_scope *scope, const char *key, uint32_t *count,
                                   struct inf_error *err)
{
    size_t size;
    INF_TRY(inf_tfjs_attr_list_size(scope->node, key, "type", &size, err));
    if (size > INF_LIMIT_NODE_INPUTS)
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s has %zu elements", key, size);
    *count = (uint32_t)size;
    return INF_OK;
}

// Sets *out to (input 0 != 0) as a bool scalar.
static enum inf_code emit_truth(struct inf_tfjs_scope *scope, uint32_t *out, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_CAST, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    *out = scope->inputs[0];
    if (inf_tfjs_input(scope, 0)->dtype == INF_DTYPE_BOOL)
        return INF_OK;
    call.attrs.cast.dtype = INF_DTYPE_BOOL;
    return inf_tfjs_emit(scope, &call, out, err);
}

static enum inf_code lower_if(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct caller caller = {.argument_count = scope->input_count - 1};
    uint32_t count, predicate, *values = NULL;
    INF_TRY(inf_tfjs_attr_function(scope->node, "then_branch", &caller.names[1], err));
    INF_TRY(inf_tfjs_attr_function(scope->node, "else_branch", &caller.names[0], err));
    INF_TRY(count_outputs(scope, "Tout", &count, err));
    INF_TRY(emit_truth(scope, &predicate, err));
    INF_TRY(inf_tfjs_outputs(scope, count, &values, err));
    caller.output_counts[0] = caller.output_counts[1] = count;
    if (count == 0)
        return INF_OK;
    struct inf_tfjs_branch_call call = {.inside = {build_call, &caller},
                                        .predicate = predicate,
                                        .values = &scope->inputs[1],
                                        .value_count = caller.argument_count,
                                        .output_count = count};
    return inf_tfjs_emit_branch(scope, &call, values, err);
}

static enum inf_code lower_while(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct caller caller = {.argument_count = scope->input_count,
                            .output_counts = {1, scope->input_count}};
    uint32_t *values = NULL;
    INF_TRY(inf_tfjs_attr_function(scope->node, "cond", &caller.names[0], err));
    INF_TRY(inf_tfjs_attr_function(scope->node, "body", &caller.names[1], err));
    INF_TRY(inf_tfjs_outputs(scope, scope->input_count, &values, err));
    struct inf_tfjs_loop_call call = {.inside = {build_call, &caller},
                                      .values = scope->inputs,
                                      .value_count = scope->input_count,
                                      .variable_count = scope->input_count};
    return inf_tfjs_emit_loop(scope, &call, values, err);
}

// Fails, because a node that begins or ends a loop or branch (such as Enter or Merge) is lowered
// together with that loop or branch and never alone.
static enum inf_code lower_border(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    return inf_tfjs_fail(scope, err, INF_INVALID, "stands alone");
}

static const struct inf_tfjs_op ops[] = {
    {"If", lower_if, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"StatelessIf", lower_if, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"While", lower_while, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"StatelessWhile", lower_while, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"Enter", lower_border, 1, 1, 0},
    {"Exit", lower_border, 1, 1, 0},
    {"Merge", lower_border, 2, INF_LIMIT_NODE_INPUTS, 0},
    {"Switch", lower_border, 2, 2, 0},
    {"NextIteration", lower_border, 1, 1, 0},
    {"LoopCond", lower_border, 1, 1, 0},
    {INF_TFJS_ARGUMENT, lower_border, 0, 0, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_control = {ops, INF_ARRAY_LENGTH(ops)};
