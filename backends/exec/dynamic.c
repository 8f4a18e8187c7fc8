// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/dynamic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/node_programs.h"
#include "backends/exec/sides.h"
#include "backends/graph/verify.h"
#include "proto/core/span.h"

#define NONE UINT32_MAX

// Where a tensor comes from: one of these is set, the other is NONE.
struct source {
    uint32_t input;   // of the whole graph
    uint32_t planned; // output of the planned part
};

struct inf_dynamic {
    const struct inf_graph *graph;
    struct inf_executable *planned; // takes all inputs of the graph
    uint32_t *planned_nodes;        // by its node: index in the whole graph
    struct inf_graph *rest;
    struct inf_sides *sides;            // of the rest
    struct inf_node_programs *programs; // of the rest; NULL: none
    struct source *rest_sources;        // by input of the rest
    uint32_t *rest_outputs;             // by output of the graph: output of the rest, or NONE
    uint32_t *planned_outputs; // by output of the graph: output of the planned part, or NONE
    uint32_t *graph_outputs;   // by output of the planned part: of the graph, or NONE
    bool *is_boundary;         // by output of the planned part: the rest takes it
    struct inf_evaluator evaluator;
    struct inf_tensor *results; // by slot and output of the graph
    uint32_t slot_count;
};

// --- splitting ---

// What is known on the way through the nodes, and while the parts are made.
struct splitter {
    struct inf_dynamic *dynamic;
    bool *node_planned;
    bool *value_planned;       // by value: an input, a constant, or made by a planned node
    uint32_t *value_output;    // by value: output of the planned part, or NONE
    struct inf_graph *planned; // while it is made
};

static bool is_planned(const struct splitter *splitter, const struct inf_graph *graph,
                       const struct inf_node *node)
{
    if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && !splitter->value_planned[node->inputs[i]])
            return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (!inf_shape_known(&graph->values[node->outputs[i]].shape))
            return false;
    return true;
}

bool inf_graph_needs_values(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
            return true;
        for (uint32_t k = 0; k < node->output_count; k++)
            if (!inf_shape_known(&graph->values[node->outputs[k]].shape))
                return true;
    }
    return false;
}

static void mark(struct splitter *splitter)
{
    const struct inf_graph *graph = splitter->dynamic->graph;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        splitter->value_planned[v] = graph->values[v].producer == INF_NODE_NONE;
        splitter->value_output[v] = NONE;
    }
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        splitter->node_planned[i] = is_planned(splitter, graph, node);
        for (uint32_t k = 0; k < node->output_count; k++)
            splitter->value_planned[node->outputs[k]] = splitter->node_planned[i];
    }
}

// A copy of the graph with only the nodes for which `planned` says so, and no ports.
static enum inf_code clone_part(const struct splitter *splitter, bool planned,
                                struct inf_graph **out_graph, struct inf_error *err)
{
    const struct inf_graph *graph = splitter->dynamic->graph;
    INF_TRY(inf_graph_clone(out_graph, graph, err));
    uint32_t *map = calloc((size_t)graph->node_count + 1, sizeof *map);
    if (map == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to split a graph");
    uint32_t kept = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        map[i] = splitter->node_planned[i] == planned ? kept++ : INF_NODE_NONE;
        if (planned && map[i] != INF_NODE_NONE)
            splitter->dynamic->planned_nodes[map[i]] = i;
    }
    inf_graph_compact_nodes(*out_graph, map);
    free(map);
    (void)inf_graph_compact_subgraphs(*out_graph);
    (*out_graph)->output_count = 0;
    if (!planned)
        (*out_graph)->input_count = 0;
    return INF_OK;
}

// Makes `value` an output of the planned part, once.
static enum inf_code add_planned_output(struct splitter *splitter, uint32_t value,
                                        struct inf_error *err)
{
    char name[32];
    if (splitter->value_output[value] != NONE)
        return INF_OK;
    splitter->value_output[value] = splitter->planned->output_count;
    snprintf(name, sizeof name, "%u", value);
    return inf_graph_add_output(splitter->planned, name, value, err);
}

static uint32_t find_input(const struct inf_graph *graph, uint32_t value)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].value == value)
            return i;
    return NONE;
}

// Makes `value`, which is known when the rest begins, an input of the rest.
static enum inf_code add_boundary(struct splitter *splitter, uint32_t value, struct inf_error *err)
{
    struct inf_dynamic *dynamic = splitter->dynamic;
    struct source source = {.input = find_input(dynamic->graph, value), .planned = NONE};
    char name[32];
    if (source.input == NONE) {
        INF_TRY(add_planned_output(splitter, value, err));
        source.planned = splitter->value_output[value];
        dynamic->is_boundary[source.planned] = true;
    }
    dynamic->rest_sources[dynamic->rest->input_count] = source;
    snprintf(name, sizeof name, "%u", value);
    return inf_graph_add_input(dynamic->rest, name, value, err);
}

// What the rest takes from outside. `seen` is by value.
static enum inf_code add_boundaries(struct splitter *splitter, bool *seen, struct inf_error *err)
{
    const struct inf_graph *graph = splitter->dynamic->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        for (uint32_t k = 0; !splitter->node_planned[i] && k < node->input_count; k++) {
            uint32_t value = node->inputs[k];
            if (value == INF_VALUE_NONE || seen[value] || !splitter->value_planned[value] ||
                graph->values[value].data != NULL)
                continue;
            seen[value] = true;
            INF_TRY(add_boundary(splitter, value, err));
        }
    }
    return INF_OK;
}

static enum inf_code add_outputs(struct splitter *splitter, struct inf_error *err)
{
    struct inf_dynamic *dynamic = splitter->dynamic;
    for (uint32_t i = 0; i < dynamic->graph->output_count; i++) {
        const struct inf_port *port = &dynamic->graph->outputs[i];
        dynamic->rest_outputs[i] = dynamic->planned_outputs[i] = NONE;
        if (splitter->value_planned[port->value]) {
            INF_TRY(add_planned_output(splitter, port->value, err));
            dynamic->planned_outputs[i] = splitter->value_output[port->value];
            dynamic->graph_outputs[dynamic->planned_outputs[i]] = i;
        } else {
            dynamic->rest_outputs[i] = dynamic->rest->output_count;
            INF_TRY(inf_graph_add_output(dynamic->rest, port->name, port->value, err));
        }
    }
    return INF_OK;
}

// Drops the data of constants that a part has no use for.
static enum inf_code drop_unused(struct inf_graph *graph, bool *used, struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].input_count; k++)
            if (graph->nodes[i].inputs[k] != INF_VALUE_NONE)
                used[graph->nodes[i].inputs[k]] = true;
    for (uint32_t i = 0; i < graph->output_count; i++)
        used[graph->outputs[i].value] = true;
    for (uint32_t v = 0; v < graph->value_count; v++)
        if (!used[v])
            inf_blob_unref(&graph->values[v].data);
    return inf_graph_verify(graph, err);
}

static enum inf_code split(struct splitter *splitter, struct inf_error *err)
{
    struct inf_dynamic *dynamic = splitter->dynamic;
    size_t values = (size_t)dynamic->graph->value_count + 1;
    bool *flags = calloc(values, 3 * sizeof *flags);
    if (flags == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to split a graph");
    mark(splitter);
    enum inf_code code = clone_part(splitter, true, &splitter->planned, err);
    if (code == INF_OK)
        code = clone_part(splitter, false, &dynamic->rest, err);
    if (code == INF_OK)
        code = add_boundaries(splitter, flags, err);
    if (code == INF_OK)
        code = add_outputs(splitter, err);
    if (code == INF_OK)
        code = drop_unused(splitter->planned, flags + values, err);
    if (code == INF_OK)
        code = drop_unused(dynamic->rest, flags + 2 * values, err);
    free(flags);
    if (code == INF_OK) {
        inf_graph_trim(splitter->planned);
        inf_graph_trim(dynamic->rest);
    }
    return code;
}

static enum inf_code allocate(struct splitter *splitter, struct inf_error *err)
{
    struct inf_dynamic *dynamic = splitter->dynamic;
    size_t values = (size_t)dynamic->graph->value_count + 1;
    size_t nodes = (size_t)dynamic->graph->node_count + 1;
    size_t outputs = (size_t)dynamic->graph->output_count + 1;
    splitter->node_planned = calloc(nodes, sizeof *splitter->node_planned);
    splitter->value_planned = calloc(values, sizeof *splitter->value_planned);
    splitter->value_output = calloc(values, sizeof *splitter->value_output);
    dynamic->planned_nodes = calloc(nodes, sizeof *dynamic->planned_nodes);
    dynamic->rest_sources = calloc(values, sizeof *dynamic->rest_sources);
    dynamic->graph_outputs = malloc(values * sizeof *dynamic->graph_outputs);
    dynamic->is_boundary = calloc(values, sizeof *dynamic->is_boundary);
    dynamic->rest_outputs = calloc(outputs, sizeof *dynamic->rest_outputs);
    dynamic->planned_outputs = calloc(outputs, sizeof *dynamic->planned_outputs);
    dynamic->results = calloc(outputs * dynamic->slot_count, sizeof *dynamic->results);
    if (splitter->node_planned == NULL || splitter->value_planned == NULL ||
        splitter->value_output == NULL || dynamic->planned_nodes == NULL ||
        dynamic->rest_sources == NULL || dynamic->graph_outputs == NULL ||
        dynamic->is_boundary == NULL || dynamic->rest_outputs == NULL ||
        dynamic->planned_outputs == NULL || dynamic->results == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to split a graph");
    memset(dynamic->graph_outputs, 0xff, values * sizeof *dynamic->graph_outputs); // NONE
    return INF_OK;
}

enum inf_code inf_dynamic_create(struct inf_dynamic **out_dynamic, const struct inf_graph *graph,
                                 const struct inf_evaluator *evaluator,
                                 struct inf_device *const *devices, uint32_t device_count,
                                 struct inf_error *err)
{
    struct inf_dynamic *dynamic = calloc(1, sizeof *dynamic);
    if (dynamic == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for an executable");
    dynamic->graph = graph;
    dynamic->evaluator = *evaluator;
    dynamic->slot_count = inf_device_info(devices[0])->slots;
    struct splitter splitter = {.dynamic = dynamic};
    enum inf_code code = allocate(&splitter, err);
    if (code == INF_OK)
        code = split(&splitter, err);
    if (code == INF_OK)
        code =
            inf_executable_create(&dynamic->planned, &splitter.planned, devices, device_count, err);
    if (code == INF_OK)
        code = inf_sides_create(&dynamic->sides, dynamic->rest, &dynamic->evaluator, devices,
                                device_count, err);
    if (code == INF_OK)
        code = inf_node_programs_create(&dynamic->programs, devices, device_count,
                                        dynamic->slot_count, err);
    inf_graph_destroy(&splitter.planned);
    free(splitter.node_planned);
    free(splitter.value_planned);
    free(splitter.value_output);
    if (code == INF_OK)
        *out_dynamic = dynamic;
    else
        inf_dynamic_destroy(&dynamic);
    return code;
}

void inf_dynamic_destroy(struct inf_dynamic **pointer)
{
    struct inf_dynamic *dynamic = *pointer;
    *pointer = NULL;
    if (dynamic == NULL)
        return;
    for (uint32_t i = 0; dynamic->results != NULL && i < dynamic->slot_count; i++)
        inf_dynamic_drop_results(dynamic, i);
    inf_executable_destroy(&dynamic->planned);
    inf_sides_destroy(&dynamic->sides);
    inf_node_programs_destroy(&dynamic->programs);
    inf_graph_destroy(&dynamic->rest);
    free(dynamic->planned_nodes);
    free(dynamic->rest_sources);
    free(dynamic->graph_outputs);
    free(dynamic->is_boundary);
    free(dynamic->rest_outputs);
    free(dynamic->planned_outputs);
    free(dynamic->results);
    free(dynamic);
}

void inf_dynamic_add_own_memory(const struct inf_dynamic *dynamic,
                                struct inf_executable_memory *memory)
{
    inf_executable_add_own_memory(dynamic->planned, memory);
    inf_sides_add_own_memory(dynamic->sides, memory);
    memory->weight_bytes += inf_node_programs_bytes(dynamic->programs);
}

enum inf_code inf_dynamic_list_constants(const struct inf_dynamic *dynamic,
                                         struct inf_constants *constants, struct inf_error *err)
{
    INF_TRY(inf_executable_list_constants(dynamic->planned, constants, err));
    return inf_sides_list_constants(dynamic->sides, dynamic->rest, constants, err);
}

bool inf_dynamic_lost(const struct inf_dynamic *dynamic)
{
    return inf_executable_lost(dynamic->planned) || inf_sides_lost(dynamic->sides);
}

const struct inf_executable *inf_dynamic_planned(const struct inf_dynamic *dynamic)
{
    return dynamic->planned;
}

uint32_t inf_dynamic_planned_node(const struct inf_dynamic *dynamic, uint32_t node)
{
    return dynamic->planned_nodes[node];
}

// --- running ---

// The tensors of one run.
struct run {
    struct inf_dynamic *dynamic;
    const struct inf_execution *execution;
    struct inf_blob **planned; // by output of the planned part: those the rest takes
    struct inf_tensor *inputs; // of the rest
    struct inf_tensor *outputs;
};

static const struct inf_value *output_value(const struct inf_graph *graph, uint32_t output)
{
    return &graph->values[graph->outputs[output].value];
}

static enum inf_code run_planned(struct run *run, struct inf_error *err)
{
    struct inf_dynamic *dynamic = run->dynamic;
    const struct inf_graph *graph = inf_executable_graph(dynamic->planned);
    void **outputs = calloc((size_t)graph->output_count + 1, sizeof *outputs);
    if (outputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < graph->output_count && code == INF_OK; i++) {
        uint32_t wanted = dynamic->graph_outputs[i];
        if (!dynamic->is_boundary[i]) {
            outputs[i] = wanted != NONE ? run->execution->outputs[wanted] : NULL;
            continue;
        }
        size_t size_bytes = 0;
        const struct inf_value *value = output_value(graph, i);
        if (inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            run->planned[i] = inf_blob_create(size_bytes);
        if (run->planned[i] == NULL)
            code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for %zu bytes", size_bytes);
        else
            outputs[i] = run->planned[i]->data;
    }
    struct inf_execution execution = *run->execution;
    execution.outputs = outputs;
    if (code == INF_OK)
        code = inf_executable_run(dynamic->planned, &execution, err);
    free(outputs);
    return code;
}

// Copies what the planned part made for the rest as well as for the caller.
static void copy_planned(const struct run *run)
{
    const struct inf_dynamic *dynamic = run->dynamic;
    for (uint32_t i = 0; i < dynamic->graph->output_count; i++) {
        uint32_t from = dynamic->planned_outputs[i];
        if (from == NONE || run->execution->outputs[i] == NULL)
            continue;
        if (dynamic->is_boundary[from]) {
            memcpy(run->execution->outputs[i], run->planned[from]->data,
                   run->planned[from]->size_bytes);
        } else if (dynamic->graph_outputs[from] != i) {
            // Two outputs of the graph are one value: the planned part wrote the last one.
            const struct inf_value *value = output_value(dynamic->graph, i);
            size_t size_bytes = 0;
            const void *other = run->execution->outputs[dynamic->graph_outputs[from]];
            if (other != NULL && inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
                memcpy(run->execution->outputs[i], other, size_bytes);
        }
    }
}

// The rest's inputs. Those of the graph are copied: a client may still write to the memory, and what
// sizes were taken from must be what is computed with.
static enum inf_code bind_rest(struct run *run, struct inf_error *err)
{
    const struct inf_dynamic *dynamic = run->dynamic;
    for (uint32_t i = 0; i < dynamic->rest->input_count; i++) {
        const struct source *source = &dynamic->rest_sources[i];
        const struct inf_value *value = &dynamic->rest->values[dynamic->rest->inputs[i].value];
        run->inputs[i] = (struct inf_tensor){.dtype = value->dtype, .shape = value->shape};
        if (source->planned != NONE) {
            run->inputs[i].data = inf_blob_ref(run->planned[source->planned]);
            continue;
        }
        size_t size_bytes = 0;
        if (inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            run->inputs[i].data = inf_blob_create(size_bytes);
        if (run->inputs[i].data == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for %zu bytes", size_bytes);
        if (size_bytes > 0)
            memcpy(run->inputs[i].data->data, run->execution->inputs[source->input], size_bytes);
    }
    return INF_OK;
}

// Writes outputs of known size to where they are wanted, and keeps the others.
static enum inf_code finish_outputs(struct run *run, struct inf_error *err)
{
    const struct inf_dynamic *dynamic = run->dynamic;
    struct inf_tensor *results =
        &dynamic->results[(size_t)run->execution->slot * dynamic->graph->output_count];
    for (uint32_t i = 0; i < dynamic->graph->output_count; i++) {
        if (dynamic->rest_outputs[i] == NONE)
            continue;
        struct inf_tensor *tensor = &run->outputs[dynamic->rest_outputs[i]];
        const struct inf_value *value = output_value(dynamic->graph, i);
        if (!inf_shape_known(&value->shape)) {
            results[i] = *tensor;
            *tensor = (struct inf_tensor){0};
            continue;
        }
        if (!inf_shape_equal(&value->shape, &tensor->shape))
            return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BUG,
                                   "output '%s' has another shape than it was planned with",
                                   dynamic->graph->outputs[i].name);
        if (run->execution->outputs[i] != NULL && tensor->data->size_bytes > 0)
            memcpy(run->execution->outputs[i], tensor->data->data, tensor->data->size_bytes);
    }
    return INF_OK;
}

static enum inf_code run_all(struct run *run, struct inf_error *err)
{
    struct inf_interpreter interpreter = {.evaluator = &run->dynamic->evaluator,
                                          .cancelled = run->execution->cancelled,
                                          .sides = run->dynamic->sides,
                                          .programs = run->dynamic->programs,
                                          .slot = run->execution->slot};
    if (run->planned == NULL || run->inputs == NULL || run->outputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
    INF_TRY(run_planned(run, err));
    copy_planned(run);
    INF_TRY(bind_rest(run, err));
    INF_TRY(inf_interpret(&interpreter, run->dynamic->rest, run->inputs, run->outputs, err));
    return finish_outputs(run, err);
}

enum inf_code inf_dynamic_run(struct inf_dynamic *dynamic, const struct inf_execution *execution,
                              struct inf_error *err)
{
    const struct inf_graph *planned = inf_executable_graph(dynamic->planned);
    struct run run = {
        .dynamic = dynamic,
        .execution = execution,
        .planned = calloc((size_t)planned->output_count + 1, sizeof *run.planned),
        .inputs = calloc((size_t)dynamic->rest->input_count + 1, sizeof *run.inputs),
        .outputs = calloc((size_t)dynamic->rest->output_count + 1, sizeof *run.outputs),
    };
    inf_dynamic_drop_results(dynamic, execution->slot);
    enum inf_code code = run_all(&run, err);
    for (uint32_t i = 0; run.planned != NULL && i < planned->output_count; i++)
        inf_blob_unref(&run.planned[i]);
    for (uint32_t i = 0; run.inputs != NULL && i < dynamic->rest->input_count; i++)
        inf_tensor_clear(&run.inputs[i]);
    for (uint32_t i = 0; run.outputs != NULL && i < dynamic->rest->output_count; i++)
        inf_tensor_clear(&run.outputs[i]);
    free(run.planned);
    free(run.inputs);
    free(run.outputs);
    return code;
}

bool inf_dynamic_result(const struct inf_dynamic *dynamic, uint32_t slot, uint32_t output,
                        struct inf_result *result)
{
    const struct inf_tensor *tensor =
        &dynamic->results[(size_t)slot * dynamic->graph->output_count + output];
    if (tensor->data == NULL)
        return false;
    *result = (struct inf_result){.dtype = tensor->dtype,
                                  .shape = tensor->shape,
                                  .data = tensor->data->data,
                                  .size_bytes = tensor->data->size_bytes};
    return true;
}

void inf_dynamic_drop_results(struct inf_dynamic *dynamic, uint32_t slot)
{
    uint32_t count = dynamic->graph->output_count;
    for (uint32_t i = 0; i < count; i++)
        inf_tensor_clear(&dynamic->results[(size_t)slot * count + i]);
}
