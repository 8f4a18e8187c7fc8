// SPDX-License-Identifier: Apache-2.0
// ModelInfer: checks a request against its model, makes a job from it and submits the job. From top
// to bottom: acquire a job, fill it (model, run options, tensors), estimate its run time, choose a
// replica, submit. job_result.c handles the job after the run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/service/bind.h"
#include "daemon/service/handlers.h"
#include "daemon/service/infer.h"
#include "daemon/service/job_estimate.h"
#include "daemon/service/run_options.h"
#include "daemon/service/session.h"
#include "daemon/service/tracing.h"

// When a client may try again if too many requests for the model are in flight.
#define MODEL_RETRY_MS 10u

static struct inf_job *acquire_job(struct inf_service *service)
{
    struct inf_call *unused = service->unused_jobs;
    struct inf_job *job;
    if (unused != NULL) {
        service->unused_jobs = unused->next;
        job = (struct inf_job *)unused;
    } else {
        job = calloc(1, sizeof *job);
        if (job == NULL)
            return NULL;
        job->call.kind = INF_CALL_INFER;
        atomic_init(&job->cancelled, false);
        atomic_init(&job->answerer, INF_JOB_BY_NONE);
    }
    job->call.connection = NULL;
    job->call.answered = false;
    job->place = INF_JOB_LOOP;
    job->kept_input_count = job->kept_output_count = 0;
    job->shadowed = job->traced = job->is_model_charged = false;
    job->result.sample = NULL;
    job->result.flags = job->result.padded_to = 0;
    job->result.join_outcome = INF_JOIN_ALONE;
    job->result.start_ns = 0;
    job->call.previous = job->call.next = NULL;
    atomic_store_explicit(&job->cancelled, false, memory_order_relaxed);
    atomic_store_explicit(&job->answerer, INF_JOB_BY_NONE, memory_order_relaxed);
    return job;
}

void inf_service_release_job(struct inf_service *service, struct inf_job *job)
{
    if (job->session != NULL)
        inf_service_leave_session(service, job);
    for (uint32_t i = 0; i < job->input_count; i++)
        inf_region_release(&job->input_regions[i]);
    for (uint32_t i = 0; i < job->output_count; i++)
        inf_region_release(&job->outputs[i].region);
    job->input_count = job->output_count = 0;
    inf_pool_release(service->options.pool, job->data, job->data_bytes);
    inf_pool_release(service->options.pool, job->result.data, job->result.data_capacity);
    job->data = job->result.data = NULL;
    inf_shadow_sample_destroy(&job->result.sample);
    if (job->is_model_charged)
        inf_model_quota_end_request(job->served->quota);
    inf_served_unref(&job->served);
    inf_reply_writer_unref(&job->direct.writer);
    job->call.next = service->unused_jobs;
    service->unused_jobs = &job->call;
}

// Charges the account of the model for a request.
static enum inf_code charge_model(struct inf_job *job, struct inf_fault *fault) INF_ON_LOOP
{
    uint64_t wait_ns = 0;
    if (job->served->quota == NULL)
        return INF_OK;
    enum inf_code code = inf_model_quota_begin_request(job->served->quota, job->served->name,
                                                       inf_clock_ns(), &wait_ns, &fault->err);
    job->is_model_charged = code == INF_OK;
    if (code != INF_OK) {
        fault->phase = "queue";
        fault->retry_after_ms =
            wait_ns > 0 ? (uint32_t)(wait_ns / INF_NS_PER_MS) + 1 : MODEL_RETRY_MS;
    }
    return code;
}

// Returns the priority of a request: the one that it names or that of the model, but no higher one
// than the model allows. On the wire, a request that names none has the priority NORMAL.
static enum inf_priority choose_priority(const struct inf_model_quota *quota,
                                         enum inf_wire_priority priority)
{
    static const enum inf_model_priority ranks[] = {
        [INF_WIRE_PRIORITY_NORMAL] = INF_MODEL_PRIORITY_NORMAL,
        [INF_WIRE_PRIORITY_HIGH] = INF_MODEL_PRIORITY_HIGH,
        [INF_WIRE_PRIORITY_LOW] = INF_MODEL_PRIORITY_LOW,
    };
    static const enum inf_priority priorities[] = {
        [INF_MODEL_PRIORITY_NORMAL] = INF_PRIORITY_NORMAL,
        [INF_MODEL_PRIORITY_HIGH] = INF_PRIORITY_HIGH,
        [INF_MODEL_PRIORITY_LOW] = INF_PRIORITY_LOW,
    };
    uint32_t rank = ranks[priority];
    if (quota != NULL && priority == INF_WIRE_PRIORITY_NORMAL)
        rank = quota->priority;
    if (quota != NULL)
        rank = INF_MIN(rank, quota->priority_max);
    return priorities[rank];
}

static enum inf_code fill_job(struct inf_service *service, struct inf_job *job,
                              struct inf_request *request, struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    INF_TRY(inf_model_store_find(service->options.store, request->caller, infer->model_name,
                                 infer->model_version, &job->served, &fault->err));
    inf_fault_model(fault, NULL, job->served->version);
    INF_TRY(charge_model(job, fault));
    INF_TRY(inf_service_choose_run_options(service, job, request, fault));
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    if (graph->input_count > INF_LIMIT_TENSORS || graph->output_count > INF_LIMIT_TENSORS)
        return inf_fail_reason(&fault->err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "model '%s': %u inputs and %u outputs, at most %u each can be asked "
                               "for",
                               job->served->name, graph->input_count, graph->output_count,
                               INF_LIMIT_TENSORS);
    memset(job->input_regions, 0, graph->input_count * sizeof job->input_regions[0]);
    memset(job->mappings, 0, graph->input_count * sizeof job->mappings[0]);
    job->input_count = graph->input_count;
    uint64_t given;
    INF_TRY(inf_service_bind_inputs(job, graph, infer, request, &given, fault));
    job->output_count = graph->output_count;
    INF_TRY(inf_service_bind_outputs(job, graph, infer, request, fault));
    if (infer->session_id != 0)
        INF_TRY(inf_service_join_session(job, infer, request, given, fault));
    INF_TRY(inf_service_check_complete(job, graph, given, fault));

    snprintf(job->id, sizeof job->id, "%s", infer->id);
    job->reply_bytes_max = request->reply_bytes_max;
    job->served->used_ns = inf_clock_ns();
    // A request that has waited for its model counts from its arrival.
    job->accepted_ns = request->accepted_ns != 0 ? request->accepted_ns : job->served->used_ns;
    job->client_id = request->client_id;
    job->pending = request->pending;
    inf_service_choose_tracing(service, job, infer->traceparent, infer->tracestate);
    job->queue_entry.user = request->caller->uid;
    job->queue_entry.model = (uintptr_t)job->served;
    job->slot_limits = (struct inf_slot_limits){.runs_max = job->served->config.runs_max,
                                                .reserved = job->served->config.reserve_slots};
    job->queue_entry.priority = choose_priority(job->served->quota, infer->priority);
    job->deadline.at_ns = inf_deadline_after(job->accepted_ns, infer->timeout_ns);
    job->queue_deadline.at_ns = inf_deadline_after(job->accepted_ns, infer->queue_timeout_ns);
    return INF_OK;
}

// Lets the worker send the reply of this job itself, unless the loop has something to do before the
// reply, such as committing session tensors.
static void allow_direct_reply(const struct inf_service *service, struct inf_job *job,
                               const struct inf_request *request)
{
    if (request->writer == NULL || job->shadowed || job->traced)
        return;
    job->direct.writer = inf_reply_writer_ref(request->writer);
    job->direct.stream_id = request->stream_id;
    job->direct.pending_plus_1 = request->pending_plus_1;
    job->direct.data_bytes_max =
        INF_MIN(request->frame_bytes_max, service->options.environment->config->direct_reply_bytes);
}

enum inf_code inf_service_model_infer(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    struct inf_infer_request *infer = &service->request.infer_request;
    answer->order_key = infer->order_key;
    if (infer->order_key != 0)
        // Let the loop send the reply, because replies with the same order key must leave in the
        // order of their requests.
        request->writer = NULL;
    inf_fault_model(fault, infer->model_name, infer->model_version);
    INF_TRY(inf_infer_request_resolve_inline(infer, request->data_bytes, &fault->err));
    struct inf_job *job = acquire_job(service);
    if (job == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a request");
    enum inf_code code = fill_job(service, job, request, fault);
    if (code == INF_OK) {
        job->data = request->data;
        job->data_bytes = request->data_bytes;
        request->data = NULL;
        if (job->session != NULL) {
            code = inf_service_enter_session(service, job, fault);
        } else {
            inf_service_estimate_job(job);
            inf_service_route_job(service, job);
            allow_direct_reply(service, job, request);
            code = inf_scheduler_submit(service->scheduler, job, fault);
        }
    }
    if (code == INF_OK)
        answer->call = &job->call;
    else
        inf_service_release_job(service, job);
    return code;
}
