// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/model/inspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "proto/core/span.h"

struct inf_dissection {
    struct inf_model *model; // no reference
    struct inf_executable *executable;
    struct inf_trial_run trial;
    uint64_t run_ns;
    struct inf_node_profile *profiles; // of the quickest run, `profile_count` of them
    struct inf_node_profile *latest;   // room for one run's
    uint32_t profile_count, capacity;
};

const struct inf_graph *inf_dissection_graph(const struct inf_dissection *dissection)
{
    return inf_executable_graph(dissection->executable);
}

uint64_t inf_dissection_run_ns(const struct inf_dissection *dissection)
{
    return dissection->run_ns;
}

// --- making ---

static enum inf_code fill(struct inf_dissection *dissection, struct inf_model *model,
                          const struct inf_apart *apart, struct inf_error *err) INF_MAY_BLOCK
{
    dissection->model = model;
    INF_TRY(inf_model_compile_apart(model, apart, &dissection->executable, err));
    const struct inf_graph *graph = inf_dissection_graph(dissection);
    dissection->capacity = graph->node_count;
    dissection->profiles = calloc((size_t)graph->node_count + 1, sizeof *dissection->profiles);
    dissection->latest = calloc((size_t)graph->node_count + 1, sizeof *dissection->latest);
    if (dissection->profiles == NULL || dissection->latest == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the times of %u nodes", graph->node_count);
    return inf_trial_run_init(&dissection->trial, graph, err);
}

enum inf_code inf_dissection_create(struct inf_dissection **out_dissection, struct inf_model *model,
                                    const struct inf_apart *apart, struct inf_error *err)
{
    struct inf_dissection *dissection = calloc(1, sizeof *dissection);
    if (dissection == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to look inside");
    enum inf_code code = fill(dissection, model, apart, err);
    if (code == INF_OK)
        *out_dissection = dissection;
    else
        inf_dissection_destroy(&dissection);
    return code;
}

void inf_dissection_destroy(struct inf_dissection **pointer)
{
    struct inf_dissection *dissection = *pointer;
    *pointer = NULL;
    if (dissection == NULL)
        return;
    inf_trial_run_fini(&dissection->trial);
    inf_model_discard_apart(dissection->model, &dissection->executable);
    free(dissection->profiles);
    free(dissection->latest);
    free(dissection);
}

// --- inputs ---

void *inf_dissection_input(struct inf_dissection *dissection, uint32_t index, size_t *out_bytes)
{
    *out_bytes = dissection->trial.blobs[index]->size_bytes;
    return dissection->trial.blobs[index]->data;
}

// A linear congruential generator (Knuth, TAOCP 2, 3.3.4, line 26) is random enough.
void inf_dissection_fill_inputs(struct inf_dissection *dissection)
{
    const struct inf_graph *graph = inf_dissection_graph(dissection);
    uint64_t state = 1;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        float *values = dissection->trial.blobs[i]->data;
        if (graph->values[graph->inputs[i].value].dtype != INF_DTYPE_F32)
            continue;
        for (size_t k = 0; k < dissection->trial.blobs[i]->size_bytes / sizeof *values; k++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            values[k] = (float)(state >> 40) / 16777216.f;
        }
    }
}

// --- running ---

static enum inf_code run_once(struct inf_dissection *dissection, uint64_t *took_ns,
                              struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_trial_run *trial = &dissection->trial;
    const struct inf_execution execution = {
        .inputs = (const void *const *)trial->pointers,
        .outputs = (void *const *)(trial->pointers + trial->input_count),
        .profile = true,
    };
    uint64_t begin_ns = inf_clock_ns();
    INF_TRY(inf_executable_run(dissection->executable, &execution, err));
    *took_ns = inf_clock_ns() - begin_ns;
    return INF_OK;
}

// Keeps the times of the run that was the last one.
static void keep_profile(struct inf_dissection *dissection, uint64_t took_ns)
{
    uint32_t count =
        inf_executable_profile(dissection->executable, 0, dissection->latest, dissection->capacity);
    struct inf_node_profile *kept = dissection->profiles;
    dissection->profiles = dissection->latest;
    dissection->latest = kept;
    dissection->profile_count = INF_MIN(count, dissection->capacity);
    dissection->run_ns = took_ns;
}

enum inf_code inf_dissection_run(struct inf_dissection *dissection, uint32_t runs,
                                 struct inf_error *err)
{
    inf_role_check_may_block();
    uint64_t took_ns = 0;
    INF_TRY(run_once(dissection, &took_ns, err));
    dissection->run_ns = UINT64_MAX;
    for (uint32_t i = 0; i < runs; i++) {
        INF_TRY(run_once(dissection, &took_ns, err));
        if (took_ns < dissection->run_ns)
            keep_profile(dissection, took_ns);
    }
    return INF_OK;
}

// --- looking ---

// The elements of a value after a run: of an output, which all values that are kept are; NULL for
// others.
static const void *find_value(const struct inf_dissection *dissection, uint32_t value,
                              size_t *bytes)
{
    const struct inf_graph *graph = inf_dissection_graph(dissection);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_blob *blob = dissection->trial.blobs[graph->input_count + i];
        if (graph->outputs[i].value != value)
            continue;
        *bytes = blob->size_bytes;
        return blob->data;
    }
    return NULL;
}

// The floats of a node's output; NULL where they are none, or not kept.
static const float *find_floats(const struct inf_dissection *dissection, uint32_t node,
                                uint32_t output, size_t *count)
{
    const struct inf_graph *graph = inf_dissection_graph(dissection);
    uint32_t value = graph->nodes[node].outputs[output];
    size_t bytes = 0;
    const float *floats =
        graph->values[value].dtype == INF_DTYPE_F32 ? find_value(dissection, value, &bytes) : NULL;
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

void inf_dissection_report(const struct inf_dissection *dissection, uint32_t node,
                           struct inf_node_report *report)
{
    const struct inf_node *of = &inf_dissection_graph(dissection)->nodes[node];
    uint64_t start_ns = 0;
    bool any = false;
    *report = (struct inf_node_report){.kernel = "", .device = ""};
    for (uint32_t i = 0; i < dissection->profile_count; i++) {
        const struct inf_node_profile *profile = &dissection->profiles[i];
        if (profile->node == node) {
            report->start_ns = start_ns;
            report->time_ns += profile->time_ns;
            report->kernel = profile->kernel;
            report->device = profile->device;
        }
        start_ns += profile->time_ns;
    }
    for (uint32_t i = 0; i < of->output_count; i++) {
        size_t count;
        const float *floats = find_floats(dissection, node, i, &count);
        for (size_t k = 0; floats != NULL && k < count; k++)
            look_at(report, floats[k], &any);
    }
}

// The data of a value that is no node's.
static const void *find_given(const struct inf_dissection *dissection, uint32_t value,
                              size_t *bytes)
{
    const struct inf_graph *graph = inf_dissection_graph(dissection);
    const struct inf_blob *blob = graph->values[value].data;
    for (uint32_t i = 0; i < graph->input_count && blob == NULL; i++)
        if (graph->inputs[i].value == value)
            blob = dissection->trial.blobs[i];
    *bytes = blob != NULL ? blob->size_bytes : 0;
    return blob != NULL ? blob->data : NULL;
}

uint64_t inf_dissection_bad_elements(const struct inf_dissection *dissection, uint32_t value)
{
    size_t bytes = 0;
    uint64_t bad = 0;
    if (inf_dissection_graph(dissection)->values[value].dtype != INF_DTYPE_F32)
        return 0;
    const float *floats = find_value(dissection, value, &bytes);
    if (floats == NULL)
        floats = find_given(dissection, value, &bytes);
    for (size_t i = 0; floats != NULL && i < bytes / sizeof *floats; i++)
        bad += !isfinite(floats[i]);
    return bad;
}

static void compare_element(struct inf_node_difference *difference, double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return;
    double apart = isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
    difference->max_abs = fmax(difference->max_abs, apart);
    difference->max_rel =
        fmax(difference->max_rel, b != 0 && isfinite(apart) ? apart / fabs(b) : apart);
}

bool inf_dissection_compare(const struct inf_dissection *a, const struct inf_dissection *b,
                            uint32_t node, double tolerance, struct inf_node_difference *difference)
{
    const struct inf_node *of = &inf_dissection_graph(a)->nodes[node];
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
        difference->within &= inf_trial_run_first_difference(in_a, in_b, count_a * sizeof *in_a,
                                                             INF_DTYPE_F32, tolerance) == SIZE_MAX;
    }
    return any;
}
