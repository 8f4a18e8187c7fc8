// SPDX-License-Identifier: Apache-2.0
// Dynamic executables: for graphs with branches, loops, or shapes that depend on values.
//
// Most nodes of such a graph are ordinary: an image goes through a network, and only the selection
// of boxes at the end depends on computed values. Therefore the graph is split in two parts
// (split.h):
//
//     inputs ──> planned part ──> boundary values ──> interpreted part ──> outputs
//                a static          copied to blobs     node by node
//                executable
//
// The planned part holds every node that depends on no interpreted node. It runs first, as fast as
// any static model. The interpreted part runs node by node (interpret.h), and its shapes are
// inferred from the actual values. It still uses compiled code for branches and loop bodies whose
// shapes are known (subgraph_programs.h), and for single nodes whose shapes repeat
// (node_programs.h).
//
// A client may write to its input memory during a run. Inputs of the interpreted part are copied
// first, so that the checked sizes are the sizes that are used.
#include "backends/exec/dynamic/dynamic_executable.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/dynamic/interpret.h"
#include "backends/exec/dynamic/node_programs.h"
#include "backends/exec/dynamic/scratch_cache.h"
#include "backends/exec/dynamic/split.h"
#include "backends/exec/dynamic/subgraph_programs.h"
#include "backends/exec/executable_ops.h"
#include "backends/exec/static_executable.h"
#include "proto/core/span.h"

struct inf_dynamic_executable {
    struct inf_executable base;
    struct inf_split split;                  // both parts of the graph; `planned` owns its part
    struct inf_executable *planned;          // static executable of the planned part
    struct inf_subgraph_programs *subgraphs; // compiled subgraphs of the interpreted part
    struct inf_node_programs *programs;      // for single interpreted nodes; NULL: there are none
    struct inf_evaluator evaluator;
    // results[slot * output_count + i]: output i of the slot's last run, if its size is known only
    // after a run
    struct inf_tensor *results;
    struct inf_scratch_cache *scratch_cache; // one for each slot
    uint32_t slot_count;
};

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

// --- results whose size is known only after a run ---

static bool find_result(const struct inf_executable *base, uint32_t slot, uint32_t output,
                        struct inf_result *result)
{
    const struct inf_dynamic_executable *dynamic = (const struct inf_dynamic_executable *)base;
    assert(slot < dynamic->slot_count);
    const struct inf_tensor *tensor =
        &dynamic->results[(size_t)slot * base->graph->output_count + output];
    if (tensor->data == NULL)
        return false;
    *result = (struct inf_result){.dtype = tensor->dtype,
                                  .shape = tensor->shape,
                                  .data = tensor->data->data,
                                  .size_bytes = tensor->data->size_bytes};
    return true;
}

static void drop_results(struct inf_executable *base, uint32_t slot)
{
    struct inf_dynamic_executable *dynamic = (struct inf_dynamic_executable *)base;
    uint32_t count = base->graph->output_count;
    assert(slot < dynamic->slot_count);
    for (uint32_t i = 0; i < count; i++)
        inf_tensor_clear(&dynamic->results[(size_t)slot * count + i]);
}

// --- running the planned part and then the interpreted part ---

// The tensors of one run.
struct run {
    struct inf_dynamic_executable *dynamic;
    const struct inf_execution *execution;
    // indexed by output of the planned part: memory of the outputs that the interpreted part reads
    struct inf_blob **planned;
    struct inf_tensor *inputs; // inputs of the interpreted part
    struct inf_tensor *outputs;
};

static const struct inf_value *output_value(const struct inf_graph *graph, uint32_t output)
{
    return &graph->values[graph->outputs[output].value];
}

static enum inf_code run_planned(struct run *run, struct inf_error *err)
{
    struct inf_dynamic_executable *dynamic = run->dynamic;
    const struct inf_graph *graph = inf_executable_graph(dynamic->planned);
    void **outputs = calloc((size_t)graph->output_count + 1, sizeof *outputs);
    if (outputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < graph->output_count && code == INF_OK; i++) {
        uint32_t wanted = dynamic->split.graph_outputs[i];
        if (!dynamic->split.is_boundary[i]) {
            outputs[i] = wanted != INF_SPLIT_NONE ? run->execution->outputs[wanted] : NULL;
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

// Copies to the caller's memory those results of the planned part that could not be written there
// directly, because the interpreted part reads them too or because two outputs are the same value.
static void copy_planned(const struct run *run)
{
    const struct inf_dynamic_executable *dynamic = run->dynamic;
    for (uint32_t i = 0; i < dynamic->base.graph->output_count; i++) {
        uint32_t from = dynamic->split.planned_outputs[i];
        if (from == INF_SPLIT_NONE || run->execution->outputs[i] == NULL)
            continue;
        if (dynamic->split.is_boundary[from]) {
            memcpy(run->execution->outputs[i], run->planned[from]->data,
                   run->planned[from]->size_bytes);
        } else if (dynamic->split.graph_outputs[from] != i) {
            // Two outputs of the graph may be the same value. The planned part wrote it to the last
            // of them only, so copy it from there.
            const struct inf_value *value = output_value(dynamic->base.graph, i);
            size_t size_bytes = 0;
            const void *other = run->execution->outputs[dynamic->split.graph_outputs[from]];
            if (other != NULL && inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
                memcpy(run->execution->outputs[i], other, size_bytes);
        }
    }
}

// Binds the inputs of the interpreted part. Inputs of the graph are copied, because a client may
// still write to their memory, and the run must compute with the same values from which the sizes
// were taken.
static enum inf_code bind_rest(struct run *run, struct inf_error *err)
{
    const struct inf_dynamic_executable *dynamic = run->dynamic;
    for (uint32_t i = 0; i < dynamic->split.rest->input_count; i++) {
        const struct inf_split_source *source = &dynamic->split.rest_sources[i];
        const struct inf_value *value =
            &dynamic->split.rest->values[dynamic->split.rest->inputs[i].value];
        run->inputs[i] = (struct inf_tensor){.dtype = value->dtype, .shape = value->shape};
        if (source->planned != INF_SPLIT_NONE) {
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

// Writes outputs of known size to the caller's memory, and keeps the other outputs in the slot.
static enum inf_code finish_outputs(struct run *run, struct inf_error *err)
{
    const struct inf_dynamic_executable *dynamic = run->dynamic;
    struct inf_tensor *results =
        &dynamic->results[(size_t)run->execution->slot * dynamic->base.graph->output_count];
    for (uint32_t i = 0; i < dynamic->base.graph->output_count; i++) {
        if (dynamic->split.rest_outputs[i] == INF_SPLIT_NONE)
            continue;
        struct inf_tensor *tensor = &run->outputs[dynamic->split.rest_outputs[i]];
        const struct inf_value *value = output_value(dynamic->base.graph, i);
        if (!inf_shape_known(&value->shape)) {
            results[i] = *tensor;
            *tensor = (struct inf_tensor){0};
            continue;
        }
        if (!inf_shape_equal(&value->shape, &tensor->shape))
            return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BUG,
                                   "output '%s' has another shape than it was planned with",
                                   dynamic->base.graph->outputs[i].name);
        if (run->execution->outputs[i] != NULL && tensor->data->size_bytes > 0)
            memcpy(run->execution->outputs[i], tensor->data->data, tensor->data->size_bytes);
    }
    return INF_OK;
}

static enum inf_code run_all(struct run *run, struct inf_error *err)
{
    struct inf_interpreter interpreter = {
        .evaluator = &run->dynamic->evaluator,
        .cancelled = run->execution->cancelled,
        .step = run->execution->step,
        .strings = run->execution->strings,
        .core_use = run->execution->core_use,
        .subgraphs = run->dynamic->subgraphs,
        .programs = run->dynamic->programs,
        .slot = run->execution->slot,
        .memory = {.scratch_cache = &run->dynamic->scratch_cache[run->execution->slot]}};
    if (run->planned == NULL || run->inputs == NULL || run->outputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a run");
    INF_TRY(run_planned(run, err));
    copy_planned(run);
    INF_TRY(bind_rest(run, err));
    INF_TRY(inf_interpret(&interpreter, run->dynamic->split.rest, run->inputs, run->outputs, err));
    return finish_outputs(run, err);
}

static enum inf_code run_dynamic(struct inf_executable *base, const struct inf_execution *execution,
                                 struct inf_error *err)
{
    struct inf_dynamic_executable *dynamic = (struct inf_dynamic_executable *)base;
    const struct inf_graph *planned = inf_executable_graph(dynamic->planned);
    struct run run = {
        .dynamic = dynamic,
        .execution = execution,
        .planned = calloc((size_t)planned->output_count + 1, sizeof *run.planned),
        .inputs = calloc((size_t)dynamic->split.rest->input_count + 1, sizeof *run.inputs),
        .outputs = calloc((size_t)dynamic->split.rest->output_count + 1, sizeof *run.outputs),
    };
    drop_results(base, execution->slot);
    enum inf_code code = run_all(&run, err);
    for (uint32_t i = 0; run.planned != NULL && i < planned->output_count; i++)
        inf_blob_unref(&run.planned[i]);
    for (uint32_t i = 0; run.inputs != NULL && i < dynamic->split.rest->input_count; i++)
        inf_tensor_clear(&run.inputs[i]);
    for (uint32_t i = 0; run.outputs != NULL && i < dynamic->split.rest->output_count; i++)
        inf_tensor_clear(&run.outputs[i]);
    free(run.planned);
    free(run.inputs);
    free(run.outputs);
    return code;
}

// --- reporting memory and profiles ---

static void add_own_memory(const struct inf_executable *base, struct inf_executable_memory *memory)
{
    const struct inf_dynamic_executable *dynamic = (const struct inf_dynamic_executable *)base;
    inf_executable_add_own_memory(dynamic->planned, memory);
    inf_subgraph_programs_add_own_memory(dynamic->subgraphs, memory);
    memory->weight_bytes += inf_node_programs_bytes(dynamic->programs);
    for (uint32_t i = 0; i < dynamic->slot_count; i++)
        memory->buffer_bytes +=
            atomic_load_explicit(&dynamic->scratch_cache[i].bytes, memory_order_relaxed);
}

static enum inf_code list_constants(const struct inf_executable *base,
                                    struct inf_constants *constants, struct inf_error *err)
{
    const struct inf_dynamic_executable *dynamic = (const struct inf_dynamic_executable *)base;
    INF_TRY(inf_executable_list_constants(dynamic->planned, constants, err));
    INF_TRY(
        inf_node_programs_list_constants(dynamic->programs, dynamic->split.rest, constants, err));
    return inf_subgraph_programs_list_constants(dynamic->subgraphs, dynamic->split.rest, constants,
                                                err);
}

static bool is_lost(const struct inf_executable *base)
{
    const struct inf_dynamic_executable *dynamic = (const struct inf_dynamic_executable *)base;
    return inf_executable_lost(dynamic->planned) || inf_subgraph_programs_lost(dynamic->subgraphs);
}

static const struct inf_executable *planned_part(const struct inf_executable *base)
{
    return ((const struct inf_dynamic_executable *)base)->planned;
}

static enum inf_precision computed_precision(const struct inf_executable *base)
{
    (void)base;
    return INF_PRECISION_FP32;
}

// Copies the profile of the planned part, and converts its node numbers to those of the whole
// graph.
static uint32_t copy_profile(const struct inf_executable *base, uint32_t slot,
                             struct inf_node_profile *nodes, uint32_t capacity)
{
    const struct inf_dynamic_executable *dynamic = (const struct inf_dynamic_executable *)base;
    uint32_t count = inf_executable_profile(dynamic->planned, slot, nodes, capacity);
    for (uint32_t i = 0; i < INF_MIN(count, capacity); i++)
        nodes[i].node = dynamic->split.planned_nodes[nodes[i].node];
    return count;
}

// --- creating and destroying a dynamic executable ---

static void destroy_executable(struct inf_executable *base)
{
    struct inf_dynamic_executable *dynamic = (struct inf_dynamic_executable *)base;
    for (uint32_t i = 0; dynamic->results != NULL && i < dynamic->slot_count; i++)
        drop_results(base, i);
    for (uint32_t i = 0; dynamic->scratch_cache != NULL && i < dynamic->slot_count; i++)
        inf_scratch_cache_fini(&dynamic->scratch_cache[i]);
    inf_executable_destroy(&dynamic->planned);
    inf_subgraph_programs_destroy(&dynamic->subgraphs);
    inf_node_programs_destroy(&dynamic->programs);
    inf_split_fini(&dynamic->split);
    free(dynamic->results);
    free(dynamic->scratch_cache);
    inf_graph_destroy(&dynamic->base.graph);
    free(dynamic);
}

static const struct inf_executable_ops dynamic_ops = {
    .destroy = destroy_executable,
    .planned = planned_part,
    .precision = computed_precision,
    .add_own_memory = add_own_memory,
    .list_constants = list_constants,
    .lost = is_lost,
    .run = run_dynamic,
    .result = find_result,
    .drop_results = drop_results,
    .profile = copy_profile,
};

static enum inf_code build_executable(struct inf_dynamic_executable *dynamic,
                                      const struct inf_evaluator *evaluator,
                                      struct inf_device *const *devices, uint32_t device_count,
                                      const struct inf_run_options *options, struct inf_error *err)
{
    const struct inf_graph *graph = dynamic->base.graph;
    dynamic->evaluator = *evaluator;
    dynamic->slot_count = inf_device_info(devices[0])->slots;
    size_t results = ((size_t)graph->output_count + 1) * dynamic->slot_count;
    dynamic->results = calloc(results, sizeof *dynamic->results);
    dynamic->scratch_cache =
        calloc((size_t)dynamic->slot_count + 1, sizeof *dynamic->scratch_cache);
    if (dynamic->results == NULL || dynamic->scratch_cache == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for an executable");
    INF_TRY(inf_split_init(&dynamic->split, graph, err));
    INF_TRY(inf_static_executable_create(&dynamic->planned, &dynamic->split.planned, devices,
                                         device_count, options, err));
    const struct inf_subgraph_compiler compiler = {.create = inf_dynamic_executable_create,
                                                   .evaluator = &dynamic->evaluator,
                                                   .devices = devices,
                                                   .device_count = device_count,
                                                   .options = options};
    INF_TRY(inf_subgraph_programs_create(&dynamic->subgraphs, dynamic->split.rest, &compiler, err));
    return inf_node_programs_create(&dynamic->programs, devices, device_count, dynamic->slot_count,
                                    dynamic->split.rest, err);
}

enum inf_code
inf_dynamic_executable_create(struct inf_executable **out_executable, struct inf_graph **graph,
                              const struct inf_evaluator *evaluator,
                              struct inf_device *const *devices, uint32_t device_count,
                              const struct inf_run_options *options, struct inf_error *err)
{
    assert(device_count > 0);
    const struct inf_run_options used = {.cancelled = options->cancelled, .races = options->races};
    if (!inf_graph_needs_values(*graph))
        return inf_static_executable_create(out_executable, graph, devices, device_count, &used,
                                            err);
    struct inf_dynamic_executable *dynamic = calloc(1, sizeof *dynamic);
    if (dynamic == NULL) {
        inf_graph_destroy(graph);
        return inf_fail(err, INF_EXHAUSTED, "no memory for an executable");
    }
    dynamic->base = (struct inf_executable){.ops = &dynamic_ops, .graph = *graph};
    *graph = NULL;
    enum inf_code code = build_executable(dynamic, evaluator, devices, device_count, &used, err);
    if (code == INF_OK)
        *out_executable = &dynamic->base;
    else
        destroy_executable(&dynamic->base);
    return code;
}
