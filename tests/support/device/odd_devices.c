// SPDX-License-Identifier: Apache-2.0
// Wraps the reference device and changes its behaviour: delays, faults, and rounding.
#include "tests/support/device/odd_devices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "backends/base/half.h"
#include "backends/ref/ref.h"
#include "proto/core/span.h"

#define DELAY_NS 5000000
// The number of runs after which inf_turning_backend returns wrong results.
#define TURNING_RUNS 200

static uint32_t probe_device(void)
{
    return 1;
}

static enum inf_code open_named(struct inf_device **out_device, const char *name, int priority,
                                const struct inf_device_options *options, struct inf_error *err)
{
    INF_TRY(inf_ref_backend.open(out_device, 0, options, err));
    struct inf_device_info *info = &(*out_device)->info;
    snprintf(info->name, sizeof info->name, "%s", name);
    snprintf(info->backend, sizeof info->backend, "%s", name);
    snprintf(info->description, sizeof info->description, "a device for tests: %s", name);
    info->kind = INF_DEVICE_CPU;
    info->priority = priority;
    return INF_OK;
}

static void delay_run(void)
{
    nanosleep(&(struct timespec){.tv_nsec = DELAY_NS}, NULL);
}

static enum inf_code supports_node(struct inf_device *device, const struct inf_graph *graph,
                                   uint32_t node, struct inf_error *err)
{
    return inf_ref_backend.supports(device, graph, node, err);
}

// --- running a program of `ref` with actions before and after each run ---

struct outer {
    struct inf_program base;
    struct inf_program *inner;
    uint32_t output; // the output of the last node
    size_t element;  // index of the element that a wrong device changes
    bool has_element;
    uint32_t input; // first input of the graph
    _Atomic uint32_t runs;
};

static enum inf_code compile_outer(struct inf_program **out_program, struct inf_device *device,
                                   const struct inf_segment *segment, uint32_t flags,
                                   struct inf_error *err)
{
    struct outer *outer = calloc(1, sizeof *outer);
    if (outer == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    enum inf_code code = inf_ref_backend.compile(&outer->inner, device, segment, flags, err);
    if (code != INF_OK) {
        free(outer);
        return code;
    }
    outer->inner->device = device;
    outer->inner->slots = segment->slots;
    if (segment->node_count > 0) {
        const struct inf_graph *graph = segment->graph;
        outer->input = graph->input_count > 0 ? graph->inputs[0].value : INF_VALUE_NONE;
        outer->output = graph->nodes[segment->nodes[segment->node_count - 1]].outputs[0];
        const struct inf_value *value = &graph->values[outer->output];
        size_t count = inf_shape_elements(&value->shape);
        outer->has_element = value->dtype == INF_DTYPE_F32 && count > 0;
        outer->element = outer->has_element ? INF_MIN(count - 1, (size_t)2) : 0;
    }
    *out_program = &outer->base;
    return INF_OK;
}

static void destroy_outer(struct inf_program *program)
{
    struct outer *outer = (struct outer *)program;
    inf_ref_backend.program_destroy(outer->inner);
    free(outer);
}

static void *memory_of(const struct inf_binding *binding)
{
    if (binding->host != NULL || binding->buffer == NULL)
        return binding->host;
    return (char *)inf_buffer_host(binding->buffer) + binding->offset;
}

static enum inf_code run_outer(struct inf_program *program, const struct inf_run *run,
                               struct inf_ticket *ticket, uint32_t right_runs,
                               struct inf_error *err)
{
    struct outer *outer = (struct outer *)program;
    INF_TRY(inf_ref_backend.run(outer->inner, run, ticket, err));
    float *output = memory_of(&run->bindings[outer->output]);
    if (outer->has_element && output != NULL && atomic_fetch_add(&outer->runs, 1) >= right_runs)
        output[outer->element] += 0.01f;
    return INF_OK;
}

static enum inf_code run_slowly(struct inf_program *program, const struct inf_run *run,
                                struct inf_ticket *ticket, struct inf_error *err)
{
    delay_run();
    return run_outer(program, run, ticket, UINT32_MAX, err);
}

static enum inf_code run_wrongly(struct inf_program *program, const struct inf_run *run,
                                 struct inf_ticket *ticket, struct inf_error *err)
{
    return run_outer(program, run, ticket, 0, err);
}

static enum inf_code run_turning(struct inf_program *program, const struct inf_run *run,
                                 struct inf_ticket *ticket, struct inf_error *err)
{
    return run_outer(program, run, ticket, TURNING_RUNS, err);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static enum inf_code run_steadily(struct inf_program *program, const struct inf_run *run,
                                  struct inf_ticket *ticket, struct inf_error *err)
{
    sleep_ms(INF_STEADY_MS);
    return run_outer(program, run, ticket, UINT32_MAX, err);
}

static void write_unmapped(void)
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 1;
}

static enum inf_code run_lazily(struct inf_program *program, const struct inf_run *run,
                                struct inf_ticket *ticket, struct inf_error *err)
{
    const struct outer *outer = (const struct outer *)program;
    const float *input =
        outer->input != INF_VALUE_NONE ? memory_of(&run->bindings[outer->input]) : NULL;
    // Each run takes some time, so that batches pay.
    sleep_ms(1);
    if (input != NULL && *input == INF_LAZY_UNTIL_CANCELLED) {
        for (int ms = 0; ms < INF_LAZY_MS_MAX; ms += 5) {
            if (run->cancelled != NULL && atomic_load(run->cancelled))
                return inf_fail(err, INF_CANCELLED, "cancelled in a pause");
            sleep_ms(5);
        }
    }
    if (input != NULL && *input == INF_LAZY_CRASH)
        write_unmapped();
    if (input != NULL && *input == INF_LAZY_DEAF)
        sleep_ms(INF_LAZY_DEAF_MS);
    return run_outer(program, run, ticket, UINT32_MAX, err);
}

static void close_device(struct inf_device *device)
{
    inf_ref_backend.close(device);
}

#define OPENER(function, name, priority)                                                           \
    static enum inf_code function(struct inf_device **out_device, uint32_t index,                  \
                                  const struct inf_device_options *options, struct inf_error *err) \
    {                                                                                              \
        (void)index;                                                                               \
        return open_named(out_device, name, priority, options, err);                               \
    }

OPENER(open_slow, "slow", 400)
OPENER(open_steady, "steady", 408)
OPENER(open_wrong, "wrong", 401)
OPENER(open_turning, "turning", 402)
OPENER(open_refusing, "refusing", 403)
OPENER(open_lazy, "lazy", 406)

static enum inf_code open_absent(struct inf_device **out_device, uint32_t index,
                                 const struct inf_device_options *options, struct inf_error *err)
{
    (void)out_device;
    (void)index;
    (void)options;
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE, "the driver is not there");
}

static enum inf_code refuse_open(struct inf_program **out_program, struct inf_device *device,
                                 const struct inf_segment *segment, uint32_t flags,
                                 struct inf_error *err)
{
    (void)out_program;
    (void)device;
    (void)segment;
    (void)flags;
    return inf_fail(err, INF_UNAVAILABLE, "the driver says no");
}

// --- computing below fp32: each node is a program, so its result can be rounded ---

struct rounded {
    struct inf_program base;
    enum inf_precision precision;
    // The graph of the nodes to run. Its constants are rounded to `precision`, unless a node that
    // stays in fp32 reads them.
    struct inf_graph *graph;
    uint32_t node_count;
    struct inf_program **programs; // one for each node
    uint32_t *nodes;
    bool *lowered; // indexed by node of `graph`: the node's result is rounded to `precision`
    bool tells;
};

static float round_one(float value, enum inf_precision precision)
{
    return precision == INF_PRECISION_FP16 ? inf_half_to_float(inf_half_from_float(value))
                                           : inf_bf16_to_float(inf_bf16_from_float(value));
}

static bool is_lowered(const struct inf_segment *segment, uint32_t node)
{
    return segment->precision > INF_PRECISION_FP32 &&
           (segment->pinned == NULL || !segment->pinned[node]);
}

// Returns true if a node that stays in fp32 reads the value, so that the value must not be rounded.
static bool stays_whole(const struct inf_segment *segment, uint32_t value)
{
    const struct inf_graph *graph = segment->graph;
    for (uint32_t n = 0; n < graph->node_count; n++)
        for (uint32_t i = 0; i < graph->nodes[n].input_count; i++)
            if (graph->nodes[n].inputs[i] == value && !is_lowered(segment, n))
                return true;
    return false;
}

static enum inf_code round_constants(struct inf_graph *graph, const struct inf_segment *segment,
                                     struct inf_error *err)
{
    for (uint32_t v = 0; v < graph->value_count; v++) {
        struct inf_value *value = &graph->values[v];
        if (value->data == NULL || value->data->data == NULL || value->dtype != INF_DTYPE_F32 ||
            segment->precision <= INF_PRECISION_FP32 || stays_whole(segment, v))
            continue;
        struct inf_blob *copy = inf_blob_create(value->data->size_bytes);
        if (copy == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory");
        const float *from = value->data->data;
        for (size_t i = 0; i < copy->size_bytes / sizeof *from; i++)
            ((float *)copy->data)[i] = round_one(from[i], segment->precision);
        inf_blob_unref(&value->data);
        value->data = copy;
    }
    return INF_OK;
}

static void destroy_rounded(struct inf_program *program)
{
    struct rounded *rounded = (struct rounded *)program;
    for (uint32_t i = 0; rounded->programs != NULL && i < rounded->node_count; i++)
        if (rounded->programs[i] != NULL)
            inf_ref_backend.program_destroy(rounded->programs[i]);
    free(rounded->programs);
    free(rounded->nodes);
    free(rounded->lowered);
    inf_graph_destroy(&rounded->graph);
    free(rounded);
}

static enum inf_code fill_rounded(struct rounded *rounded, struct inf_device *device,
                                  const struct inf_segment *segment, struct inf_error *err)
{
    rounded->precision = segment->precision;
    rounded->programs = calloc((size_t)segment->node_count + 1, sizeof *rounded->programs);
    rounded->nodes = calloc((size_t)segment->node_count + 1, sizeof *rounded->nodes);
    rounded->lowered = calloc((size_t)segment->node_count + 1, sizeof *rounded->lowered);
    if (rounded->programs == NULL || rounded->nodes == NULL || rounded->lowered == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    rounded->node_count = segment->node_count;
    INF_TRY(inf_graph_clone(&rounded->graph, segment->graph, err));
    INF_TRY(round_constants(rounded->graph, segment, err));
    for (uint32_t i = 0; i < segment->node_count; i++) {
        rounded->nodes[i] = segment->nodes[i];
        rounded->lowered[i] = is_lowered(segment, segment->nodes[i]);
        rounded->base.lowered_nodes += rounded->lowered[i];
        const struct inf_segment one = {.graph = rounded->graph,
                                        .nodes = &rounded->nodes[i],
                                        .node_count = 1,
                                        .slots = segment->slots};
        INF_TRY(inf_ref_backend.compile(&rounded->programs[i], device, &one, 0, err));
    }
    return INF_OK;
}

static enum inf_code compile_rounded(struct inf_program **out_program, struct inf_device *device,
                                     const struct inf_segment *segment, uint32_t flags,
                                     struct inf_error *err)
{
    (void)flags;
    struct rounded *rounded = calloc(1, sizeof *rounded);
    if (rounded == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    rounded->tells = strcmp(device->info.name, "telling") == 0;
    enum inf_code code = fill_rounded(rounded, device, segment, err);
    if (code == INF_OK)
        *out_program = &rounded->base;
    else
        destroy_rounded(&rounded->base);
    return code;
}

// Rounds the result of a node.
static void round_outputs(const struct rounded *rounded, uint32_t step, const struct inf_run *run)
{
    const struct inf_node *node = &rounded->graph->nodes[rounded->nodes[step]];
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &rounded->graph->values[node->outputs[i]];
        float *elements = memory_of(&run->bindings[node->outputs[i]]);
        if (value->dtype != INF_DTYPE_F32 || elements == NULL)
            continue;
        for (size_t k = 0; k < inf_shape_elements(&value->shape); k++) {
            bool finite = isfinite(elements[k]);
            elements[k] = round_one(elements[k], rounded->precision);
            if (rounded->tells && run->overflowed != NULL && finite && !isfinite(elements[k]))
                atomic_store(run->overflowed, true);
        }
    }
}

static enum inf_code run_rounded(struct inf_program *program, const struct inf_run *run,
                                 struct inf_ticket *ticket, struct inf_error *err)
{
    struct rounded *rounded = (struct rounded *)program;
    if (rounded->base.lowered_nodes == 0)
        delay_run();
    for (uint32_t i = 0; i < rounded->node_count; i++) {
        INF_TRY(inf_ref_backend.run(rounded->programs[i], run, ticket, err));
        if (rounded->lowered[i])
            round_outputs(rounded, i, run);
    }
    return INF_OK;
}

#define ROUNDING_OPENER(function, name)                                                            \
    static enum inf_code function(struct inf_device **out_device, uint32_t index,                  \
                                  const struct inf_device_options *options, struct inf_error *err) \
    {                                                                                              \
        (void)index;                                                                               \
        INF_TRY(open_named(out_device, name, 404, options, err));                                  \
        (*out_device)->info.precisions =                                                           \
            INF_PRECISION_BIT(INF_PRECISION_FP16) | INF_PRECISION_BIT(INF_PRECISION_BF16);         \
        return INF_OK;                                                                             \
    }

ROUNDING_OPENER(open_half, "half")
ROUNDING_OPENER(open_telling, "telling")

// --- the table entries of all backends in this file ---

#define ODD_BACKEND(title, level, opener, compiler, destroyer, runner)                             \
    {                                                                                              \
        .name = title, .priority = level, .probe = probe_device, .open = opener,                   \
        .close = close_device, .supports = supports_node, .compile = compiler,                     \
        .program_destroy = destroyer, .run = runner,                                               \
    }

const struct inf_backend inf_slow_backend =
    ODD_BACKEND("slow", 400, open_slow, compile_outer, destroy_outer, run_slowly);
const struct inf_backend inf_steady_backend =
    ODD_BACKEND("steady", 408, open_steady, compile_outer, destroy_outer, run_steadily);
const struct inf_backend inf_lazy_backend =
    ODD_BACKEND("lazy", 406, open_lazy, compile_outer, destroy_outer, run_lazily);
const struct inf_backend inf_wrong_backend =
    ODD_BACKEND("wrong", 401, open_wrong, compile_outer, destroy_outer, run_wrongly);
const struct inf_backend inf_turning_backend =
    ODD_BACKEND("turning", 402, open_turning, compile_outer, destroy_outer, run_turning);
const struct inf_backend inf_refusing_backend =
    ODD_BACKEND("refusing", 403, open_refusing, refuse_open, destroy_outer, run_wrongly);
const struct inf_backend inf_absent_backend =
    ODD_BACKEND("absent", 405, open_absent, refuse_open, destroy_outer, run_wrongly);
const struct inf_backend inf_half_backend =
    ODD_BACKEND("half", 404, open_half, compile_rounded, destroy_rounded, run_rounded);
const struct inf_backend inf_telling_backend =
    ODD_BACKEND("telling", 407, open_telling, compile_rounded, destroy_rounded, run_rounded);
