// SPDX-License-Identifier: Apache-2.0
// Checks whether a model may run in fp16 or bf16. Runs the graph twice with the caller's
// evaluator: once in fp32, and once with values rounded to the smaller type. The range of the
// values decides which nodes must stay in fp32; the distance of the outputs decides whether the
// others may be rounded.
//
// Devices that compute in fp16 store all values in it. Devices that compute in bf16 round the
// operands of products only, and store results in fp32. So in bf16 a mask of -3.4e38, which would
// become -infinity, does no harm: only a product would round it.
#include "backends/precision/precision_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/base/half.h"
#include "proto/core/span.h"
#include "proto/core/utf8.h"

// Selects which values a run of the graph rounds to the smaller type when it stores them.
enum rounding {
    ROUND_NOTHING,
    ROUND_UNPINNED,
    ROUND_ALL,
};

struct judge {
    struct inf_precision_report *report;
    const struct inf_graph *graph;
    const struct inf_evaluator *evaluator;
    struct inf_blob *const *inputs;
    const atomic_bool *cancelled; // NULL: never
    const struct inf_precision_limits *limits;
    uint64_t begin_ns; // when the check began
    bool *rounds;      // rounds[v] is true if devices round value v unless it is pinned
    bool *pinned;      // pinned[v] is true if value v must stay in fp32
    // wanted[i] is output i of the fp32 run, with which other runs are compared
    struct inf_blob **wanted;
};

static void copy_name(char name[64], const char *text)
{
    snprintf(name, 64, "%.63s", text);
    inf_text_clean(name);
}

// --- rounding single numbers to fp16 or bf16 ---

// The largest finite number of each precision, and the largest change of outputs that is accepted.
static const struct {
    double largest, error_max;
} traits[INF_PRECISIONS] = {
    [INF_PRECISION_FP16] = {INF_HALF_LARGEST, INF_HALF_ERROR_MAX},
    [INF_PRECISION_BF16] = {0x1.fep127, INF_BF16_ERROR_MAX},
};

double inf_precision_error_max(enum inf_precision precision)
{
    return traits[precision].error_max;
}

static float round_number(float value, enum inf_precision precision)
{
    return precision == INF_PRECISION_FP16 ? inf_half_to_float(inf_half_from_float(value))
                                           : inf_bf16_to_float(inf_bf16_from_float(value));
}

// --- rounding all elements of a tensor ---

static double magnitude_of(const struct inf_blob *blob)
{
    const float *elements = blob->data;
    double magnitude = 0;
    for (size_t i = 0; i < blob->size_bytes / sizeof *elements; i++)
        if (isfinite(elements[i]))
            magnitude = fmax(magnitude, fabs((double)elements[i]));
    return magnitude;
}

static uint64_t count_lost(const struct inf_blob *blob, enum inf_precision precision)
{
    const float *elements = blob->data;
    uint64_t lost = 0;
    for (size_t i = 0; i < blob->size_bytes / sizeof *elements; i++)
        lost += elements[i] != 0 && round_number(elements[i], precision) == 0;
    return lost;
}

static void round_blob(struct inf_blob *blob, enum inf_precision precision)
{
    float *elements = blob->data;
    for (size_t i = 0; i < blob->size_bytes / sizeof *elements; i++)
        elements[i] = round_number(elements[i], precision);
}

static struct inf_blob *copy_blob(const struct inf_blob *from)
{
    struct inf_blob *copy = inf_blob_create(from->size_bytes);
    if (copy != NULL)
        memcpy(copy->data, from->data, from->size_bytes);
    return copy;
}

// --- running the graph with rounded values ---

static enum inf_code fail_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to try a precision");
}

// Returns true if the node multiplies operands, which devices round to bf16.
static bool is_product(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_MATMUL:
    case INF_OP_CONV2D:
    case INF_OP_DEPTHWISE_CONV2D:
    case INF_OP_CONV2D_TRANSPOSE:
    case INF_OP_CONV_ND:
    case INF_OP_CONV_ND_TRANSPOSE:
    case INF_OP_RNN:
        return true;
    default:
        return false;
    }
}

// Fills judge->rounds.
static void find_rounded(struct judge *judge)
{
    const struct inf_graph *graph = judge->graph;
    bool in_bf16 = judge->report->precision == INF_PRECISION_BF16;
    memset(judge->rounds, !in_bf16, graph->value_count * sizeof *judge->rounds);
    for (uint32_t n = 0; n < graph->node_count && in_bf16; n++) {
        const struct inf_node *node = &graph->nodes[n];
        for (uint32_t i = 0; is_product(node) && i < node->input_count; i++)
            if (node->inputs[i] != INF_VALUE_NONE)
                judge->rounds[node->inputs[i]] = true;
    }
}

// Returns true if this run rounds the given value.
static bool is_rounded(const struct judge *judge, const struct inf_graph *graph, uint32_t value,
                       enum rounding rounding)
{
    if (graph->values[value].dtype != INF_DTYPE_F32 || rounding == ROUND_NOTHING ||
        !judge->rounds[value])
        return false;
    return rounding == ROUND_ALL || !judge->pinned[value];
}

// Returns true if values are rounded when they are stored, false if products round what they read.
static bool rounds_stored(const struct judge *judge)
{
    return judge->report->precision != INF_PRECISION_BF16;
}

// Replaces the data of a value by a copy in which every element is rounded to the smaller type.
static enum inf_code round_value(const struct judge *judge, struct inf_graph *graph, uint32_t value,
                                 enum rounding rounding, struct inf_error *err)
{
    struct inf_value *of = &graph->values[value];
    if (of->data == NULL || !is_rounded(judge, graph, value, rounding))
        return INF_OK;
    struct inf_blob *copy = copy_blob(of->data);
    if (copy == NULL)
        return fail_memory(err);
    round_blob(copy, judge->report->precision);
    inf_blob_unref(&of->data);
    of->data = copy;
    return INF_OK;
}

static enum inf_code run_node(const struct judge *judge, struct inf_graph *graph, uint32_t index,
                              enum rounding rounding, struct inf_error *err) INF_MAY_BLOCK
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
                inf_fail(err, INF_UNSUPPORTED, "node '%s': its size depends on values", node->name);
        else if ((blobs[i] = inf_blob_create(bytes)) == NULL)
            code = fail_memory(err);
    }
    if (code == INF_OK)
        code = judge->evaluator->run(judge->evaluator->context, graph, index, blobs,
                                     judge->cancelled, err);
    for (uint32_t i = 0; i < node->output_count && i < INF_LIMIT_TENSORS; i++) {
        if (code != INF_OK) {
            inf_blob_unref(&blobs[i]);
            continue;
        }
        if (rounds_stored(judge) && is_rounded(judge, graph, node->outputs[i], rounding))
            round_blob(blobs[i], judge->report->precision);
        graph->values[node->outputs[i]].data = blobs[i];
    }
    return code;
}

// Runs a node with its operands rounded. Other nodes read them as they were.
static enum inf_code run_product(const struct judge *judge, struct inf_graph *graph, uint32_t index,
                                 enum rounding rounding, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_node *node = &graph->nodes[index];
    struct inf_blob *exact[INF_LIMIT_NODE_INPUTS] = {NULL};
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < node->input_count && code == INF_OK; i++) {
        if (node->inputs[i] == INF_VALUE_NONE)
            continue;
        exact[i] = inf_blob_ref(graph->values[node->inputs[i]].data);
        code = round_value(judge, graph, node->inputs[i], rounding, err);
    }
    if (code == INF_OK)
        code = run_node(judge, graph, index, rounding, err);
    // From the last operand to the first: both may be the same value.
    for (uint32_t i = node->input_count; i-- > 0;) {
        if (exact[i] == NULL)
            continue;
        inf_blob_unref(&graph->values[node->inputs[i]].data);
        graph->values[node->inputs[i]].data = exact[i];
    }
    return code;
}

// Runs a copy of the graph; afterwards all of its values have data. The caller destroys *out_graph.
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
    for (uint32_t v = 0; v < graph->value_count && rounds_stored(judge); v++)
        INF_TRY(round_value(judge, graph, v, rounding, err));
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (inf_is_cancelled(judge->cancelled))
            return inf_fail(err, INF_CANCELLED, "cancelled before node '%s'", graph->nodes[n].name);
        if (inf_clock_ns() - judge->begin_ns > judge->limits->time_ns)
            return inf_fail(err, INF_UNSUPPORTED, "to try %s takes longer than %" PRIu64 " ms",
                            inf_precision_name(judge->report->precision),
                            judge->limits->time_ns / INF_NS_PER_MS);
        bool is_rounding = !rounds_stored(judge) && is_product(&graph->nodes[n]);
        INF_TRY((is_rounding ? run_product : run_node)(judge, graph, n, rounding, err));
    }
    *out_graph = graph;
    graph = NULL;
    return INF_OK;
}

// --- comparing the outputs of the fp32 run and of a rounded run ---

static void look_at_weight(struct judge *judge, const struct inf_graph *graph, uint32_t value)
{
    struct inf_precision_report *report = judge->report;
    double magnitude = magnitude_of(graph->values[value].data);
    report->weights++;
    judge->pinned[value] = judge->rounds[value] && magnitude > traits[report->precision].largest;
    if (!judge->pinned[value])
        return;
    if (report->weights_pinned++ == 0) {
        copy_name(report->pinned_weight, graph->values[value].name);
        report->weight_magnitude = magnitude;
    }
}

static void look_at_result(struct judge *judge, const struct inf_graph *graph, uint32_t value)
{
    struct inf_precision_report *report = judge->report;
    double magnitude = magnitude_of(graph->values[value].data);
    report->values++;
    judge->pinned[value] =
        judge->rounds[value] && magnitude * INF_HALF_HEADROOM >= traits[report->precision].largest;
    if (!judge->pinned[value])
        return;
    if (report->pinned++ == 0) {
        copy_name(report->pinned_node, graph->nodes[graph->values[value].producer].name);
        report->pinned_magnitude = magnitude;
    }
}

// Records the largest magnitude of each value in the fp32 run, and keeps the outputs.
static enum inf_code calibrate_values(struct judge *judge, struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(run_graph(judge, ROUND_NOTHING, &graph, err));
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_value *value = &graph->values[v];
        if (value->dtype != INF_DTYPE_F32 || value->data == NULL)
            continue;
        if (judge->rounds[v])
            judge->report->lost += count_lost(value->data, judge->report->precision);
        if (value->producer != INF_NODE_NONE)
            look_at_result(judge, graph, v);
        else if (judge->graph->values[v].data != NULL)
            look_at_weight(judge, graph, v);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *output = &graph->values[graph->outputs[i].value];
        judge->wanted[i] = inf_blob_ref(output->data);
        if (output->dtype == INF_DTYPE_F32)
            judge->report->magnitude = fmax(judge->report->magnitude, magnitude_of(output->data));
    }
    return INF_OK;
}

// Returns the distance of an output from the same output of the fp32 run, relative to max(1,
// |fp32|). Returns infinity if an element is no longer finite.
static double value_distance(const struct inf_blob *got, const struct inf_blob *wanted)
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

// Sets *error to the largest change of an output, and names that output in the report.
static enum inf_code measure_error(struct judge *judge, enum rounding rounding, double *error,
                                   struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    *error = 0;
    INF_TRY(run_graph(judge, rounding, &graph, err));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        double apart =
            value->dtype == INF_DTYPE_F32 ? value_distance(value->data, judge->wanted[i]) : 0;
        if (i == 0 || apart > *error)
            copy_name(judge->report->output, graph->outputs[i].name);
        *error = fmax(*error, apart);
    }
    return INF_OK;
}

static bool has_pinned(const struct judge *judge)
{
    for (uint32_t v = 0; v < judge->graph->value_count; v++)
        if (judge->pinned[v])
            return true;
    return false;
}

static bool touches_pinned(const struct judge *judge, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && judge->pinned[node->inputs[i]])
            return true;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (judge->pinned[node->outputs[i]])
            return true;
    return false;
}

// Pins every node that computes or reads a pinned value. A node that reads one must stay in fp32,
// because its operand would overflow.
static void collect_pins(struct judge *judge)
{
    struct inf_precision_report *report = judge->report;
    for (uint32_t n = 0; n < judge->graph->node_count; n++) {
        const struct inf_node *node = &judge->graph->nodes[n];
        if (!touches_pinned(judge, node))
            continue;
        if (report->pinned_nodes < INF_PRECISION_PINS_MAX)
            report->pins[report->pinned_nodes] = inf_node_hash(node);
        report->pinned_nodes++;
    }
}

static enum inf_code run_check(struct judge *judge, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_precision_report *report = judge->report;
    judge->pinned = calloc((size_t)judge->graph->value_count + 1, sizeof *judge->pinned);
    judge->rounds = calloc((size_t)judge->graph->value_count + 1, sizeof *judge->rounds);
    judge->wanted = calloc((size_t)judge->graph->output_count + 1, sizeof *judge->wanted);
    if (judge->pinned == NULL || judge->rounds == NULL || judge->wanted == NULL)
        return fail_memory(err);
    find_rounded(judge);
    INF_TRY(calibrate_values(judge, err));
    INF_TRY(measure_error(judge, ROUND_ALL, &report->error_unguarded, err));
    report->error = report->error_unguarded;
    if (has_pinned(judge))
        INF_TRY(measure_error(judge, ROUND_UNPINNED, &report->error, err));
    collect_pins(judge);
    report->admissible = report->error <= traits[report->precision].error_max &&
                         report->pinned_nodes <= INF_PRECISION_PINS_MAX &&
                         report->pinned_nodes < report->nodes;
    return INF_OK;
}

enum inf_code inf_precision_check(struct inf_precision_report *report, enum inf_precision precision,
                                  const struct inf_graph *graph,
                                  const struct inf_evaluator *evaluator,
                                  const struct inf_precision_limits *limits,
                                  struct inf_blob *const *inputs, const atomic_bool *cancelled,
                                  struct inf_error *err)
{
    inf_role_check_may_block();
    *report = (struct inf_precision_report){.precision = precision, .nodes = graph->node_count};
    if (traits[precision].error_max <= 0)
        return inf_fail(err, INF_UNSUPPORTED, "%s is not tried on models of floats",
                        inf_precision_name(precision));
    uint64_t macs = inf_graph_cost(graph).macs;
    if (macs > limits->macs)
        return inf_fail(err, INF_UNSUPPORTED,
                        "%" PRIu64 " multiply-adds are too many to try %s, wanted at most %" PRIu64,
                        macs, inf_precision_name(precision), limits->macs);
    if (graph->subgraph_count > 0)
        return inf_fail(err, INF_UNSUPPORTED, "branches and loops are not tried in %s",
                        inf_precision_name(precision));
    struct judge judge = {.report = report,
                          .graph = graph,
                          .evaluator = evaluator,
                          .inputs = inputs,
                          .cancelled = cancelled,
                          .limits = limits,
                          .begin_ns = inf_clock_ns()};
    enum inf_code code = run_check(&judge, err);
    for (uint32_t i = 0; judge.wanted != NULL && i < graph->output_count; i++)
        inf_blob_unref(&judge.wanted[i]);
    free(judge.wanted);
    free(judge.rounds);
    free(judge.pinned);
    return code;
}

bool inf_precision_is_inconclusive(const struct inf_precision_report *report)
{
    return report->magnitude < traits[report->precision].error_max;
}

void inf_precision_print(const struct inf_precision_report *report, char *text, size_t size)
{
    size_t used = 0;
#define SAY(...) (used += used < size ? (size_t)snprintf(text + used, size - used, __VA_ARGS__) : 0)
    if (report->weights_pinned > 0)
        SAY("weight '%s' reaches %g, beyond %g; ", report->pinned_weight, report->weight_magnitude,
            traits[report->precision].largest);
    if (report->pinned > 0)
        SAY("%" PRIu32 " of %" PRIu32 " values would stay fp32 ('%s' reaches %g); ", report->pinned,
            report->values, report->pinned_node, report->pinned_magnitude);
    if (!isfinite(report->error_unguarded))
        SAY("unguarded it would overflow; ");
    if (inf_precision_is_inconclusive(report))
        SAY("outputs reach no more than %.2g, which tells nothing; ", report->magnitude);
    SAY("output '%s' would move by %.2g, allowed %g", report->output, report->error,
        traits[report->precision].error_max);
#undef SAY
}
