// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/dynamic/subgraph_programs.h"

#include <stdlib.h>
#include <string.h>

#include "backends/exec/executable.h"
#include "proto/core/limits.h"

// A subgraph of fewer nodes is interpreted as fast.
#define NODES_MIN 8

struct side {
    const struct inf_graph *graph; // as its node has it
    struct inf_executable *executable;
};

struct inf_subgraph_programs {
    struct side *items;
    uint32_t count, capacity;
};

// --- compiling ---

static bool is_worth_it(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (!inf_shape_known(&graph->values[graph->inputs[i].value].shape))
            return false;
    return graph->node_count >= NODES_MIN;
}

static enum inf_code add_side(struct inf_subgraph_programs *sides, const struct inf_graph *graph,
                              struct inf_executable *executable, struct inf_error *err)
{
    if (sides->count == sides->capacity) {
        uint32_t wanted = sides->capacity * 2 + 4;
        struct side *grown = realloc(sides->items, wanted * sizeof *grown);
        if (grown == NULL) {
            inf_executable_destroy(&executable);
            return inf_fail(err, INF_EXHAUSTED, "no memory for branches");
        }
        sides->items = grown;
        sides->capacity = wanted;
    }
    sides->items[sides->count++] = (struct side){graph, executable};
    return INF_OK;
}

// Compiles what can be, outermost first: inside of that everything is. Recurses as deep as subgraphs
// nest: at most INF_LIMIT_GRAPH_DEPTH, by the verifier.
static enum inf_code compile(struct inf_subgraph_programs *sides, const struct inf_graph *graph,
                             const struct inf_evaluator *evaluator,
                             struct inf_device *const *devices, uint32_t device_count,
                             struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        const struct inf_graph *subgraph = graph->subgraphs[i];
        struct inf_graph *clone = NULL;
        struct inf_executable *executable = NULL;
        struct inf_error ignored;
        if (subgraph == NULL)
            continue;
        if (is_worth_it(subgraph)) {
            INF_TRY(inf_graph_clone(&clone, subgraph, err));
            if (inf_executable_create_dynamic(&executable, &clone, evaluator, devices, device_count,
                                              &ignored) == INF_OK) {
                INF_TRY(add_side(sides, subgraph, executable, err));
                continue;
            }
        }
        INF_TRY(compile(sides, subgraph, evaluator, devices, device_count, err));
    }
    return INF_OK;
}

enum inf_code inf_subgraph_programs_create(struct inf_subgraph_programs **out_sides,
                                           const struct inf_graph *graph,
                                           const struct inf_evaluator *evaluator,
                                           struct inf_device *const *devices, uint32_t device_count,
                                           struct inf_error *err)
{
    struct inf_subgraph_programs *sides = calloc(1, sizeof *sides);
    if (sides == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for branches");
    enum inf_code code = compile(sides, graph, evaluator, devices, device_count, err);
    if (code == INF_OK)
        *out_sides = sides;
    else
        inf_subgraph_programs_destroy(&sides);
    return code;
}

void inf_subgraph_programs_destroy(struct inf_subgraph_programs **pointer)
{
    struct inf_subgraph_programs *sides = *pointer;
    *pointer = NULL;
    if (sides == NULL)
        return;
    for (uint32_t i = 0; i < sides->count; i++)
        inf_executable_destroy(&sides->items[i].executable);
    free(sides->items);
    free(sides);
}

bool inf_subgraph_programs_lost(const struct inf_subgraph_programs *sides)
{
    for (uint32_t i = 0; i < sides->count; i++)
        if (inf_executable_lost(sides->items[i].executable))
            return true;
    return false;
}

static struct inf_executable *find(const struct inf_subgraph_programs *sides,
                                   const struct inf_graph *subgraph)
{
    for (uint32_t i = 0; i < sides->count; i++)
        if (sides->items[i].graph == subgraph)
            return sides->items[i].executable;
    return NULL;
}

void inf_subgraph_programs_add_own_memory(const struct inf_subgraph_programs *sides,
                                          struct inf_executable_memory *memory)
{
    for (uint32_t i = 0; i < sides->count; i++)
        inf_executable_add_own_memory(sides->items[i].executable, memory);
}

// Recurses as deep as subgraphs nest: at most INF_LIMIT_GRAPH_DEPTH, by the verifier.
enum inf_code inf_subgraph_programs_list_constants(const struct inf_subgraph_programs *sides,
                                                   const struct inf_graph *graph,
                                                   struct inf_constants *constants,
                                                   struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        const struct inf_graph *subgraph = graph->subgraphs[i];
        struct inf_executable *executable = find(sides, subgraph);
        if (subgraph == NULL)
            continue;
        // The shapes that it is compiled for are those that its node passes on in every run: it is
        // never interpreted.
        if (executable != NULL) {
            INF_TRY(inf_executable_list_constants(executable, constants, err));
            continue;
        }
        INF_TRY(inf_constants_add_values(constants, subgraph, true, err));
        INF_TRY(inf_subgraph_programs_list_constants(sides, subgraph, constants, err));
    }
    return INF_OK;
}

// --- running ---

bool inf_subgraph_programs_fit(const struct inf_subgraph_programs *sides,
                               const struct inf_graph *subgraph, const struct inf_tensor *inputs)
{
    if (find(sides, subgraph) == NULL)
        return false;
    for (uint32_t i = 0; i < subgraph->input_count; i++) {
        const struct inf_value *value = &subgraph->values[subgraph->inputs[i].value];
        if (inputs[i].dtype != value->dtype || inputs[i].data == NULL ||
            !inf_shape_equal(&inputs[i].shape, &value->shape))
            return false;
    }
    return true;
}

// Room for an output of known size; none for others.
static enum inf_code make_output(struct inf_interpreter *interpreter, const struct inf_value *value,
                                 struct inf_tensor *tensor, struct inf_error *err)
{
    size_t size_bytes;
    if (!inf_shape_known(&value->shape) ||
        !inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
        return INF_OK;
    *tensor = (struct inf_tensor){.dtype = value->dtype, .shape = value->shape};
    INF_TRY(inf_interpreter_create_blob(interpreter, value->name, size_bytes, &tensor->data, err));
    return INF_OK;
}

// Copies an output that only the run could size.
static enum inf_code take_result(struct inf_interpreter *interpreter,
                                 const struct inf_executable *executable, uint32_t index,
                                 struct inf_tensor *tensor, struct inf_error *err)
{
    struct inf_result result;
    if (tensor->data != NULL ||
        !inf_executable_result(executable, interpreter->slot, index, &result))
        return INF_OK;
    *tensor = (struct inf_tensor){.dtype = result.dtype, .shape = result.shape};
    INF_TRY(inf_interpreter_create_blob(interpreter, "an output", result.size_bytes, &tensor->data,
                                        err));
    if (result.size_bytes > 0)
        memcpy(tensor->data->data, result.data, result.size_bytes);
    return INF_OK;
}

enum inf_code inf_subgraph_programs_run(const struct inf_subgraph_programs *sides,
                                        struct inf_interpreter *interpreter,
                                        const struct inf_graph *subgraph,
                                        const struct inf_tensor *inputs, struct inf_tensor *outputs,
                                        struct inf_error *err)
{
    struct inf_executable *executable = find(sides, subgraph);
    size_t count = (size_t)subgraph->input_count + subgraph->output_count + 1;
    const void **pointers = calloc(count, sizeof *pointers);
    enum inf_code code = INF_OK;
    if (pointers == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
    void **made = (void **)&pointers[subgraph->input_count];
    for (uint32_t i = 0; i < subgraph->input_count; i++)
        pointers[i] = inputs[i].data->data;
    for (uint32_t i = 0; code == INF_OK && i < subgraph->output_count; i++) {
        const struct inf_value *value = &subgraph->values[subgraph->outputs[i].value];
        code = make_output(interpreter, value, &outputs[i], err);
        made[i] = outputs[i].data != NULL ? outputs[i].data->data : NULL;
    }
    const struct inf_execution execution = {.inputs = pointers,
                                            .outputs = made,
                                            .slot = interpreter->slot,
                                            .cancelled = interpreter->cancelled};
    if (code == INF_OK)
        code = inf_executable_run(executable, &execution, err);
    for (uint32_t i = 0; code == INF_OK && i < subgraph->output_count; i++)
        code = take_result(interpreter, executable, i, &outputs[i], err);
    inf_executable_drop_results(executable, interpreter->slot);
    free(pointers);
    return code;
}
