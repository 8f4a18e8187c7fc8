// SPDX-License-Identifier: Apache-2.0
// RepositoryIndex, RepositoryModelLoad and RepositoryModelUnload: lists, loads and unloads models.
// Also implements the calls that wait for jobs of the store.
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/service/events.h"
#include "daemon/service/handlers.h"
#include "daemon/service/limits.h"
#include "daemon/service/load_call.h"
#include "daemon/service/model_wait.h"

// Most bytes of names and reasons in the reply of a reload; more would not fit into the metadata of
// a frame.
#define REPLY_TEXT_BYTES (INF_LIMIT_META_BYTES / 2)
// What an entry of such a reply takes beside its texts, with its outcome.
#define REPLY_ENTRY_BYTES 24u

static const char *const state_names[] = {
    [INF_MODEL_LOADING] = "LOADING", [INF_MODEL_WARMING] = "WARMING",
    [INF_MODEL_READY] = "READY",     [INF_MODEL_UNLOADING] = "UNLOADING",
    [INF_MODEL_IDLE] = "IDLE",       [INF_MODEL_FAILED] = "UNAVAILABLE",
};

enum inf_code inf_service_repository_index(struct inf_service *service, struct inf_request *request,
                                           struct inf_answer *answer, struct inf_fault *fault)
{
    uint32_t count = inf_model_store_list(service->options.store, request->caller,
                                          service->model_rows, INF_SERVICE_MODELS_MAX);
    if (count == 0 && inf_model_store_reads_repository(service->options.store))
        return inf_fail_reason(&fault->err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "no model is known yet: the repository is being read");
    count = INF_MIN(count, INF_SERVICE_MODELS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_model_row *row = &service->model_rows[i];
        service->model_entries[i] = (struct inf_model_index_entry){
            .name = row->name,
            .version = row->version,
            .state = state_names[row->state],
            .reason = row->reason,
            .device = row->device,
            .platform = row->platform,
            .memory_bytes = row->memory_bytes,
            .requests = row->requests,
            .macs = row->macs,
            .labels = row->labels,
        };
    }
    service->reply.model_index =
        (struct inf_model_index){.count = count, .entries = service->model_entries};
    answer->kind = INF_MESSAGE_MODEL_INDEX;
    return INF_OK;
}

enum inf_code inf_service_begin_load(struct inf_service *service, inf_service_load_starter *start,
                                     struct inf_answer *answer, struct inf_fault *fault)
{
    fault->phase = "load";
    struct inf_load *load = calloc(1, sizeof *load);
    if (load == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a load");
    load->call.kind = INF_CALL_LOAD;
    load->accepted_ns = inf_clock_ns();
    // Token 0 marks loads that the daemon itself starts, so the loads of clients count from 1.
    load->token = service->last_token + 1;
    enum inf_code code = start(service, load->token, &fault->err);
    if (code != INF_OK) {
        free(load);
        return code;
    }
    service->last_token++;
    load->next = service->loads;
    service->loads = load;
    answer->call = &load->call;
    return INF_OK;
}

static enum inf_code start_loading(struct inf_service *service, uint64_t token,
                                   struct inf_error *err) INF_ON_LOOP
{
    const struct inf_model_request *model = &service->request.model;
    const int directory_fd = service->load_directory_fd;
    bool has_directory = directory_fd >= 0;
    if (has_directory ? model->path[0] != '\0' : model->file[0] != '\0')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "load of model '%.64s': wanted a path, or a file name with the "
                               "descriptor of its directory, not both",
                               model->name);
    if (model->save && !has_directory && model->path[0] == '\0')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "load of model '%.64s': wanted a file to save", model->name);
    const struct inf_load_request order = {.name = model->name,
                                           .path = has_directory ? model->file : model->path,
                                           .directory_fd = has_directory ? &directory_fd : NULL,
                                           .device = model->device,
                                           .saves = model->save,
                                           .token = token};
    return inf_model_store_load(service->options.store, &order, err);
}

enum inf_code inf_service_repository_load(struct inf_service *service, struct inf_request *request,
                                          struct inf_answer *answer, struct inf_fault *fault)
{
    inf_fault_model(fault, service->request.model.name, NULL);
    service->load_directory_fd = request->directory_fd;
    return inf_service_begin_load(service, start_loading, answer, fault);
}

static enum inf_code start_deletion(struct inf_service *service, uint64_t token,
                                    struct inf_error *err) INF_ON_LOOP
{
    const struct inf_model_request *model = &service->request.model;
    return inf_model_store_delete(service->options.store, model->name, model->version, token, err);
}

enum inf_code inf_service_repository_unload(struct inf_service *service,
                                            struct inf_request *request, struct inf_answer *answer,
                                            struct inf_fault *fault)
{
    (void)request;
    const struct inf_model_request *model = &service->request.model;
    inf_fault_model(fault, model->name, model->version);
    if (model->delete_files)
        return inf_service_begin_load(service, start_deletion, answer, fault);
    answer->kind = INF_MESSAGE_EMPTY;
    return inf_model_store_unload(service->options.store, model->name, model->version, &fault->err);
}

// Returns the call that waits for the job with this token; NULL if there is none.
static struct inf_load *find_load(const struct inf_service *service, uint64_t token)
{
    struct inf_load *load = service->loads;
    while (load != NULL && load->token != token)
        load = load->next;
    return load;
}

void inf_service_free_load(struct inf_service *service, struct inf_load *load)
{
    struct inf_load **link = &service->loads;
    while (*link != load)
        link = &(*link)->next;
    *link = load->next;
    if (service->reload == load)
        service->reload = NULL;
    free(load);
}

void inf_service_release_load(struct inf_service *service, struct inf_load *load)
{
    // The job still writes the new value to the file of persistent settings. The flag must get this
    // value too, so the load is kept until the job has ended.
    if (load->persistence != INF_PERSIST_NOT && !load->ended)
        load->abandoned = true;
    else
        inf_service_free_load(service, load);
}

// Gives the flag of a load its value, after its persistent setting was written or removed. *err is
// set if the value is not possible.
static void finish_persisting(struct inf_service *service, const struct inf_load *load,
                              struct inf_error *err) INF_ON_LOOP
{
    const struct inf_config *sources = &service->options.environment->sources;
    const struct inf_flag *flag = NULL;
    const char *nearest;
    enum inf_origin origin = INF_ORIGIN_PERSISTED;
    if (load->persistence == INF_PERSIST_FORGET)
        origin = inf_flag_origin(sources, inf_flag_find(load->flag, &nearest));
    (void)!inf_service_change_flag(service, load->flag, load->value, origin, &flag, err);
}

bool inf_service_next_load(struct inf_service *service, struct inf_load_event *event,
                           struct inf_call **call)
{
    inf_service_update_memory(service);
    if (!inf_model_store_next_event(service->options.store, event))
        return false;
    if (event->final) {
        inf_service_watch_models(service);
        inf_service_wake_waiting(service, event->name, &event->err);
    }
    // The scan of the repository is a job without a model.
    if (event->final && event->name[0] != '\0')
        inf_metrics_count_load(service->metrics, event->err.code == INF_OK);
    struct inf_load *load = find_load(service, event->token);
    *call = load != NULL && !load->abandoned ? &load->call : NULL;
    if (load == NULL || !event->final)
        return true;
    load->ended = true;
    if (event->err.code == INF_OK && load->persistence != INF_PERSIST_NOT)
        finish_persisting(service, load, &event->err);
    if (load->abandoned)
        inf_service_free_load(service, load);
    return true;
}

// If a reload waits for an event, fills service->reply.reload_reply with what it has changed and
// with the report of the event. Returns false otherwise.
static bool fill_reload(struct inf_service *service, const struct inf_load_event *event) INF_ON_LOOP
{
    struct inf_reload_reply *reply = &service->reply.reload_reply;
    const struct inf_load *load = find_load(service, event->token);
    size_t text_bytes = 0;
    if (load == NULL || !load->is_reload)
        return false;
    *reply = (struct inf_reload_reply){.models.entries = service->model_entries,
                                       .changed = load->changes.live,
                                       .need_restart = load->changes.restart,
                                       .config_error = load->changes.error};
    // Without a repository there is no report.
    const uint32_t count = event->report != NULL ? event->report->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_scan_row *row = &event->report->rows[i];
        text_bytes += strlen(row->name) + strlen(row->reason) + REPLY_ENTRY_BYTES;
        if (reply->models.count == INF_SERVICE_MODELS_MAX || text_bytes > REPLY_TEXT_BYTES)
            break;
        reply->models.entries[reply->models.count++] = (struct inf_model_index_entry){
            .name = row->name, .state = inf_scan_outcome_name(row->outcome), .reason = row->reason};
    }
    reply->left_out = count - reply->models.count;
    return true;
}

enum inf_code inf_service_load_result(struct inf_service *service,
                                      const struct inf_load_event *event, struct inf_answer *answer,
                                      struct inf_fault *fault)
{
    *answer = (struct inf_answer){.kind = INF_MESSAGE_EMPTY, .message = &service->reply};
    if (!event->final) {
        service->reply.load_progress =
            (struct inf_load_progress){.stage = event->stage, .percent = event->percent};
        if (event->rows != NULL) {
            service->reply.load_progress.node_count = event->rows->count;
            service->reply.load_progress.nodes = event->rows->entries;
        }
        answer->kind = INF_MESSAGE_LOAD_PROGRESS;
        return INF_OK;
    }
    if (event->err.code == INF_OK && fill_reload(service, event))
        answer->kind = INF_MESSAGE_RELOAD_REPLY;
    if (event->err.code == INF_OK)
        return INF_OK;
    fault->err = event->err;
    fault->phase = "load";
    inf_fault_model(fault, event->name, event->version);
    return fault->err.code;
}
