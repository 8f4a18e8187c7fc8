// SPDX-License-Identifier: Apache-2.0
// Counts how inferences end and how long the loop works, for the metrics. The connections call the
// functions about inferences where they also change the counters of daemon/system/counters.h, so
// that every request is counted once.
#include "backends/base/clock.h"
#include "daemon/service/report/record.h"
#include "daemon/service/report/slow.h"
#include "daemon/service/state.h"
#include "proto/core/span.h"
#include "proto/wire/frame.h"

static uint32_t find_series(struct inf_service *service, struct inf_served *served,
                            const struct inf_device *device, uint64_t now_ns) INF_ON_LOOP
{
    const struct inf_metrics_labels labels = {
        .model = served->name, .version = served->version, .device = inf_device_info(device)->name};
    // served->metrics_handle is only for the device on which the model is placed.
    uint64_t *handle = device == served->device ? &served->metrics_handle : NULL;
    return inf_metrics_series(service->metrics, &labels, handle, now_ns);
}

void inf_service_end_of(struct inf_service *service, const struct inf_call *call,
                        struct inf_request_end *end)
{
    end->counted = end->recorded = false;
    if (call->kind == INF_CALL_WAIT && call->method == INF_METHOD_MODEL_INFER) {
        const struct inf_request *request = &((const struct inf_waiting_request *)call)->request;
        *end = (struct inf_request_end){.counted = true,
                                        .series = INF_METRICS_UNKNOWN,
                                        .uid = request->caller->uid,
                                        .accepted_ns = request->accepted_ns};
        return;
    }
    if (call->kind != INF_CALL_INFER)
        return;
    const struct inf_job *job = (const struct inf_job *)call;
    const uint64_t now_ns = inf_clock_ns();
    end->counted = true;
    end->series = find_series(service, job->served, job->device, now_ns);
    end->uid = (uint32_t)job->queue_entry.user;
    end->accepted_ns = job->accepted_ns;
    end->recorded = inf_service_wants_record(service, job);
    if (end->recorded)
        inf_service_fill_record(service, job, &end->record);
}

void inf_service_count_failure(struct inf_service *service, struct inf_request_end *end,
                               const struct inf_error *err)
{
    if (end->recorded)
        inf_service_note_record(service, &end->record, err);
    if (!end->counted)
        return;
    const struct inf_metrics_failure failure = {.series = end->series,
                                                .uid = end->uid,
                                                .code = err->code,
                                                .reason = err->reason,
                                                .accepted_ns = end->accepted_ns};
    inf_metrics_count_failure(service->metrics, &failure, inf_clock_ns());
}

void inf_service_count_refusal(struct inf_service *service, uint16_t method, uint32_t uid,
                               const struct inf_fault *fault)
{
    if (method != INF_METHOD_MODEL_INFER)
        return;
    struct inf_request_end end = {
        .counted = true, .recorded = false, .series = INF_METRICS_UNKNOWN, .uid = uid};
    struct inf_served *served = NULL;
    // A client that may not use the model must not load it either.
    if (fault->model[0] != '\0' && fault->err.reason != INF_REASON_MODEL_ACL &&
        inf_model_store_find(service->options.store, NULL, fault->model, fault->version, &served,
                             NULL) == INF_OK) {
        end.series = find_series(service, served, served->device, inf_clock_ns());
        inf_served_unref(&served);
    }
    inf_service_count_failure(service, &end, &fault->err);
}

void inf_service_begin_turn(struct inf_service *service)
{
    if (service->turn_begin_ns == 0)
        service->turn_begin_ns = inf_clock_ns();
}

void inf_service_end_turn(struct inf_service *service, uint64_t now_ns)
{
    if (service->turn_begin_ns == 0)
        return;
    inf_metrics_count_turn(service->metrics, now_ns - service->turn_begin_ns);
    service->turn_begin_ns = 0;
}

// The shapes of an answered job have been checked, so their sizes cannot overflow.
static uint64_t sum_input_bytes(const struct inf_job *job)
{
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < job->input_count; i++) {
        enum inf_dtype dtype = graph->values[graph->inputs[i].value].dtype;
        sum += dtype == INF_DTYPE_BYTES
                   ? job->string_bytes[i]
                   : inf_shape_elements(&job->shapes[i]) * inf_dtype_size(dtype);
    }
    return sum;
}

static uint64_t sum_output_bytes(const struct inf_job *job)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < job->output_count; i++)
        if (job->outputs[i].returned)
            sum += job->outputs[i].size_bytes;
    return sum;
}

void inf_service_count_answer(struct inf_service *service, const struct inf_call *call,
                              uint64_t now_ns)
{
    if (call->kind != INF_CALL_INFER)
        return;
    const struct inf_job *job = (const struct inf_job *)call;
    const uint64_t done_ns = job->result.done_ns;
    const struct inf_metrics_answer answer = {
        .series = find_series(service, job->served, job->device, now_ns),
        .uid = (uint32_t)job->queue_entry.user,
        .rows = INF_MAX(job->rows, 1u),
        .batch_rows = job->result.batch_rows,
        .recomputed = (job->result.flags & INF_INFER_RECOMPUTED) != 0,
        .duration_ns = done_ns - job->accepted_ns,
        .queue_ns = job->result.start_ns - job->accepted_ns,
        .input_ns = job->result.begin_ns - job->result.start_ns,
        .compute_ns = job->result.end_ns - job->result.begin_ns,
        .output_ns = done_ns - job->result.end_ns,
        .loop_delay_ns = now_ns > done_ns ? now_ns - done_ns : 0,
        .device_ns = job->result.core_ns,
        .input_bytes = sum_input_bytes(job),
        .output_bytes = sum_output_bytes(job),
    };
    inf_metrics_count_answer(service->metrics, &answer, now_ns);
    inf_service_note_duration(service, job, &answer, now_ns);
    if (inf_service_wants_record(service, job)) {
        struct inf_request_record record;
        inf_service_fill_record(service, job, &record);
        inf_service_note_record(service, &record, NULL);
    }
}
