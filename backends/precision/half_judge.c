// SPDX-License-Identifier: Apache-2.0
#include "backends/precision/half_judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "proto/core/span.h"
#include "proto/core/utf8.h"

// What is rounded as it is stored.
enum rounding {
    ROUND_NOTHING,
    ROUND_UNPINNED,
    ROUND_ALL,
};

struct judge {
    struct inf_half_report *report;
    const struct inf_graph *graph;
    const struct inf_evaluator *evaluator;
    struct inf_blob *const *inputs;
    bool *pinned;             // by value
    struct inf_blob **wanted; // by output: what fp32 gave
};

static void copy_name(char name[64], const char *text)
{
    snprintf(name, 64, "%.63s", text);
    inf_text_clean(name);
}

// --- one tensor ---

static double magnitude_of(const struct inf_blob *blob)
{
    const float *elements = blob->data;
    double magnitude = 0;
    for (size_t i = 0; i < blob->size_bytes / sizeof *elements; i++)
        if (isfinite(elements[i]))
            magnitude = fmax(magnitude, fabs((double)elements[i]));
    return magnitude;
}

static uint64_t count_lost(const struct inf_blob *blob)
{
    const float *elements = blob->data;
    uint64_t lost = 0;
    for (size_t i = 0; i < blob->size_bytes / sizeof *elements; i++)
        lost += elements[i] != 0 && inf_half_to_float(inf_half_from_float(elements[i])) == 0;
    return lost;
}

static void round_blob(struct inf_blob *blob)
{
    float *elements = blob->data;
    for (size_t i = 0; i < blob->size_bytes / sizeof *elements; i++)
        elements[i] = inf_half_to_float(inf_half_from_float(elements[i]));
}

static struct inf_blob *copy_blob(const struct inf_blob *from)
{
    struct inf_blob *copy = inf_blob_create(from->size_bytes);
    if (copy != NULL)
        memcpy(copy->data, from->data, from->size_bytes);
    return copy;
}

// --- a run ---

static enum inf_code fail_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to try fp16");
}

// Whether a value is stored in half in this run.
static bool is_rounded(const struct judge *judge, const struct inf_graph *graph, uint32_t value,
                       enum rounding rounding)
{
    if (graph->values[value].dtype != INF_DTYPE_F32 || rounding == ROUND_NOTHING)
        return false;
    return rounding == ROUND_ALL || !judge->pinned[value];
}

// Replaces the data of a value that came with the graph by a rounded copy.
static enum inf_code round_given(const struct judge *judge, struct inf_graph *graph, uint32_t value,
                                 enum rounding rounding, struct inf_error *err)
{
    struct inf_value *of = &graph->values[value];
    if (of->data == NULL || !is_rounded(judge, graph, value, rounding))
        return INF_OK;
    struct inf_blob *copy = copy_blob(of->data);
    if (copy == NULL)
        return fail_memory(err);
    round_blob(copy);
    inf_blob_unref(&of->data);
    of->data = copy;
    return INF_OK;
}

static enum inf_code run_node(const struct judge *judge, struct inf_graph *graph, uint32_t index,
                              enum rounding rounding, struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[index];
    struct inf_blob *blobs[INF_LIMIT_TENSORS] = {NULL};
    enum inf_code code =
        node->output_count <= INF_LIMIT_TENSORS
            ? INF_OK
            : inf_fail(err, INF_UNSUPPORTED, "node '%s' has too many outputs", node->name);
    for (uint32_t i = 0; i < node->output_count && code == INF_OK; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        size_t bytes;
        if (!inf_shape_bytes(&value->shape, value->dtype, &bytes))
            code =
                inf_fail(err, INF_UNSUPPORTED, "node '%s': its size hangs on values", node->name);
        else if ((blobs[i] = inf_blob_create(bytes)) == NULL)
            code = fail_memory(err);
    }
    if (code == INF_OK)
        code = judge->evaluator->run(judge->evaluator->context, graph, index, blobs, err);
    for (uint32_t i = 0; i < node->output_count && i < INF_LIMIT_TENSORS; i++) {
        if (code != INF_OK) {
            inf_blob_unref(&blobs[i]);
            continue;
        }
        if (is_rounded(judge, graph, node->outputs[i], rounding))
            round_blob(blobs[i]);
        graph->values[node->outputs[i]].data = blobs[i];
    }
    return code;
}

// Runs a copy of the graph, whose values then all have data. *out_graph is the caller's.
static enum inf_code run_graph(const struct judge *judge, enum rounding rounding,
                               struct inf_graph **out_graph, struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(inf_graph_clone(&graph, judge->graph, err));
    for (uint32_t i = 0; i < graph->input_count; i++) {
        struct inf_value *input = &graph->values[graph->inputs[i].value];
        input->data = copy_blob(judge->inputs[i]);
        if (input->data == NULL)
            return fail_memory(err);
    }
    for (uint32_t v = 0; v < graph->value_count; v++)
        INF_TRY(round_given(judge, graph, v, rounding, err));
    for (uint32_t n = 0; n < graph->node_count; n++)
        INF_TRY(run_node(judge, graph, n, rounding, err));
    *out_graph = graph;
    graph = NULL;
    return INF_OK;
}

// --- judging ---

static void look_at_weight(struct judge *judge, const struct inf_graph *graph, uint32_t value)
{
    struct inf_half_report *report = judge->report;
    double magnitude = magnitude_of(graph->values[value].data);
    report->weights++;
    judge->pinned[value] = magnitude > INF_HALF_LARGEST;
    if (!judge->pinned[value])
        return;
    if (report->weights_pinned++ == 0) {
        copy_name(report->pinned_weight, graph->values[value].name);
        report->weight_magnitude = magnitude;
    }
}

static void look_at_result(struct judge *judge, const struct inf_graph *graph, uint32_t value)
{
    struct inf_half_report *report = judge->report;
    double magnitude = magnitude_of(graph->values[value].data);
    report->values++;
    judge->pinned[value] = magnitude * INF_HALF_HEADROOM >= INF_HALF_LARGEST;
    if (!judge->pinned[value])
        return;
    if (report->pinned++ == 0) {
        copy_name(report->pinned_node, graph->nodes[graph->values[value].producer].name);
        report->pinned_magnitude = magnitude;
    }
}

// Sees how far each value of the fp32 run reaches, and keeps the outputs.
static enum inf_code calibrate(struct judge *judge, struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(run_graph(judge, ROUND_NOTHING, &graph, err));
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_value *value = &graph->values[v];
        if (value->dtype != INF_DTYPE_F32 || value->data == NULL)
            continue;
        judge->report->lost += count_lost(value->data);
        if (value->producer != INF_NODE_NONE)
            look_at_result(judge, graph, v);
        else if (judge->graph->values[v].data != NULL)
            look_at_weight(judge, graph, v);
    }
    for (uint32_t i = 0; i < graph->output_count; i++)
        judge->wanted[i] = inf_blob_ref(graph->values[graph->outputs[i].value].data);
    return INF_OK;
}

// How far one output is from fp32's, relative to max(1, |fp32|); infinity where it stopped being finite.
static double distance(const struct inf_blob *got, const struct inf_blob *wanted)
{
    const float *a = got->data, *b = wanted->data;
    double most = 0;
    for (size_t i = 0; i < wanted->size_bytes / sizeof *b; i++) {
        if (isfinite(b[i]) && !isfinite(a[i]))
            return INFINITY;
        if (isfinite(b[i]))
            most = fmax(most, fabs((double)a[i] - (double)b[i]) / fmax(1, fabs((double)b[i])));
    }
    return most;
}

static enum inf_code measure(struct judge *judge, enum rounding rounding, double *error, bool named,
                             struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(run_graph(judge, rounding, &graph, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        double apart = value->dtype == INF_DTYPE_F32 ? distance(value->data, judge->wanted[i]) : 0;
        if (named && (i == 0 || apart > *error))
            copy_name(judge->report->output, graph->outputs[i].name);
        *error = fmax(*error, apart);
    }
    return INF_OK;
}

static enum inf_code run(struct judge *judge, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_half_report *report = judge->report;
    judge->pinned = calloc((size_t)judge->graph->value_count + 1, sizeof *judge->pinned);
    judge->wanted = calloc((size_t)judge->graph->output_count + 1, sizeof *judge->wanted);
    if (judge->pinned == NULL || judge->wanted == NULL)
        return fail_memory(err);
    INF_TRY(calibrate(judge, err));
    INF_TRY(measure(judge, ROUND_ALL, &report->error_unguarded, false, err));
    INF_TRY(measure(judge, ROUND_UNPINNED, &report->error, true, err));
    report->admissible = report->error <= INF_HALF_ERROR_MAX;
    return INF_OK;
}

enum inf_code inf_half_judge(struct inf_half_report *report, const struct inf_graph *graph,
                             const struct inf_evaluator *evaluator, struct inf_blob *const *inputs,
                             struct inf_error *err)
{
    inf_role_check_may_block();
    *report = (struct inf_half_report){0};
    uint64_t macs = inf_graph_cost(graph).macs;
    if (macs > INF_HALF_MACS_MAX)
        return inf_fail(err, INF_UNSUPPORTED,
                        "%" PRIu64
                        " multiply-adds are too many to try fp16 with plain loops, "
                        "wanted at most %" PRIu64,
                        macs, INF_HALF_MACS_MAX);
    if (graph->subgraph_count > 0)
        return inf_fail(err, INF_UNSUPPORTED, "branches and loops are not tried in fp16");
    struct judge judge = {
        .report = report, .graph = graph, .evaluator = evaluator, .inputs = inputs};
    enum inf_code code = run(&judge, err);
    for (uint32_t i = 0; judge.wanted != NULL && i < graph->output_count; i++)
        inf_blob_unref(&judge.wanted[i]);
    free(judge.wanted);
    free(judge.pinned);
    return code;
}

void inf_half_print(const struct inf_half_report *report, char *text, size_t size)
{
    size_t used = 0;
#define SAY(...) (used += used < size ? (size_t)snprintf(text + used, size - used, __VA_ARGS__) : 0)
    if (report->weights_pinned > 0)
        SAY("weight '%s' reaches %g, beyond 65504; ", report->pinned_weight,
            report->weight_magnitude);
    if (report->pinned > 0)
        SAY("%" PRIu32 " of %" PRIu32 " values would stay fp32 ('%s' reaches %g); ", report->pinned,
            report->values, report->pinned_node, report->pinned_magnitude);
    if (!isfinite(report->error_unguarded))
        SAY("unguarded it would overflow; ");
    SAY("output '%s' would move by %.2g, allowed %g", report->output, report->error,
        INF_HALF_ERROR_MAX);
#undef SAY
}
