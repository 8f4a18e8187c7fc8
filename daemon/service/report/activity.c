// SPDX-License-Identifier: Apache-2.0
// The methods RequestList and ClientList, which list the requests in flight and the connections,
// and RequestCancel and ClientDisconnect, which end one of them. The lists are read from the calls
// and connections when a client asks. For these lists, serving a request only updates counters and
// start times.
#include "daemon/service/activity.h"

#include "backends/base/clock.h"
#include "daemon/service/audit.h"
#include "daemon/service/events.h"
#include "daemon/service/handlers.h"
#include "daemon/service/state.h"
#include "proto/wire/frame.h"

void inf_service_set_directory(struct inf_service *service,
                               const struct inf_client_directory *directory, void *context)
{
    service->directory = directory;
    service->directory_context = context;
}

uint64_t inf_service_accepted_ns(const struct inf_call *call)
{
    if (call->kind == INF_CALL_INFER)
        return ((const struct inf_job *)call)->accepted_ns;
    if (call->kind == INF_CALL_WAIT)
        return ((const struct inf_waiting_request *)call)->request.accepted_ns;
    return call->kind == INF_CALL_LOAD ? ((const struct inf_load *)call)->accepted_ns
                                       : ((const struct inf_event_wait *)call)->accepted_ns;
}

static const char *find_phase(struct inf_service *service, const struct inf_call *call) INF_ON_LOOP
{
    static const char *const phases[] = {[INF_JOB_LOOP] = "session",
                                         [INF_JOB_HELD] = "session",
                                         [INF_JOB_QUEUE] = "queue",
                                         [INF_JOB_WORKER] = "run"};
    if (call->answered)
        return "ending";
    if (call->kind == INF_CALL_LOAD || call->kind == INF_CALL_WAIT)
        return "load";
    if (call->kind == INF_CALL_EVENT)
        return "wait";
    return phases[inf_scheduler_job_place(service->scheduler, (const struct inf_job *)call)];
}

void inf_service_describe_call(struct inf_service *service, const struct inf_call *call,
                               struct inf_request_entry *entry, struct inf_quoted *text)
{
    entry->stream_id = call->stream_id;
    entry->method = inf_method_name(call->method);
    entry->phase = find_phase(service, call);
    entry->age_ns = inf_clock_ns() - inf_service_accepted_ns(call);
    entry->data_bytes = call->paid_bytes;
    if (call->kind == INF_CALL_WAIT)
        entry->model = ((const struct inf_waiting_request *)call)->model;
    if (call->kind != INF_CALL_INFER)
        return;
    const struct inf_job *job = (const struct inf_job *)call;
    *text = inf_quote(job->id);
    entry->model = job->served->name;
    entry->version = job->served->version;
    entry->device = inf_device_info(job->device)->name;
    entry->rows = job->rows;
    entry->id = text->text;
}

enum inf_code inf_service_request_list(struct inf_service *service, struct inf_request *request,
                                       struct inf_answer *answer, struct inf_fault *fault)
{
    (void)fault;
    struct inf_activity *activity = &service->activity;
    service->directory->list_requests(service->directory_context, request, activity);
    service->reply.request_list = (struct inf_request_list){
        .count = activity->count, .left_out = activity->left_out, .entries = activity->requests};
    answer->kind = INF_MESSAGE_REQUEST_LIST;
    return INF_OK;
}

enum inf_code inf_service_client_list(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    (void)fault;
    struct inf_activity *activity = &service->activity;
    service->directory->list_clients(service->directory_context, request, activity);
    service->reply.client_list = (struct inf_client_list){
        .count = activity->count, .left_out = activity->left_out, .entries = activity->clients};
    answer->kind = INF_MESSAGE_CLIENT_LIST;
    return INF_OK;
}

// Ends a connection (if `whole_client`) or a request. If an admin asked, also logs that. Other
// clients can only end what belongs to their own user, and are not logged, so that no user can fill
// the log.
static enum inf_code end_target(struct inf_service *service, const struct inf_request *request,
                                bool whole_client, struct inf_fault *fault) INF_ON_LOOP
{
    const union inf_message message = {.client_target = service->request.client_target};
    const struct inf_client_directory *directory = service->directory;
    struct inf_error err = {.code = INF_OK};
    // disconnect() and cancel() can overwrite *fault with the answer to the request that they end,
    // so they return their own error in `err`.
    enum inf_code code = whole_client ? directory->disconnect(service->directory_context, request,
                                                              &message.client_target, &err)
                                      : directory->cancel(service->directory_context, request,
                                                          &message.client_target, &err);
    inf_fault_init(fault);
    fault->err = err;
    if (request->caller->admin && code == INF_OK)
        inf_service_add_event(
            service,
            &(struct inf_event){.kind = whole_client ? "client_disconnected" : "request_cancelled",
                                .admin_only = true});
    if (request->caller->admin)
        inf_service_log_act(service->log, request, INF_MESSAGE_CLIENT_TARGET, &message, &err,
                            false);
    return code;
}

enum inf_code inf_service_request_cancel(struct inf_service *service, struct inf_request *request,
                                         struct inf_answer *answer, struct inf_fault *fault)
{
    (void)answer;
    return end_target(service, request, false, fault);
}

enum inf_code inf_service_client_disconnect(struct inf_service *service,
                                            struct inf_request *request, struct inf_answer *answer,
                                            struct inf_fault *fault)
{
    (void)answer;
    return end_target(service, request, true, fault);
}
