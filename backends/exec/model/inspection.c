// SPDX-License-Identifier: Apache-2.0
// Runs a model on a separate executable that keeps every value, and reports the times and values of
// each node.
#include "backends/exec/model/inspection.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "proto/core/span.h"

struct inf_inspection {
    struct inf_model *model; // borrowed, without a counted reference
    struct inf_executable *executable;
    struct inf_trial_run trial;
    uint64_t run_ns;
    struct inf_node_profile *profiles; // `profile_count` entries of the fastest run
    struct inf_node_profile *latest;   // memory for the profile of one run
    uint32_t profile_count, capacity;
};

const struct inf_graph *inf_inspection_graph(const struct inf_inspection *inspection)
{
    return inf_executable_graph(inspection->executable);
}

uint64_t inf_inspection_run_ns(const struct inf_inspection *inspection)
{
    return inspection->run_ns;
}

// --- creating and destroying an inspection ---

static enum inf_code fill_inspection(struct inf_inspection *inspection, struct inf_model *model,
                                     const struct inf_private_request *request,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    inspection->model = model;
    INF_TRY(inf_model_compile_private(model, request, &inspection->executable, err));
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    inspection->capacity = graph->node_count;
    inspection->profiles = calloc((size_t)graph->node_count + 1, sizeof *inspection->profiles);
    inspection->latest = calloc((size_t)graph->node_count + 1, sizeof *inspection->latest);
    if (inspection->profiles == NULL || inspection->latest == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the times of %u nodes", graph->node_count);
    return inf_trial_run_init(&inspection->trial, graph, err);
}

enum inf_code inf_inspection_create(struct inf_inspection **out_inspection, struct inf_model *model,
                                    const struct inf_private_request *request,
                                    struct inf_error *err)
{
    struct inf_inspection *inspection = calloc(1, sizeof *inspection);
    if (inspection == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to look inside");
    enum inf_code code = fill_inspection(inspection, model, request, err);
    if (code == INF_OK)
        *out_inspection = inspection;
    else
        inf_inspection_destroy(&inspection);
    return code;
}

void inf_inspection_destroy(struct inf_inspection **pointer)
{
    struct inf_inspection *inspection = *pointer;
    *pointer = NULL;
    if (inspection == NULL)
        return;
    inf_trial_run_fini(&inspection->trial);
    inf_model_discard_private(inspection->model, &inspection->executable);
    free(inspection->profiles);
    free(inspection->latest);
    free(inspection);
}

// --- filling the inputs of an inspection ---

void *inf_inspection_input(struct inf_inspection *inspection, uint32_t index, size_t *out_bytes)
{
    *out_bytes = inspection->trial.blobs[index]->size_bytes;
    return inspection->trial.blobs[index]->data;
}

// The numbers come from a linear congruential generator (Knuth, TAOCP 2, 3.3.4, line 26), which is
// random enough for test inputs.
void inf_inspection_fill_inputs(struct inf_inspection *inspection)
{
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    uint64_t state = 1;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        float *values = inspection->trial.blobs[i]->data;
        if (graph->values[graph->inputs[i].value].dtype != INF_DTYPE_F32)
            continue;
        for (size_t k = 0; k < inspection->trial.blobs[i]->size_bytes / sizeof *values; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            values[k] = (float)(state >> 40) / 16777216.f;
        }
    }
}

// --- running and keeping the profile of the fastest run ---

static enum inf_code run_once(struct inf_inspection *inspection, uint64_t *took_ns,
                              struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_trial_run *trial = &inspection->trial;
    const struct inf_execution execution = {
        .inputs = (const void *const *)trial->pointers,
        .outputs = (void *const *)(trial->pointers + trial->input_count),
        .profile = true,
    };
    uint64_t begin_ns = inf_clock_ns();
    INF_TRY(inf_executable_run(inspection->executable, &execution, err));
    *took_ns = inf_clock_ns() - begin_ns;
    return INF_OK;
}

// Replaces the profile that is reported by the profile of the last run, which was the fastest.
static void keep_profile(struct inf_inspection *inspection, uint64_t took_ns)
{
    uint32_t count =
        inf_executable_profile(inspection->executable, 0, inspection->latest, inspection->capacity);
    struct inf_node_profile *kept = inspection->profiles;
    inspection->profiles = inspection->latest;
    inspection->latest = kept;
    inspection->profile_count = INF_MIN(count, inspection->capacity);
    inspection->run_ns = took_ns;
}

enum inf_code inf_inspection_run(struct inf_inspection *inspection, uint32_t runs,
                                 struct inf_error *err)
{
    inf_role_check_may_block();
    uint64_t took_ns = 0;
    INF_TRY(run_once(inspection, &took_ns, err));
    inspection->run_ns = UINT64_MAX;
    for (uint32_t i = 0; i < runs; i++) {
        INF_TRY(run_once(inspection, &took_ns, err));
        if (took_ns < inspection->run_ns)
            keep_profile(inspection, took_ns);
    }
    return INF_OK;
}

// --- reporting times and values of nodes ---

// Returns the elements of a value after a run; NULL if the value was not kept. Kept values are
// outputs of the graph, so only outputs have elements.
static const void *find_value(const struct inf_inspection *inspection, uint32_t value,
                              size_t *bytes)
{
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_blob *blob = inspection->trial.blobs[graph->input_count + i];
        if (graph->outputs[i].value != value)
            continue;
        *bytes = blob->size_bytes;
        return blob->data;
    }
    return NULL;
}

// Returns the elements of a node's output as floats; NULL if they are not floats or were not kept.
static const float *find_floats(const struct inf_inspection *inspection, uint32_t node,
                                uint32_t output, size_t *count)
{
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    uint32_t value = graph->nodes[node].outputs[output];
    size_t bytes = 0;
    const float *floats =
        graph->values[value].dtype == INF_DTYPE_F32 ? find_value(inspection, value, &bytes) : NULL;
    *count = bytes / sizeof *floats;
    return floats;
}

static void look_at(struct inf_node_report *report, float value, bool *any)
{
    if (isnan(value)) {
        report->nan_count++;
    } else if (isinf(value)) {
        report->inf_count++;
    } else {
        report->least = *any ? fmin(report->least, (double)value) : (double)value;
        report->largest = *any ? fmax(report->largest, (double)value) : (double)value;
        report->magnitude = fmax(report->magnitude, fabs((double)value));
        *any = true;
    }
}

void inf_inspection_report_node(const struct inf_inspection *inspection, uint32_t node,
                                struct inf_node_report *report)
{
    const struct inf_node *of = &inf_inspection_graph(inspection)->nodes[node];
    uint64_t start_ns = 0;
    bool any = false;
    *report = (struct inf_node_report){.kernel = "", .device = ""};
    for (uint32_t i = 0; i < inspection->profile_count; i++) {
        const struct inf_node_profile *profile = &inspection->profiles[i];
        if (profile->node == node) {
            report->start_ns = start_ns;
            report->time_ns += profile->time_ns;
            report->kernel = profile->kernel;
            report->device = profile->device;
            report->threads = profile->threads;
            report->dot_rate = profile->dot_rate;
        }
        start_ns += profile->time_ns;
    }
    for (uint32_t i = 0; i < of->output_count; i++) {
        size_t count;
        const float *floats = find_floats(inspection, node, i, &count);
        for (size_t k = 0; floats != NULL && k < count; k++)
            look_at(report, floats[k], &any);
    }
}

// Returns the data of an input or a constant, and its size in *bytes; NULL for other values.
static const void *find_given(const struct inf_inspection *inspection, uint32_t value,
                              size_t *bytes)
{
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    const struct inf_blob *blob = graph->values[value].data;
    for (uint32_t i = 0; i < graph->input_count && blob == NULL; i++)
        if (graph->inputs[i].value == value)
            blob = inspection->trial.blobs[i];
    *bytes = blob != NULL ? blob->size_bytes : 0;
    return blob != NULL ? blob->data : NULL;
}

uint64_t inf_inspection_count_non_finite(const struct inf_inspection *inspection, uint32_t value)
{
    size_t bytes = 0;
    uint64_t bad = 0;
    if (inf_inspection_graph(inspection)->values[value].dtype != INF_DTYPE_F32)
        return 0;
    const float *floats = find_value(inspection, value, &bytes);
    if (floats == NULL)
        floats = find_given(inspection, value, &bytes);
    for (size_t i = 0; floats != NULL && i < bytes / sizeof *floats; i++)
        bad += !isfinite(floats[i]);
    return bad;
}

static void compare_element(struct inf_node_difference *difference, double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return;
    double distance = isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
    difference->max_abs = fmax(difference->max_abs, distance);
    difference->max_rel =
        fmax(difference->max_rel, b != 0 && isfinite(distance) ? distance / fabs(b) : distance);
}

bool inf_inspection_compare_node(const struct inf_inspection *a, const struct inf_inspection *b,
                                 uint32_t node, double tolerance,
                                 struct inf_node_difference *difference)
{
    const struct inf_node *of = &inf_inspection_graph(a)->nodes[node];
    bool any = false;
    *difference = (struct inf_node_difference){.within = true};
    for (uint32_t i = 0; i < of->output_count; i++) {
        size_t count_a, count_b;
        const float *in_a = find_floats(a, node, i, &count_a);
        const float *in_b = find_floats(b, node, i, &count_b);
        if (in_a == NULL || in_b == NULL || count_a != count_b)
            continue;
        any = true;
        for (size_t k = 0; k < count_a; k++)
            compare_element(difference, (double)in_a[k], (double)in_b[k]);
        difference->within &= inf_trial_run_find_difference(in_a, in_b, count_a * sizeof *in_a,
                                                            INF_DTYPE_F32, tolerance) == SIZE_MAX;
    }
    return any;
}
