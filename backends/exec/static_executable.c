// SPDX-License-Identifier: Apache-2.0
// Creates static executables: plans a graph whose shapes are all known, compiles each segment for
// its device, and gives every slot (concurrent run) its arenas. Lists the constants and their
// memory. A run binds inputs and outputs (static_run.h) and then submits one program for each
// segment.
#include "backends/exec/static_executable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backends/exec/static_run.h"
#include "proto/core/span.h"

// Marks the values that are stored as 16-bit floats: values that are in the first device's arena
// and that no pinned node computes.
static enum inf_code find_lowered_values(struct inf_static_executable *executable,
                                         struct inf_error *err)
{
    const struct inf_graph *graph = executable->base.graph;
    const struct inf_plan *plan = executable->plan;
    if (executable->options.precision != INF_PRECISION_FP16)
        return INF_OK;
    free(executable->lowered);
    executable->lowered = calloc((size_t)graph->value_count + 1, sizeof *executable->lowered);
    if (executable->lowered == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the forms of %u values",
                        graph->value_count);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        uint32_t producer = graph->values[plan->roots[v]].producer;
        executable->lowered[v] =
            executable->staging.on_device[v] && graph->values[v].dtype == INF_DTYPE_F32 &&
            producer != INF_NODE_NONE && !(plan->pinned != NULL && plan->pinned[producer]);
    }
    return INF_OK;
}

static enum inf_code compile_segments(struct inf_static_executable *executable,
                                      struct inf_error *err)
{
    const struct inf_plan *plan = executable->plan;
    executable->programs = calloc((size_t)plan->segment_count + 1, sizeof *executable->programs);
    if (executable->programs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u programs", plan->segment_count);
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        struct inf_device *device = executable->devices[plan->segments[i].device];
        struct inf_segment segment =
            inf_plan_segment(plan, i, executable->base.graph, device, &executable->options);
        segment.slots = executable->slot_count;
        if (segment.precision == executable->options.precision)
            segment.lowered = executable->lowered;
        INF_TRY(inf_program_compile(&executable->programs[i], device, &segment, 0, err));
    }
    return INF_OK;
}

// Lists the values that are in the memory of the graph's inputs and outputs. The caller owns that
// memory, and its address may differ in each run.
static enum inf_code list_bound_values(struct inf_static_executable *executable,
                                       struct inf_error *err)
{
    const struct inf_graph *graph = executable->base.graph;
    const struct inf_plan *plan = executable->plan;
    uint32_t inputs = 0, outputs = 0;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        inputs += plan->storage[v].place == INF_PLACE_INPUT;
        outputs += plan->storage[v].place == INF_PLACE_OUTPUT;
    }
    executable->inputs = calloc((size_t)inputs + 1, sizeof *executable->inputs);
    executable->outputs = calloc((size_t)outputs + 1, sizeof *executable->outputs);
    if (executable->inputs == NULL || executable->outputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u values", graph->value_count);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_storage *storage = &plan->storage[v];
        struct inf_bound_value bound = {.value = v, .index = storage->index};
        if (storage->place == INF_PLACE_INPUT)
            executable->inputs[executable->input_count++] = bound;
        if (storage->place == INF_PLACE_OUTPUT)
            executable->outputs[executable->output_count++] = bound;
    }
    return INF_OK;
}

static enum inf_code alloc_buffer(struct inf_static_executable *executable,
                                  struct inf_buffer **buffer, struct inf_device *device,
                                  size_t size_bytes, enum inf_buffer_usage usage,
                                  struct inf_error *err)
{
    uint64_t most = executable->options.buffer_bytes_max;
    executable->buffer_bytes += size_bytes;
    if (most != 0 && executable->buffer_bytes > most)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "the intermediate results of these shapes take more than %" PRIu64
                               " bytes (arena_bytes_per_uid_max)",
                               most);
    return inf_buffer_alloc(buffer, device, size_bytes, usage, err);
}

static enum inf_code alloc_slot(struct inf_static_executable *executable, struct inf_slot *slot,
                                struct inf_error *err)
{
    const struct inf_plan *plan = executable->plan;
    struct inf_device *host = executable->devices[executable->device_count - 1];
    struct inf_device *first = executable->devices[0];
    if (inf_device_info(first)->host_memory) {
        host = first;
    } else {
        INF_TRY(alloc_buffer(executable, &slot->device_arena, first, plan->arena_bytes,
                             INF_BUFFER_ARENA, err));
        INF_TRY(alloc_buffer(executable, &slot->staging, first, executable->staging.bytes,
                             INF_BUFFER_STAGING, err));
    }
    return alloc_buffer(executable, &slot->arena, host,
                        executable->staging.host_arena ? plan->memory_bytes : 0, INF_BUFFER_ARENA,
                        err);
}

static enum inf_code init_slot(struct inf_static_executable *executable, struct inf_slot *slot,
                               struct inf_error *err)
{
    const struct inf_graph *graph = executable->base.graph;
    const struct inf_plan *plan = executable->plan;
    INF_TRY(alloc_slot(executable, slot, err));
    slot->bindings = calloc((size_t)graph->value_count + 1, sizeof *slot->bindings);
    if (slot->bindings == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u bindings", graph->value_count);
    slot->last_inputs = calloc((size_t)executable->input_count + 1, sizeof *slot->last_inputs);
    if (slot->last_inputs == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u inputs", executable->input_count);
    for (uint32_t v = 0; v < graph->value_count; v++)
        slot->bindings[v] = inf_static_run_place(executable, slot, v);
    // A constant with another shape (the result of a reshape, for example) has no bytes of its own:
    // it uses the binding of the original.
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const struct inf_node *node = &graph->nodes[n];
        if (plan->storage[node->outputs[0]].place == INF_PLACE_CONST)
            slot->bindings[node->outputs[0]] = slot->bindings[node->inputs[0]];
    }
    return INF_OK;
}

static void destroy_plan(struct inf_static_executable *executable)
{
    for (uint32_t i = 0; executable->programs != NULL && i < executable->plan->segment_count; i++)
        inf_program_destroy(&executable->programs[i]);
    free(executable->programs);
    executable->programs = NULL;
    inf_staging_fini(&executable->staging);
    free(executable->lowered);
    executable->lowered = NULL;
    inf_plan_destroy(&executable->plan);
}

// Returns true if a device no longer supports a node that the plan assigned to it. A driver may
// find only during compilation that it cannot build a shader.
static bool is_outdated(const struct inf_static_executable *executable)
{
    const struct inf_plan *plan = executable->plan;
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        const struct inf_plan_segment *segment = &plan->segments[i];
        for (uint32_t k = segment->first; k < segment->first + segment->count; k++)
            if (inf_device_supports(executable->devices[segment->device], executable->base.graph,
                                    plan->steps[k], NULL) != INF_OK)
                return true;
    }
    return false;
}

// How often a plan is made again although all devices still support their nodes. A device may have
// disabled a fusion, or excluded a shader for which it has another one.
#define PLAN_TRIES_MAX 16u

// Plans and compiles. If a device declines a node during compilation, plans again without giving it
// that node. The loop ends, because each other round leaves the device fewer nodes.
static enum inf_code plan_and_compile(struct inf_static_executable *executable,
                                      struct inf_error *err)
{
    for (uint32_t tries = 0;;) {
        INF_TRY(inf_plan_build(&executable->plan, executable->base.graph, executable->devices,
                               executable->device_count, &executable->options, err));
        INF_TRY(inf_plan_check_bytes(executable->plan, executable->options.run_bytes_max, err));
        INF_TRY(inf_plan_check_room(executable->plan, executable->options.room_bytes, err));
        INF_TRY(inf_staging_init(&executable->staging, executable->base.graph, executable->plan,
                                 executable->devices, err));
        INF_TRY(find_lowered_values(executable, err));
        enum inf_code code = compile_segments(executable, err);
        if (code != INF_UNSUPPORTED || (!is_outdated(executable) && ++tries > PLAN_TRIES_MAX))
            return code;
        destroy_plan(executable);
    }
}

// --- listing how runs use constants ---

// Lists how the nodes of a segment use their constants.
static enum inf_code list_segment_constants(const struct inf_static_executable *executable,
                                            uint32_t segment, struct inf_constants *constants,
                                            struct inf_error *err)
{
    const struct inf_graph *graph = executable->base.graph;
    const struct inf_plan *plan = executable->plan;
    const struct inf_plan_segment *range = &plan->segments[segment];
    for (uint32_t i = range->first; i < range->first + range->count; i++) {
        const struct inf_node *node = &graph->nodes[plan->steps[i]];
        for (uint32_t k = 0; k < node->input_count; k++) {
            uint32_t value = node->inputs[k];
            uint32_t root = value != INF_VALUE_NONE ? plan->roots[value] : value;
            struct inf_blob *blob = root != INF_VALUE_NONE ? graph->values[root].data : NULL;
            struct inf_blob_form *form = NULL;
            if (blob == NULL)
                continue;
            if (root == value && blob->size_bytes >= INF_BLOB_EVICTED_BYTES_MIN)
                form = inf_program_packed_form(executable->programs[segment], plan->steps[i], k);
            INF_TRY(inf_constants_add(constants, blob, form, err));
        }
    }
    return INF_OK;
}

static enum inf_code list_constants(const struct inf_executable *base,
                                    struct inf_constants *constants, struct inf_error *err)
{
    const struct inf_static_executable *executable = (const struct inf_static_executable *)base;
    const struct inf_graph *graph = base->graph;
    for (uint32_t i = 0; i < executable->plan->segment_count; i++)
        INF_TRY(list_segment_constants(executable, i, constants, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        struct inf_blob *blob =
            graph->values[executable->plan->roots[graph->outputs[i].value]].data;
        if (blob != NULL)
            INF_TRY(inf_constants_add(constants, blob, NULL, err));
    }
    return INF_OK;
}

static void add_own_memory(const struct inf_executable *base, struct inf_executable_memory *memory)
{
    const struct inf_static_executable *executable = (const struct inf_static_executable *)base;
    memory->buffer_bytes += executable->buffer_bytes;
    for (uint32_t i = 0; i < executable->plan->segment_count; i++) {
        memory->weight_bytes += inf_program_weight_bytes(executable->programs[i]);
        memory->buffer_bytes += inf_program_scratch_bytes(executable->programs[i]);
    }
}

// --- running the programs of all segments ---

static bool is_lost(const struct inf_executable *base)
{
    const struct inf_static_executable *executable = (const struct inf_static_executable *)base;
    for (uint32_t i = 0; i < executable->plan->segment_count; i++)
        if (inf_program_lost(executable->programs[i]))
            return true;
    return false;
}

static uint32_t copy_profile(const struct inf_executable *base, uint32_t slot,
                             struct inf_node_profile *nodes, uint32_t capacity)
{
    const struct inf_static_executable *executable = (const struct inf_static_executable *)base;
    const struct inf_plan *plan = executable->plan;
    uint32_t count = 0;
    struct inf_step_profile *steps = calloc((size_t)plan->step_count + 1, sizeof *steps);
    if (steps == NULL)
        return 0;
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        struct inf_device *device = executable->devices[plan->segments[i].device];
        uint32_t got =
            inf_program_profile(executable->programs[i], slot, steps, plan->segments[i].count);
        for (uint32_t k = 0; k < INF_MIN(got, plan->segments[i].count); k++, count++)
            if (count < capacity)
                nodes[count] = (struct inf_node_profile){.node = steps[k].node,
                                                         .time_ns = steps[k].time_ns,
                                                         .kernel = steps[k].kernel,
                                                         .threads = steps[k].threads,
                                                         .dot_rate = steps[k].dot_rate,
                                                         .device = inf_device_info(device)->name};
    }
    free(steps);
    return count;
}

static enum inf_code run_segments(struct inf_executable *base,
                                  const struct inf_execution *execution, struct inf_error *err)
{
    struct inf_static_executable *executable = (struct inf_static_executable *)base;
    const struct inf_plan *plan = executable->plan;
    assert(execution->slot < executable->slot_count);
    inf_static_run_bind(executable, execution);
    struct inf_run run = {.bindings = executable->slots[execution->slot].bindings,
                          .slot = execution->slot,
                          .cancelled = execution->cancelled,
                          .profile = execution->profile,
                          .overflowed = execution->overflowed,
                          .step = execution->step,
                          .strings = execution->strings,
                          .core_use = execution->core_use};
    for (uint32_t i = 0; i < plan->segment_count; i++) {
        struct inf_ticket ticket;
        // Record the first node of the segment as the node that runs. A device that submits a whole
        // segment at once does not record the later nodes.
        inf_run_step_set(execution->step,
                         base->graph->nodes[plan->steps[plan->segments[i].first]].name);
        INF_TRY(inf_program_run(executable->programs[i], &run, &ticket, err));
        INF_TRY(inf_device_wait(executable->devices[plan->segments[i].device], ticket, UINT64_MAX,
                                err));
        INF_TRY(inf_program_finish(executable->programs[i], &run, err));
    }
    inf_static_run_fetch(executable, execution);
    return INF_OK;
}

// --- creating and destroying a static executable ---

static const struct inf_executable *planned_self(const struct inf_executable *base)
{
    return base;
}

static const struct inf_plan *own_plan(const struct inf_executable *base)
{
    return ((const struct inf_static_executable *)base)->plan;
}

static const struct inf_device_info *device_info(const struct inf_executable *base, uint32_t device)
{
    const struct inf_static_executable *executable = (const struct inf_static_executable *)base;
    assert(device < executable->device_count);
    return inf_device_info(executable->devices[device]);
}

static enum inf_precision computed_precision(const struct inf_executable *base)
{
    const struct inf_static_executable *executable = (const struct inf_static_executable *)base;
    for (uint32_t i = 0; i < executable->plan->segment_count; i++)
        if (inf_program_lowered_nodes(executable->programs[i]) > 0)
            return executable->options.precision;
    return INF_PRECISION_FP32;
}

static void destroy_executable(struct inf_executable *base)
{
    struct inf_static_executable *executable = (struct inf_static_executable *)base;
    for (uint32_t i = 0; executable->slots != NULL && i < executable->slot_count; i++) {
        inf_buffer_free(&executable->slots[i].arena);
        inf_buffer_free(&executable->slots[i].device_arena);
        inf_buffer_free(&executable->slots[i].staging);
        free(executable->slots[i].bindings);
        free(executable->slots[i].last_inputs);
    }
    free(executable->slots);
    destroy_plan(executable);
    free(executable->inputs);
    free(executable->outputs);
    inf_graph_destroy(&executable->base.graph);
    for (uint32_t i = 0; i < executable->device_count; i++)
        inf_device_unref(&executable->devices[i]);
    free(executable->devices);
    free(executable);
}

static const struct inf_executable_ops static_ops = {
    .destroy = destroy_executable,
    .planned = planned_self,
    .plan = own_plan,
    .device = device_info,
    .precision = computed_precision,
    .add_own_memory = add_own_memory,
    .list_constants = list_constants,
    .lost = is_lost,
    .run = run_segments,
    .profile = copy_profile,
};

static enum inf_code build_executable(struct inf_static_executable *executable,
                                      struct inf_device *const *devices, uint32_t device_count,
                                      const struct inf_run_options *options, struct inf_error *err)
{
    executable->options = *options;
    executable->devices = calloc(device_count, sizeof *executable->devices);
    if (executable->devices == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u devices", device_count);
    for (uint32_t i = 0; i < device_count; i++)
        executable->devices[executable->device_count++] = inf_device_ref(devices[i]);
    executable->slot_count = inf_device_info(devices[0])->slots;
    INF_TRY(plan_and_compile(executable, err));
    // The pinned nodes were borrowed for this call only; the plan has its own list.
    executable->options.pinned = NULL;
    executable->options.pinned_count = 0;
    executable->options.cancelled = NULL; // the caller may free the flag after this call
    INF_TRY(list_bound_values(executable, err));
    executable->slots = calloc(executable->slot_count, sizeof *executable->slots);
    if (executable->slots == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %u slots", executable->slot_count);
    for (uint32_t i = 0; i < executable->slot_count; i++)
        INF_TRY(init_slot(executable, &executable->slots[i], err));
    return INF_OK;
}

enum inf_code inf_static_executable_create(struct inf_executable **out_executable,
                                           struct inf_graph **graph,
                                           struct inf_device *const *devices, uint32_t device_count,
                                           const struct inf_run_options *options,
                                           struct inf_error *err)
{
    static const struct inf_run_options defaults;
    inf_role_check_may_block();
    assert(device_count > 0);
    struct inf_static_executable *executable = calloc(1, sizeof *executable);
    if (executable == NULL) {
        inf_graph_destroy(graph);
        return inf_fail(err, INF_EXHAUSTED, "no memory for an executable");
    }
    executable->base = (struct inf_executable){.ops = &static_ops, .graph = *graph};
    *graph = NULL;
    enum inf_code code = build_executable(executable, devices, device_count,
                                          options != NULL ? options : &defaults, err);
    if (code == INF_OK)
        *out_executable = &executable->base;
    else
        destroy_executable(&executable->base);
    return code;
}
