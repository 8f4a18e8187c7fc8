// SPDX-License-Identifier: Apache-2.0
// Runs a model with inspection on (backends/exec/inspect.h), and turns the recorded values into one
// report entry per node: name, shape, time, value range and difference from another device.
#include "daemon/load/inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/name.h"
#include "proto/core/span.h"
#include "proto/core/utf8.h"

// A profile runs the model this many times and reports the fastest run.
#define PROFILE_RUNS 5

bool inf_inspect_mode_parse(const char *text, enum inf_inspect_mode *mode)
{
    static const char *const names[] = {[INF_INSPECT_PROFILE] = "profile",
                                        [INF_INSPECT_DEBUG] = "debug",
                                        [INF_INSPECT_DIFF] = "diff"};
    size_t index = inf_name_find(names, INF_ARRAY_LENGTH(names), text);
    if (index < INF_ARRAY_LENGTH(names))
        *mode = (enum inf_inspect_mode)index;
    return index < INF_ARRAY_LENGTH(names);
}

void inf_inspect_request_destroy(struct inf_inspect_request **order)
{
    if (*order == NULL)
        return;
    for (size_t i = 0; i < INF_LIMIT_TENSORS; i++)
        inf_blob_unref(&(*order)->inputs[i]);
    free(*order);
    *order = NULL;
}

struct work {
    const struct inf_inspect_request *order;
    const struct inf_inspect_sink *sink;
    struct inf_inspection *subject, *other;
    struct inf_inspect_rows *rows;
    bool parted; // true: the two devices already differed at an earlier node
};

// --- describing one node ---

static size_t append_value(char *text, size_t size, size_t used, const struct inf_graph *graph,
                           uint32_t value)
{
    char shape[INF_SHAPE_TEXT_SIZE];
    if (value == INF_VALUE_NONE || used >= size)
        return used;
    return used + (size_t)snprintf(text + used, size - used, "%s%s %s", used > 0 ? ", " : "",
                                   inf_dtype_name(graph->values[value].dtype),
                                   inf_shape_print(&graph->values[value].shape, shape));
}

static void describe_node(struct inf_inspect_rows *rows, const struct inf_graph *graph,
                          uint32_t index)
{
    const struct inf_node *node = &graph->nodes[index];
    struct inf_node_entry *entry = &rows->entries[rows->count];
    char *name = rows->texts[rows->count].name, *shape = rows->texts[rows->count].shape,
         *inputs = rows->texts[rows->count].inputs;
    size_t shape_used = 0, inputs_used = 0;
    snprintf(name, sizeof rows->texts[0].name, "%s", node->name);
    inf_text_trim(name);
    inf_text_clean(name);
    for (uint32_t i = 0; i < node->output_count; i++)
        shape_used =
            append_value(shape, sizeof rows->texts[0].shape, shape_used, graph, node->outputs[i]);
    for (uint32_t i = 0; i < node->input_count; i++)
        inputs_used =
            append_value(inputs, sizeof rows->texts[0].inputs, inputs_used, graph, node->inputs[i]);
    *entry = (struct inf_node_entry){.name = name,
                                     .op = inf_op_info(node->op)->name,
                                     .shape = shape,
                                     .inputs = inputs,
                                     .macs = inf_node_macs(graph, node),
                                     .verdict = ""};
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        size_t bytes;
        if (inf_shape_bytes(&value->shape, value->dtype, &bytes))
            entry->bytes += bytes;
    }
}

// Returns true if an input of the node, which may be a constant, contains a non-finite value.
static bool has_bad_input(const struct inf_inspection *inspection, uint32_t index)
{
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    const struct inf_node *node = &graph->nodes[index];
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == INF_VALUE_NONE)
            continue;
        if (inf_inspection_count_non_finite(inspection, node->inputs[i]) > 0)
            return true;
    }
    return false;
}

static void fill_report(struct work *work, struct inf_node_entry *entry, uint32_t index)
{
    struct inf_node_report report;
    inf_inspection_report_node(work->subject, index, &report);
    entry->start_ns = report.start_ns;
    entry->time_ns = report.time_ns;
    entry->kernel = report.kernel;
    entry->device = report.device;
    entry->threads = report.threads;
    if (report.dot_rate > 0 && report.time_ns > 0 && report.threads > 0)
        entry->dot_share = (double)entry->macs / ((double)report.time_ns * 1e-9) /
                           (report.dot_rate * report.threads);
    entry->nan_count = report.nan_count;
    entry->inf_count = report.inf_count;
    entry->min = report.least;
    entry->max = report.largest;
    if (work->order->mode == INF_INSPECT_DEBUG && report.nan_count + report.inf_count > 0)
        entry->verdict = has_bad_input(work->subject, index) ? "came in" : "made here";
}

static void compare_node(struct work *work, struct inf_node_entry *entry, uint32_t index)
{
    struct inf_node_difference difference;
    if (!inf_inspection_compare_node(work->subject, work->other, index, work->order->tolerance,
                                     &difference))
        return;
    entry->max_abs = difference.max_abs;
    entry->max_rel = difference.max_rel;
    entry->verdict = difference.within ? "ok" : work->parted ? "differs" : "first";
    work->parted |= !difference.within;
}

// --- running and reporting all nodes ---

static void send_rows(struct work *work, uint32_t percent)
{
    if (work->rows != NULL && work->rows->count > 0)
        work->sink->take(work->sink->context, work->rows, percent);
    else
        free(work->rows);
    work->rows = NULL;
}

static enum inf_code report_nodes(struct work *work, struct inf_error *err)
{
    const struct inf_graph *graph = inf_inspection_graph(work->subject);
    for (uint32_t n = 0; n < graph->node_count; n++) {
        if (work->rows == NULL)
            work->rows = calloc(1, sizeof *work->rows);
        if (work->rows == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a report");
        struct inf_node_entry *entry = &work->rows->entries[work->rows->count];
        describe_node(work->rows, graph, n);
        fill_report(work, entry, n);
        if (work->other != NULL)
            compare_node(work, entry, n);
        if (++work->rows->count == INF_INSPECT_ROWS)
            send_rows(work, (n + 1) * 100 / graph->node_count);
    }
    send_rows(work, 100);
    return INF_OK;
}

static void fill_inputs(struct inf_inspection *inspection, const struct inf_inspect_request *order)
{
    if (!order->given) {
        inf_inspection_fill_inputs(inspection);
        return;
    }
    for (uint32_t i = 0; i < inf_inspection_graph(inspection)->input_count; i++) {
        size_t size;
        void *memory = inf_inspection_input(inspection, i, &size);
        memcpy(memory, order->inputs[i]->data, INF_MIN(size, order->inputs[i]->size_bytes));
    }
}

// Chooses the shapes of the run: the shapes of the given inputs, or else the model's own shapes
// with 1 for open dimensions.
static enum inf_code choose_shapes(const struct inf_model *model,
                                   const struct inf_inspect_request *order,
                                   struct inf_shape *shapes, struct inf_error *err)
{
    const struct inf_graph *graph = inf_model_graph(model);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        shapes[i] = order->given ? order->shapes[i] : graph->values[graph->inputs[i].value].shape;
        if (shapes[i].rank == INF_RANK_UNKNOWN)
            return inf_fail(err, INF_INVALID,
                            "input '%s': its rank is not known, so it has to be given",
                            graph->inputs[i].name);
        for (int32_t d = 0; d < shapes[i].rank; d++)
            if (shapes[i].dims[d] == INF_DIM_UNKNOWN)
                shapes[i].dims[d] = 1;
    }
    return INF_OK;
}

static enum inf_code start_inspection(struct inf_inspection **inspection, struct inf_model *model,
                                      const struct inf_private_request *apart,
                                      const struct inf_inspect_request *order,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    INF_TRY(inf_inspection_create(inspection, model, apart, err));
    fill_inputs(*inspection, order);
    return inf_inspection_run(*inspection, apart->keep ? 1 : PROFILE_RUNS, err);
}

static enum inf_code inspect_model(struct work *work, struct inf_model *model,
                                   struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_inspect_request *order = work->order;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    INF_TRY(choose_shapes(model, order, shapes, err));
    const struct inf_run_options options = {.precision = order->precision};
    struct inf_private_request apart = {.device = order->device,
                                        .options = order->precision != INF_PRECISION_AUTO ? &options
                                                                                          : NULL,
                                        .shapes = shapes,
                                        .keep = order->mode != INF_INSPECT_PROFILE};
    INF_TRY(start_inspection(&work->subject, model, &apart, order, err));
    apart.device = order->against;
    apart.options = NULL;
    if (order->mode == INF_INSPECT_DIFF)
        INF_TRY(start_inspection(&work->other, model, &apart, order, err));
    return report_nodes(work, err);
}

enum inf_code inf_inspect_run(struct inf_model *model, const struct inf_inspect_request *order,
                              const struct inf_inspect_sink *sink, struct inf_error *err)
{
    inf_role_check_may_block();
    struct work work = {.order = order, .sink = sink};
    if (inf_model_graph(model)->input_count > INF_LIMIT_TENSORS)
        return inf_fail(err, INF_UNSUPPORTED, "a model of more than %u inputs", INF_LIMIT_TENSORS);
    enum inf_code code = inspect_model(&work, model, err);
    inf_inspection_destroy(&work.subject);
    inf_inspection_destroy(&work.other);
    free(work.rows);
    return code;
}
