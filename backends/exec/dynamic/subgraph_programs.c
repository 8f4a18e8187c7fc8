// SPDX-License-Identifier: Apache-2.0
// Compiles branches and loop bodies whose input shapes are known, and runs them without the
// interpreter. Each compiled subgraph is a separate executable, which is looked up by its graph.
#include "backends/exec/dynamic/subgraph_programs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/exec/executable.h"
#include "proto/core/limits.h"

// The fewest nodes of a compiled subgraph. Interpreting a smaller one is as fast as running a
// program.
#define NODES_MIN 8

struct subgraph_program {
    const struct inf_graph *graph; // pointer from the node that owns the subgraph
    struct inf_executable *executable;
};

struct inf_subgraph_programs {
    struct subgraph_program *items;
    uint32_t count, capacity;
};

// --- compiling branches and loop bodies ---

static bool is_worth_it(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!inf_shape_known(&graph->values[graph->inputs[i].value].shape))
            return false;
    return graph->node_count >= NODES_MIN;
}

static enum inf_code add_program(struct inf_subgraph_programs *programs,
                                 const struct inf_graph *graph, struct inf_executable *executable,
                                 struct inf_error *err)
{
    if (programs->count == programs->capacity) {
        uint32_t wanted = programs->capacity * 2 + 4;
        struct subgraph_program *grown = realloc(programs->items, wanted * sizeof *grown);
        if (grown == NULL) {
            inf_executable_destroy(&executable);
            return inf_fail(err, INF_EXHAUSTED, "no memory for branches");
        }
        programs->items = grown;
        programs->capacity = wanted;
    }
    programs->items[programs->count++] = (struct subgraph_program){graph, executable};
    return INF_OK;
}

// Compiles each subgraph of `graph` that is large enough. If a subgraph is compiled, its executable
// also contains its own subgraphs; otherwise these are tried one by one. The recursion is bounded
// by the nesting of subgraphs, at most INF_LIMIT_GRAPH_DEPTH, which the verifier checked.
static enum inf_code compile_subgraphs(struct inf_subgraph_programs *programs,
                                       const struct inf_graph *graph,
                                       const struct inf_subgraph_compiler *compiler,
                                       struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        const struct inf_graph *subgraph = graph->subgraphs[i];
        struct inf_graph *clone = NULL;
        struct inf_executable *executable = NULL;
        struct inf_error ignored;
        if (inf_is_cancelled(compiler->options->cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled before a branch was compiled");
        if (subgraph == NULL)
            continue;
        if (is_worth_it(subgraph)) {
            INF_TRY(inf_graph_clone(&clone, subgraph, err));
            if (compiler->create(&executable, &clone, compiler->evaluator, compiler->devices,
                                 compiler->device_count, compiler->options, &ignored) == INF_OK) {
                INF_TRY(add_program(programs, subgraph, executable, err));
                continue;
            }
        }
        INF_TRY(compile_subgraphs(programs, subgraph, compiler, err));
    }
    return INF_OK;
}

enum inf_code inf_subgraph_programs_create(struct inf_subgraph_programs **out_programs,
                                           const struct inf_graph *graph,
                                           const struct inf_subgraph_compiler *compiler,
                                           struct inf_error *err)
{
    assert(compiler->create != NULL && compiler->device_count > 0);
    struct inf_subgraph_programs *programs = calloc(1, sizeof *programs);
    if (programs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for branches");
    enum inf_code code = compile_subgraphs(programs, graph, compiler, err);
    if (code == INF_OK)
        *out_programs = programs;
    else
        inf_subgraph_programs_destroy(&programs);
    return code;
}

void inf_subgraph_programs_destroy(struct inf_subgraph_programs **pointer)
{
    struct inf_subgraph_programs *programs = *pointer;
    *pointer = NULL;
    if (programs == NULL)
        return;
    for (uint32_t i = 0; i < programs->count; i++)
        inf_executable_destroy(&programs->items[i].executable);
    free(programs->items);
    free(programs);
}

bool inf_subgraph_programs_lost(const struct inf_subgraph_programs *programs)
{
    for (uint32_t i = 0; i < programs->count; i++)
        if (inf_executable_lost(programs->items[i].executable))
            return true;
    return false;
}

static struct inf_executable *find_executable(const struct inf_subgraph_programs *programs,
                                              const struct inf_graph *subgraph)
{
    for (uint32_t i = 0; i < programs->count; i++)
        if (programs->items[i].graph == subgraph)
            return programs->items[i].executable;
    return NULL;
}

void inf_subgraph_programs_add_own_memory(const struct inf_subgraph_programs *programs,
                                          struct inf_executable_memory *memory)
{
    for (uint32_t i = 0; i < programs->count; i++)
        inf_executable_add_own_memory(programs->items[i].executable, memory);
}

// Recurses into subgraphs, whose nesting is at most INF_LIMIT_GRAPH_DEPTH.
enum inf_code inf_subgraph_programs_list_constants(const struct inf_subgraph_programs *programs,
                                                   const struct inf_graph *graph,
                                                   struct inf_constants *constants,
                                                   struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        const struct inf_graph *subgraph = graph->subgraphs[i];
        struct inf_executable *executable = find_executable(programs, subgraph);
        if (subgraph == NULL)
            continue;
        // A compiled subgraph is never interpreted: in every run its node passes inputs of the
        // shapes for which the subgraph was compiled.
        if (executable != NULL) {
            INF_TRY(inf_executable_list_constants(executable, constants, err));
            continue;
        }
        INF_TRY(inf_constants_add_values(constants, subgraph, true, err));
        INF_TRY(inf_subgraph_programs_list_constants(programs, subgraph, constants, err));
    }
    return INF_OK;
}

// --- running a compiled subgraph ---

bool inf_subgraph_programs_fit(const struct inf_subgraph_programs *programs,
                               const struct inf_graph *subgraph, const struct inf_tensor *inputs)
{
    if (find_executable(programs, subgraph) == NULL)
        return false;
    for (uint32_t i = 0; i < subgraph->input_count; i++) {
        const struct inf_value *value = &subgraph->values[subgraph->inputs[i].value];
        if (inputs[i].dtype != value->dtype || inputs[i].data == NULL ||
            !inf_shape_equal(&inputs[i].shape, &value->shape))
            return false;
    }
    return true;
}

// Allocates an output whose size is known. An output of unknown size stays without memory until
// copy_result().
static enum inf_code alloc_output(struct inf_tensor_memory *memory, const struct inf_value *value,
                                  struct inf_tensor *tensor, struct inf_error *err)
{
    size_t size_bytes;
    if (!inf_shape_known(&value->shape) ||
        !inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
        return INF_OK;
    *tensor = (struct inf_tensor){.dtype = value->dtype, .shape = value->shape};
    INF_TRY(inf_tensor_memory_alloc(memory, value->name, size_bytes, &tensor->data, err));
    return INF_OK;
}

// Copies an output whose size became known during the run.
static enum inf_code copy_result(const struct inf_subgraph_run *run,
                                 const struct inf_executable *executable, uint32_t index,
                                 struct inf_error *err)
{
    struct inf_tensor *tensor = &run->outputs[index];
    struct inf_result result;
    if (tensor->data != NULL || !inf_executable_result(executable, run->slot, index, &result))
        return INF_OK;
    *tensor = (struct inf_tensor){.dtype = result.dtype, .shape = result.shape};
    INF_TRY(
        inf_tensor_memory_alloc(run->memory, "an output", result.size_bytes, &tensor->data, err));
    if (result.size_bytes > 0)
        memcpy(tensor->data->data, result.data, result.size_bytes);
    return INF_OK;
}

enum inf_code inf_subgraph_programs_run(const struct inf_subgraph_programs *programs,
                                        const struct inf_subgraph_run *run, struct inf_error *err)
{
    const struct inf_graph *subgraph = run->subgraph;
    struct inf_executable *executable = find_executable(programs, subgraph);
    assert(executable != NULL);
    size_t count = (size_t)subgraph->input_count + subgraph->output_count + 1;
    const void **pointers = calloc(count, sizeof *pointers);
    enum inf_code code = INF_OK;
    if (pointers == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
    void **made = (void **)&pointers[subgraph->input_count];
    for (uint32_t i = 0; i < subgraph->input_count; i++)
        pointers[i] = run->inputs[i].data->data;
    for (uint32_t i = 0; code == INF_OK && i < subgraph->output_count; i++) {
        const struct inf_value *value = &subgraph->values[subgraph->outputs[i].value];
        code = alloc_output(run->memory, value, &run->outputs[i], err);
        made[i] = run->outputs[i].data != NULL ? run->outputs[i].data->data : NULL;
    }
    const struct inf_execution execution = {.inputs = pointers,
                                            .outputs = made,
                                            .slot = run->slot,
                                            .cancelled = run->cancelled,
                                            .step = run->step,
                                            .strings = run->strings,
                                            .core_use = run->core_use};
    if (code == INF_OK)
        code = inf_executable_run(executable, &execution, err);
    for (uint32_t i = 0; code == INF_OK && i < subgraph->output_count; i++)
        code = copy_result(run, executable, i, err);
    inf_executable_drop_results(executable, run->slot);
    free(pointers);
    return code;
}
