// SPDX-License-Identifier: Apache-2.0
// Logs one request node by node: runs the model again with inspection on, and logs one line for
// each node.
#include "daemon/schedule/debug_trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/base/clock.h"

// Pause after a number of log lines, so that the log writer catches up: the log buffer has room for
// a few hundred lines and drops further ones.
#define PAUSE_NS (10 * INF_NS_PER_MS)

struct trace {
    const struct inf_trace_subject *subject;
    const struct inf_log *log;
    uint32_t nodes;
    uint64_t time_ns, bytes;
    char culprit[128]; // name of the first node that produced a non-finite value; "": none
};

static void log_node(struct trace *trace, const struct inf_node_entry *node)
{
    inf_log(trace->log, INF_LOG_INFO,
            "node model=%s name=\"%s\" op=%s device=%s kernel=\"%s\" ms=%.4f output=\"%s\" "
            "inputs=\"%s\" bytes=%" PRIu64 " least=%g largest=%g nan=%" PRIu64 " inf=%" PRIu64
            " verdict=\"%s\"",
            trace->subject->served->name, node->name, node->op, node->device, node->kernel,
            (double)node->time_ns / 1e6, node->shape, node->inputs, node->bytes, node->min,
            node->max, node->nan_count, node->inf_count, node->verdict);
    if (trace->culprit[0] == '\0' && strcmp(node->verdict, "made here") == 0)
        snprintf(trace->culprit, sizeof trace->culprit, "%s", node->name);
    trace->nodes++;
    trace->time_ns += node->time_ns;
    trace->bytes += node->bytes;
}

static void log_rows(void *context, struct inf_inspect_rows *rows, uint32_t percent)
{
    struct trace *trace = context;
    (void)percent;
    for (uint32_t i = 0; i < rows->count; i++)
        log_node(trace, &rows->entries[i]);
    free(rows);
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

void inf_trace_log(const struct inf_trace_subject *subject, const struct inf_log *log)
{
    struct trace trace = {.subject = subject, .log = log};
    struct inf_error err = {.text = "no memory"};
    enum inf_code code = INF_EXHAUSTED;
    struct inf_inspect_request *request = calloc(1, sizeof *request);
    if (request != NULL) {
        request->mode = INF_INSPECT_DEBUG;
        request->device = subject->device;
        request->precision = subject->precision;
        request->given = true;
        for (uint32_t i = 0; i < subject->input_count; i++) {
            request->shapes[i] = subject->shapes[i];
            request->inputs[i] = inf_blob_ref(subject->inputs[i]);
        }
        const struct inf_inspect_sink sink = {.take = log_rows, .context = &trace};
        code = inf_inspect_run(subject->served->model, request, &sink, &err);
    }
    inf_inspect_request_destroy(&request);
    if (code != INF_OK)
        inf_log(log, INF_LOG_INFO, "request not traced model=%s id=\"%s\" reason=\"%s\"",
                subject->served->name, subject->request_id, err.text);
    else
        inf_log(log, INF_LOG_INFO,
                "request traced model=%s version=%s id=\"%s\" device=%s precision=%s nodes=%" PRIu32
                " ms=%.4f bytes=%" PRIu64 " not_finite_from=\"%s\"",
                subject->served->name, subject->served->version, subject->request_id,
                inf_device_info(subject->device)->name, inf_precision_name(subject->precision),
                trace.nodes, (double)trace.time_ns / 1e6, trace.bytes, trace.culprit);
}
