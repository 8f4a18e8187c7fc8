// SPDX-License-Identifier: Apache-2.0
// Runs an executable on generated inputs: to warm it up, to time it, or to compare two executables.
#include "backends/exec/trial_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"

void inf_trial_run_fini(struct inf_trial_run *trial)
{
    for (uint32_t i = 0; trial->blobs != NULL && i < trial->count; i++)
        inf_blob_unref(&trial->blobs[i]);
    free(trial->blobs);
    free(trial->pointers);
    *trial = (struct inf_trial_run){0};
}

static enum inf_code fill_buffer(struct inf_trial_run *trial, uint32_t index,
                                 const struct inf_graph *graph, const struct inf_port *port,
                                 struct inf_error *err)
{
    const struct inf_value *value = &graph->values[port->value];
    size_t size;
    if (!inf_shape_bytes(&value->shape, value->dtype, &size))
        return inf_fail(err, INF_INVALID, "tensor '%s': its size is not known, or too large",
                        port->name);
    trial->blobs[index] = inf_blob_create(size);
    if (trial->blobs[index] == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "tensor '%s': no memory for %zu bytes", port->name, size);
    trial->pointers[index] = trial->blobs[index]->data;
    return INF_OK;
}

enum inf_code inf_trial_run_init(struct inf_trial_run *trial, const struct inf_graph *graph,
                                 struct inf_error *err)
{
    trial->input_count = graph->input_count;
    trial->count = graph->input_count + graph->output_count;
    trial->blobs = calloc(INF_MAX(trial->count, 1u), sizeof *trial->blobs);
    trial->pointers = calloc(INF_MAX(trial->count, 1u), sizeof *trial->pointers);
    if (trial->blobs == NULL || trial->pointers == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to warm up");
    for (uint32_t i = 0; i < graph->input_count; i++)
        INF_TRY(fill_buffer(trial, i, graph, &graph->inputs[i], err));
    for (uint32_t i = 0; i < graph->output_count; i++)
        INF_TRY(fill_buffer(trial, graph->input_count + i, graph, &graph->outputs[i], err));
    return INF_OK;
}

// Fills an input with numbers from a linear congruential generator (Knuth, TAOCP 2, 3.3.4, line
// 26), which is random enough to time or compare executables.
static void fill_input(struct inf_blob *blob, enum inf_dtype dtype)
{
    uint64_t state = 1;
    if (dtype != INF_DTYPE_F32)
        return;
    float *values = blob->data;
    for (size_t i = 0; i < blob->size_bytes / sizeof *values; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(state >> 40) / 16777216.f;
    }
}

void inf_trial_run_fill_inputs(const struct inf_trial_run *trial, const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        fill_input(trial->blobs[i], graph->values[graph->inputs[i].value].dtype);
}

struct inf_execution inf_trial_run_execution(const struct inf_trial_run *trial)
{
    return (struct inf_execution){
        .inputs = (const void *const *)trial->pointers,
        .outputs = (void *const *)(trial->pointers + trial->input_count),
        .step = trial->step,
    };
}

enum inf_code inf_trial_run_execute(const struct inf_trial_run *trial,
                                    struct inf_executable *executable, uint64_t *took_ns,
                                    struct inf_error *err)
{
    return inf_trial_run_execute_cancellable(trial, executable, NULL, took_ns, err);
}

enum inf_code inf_trial_run_execute_cancellable(const struct inf_trial_run *trial,
                                                struct inf_executable *executable,
                                                const atomic_bool *cancelled, uint64_t *took_ns,
                                                struct inf_error *err)
{
    struct inf_execution execution = inf_trial_run_execution(trial);
    execution.cancelled = cancelled;
    uint64_t begin_ns = inf_clock_ns();
    INF_TRY(inf_executable_run(executable, &execution, err));
    if (took_ns != NULL)
        *took_ns = inf_clock_ns() - begin_ns;
    return INF_OK;
}

static bool is_near(double got, double wanted, double tolerance)
{
    if (got == wanted || (isnan(got) && isnan(wanted)))
        return true;
    return isfinite(wanted) && fabs(got - wanted) <= tolerance * fmax(1, fabs(wanted));
}

size_t inf_trial_run_find_difference(const void *got, const void *wanted, size_t size_bytes,
                                     enum inf_dtype dtype, double tolerance)
{
    size_t element_bytes = inf_dtype_size(dtype);
    for (size_t i = 0; i < size_bytes / element_bytes; i++) {
        bool near = dtype == INF_DTYPE_F32
                        ? is_near((double)((const float *)got)[i],
                                  (double)((const float *)wanted)[i], tolerance)
                        : memcmp((const char *)got + i * element_bytes,
                                 (const char *)wanted + i * element_bytes, element_bytes) == 0;
        if (!near)
            return i;
    }
    return SIZE_MAX;
}
