// SPDX-License-Identifier: Apache-2.0
// The table of methods, and the public functions of the service. Depending on the kind of a call,
// they use the scheduler, the model store or a handler.
#include "daemon/service/service.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/service/audit.h"
#include "daemon/service/events.h"
#include "daemon/service/handlers.h"
#include "daemon/service/infer.h"
#include "daemon/service/job_result.h"
#include "daemon/service/limits.h"
#include "daemon/service/load_call.h"
#include "daemon/service/model_wait.h"
#include "daemon/service/run_options.h"
#include "daemon/service/state.h"
#include "daemon/service/tracing.h"
#include "proto/wire/frame.h"

struct method {
    uint16_t number;
    enum inf_message_kind request_kind;
    bool admin; // only admins may call the method
    inf_service_handler *handle;
};

static const struct method methods[] = {
    {INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, false, inf_service_model_infer},
    {INF_METHOD_SERVER_LIVE, INF_MESSAGE_EMPTY, false, inf_service_server_live},
    {INF_METHOD_SERVER_READY, INF_MESSAGE_EMPTY, false, inf_service_server_ready},
    {INF_METHOD_SERVER_METADATA, INF_MESSAGE_EMPTY, false, inf_service_server_metadata},
    {INF_METHOD_MODEL_READY, INF_MESSAGE_MODEL_READY_REQUEST, false, inf_service_model_ready},
    {INF_METHOD_MODEL_METADATA, INF_MESSAGE_MODEL_METADATA_REQUEST, false,
     inf_service_model_metadata},
    {INF_METHOD_REPOSITORY_INDEX, INF_MESSAGE_EMPTY, false, inf_service_repository_index},
    {INF_METHOD_REPOSITORY_MODEL_LOAD, INF_MESSAGE_MODEL_LOAD_REQUEST, true,
     inf_service_repository_load},
    {INF_METHOD_REPOSITORY_MODEL_UNLOAD, INF_MESSAGE_MODEL_UNLOAD_REQUEST, true,
     inf_service_repository_unload},
    {INF_METHOD_REPOSITORY_RELOAD, INF_MESSAGE_EMPTY, true, inf_service_repository_reload},
    {INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, false, inf_service_device_list},
    {INF_METHOD_SERVER_STATUS, INF_MESSAGE_EMPTY, false, inf_service_server_status},
    {INF_METHOD_MEMORY_INFO, INF_MESSAGE_EMPTY, false, inf_service_memory_info},
    {INF_METHOD_METRICS, INF_MESSAGE_METRICS_REQUEST, false, inf_service_metrics},
    {INF_METHOD_REQUEST_LIST, INF_MESSAGE_EMPTY, false, inf_service_request_list},
    {INF_METHOD_CLIENT_LIST, INF_MESSAGE_EMPTY, false, inf_service_client_list},
    {INF_METHOD_REQUEST_CANCEL, INF_MESSAGE_CLIENT_TARGET, false, inf_service_request_cancel},
    {INF_METHOD_CLIENT_DISCONNECT, INF_MESSAGE_CLIENT_TARGET, false, inf_service_client_disconnect},
    {INF_METHOD_REPORT, INF_MESSAGE_REPORT_REQUEST, false, inf_service_report},
    {INF_METHOD_SERVER_LIMITS, INF_MESSAGE_LIMITS_REQUEST, false, inf_service_server_limits},
    {INF_METHOD_SESSION_OPEN, INF_MESSAGE_SESSION_OPEN, false, inf_service_session_open},
    {INF_METHOD_SESSION_CLOSE, INF_MESSAGE_SESSION_CLOSE, false, inf_service_session_close},
    {INF_METHOD_SESSION_REWIND, INF_MESSAGE_SESSION_REWIND, false, inf_service_session_rewind},

    {INF_METHOD_MODEL_PLACEMENT, INF_MESSAGE_PLACEMENT_REQUEST, false, inf_service_model_placement},
    {INF_METHOD_MODEL_PLACE, INF_MESSAGE_PLACEMENT_REQUEST, true, inf_service_model_place},
    {INF_METHOD_ENVIRONMENT, INF_MESSAGE_EMPTY, false, inf_service_environment},
    {INF_METHOD_FLAG_SET, INF_MESSAGE_FLAG_SET, true, inf_service_flag_set},
    {INF_METHOD_FLAG_PERSIST, INF_MESSAGE_FLAG_SET, true, inf_service_flag_persist},
    {INF_METHOD_MODEL_INSPECT, INF_MESSAGE_INFER_REQUEST, true, inf_service_model_inspect},
    {INF_METHOD_MODEL_PRECOMPILE, INF_MESSAGE_PRECOMPILE, true, inf_service_model_precompile},
};

static enum inf_code init_service(struct inf_service *service,
                                  const struct inf_service_options *options, struct inf_error *err)
{
    service->options = *options;
    service->log = &options->logs[INF_LOG_PART_SERVICE];
    service->started_ns = inf_clock_ns();
    service->model_rows = calloc(INF_SERVICE_MODELS_MAX, sizeof *service->model_rows);
    service->model_entries = calloc(INF_SERVICE_MODELS_MAX, sizeof *service->model_entries);
    if (service->model_rows == NULL || service->model_entries == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for lists of models");
    service->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (service->statm_fd < 0)
        return inf_fail(err, INF_EXHAUSTED, "statm: %s", strerror(errno));
    inf_pressure_open(&service->pressure, "");
    INF_TRY(inf_scratch_create(&service->scratch, err));
    INF_TRY(inf_metrics_create(&service->metrics, err));
    INF_TRY(inf_slow_log_create(&service->slow_log, err));
    INF_TRY(inf_event_log_create(&service->event_log, err));
    INF_TRY(inf_service_open_traces(service, err));
    INF_TRY(inf_deadlines_create(&service->wait_deadlines, INF_WAITS_MAX, err));
    service->watched_models = calloc(INF_SERVICE_MODELS_MAX, sizeof *service->watched_models);
    if (service->watched_models == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for lists of models");
    const struct inf_shadow_options shadow = {
        .reference = options->devices->devices[options->devices->count - 1],
        .idle_gate = inf_model_store_idle_gate(options->store),
        .log = &options->logs[INF_LOG_PART_SCHEDULER],
    };
    INF_TRY(inf_shadow_create(&service->shadow, &shadow, err));
    const struct inf_scheduler_options scheduler = {
        .devices = options->devices,
        .pool = options->pool,
        .idle_gate = inf_model_store_idle_gate(options->store),
        .queue_requests_max = options->environment->config->queue_requests_max,
        .queue_requests_most = options->environment->queue_requests_most,
        .queue_bytes_max = options->environment->config->queue_bytes_max,
        .run_limits = inf_service_run_limits(options->environment->config),
        .log = &options->logs[INF_LOG_PART_SCHEDULER],
    };
    return inf_scheduler_create(&service->scheduler, &scheduler, err);
}

// Frees the members that need not be freed on the event loop.
static void free_service(struct inf_service *service)
{
    inf_scheduler_destroy(&service->scheduler);
    inf_shadow_destroy(&service->shadow);
    inf_scratch_destroy(&service->scratch);
    inf_metrics_destroy(&service->metrics);
    inf_slow_log_destroy(&service->slow_log);
    inf_event_log_destroy(&service->event_log);
    inf_trace_writer_destroy(&service->trace_writer);
    inf_timeline_stop(&service->timeline);
    inf_deadlines_destroy(&service->wait_deadlines);
    free(service->watched_models);
    inf_pressure_close(&service->pressure);
    if (service->statm_fd >= 0)
        close(service->statm_fd);
    free(service->model_entries);
    free(service->model_rows);
    free(service);
}

enum inf_code inf_service_create(struct inf_service **out_service,
                                 const struct inf_service_options *options, struct inf_error *err)
{
    struct inf_service *service = calloc(1, sizeof *service);
    if (service == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the service");
    service->statm_fd = -1;
    inf_pressure_init(&service->pressure);
    enum inf_code code = init_service(service, options, err);
    if (code == INF_OK)
        *out_service = service;
    else
        free_service(service);
    return code;
}

void inf_service_destroy(struct inf_service **service)
{
    if (*service == NULL)
        return;
    inf_scheduler_stop((*service)->scheduler);
    struct inf_call *call;
    while ((call = inf_service_next_finished(*service)) != NULL)
        inf_service_release(*service, call);
    while ((*service)->loads != NULL)
        inf_service_free_load(*service, (*service)->loads);
    assert((*service)->event_waits == NULL && (*service)->model_waits.count == 0);
    while ((*service)->unused_jobs != NULL) {
        call = (*service)->unused_jobs;
        (*service)->unused_jobs = call->next;
        free(call);
    }
    free_service(*service);
    *service = NULL;
}

void inf_service_drain(struct inf_service *service)
{
    service->draining = true;
    inf_model_waits_wake_all(&service->model_waits);
    inf_service_add_event(service, &(struct inf_event){.kind = "draining"});
}

#define LOADING_RETRY_MS 50

static const struct method *find_method(uint16_t number)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(methods); i++)
        if (methods[i].number == number)
            return &methods[i];
    return NULL;
}

// Returns true if the decoded request needs an admin. Every client may read the limits and the
// flags, but only an admin may change them.
static bool needs_admin(const struct method *method, const union inf_message *message)
{
    bool sets_limits = method->number == INF_METHOD_SERVER_LIMITS && message->limit_list.count > 0;
    return method->admin || sets_limits;
}

static enum inf_code refuse_role(const struct inf_request *request, struct inf_error *err)
{
    return inf_fail_reason(err, INF_DENIED, INF_REASON_ROLE,
                           "%s is for admins: use the admin socket",
                           inf_method_name(request->method));
}

// Decodes a request and passes it to the handler of its method.
static enum inf_code handle_method(struct inf_service *service, const struct method *method,
                                   struct inf_request *request, struct inf_answer *answer,
                                   struct inf_fault *fault) INF_ON_LOOP
{
    if (method->admin && !request->caller->admin)
        return refuse_role(request, &fault->err);
    if (request->data_bytes != 0 && method->request_kind != INF_MESSAGE_INFER_REQUEST)
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%s takes no data, %u bytes came", inf_method_name(request->method),
                               request->data_bytes);
    INF_TRY(inf_message_decode(&service->request, method->request_kind, request->meta,
                               service->scratch, &fault->err));
    *answer = (struct inf_answer){.kind = INF_MESSAGE_EMPTY, .message = &service->reply};
    bool act = needs_admin(method, &service->request);
    if (act && !request->caller->admin)
        return refuse_role(request, &fault->err);
    enum inf_code code = method->handle(service, request, answer, fault);
    if (act)
        inf_service_watch_models(service);
    if (act)
        inf_service_log_act(service->log, request, method->request_kind, &service->request,
                            &fault->err, answer->call != NULL);
    return code;
}

// Logs the reply of a request that is answered at once, and completes its error.
static void note_outcome(struct inf_service *service, const struct inf_request *request,
                         const struct inf_answer *answer, enum inf_code code,
                         struct inf_fault *fault) INF_ON_LOOP
{
    if (code == INF_OK && answer->call == NULL)
        inf_service_log_reply(&service->options.logs[INF_LOG_PART_ACCESS], request);
    if (code != INF_OK)
        inf_service_log_refusal(&service->options.logs[INF_LOG_PART_ACCESS], request, &fault->err);
    // Suggest to try again after LOADING_RETRY_MS. The time of a load is not known, and trying
    // again is cheap.
    if (code == INF_UNAVAILABLE && fault->err.reason == INF_REASON_LOADING)
        fault->retry_after_ms = LOADING_RETRY_MS;
}

// Returns true if a request failed because its model is being loaded, and may wait for it.
static bool may_wait(const struct inf_request *request, enum inf_code code,
                     const struct inf_fault *fault)
{
    return code == INF_UNAVAILABLE && fault->err.reason == INF_REASON_LOADING &&
           (request->method == INF_METHOD_MODEL_INFER ||
            request->method == INF_METHOD_MODEL_METADATA ||
            request->method == INF_METHOD_MODEL_PLACEMENT ||
            request->method == INF_METHOD_SESSION_OPEN);
}

enum inf_code inf_service_handle(struct inf_service *service, struct inf_request *request,
                                 struct inf_answer *answer, struct inf_fault *fault)
{
    const struct method *method = find_method(request->method);
    enum inf_code code = method != NULL
                             ? handle_method(service, method, request, answer, fault)
                             : inf_fail_reason(&fault->err, INF_UNSUPPORTED, INF_REASON_METHOD,
                                               "method %u is not known here", request->method);
    if (may_wait(request, code, fault) &&
        inf_service_wait_for_model(service, request, fault, answer))
        return INF_OK;
    note_outcome(service, request, answer, code, fault);
    return code;
}

enum inf_code inf_service_try_again(struct inf_service *service, struct inf_call *call,
                                    struct inf_answer *answer, struct inf_fault *fault)
{
    struct inf_waiting_request *waiting = (struct inf_waiting_request *)call;
    struct inf_request *request = &waiting->request;
    enum inf_code code =
        handle_method(service, find_method(request->method), request, answer, fault);
    if (may_wait(request, code, fault) && inf_service_wait_again(service, waiting)) {
        answer->call = call;
        return INF_OK;
    }
    // A failed load by path leaves nothing behind by which the model is known.
    if (code == INF_NOT_FOUND && fault->err.reason == INF_REASON_MODEL_NOT_FOUND &&
        service->model_waits.failure[0] != '\0')
        code = inf_fail_reason(&fault->err, INF_UNAVAILABLE, INF_REASON_MODEL_FAILED,
                               "model '%s' did not load: %s", waiting->model,
                               service->model_waits.failure);
    if (may_wait(request, code, fault) && service->draining)
        code = inf_fail_reason(&fault->err, INF_UNAVAILABLE, INF_REASON_NOT_BEGUN,
                               "the daemon shuts down while the model is being loaded; the request "
                               "was not begun");
    note_outcome(service, request, answer, code, fault);
    return code;
}

bool inf_service_withdraw(struct inf_service *service, struct inf_call *call)
{
    if (call->kind == INF_CALL_INFER &&
        !inf_scheduler_withdraw(service->scheduler, (struct inf_job *)call))
        return false;
    // Only the client's call ends. The load continues, because the model belongs to the daemon
    // and not to the client.
    inf_service_release(service, call);
    return true;
}

int inf_service_finished_fd(const struct inf_service *service)
{
    return inf_scheduler_done_fd(service->scheduler);
}

bool inf_service_poll(struct inf_service *service)
{
    return inf_scheduler_poll(service->scheduler);
}

bool inf_service_stop_polling(struct inf_service *service)
{
    return inf_scheduler_stop_polling(service->scheduler);
}

uint64_t inf_service_last_run_ns(const struct inf_service *service)
{
    return inf_scheduler_last_run_ns(service->scheduler);
}

uint64_t inf_service_device_ns(const struct inf_call *call)
{
    return call->kind == INF_CALL_INFER ? ((const struct inf_job *)call)->result.core_ns : 0;
}

bool inf_service_idle(const struct inf_service *service)
{
    return inf_scheduler_jobs(service->scheduler) == 0;
}

struct inf_call *inf_service_next_finished(struct inf_service *service)
{
    struct inf_job *job;
    while ((job = inf_scheduler_next_done(service->scheduler)) != NULL)
        if (!inf_service_retry_job(service, job))
            return &job->call;
    return NULL;
}

enum inf_code inf_service_result(struct inf_service *service, struct inf_call *call,
                                 struct inf_answer *answer, struct inf_fault *fault)
{
    return inf_service_job_result(service, (struct inf_job *)call, answer, fault);
}

bool inf_service_claim(struct inf_call *call)
{
    return call->kind != INF_CALL_INFER || inf_job_claim((struct inf_job *)call, INF_JOB_BY_LOOP);
}

void inf_service_note_answered(struct inf_service *service, struct inf_call *call)
{
    inf_service_note_job(service, (struct inf_job *)call);
}

void inf_service_release(struct inf_service *service, struct inf_call *call)
{
    if (call->kind == INF_CALL_INFER)
        inf_service_release_job(service, (struct inf_job *)call);
    else if (call->kind == INF_CALL_LOAD)
        inf_service_release_load(service, (struct inf_load *)call);
    else if (call->kind == INF_CALL_WAIT)
        inf_service_release_waiting(service, (struct inf_waiting_request *)call);
    else
        inf_service_release_wait(service, (struct inf_event_wait *)call);
}

int inf_service_timer_fd(const struct inf_service *service)
{
    return inf_scheduler_timer_fd(service->scheduler);
}

struct inf_call *inf_service_next_expired(struct inf_service *service)
{
    struct inf_job *job = inf_scheduler_next_expired(service->scheduler);
    if (job != NULL)
        return &job->call;
    return inf_service_next_expired_wait(service);
}

int inf_service_load_fd(const struct inf_service *service)
{
    return inf_model_store_fd(service->options.store);
}

bool inf_service_is_stuck(struct inf_service *service)
{
    return inf_scheduler_is_stuck(service->scheduler);
}
