// SPDX-License-Identifier: Apache-2.0
// Compiles the graph of a model. A graph in which sizes or branches depend on values becomes a
// dynamic executable, all others become static ones.
#include "backends/exec/model/graph_compiler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/dynamic/dynamic_executable.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/history/join.h"
#include "backends/graph/shape/infer.h"

enum inf_code inf_graph_compiler_init(struct inf_graph_compiler *compiler, struct inf_graph **graph,
                                      struct inf_device *const *hosts, uint32_t host_count,
                                      const struct inf_pass_options *options, struct inf_error *err)
{
    assert(host_count >= 1 && host_count <= INF_MODEL_HOSTS);
    compiler->graph = *graph;
    *graph = NULL;
    for (uint32_t i = 0; i < host_count; i++)
        compiler->hosts[compiler->host_count++] = inf_device_ref(hosts[i]);
    compiler->disabled_passes = options->disabled;
    if (options->evaluator != NULL)
        compiler->evaluator = *options->evaluator;
    if (!options->already_run) {
        INF_TRY(inf_passes_run(compiler->graph, options, err));
        inf_graph_trim(compiler->graph);
    }
    inf_graph_compact(compiler->graph);
    // Weights of a kept plan may be evicted. They then count as values that only a run knows; sizes
    // and positions do not follow from weights.
    return inf_history_find(compiler->graph, &compiler->evaluator, &compiler->history,
                            &compiler->has_history, err);
}

void inf_graph_compiler_fini(struct inf_graph_compiler *compiler)
{
    for (size_t i = 0; i < INF_PRECISIONS; i++)
        free(compiler->pins[i].hashes);
    inf_graph_destroy(&compiler->graph);
    while (compiler->host_count > 0)
        inf_device_unref(&compiler->hosts[--compiler->host_count]);
}

enum inf_code inf_graph_compiler_pin(struct inf_graph_compiler *compiler,
                                     enum inf_precision precision, const uint64_t *hashes,
                                     uint32_t count, struct inf_error *err)
{
    uint64_t *copy = calloc((size_t)count + 1, sizeof *copy);
    if (copy == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %u pins",
                               count);
    if (count > 0)
        memcpy(copy, hashes, count * sizeof *copy);
    free(compiler->pins[precision].hashes);
    compiler->pins[precision] = (struct inf_pinned_nodes){.hashes = copy, .count = count};
    return INF_OK;
}

enum inf_code inf_graph_compiler_copy_pins(struct inf_graph_compiler *compiler,
                                           const struct inf_graph_compiler *from,
                                           struct inf_error *err)
{
    for (size_t i = 0; i < INF_PRECISIONS; i++)
        INF_TRY(inf_graph_compiler_pin(compiler, (enum inf_precision)i, from->pins[i].hashes,
                                       from->pins[i].count, err));
    return INF_OK;
}

// Replaces the graph of one step by that of several.
static enum inf_code join_steps(struct inf_graph **graph, uint32_t sessions, struct inf_error *err)
{
    struct inf_graph *joined = NULL;
    INF_TRY(inf_history_join(*graph, sessions, &joined, err));
    inf_graph_destroy(graph);
    *graph = joined;
    return INF_OK;
}

enum inf_code inf_graph_compiler_specialize(const struct inf_graph_compiler *compiler,
                                            const struct inf_shape *shapes,
                                            const struct inf_history_buffers *buffers,
                                            const atomic_bool *cancelled,
                                            struct inf_graph **out_graph, uint32_t *out_new_rows,
                                            struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    *out_new_rows = 0;
    if (buffers == NULL) {
        INF_TRY(inf_graph_clone(&graph, compiler->graph, err));
        INF_TRY(inf_graph_bind_shapes(graph, shapes, err));
    } else {
        const struct inf_history_request request = {&compiler->history, shapes, buffers->room};
        INF_TRY(inf_history_build(compiler->graph, &compiler->evaluator, &request, &graph,
                                  out_new_rows, err));
    }
    struct inf_pass_options options = {
        .disabled = compiler->disabled_passes,
        .evaluator = compiler->evaluator.run != NULL ? &compiler->evaluator : NULL,
        .cancelled = cancelled};
    INF_TRY(inf_passes_run(graph, &options, err));
    if (buffers != NULL && buffers->sessions > 1)
        INF_TRY(join_steps(&graph, buffers->sessions, err));
    inf_graph_trim(graph);
    *out_graph = graph;
    graph = NULL;
    return INF_OK;
}

void inf_graph_compiler_share(const struct inf_graph_compiler *compiler, struct inf_graph **graph)
{
    if (!inf_graph_equal(*graph, compiler->graph))
        return;
    inf_graph_destroy(graph);
    *graph = inf_graph_ref(compiler->graph);
}

// Lists the device and the host devices that follow it. If the device is a host device itself,
// lists it and the host devices after it.
static uint32_t list_devices(const struct inf_graph_compiler *compiler, struct inf_device *device,
                             struct inf_device **devices)
{
    uint32_t count = 0, first = 0;
    devices[count++] = device;
    for (uint32_t i = 0; i < compiler->host_count; i++)
        if (compiler->hosts[i] == device)
            first = i + 1;
    for (uint32_t i = first; i < compiler->host_count; i++)
        devices[count++] = compiler->hosts[i];
    return count;
}

enum inf_code
inf_graph_compiler_compile(const struct inf_graph_compiler *compiler, struct inf_device *device,
                           const struct inf_run_options *wanted, struct inf_graph **graph,
                           struct inf_executable **out_executable, struct inf_error *err)
{
    const struct inf_pinned_nodes *pins = &compiler->pins[wanted->precision];
    struct inf_run_options options = *wanted;
    options.pinned = pins->hashes;
    options.pinned_count = pins->count;
    options.races = (struct inf_kernel_races){
        .known_until_ns = compiler->defers_races ? inf_clock_ns() : 0,
        .gate = compiler->race_gate,
    };
    struct inf_device *devices[1 + INF_MODEL_HOSTS];
    uint32_t device_count = list_devices(compiler, device, devices);
    if (compiler->evaluator.run == NULL || !inf_graph_needs_values(*graph))
        return inf_static_executable_create(out_executable, graph, devices, device_count, &options,
                                            err);
    return inf_dynamic_executable_create(out_executable, graph, &compiler->evaluator, devices,
                                         device_count, &options, err);
}
