// SPDX-License-Identifier: Apache-2.0
// Questions about the daemon and its models, and orders to it: each blocks until the answer.
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/background_thread.h"
#include "client/lib/question.h"

struct waiter {
    bool done;
    struct inferd_error *err;
    int code;
};

static void on_done(void *context, inferd_result *result, const struct inferd_error *err)
{
    (void)result;
    struct waiter *waiter = context;
    waiter->done = true;
    waiter->code = err->code;
    if (waiter->err != NULL)
        *waiter->err = *err;
}

static enum inf_code start(inferd_client *client, const struct inf_question *question,
                           struct waiter *waiter, struct inf_call **out_call, struct inf_error *err)
{
    struct inf_outgoing *outgoing = NULL;
    INF_TRY(inf_client_may_send(client, err));
    bool large = question->session != NULL || question->limits != NULL || question->infer != NULL;
    size_t meta_bytes = large ? INF_LIMIT_META_BYTES : 2 * PATH_MAX;
    INF_TRY(inf_outgoing_acquire(client, INF_FRAME_HEADER_BYTES + meta_bytes + question->data_bytes,
                                 &outgoing, err));
    if (question->session != NULL)
        client->control.session = *question->session;
    else if (question->limits != NULL)
        client->control.limit_list = *question->limits;
    else if (question->infer != NULL)
        client->control.infer_request = *question->infer;
    else
        memcpy(&client->control, &question->body, sizeof question->body);
    enum inf_code code =
        inf_outgoing_encode(client, outgoing, &client->control, question->kind, err);
    if (code == INF_OK && question->data_bytes > 0) {
        memcpy(outgoing->bytes + INF_FRAME_HEADER_BYTES + outgoing->meta_size, question->data,
               question->data_bytes);
        outgoing->size += question->data_bytes;
    }
    struct inf_call *call = code == INF_OK ? inf_call_acquire(client, err) : NULL;
    if (call == NULL) {
        inf_outgoing_release(client, &outgoing);
        return code == INF_OK ? INF_EXHAUSTED : code;
    }
    call->phase = INF_CALL_CONTROL;
    call->start_ns = inf_client_now_ns();
    call->guard_ns = question->limit_ns == 0 ? 0 : call->start_ns + question->limit_ns;
    call->callback = on_done;
    call->waited = true;
    call->context = waiter;
    call->reply_kind = question->reply_kind;
    call->take = question->take;
    call->take_context = question->context;
    inf_call_send(client, call, outgoing, question->method);
    inf_outgoing_release(client, &outgoing);
    *out_call = call;
    return INF_OK;
}

int inf_client_ask(inferd_client *client, const struct inf_question *question,
                   struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    struct waiter waiter = {.err = err, .code = INFERD_CANCELLED};
    struct inf_call *call = NULL;
    inf_client_enter(client);
    uint64_t until_ns = question->limit_ns == 0 ? 0 : inf_client_now_ns() + question->limit_ns;
    while (inf_client_may_send(client, &error) == INF_EXHAUSTED && client->open_count > 0 &&
           inf_client_wait(client, until_ns))
        ;
    if (start(client, question, &waiter, &call, &error) != INF_OK) {
        inf_client_leave(client);
        return inf_client_report(err, &error);
    }
    while (!waiter.done && inf_client_wait(client, 0))
        ;
    if (!waiter.done) // only a callback that closed the client ends the loop without an answer
        inf_client_report(err, &(struct inf_error){.code = INF_CANCELLED,
                                                   .reason = INF_REASON_BY_CLIENT,
                                                   .text = "the client was closed meanwhile"});
    inf_client_leave(client);
    return waiter.code;
}

int inf_client_refuse_name(struct inferd_error *err, const char *name)
{
    struct inf_error error;
    inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER,
                    "'%.80s' is no model's name, wanted 1 to %u of A-Z a-z 0-9 . _ - without a "
                    "leading dot",
                    name == NULL ? "" : name, INF_LIMIT_MODEL_NAME);
    return inf_client_report(err, &error);
}

static bool is_name(const char *name)
{
    return name != NULL && inf_model_name_valid(name);
}

enum inf_code inf_client_fail_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for the answer");
}

// --- one model ---

static size_t names_size(const struct inf_tensor_entry *entries, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += strlen(entries[i].name) + 1;
    return size;
}

static void copy_tensors(inferd_tensor *tensors, const struct inf_tensor_entry *entries,
                         uint32_t count, char **text)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t size = strlen(entries[i].name) + 1;
        tensors[i].name = memcpy(*text, entries[i].name, size);
        *text += size;
        tensors[i].dtype = (inferd_dtype)entries[i].dtype;
        tensors[i].rank = entries[i].shape.rank;
        memcpy(tensors[i].shape, entries[i].shape.dims, sizeof tensors[i].shape);
        if (!inf_shape_bytes(&entries[i].shape, entries[i].dtype, &tensors[i].size))
            tensors[i].size = 0; // any size
    }
}

static inferd_model_info *make_info(const struct inf_model_metadata *model)
{
    size_t tensor_count = (size_t)model->input_count + model->output_count;
    // One block: the info, the tensors, their names.
    inferd_model_info *info = calloc(1, sizeof *info + tensor_count * sizeof(inferd_tensor) +
                                            names_size(model->inputs, model->input_count) +
                                            names_size(model->outputs, model->output_count));
    if (info == NULL)
        return NULL;
    INF_COPY_TEXT(info->name, model->name);
    INF_COPY_TEXT(info->version, model->version);
    INF_COPY_TEXT(info->platform, model->platform);
    info->input_count = model->input_count;
    info->output_count = model->output_count;
    info->inputs = (inferd_tensor *)(info + 1);
    info->outputs = info->inputs + info->input_count;
    char *text = (char *)(info->outputs + info->output_count);
    copy_tensors(info->inputs, model->inputs, model->input_count, &text);
    copy_tensors(info->outputs, model->outputs, model->output_count, &text);
    return info;
}

struct description {
    inferd_client *client;
    const char *name, *version;
    inferd_model_info **info;
};

// Gives the caller what the daemon says, and keeps it for checks.
static enum inf_code take_metadata(void *context, const union inf_message *message, bool final,
                                   struct inf_error *err)
{
    (void) final;
    const struct description *asked = context;
    *asked->info = make_info(&message->model_metadata);
    if (*asked->info == NULL)
        return inf_client_fail_memory(err);
    struct inf_metadata_cache *metadata =
        inf_metadata_cache_make(asked->client, asked->name, asked->version);
    if (metadata == NULL)
        return INF_OK;
    inf_metadata_cache_forget_info(metadata);
    metadata->info = make_info(&message->model_metadata);
    metadata->info_ns = inf_client_now_ns();
    return INF_OK;
}

int inferd_model_describe(inferd_client *client, const char *name, const char *version,
                          inferd_model_info **info, struct inferd_error *err)
{
    *info = NULL;
    if (!is_name(name))
        return inf_client_refuse_name(err, name);
    struct description asked = {client, name, version != NULL ? version : "", info};
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_MODEL_METADATA,
                                                 .kind = INF_MESSAGE_MODEL_METADATA_REQUEST,
                                                 .body.model = {.name = name, .version = version},
                                                 .reply_kind = INF_MESSAGE_MODEL_METADATA,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take_metadata,
                                                 .context = &asked},
                          err);
}

void inferd_model_info_free(inferd_model_info *info)
{
    free(info);
}

static enum inf_code take_flag(void *context, const union inf_message *message, bool final,
                               struct inf_error *err)
{
    (void) final;
    (void)err;
    *(bool *)context = message->flag.value;
    return INF_OK;
}

int inferd_model_ready(inferd_client *client, const char *name, const char *version, bool *ready,
                       struct inferd_error *err)
{
    *ready = false;
    if (!is_name(name))
        return inf_client_refuse_name(err, name);
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_MODEL_READY,
                                                 .kind = INF_MESSAGE_MODEL_READY_REQUEST,
                                                 .body.model = {.name = name, .version = version},
                                                 .reply_kind = INF_MESSAGE_MODEL_READY_REPLY,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take_flag,
                                                 .context = ready},
                          err);
}

// --- lists ---

struct model_list {
    inferd_model_row **rows;
    size_t *count;
};

static enum inf_code take_models(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    const struct model_list *list = context;
    const struct inf_model_index *index = &message->model_index;
    inferd_model_row *rows = calloc(INF_MAX(index->count, 1u), sizeof *rows);
    if (rows == NULL)
        return inf_client_fail_memory(err);
    for (uint32_t i = 0; i < index->count; i++) {
        const struct inf_model_index_entry *entry = &index->entries[i];
        INF_COPY_TEXT(rows[i].name, entry->name);
        INF_COPY_TEXT(rows[i].version, entry->version);
        INF_COPY_TEXT(rows[i].state, entry->state);
        INF_COPY_TEXT(rows[i].reason, entry->reason);
        INF_COPY_TEXT(rows[i].device, entry->device);
        INF_COPY_TEXT(rows[i].platform, entry->platform);
        rows[i].memory_bytes = entry->memory_bytes;
        rows[i].requests = entry->requests;
        rows[i].macs = entry->macs;
    }
    *list->rows = rows;
    *list->count = index->count;
    return INF_OK;
}

int inferd_models(inferd_client *client, inferd_model_row **rows, size_t *count,
                  struct inferd_error *err)
{
    struct model_list list = {rows, count};
    *rows = NULL;
    *count = 0;
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_REPOSITORY_INDEX,
                                                 .kind = INF_MESSAGE_EMPTY,
                                                 .reply_kind = INF_MESSAGE_MODEL_INDEX,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take_models,
                                                 .context = &list},
                          err);
}

struct device_list {
    inferd_device_row **rows;
    size_t *count;
};

static void copy_device(inferd_device_row *row, const struct inf_device_entry *entry)
{
    INF_COPY_TEXT(row->name, entry->name);
    INF_COPY_TEXT(row->backend, entry->backend);
    INF_COPY_TEXT(row->kind, entry->kind);
    INF_COPY_TEXT(row->description, entry->description);
    INF_COPY_TEXT(row->health, entry->health);
    row->priority = entry->priority;
    row->slots = entry->slots;
    row->threads = entry->threads;
    row->queue_depth = entry->queue_depth;
    row->queue_limit = entry->queue_limit;
    row->requests = entry->requests;
    row->busy_ns = entry->busy_ns;
    row->memory_bytes = entry->memory_bytes;
}

static enum inf_code take_devices(void *context, const union inf_message *message, bool final,
                                  struct inf_error *err)
{
    (void) final;
    const struct device_list *list = context;
    const struct inf_device_index *index = &message->device_index;
    inferd_device_row *rows = calloc(INF_MAX(index->count, 1u), sizeof *rows);
    if (rows == NULL)
        return inf_client_fail_memory(err);
    for (uint32_t i = 0; i < index->count; i++)
        copy_device(&rows[i], &index->entries[i]);
    *list->rows = rows;
    *list->count = index->count;
    return INF_OK;
}

int inferd_devices(inferd_client *client, inferd_device_row **rows, size_t *count,
                   struct inferd_error *err)
{
    struct device_list list = {rows, count};
    *rows = NULL;
    *count = 0;
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_DEVICE_LIST,
                                                 .kind = INF_MESSAGE_EMPTY,
                                                 .reply_kind = INF_MESSAGE_DEVICE_INDEX,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take_devices,
                                                 .context = &list},
                          err);
}

struct memory_list {
    inferd_memory_row **rows;
    size_t *count;
    inferd_memory_total *total; // may be NULL
};

static enum inf_code take_memory(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    const struct memory_list *list = context;
    const struct inf_memory_info *info = &message->memory_info;
    inferd_memory_row *rows = calloc(INF_MAX(info->count, 1u), sizeof *rows);
    if (rows == NULL)
        return inf_client_fail_memory(err);
    for (uint32_t i = 0; i < info->count; i++) {
        const struct inf_memory_entry *entry = &info->entries[i];
        INF_COPY_TEXT(rows[i].device, entry->name);
        rows[i].num_tensors = entry->num_tensors;
        rows[i].num_data_buffers = entry->num_data_buffers;
        rows[i].num_bytes = entry->num_bytes;
        rows[i].constant_bytes = entry->constant_bytes;
        rows[i].weight_bytes = entry->weight_bytes;
        rows[i].buffer_bytes = entry->buffer_bytes;
        rows[i].budget_bytes = entry->budget_bytes;
        rows[i].peak_bytes = entry->peak_bytes;
    }
    *list->rows = rows;
    *list->count = info->count;
    if (list->total != NULL)
        *list->total = (inferd_memory_total){.region_bytes = info->region_bytes,
                                             .resident_bytes = info->resident_bytes,
                                             .session_bytes = info->session_bytes,
                                             .sessions = info->sessions};
    return INF_OK;
}

int inferd_memory_info(inferd_client *client, inferd_memory_row **rows, size_t *count,
                       inferd_memory_total *total, struct inferd_error *err)
{
    struct memory_list list = {rows, count, total};
    *rows = NULL;
    *count = 0;
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_MEMORY_INFO,
                                                 .kind = INF_MESSAGE_EMPTY,
                                                 .reply_kind = INF_MESSAGE_MEMORY_INFO,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take_memory,
                                                 .context = &list},
                          err);
}

static int ask_status(inferd_client *client,
                      enum inf_code (*take)(void *context, const union inf_message *message,
                                            bool final, struct inf_error *err),
                      void *context, struct inferd_error *err)
{
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_SERVER_STATUS,
                                                 .kind = INF_MESSAGE_EMPTY,
                                                 .reply_kind = INF_MESSAGE_SERVER_STATUS,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take,
                                                 .context = context},
                          err);
}

static enum inf_code take_status(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    (void)err;
    inferd_server_status *status = context;
    const struct inf_server_status *from = &message->server_status;
    INF_COPY_TEXT(status->version, from->version);
    INF_COPY_TEXT(status->state, from->state);
    status->uptime_ns = from->uptime_ns;
    status->connections = from->connections;
    status->requests_in_flight = from->requests_in_flight;
    status->regions = from->regions;
    status->models_ready = from->models_ready;
    status->connections_total = from->connections_total;
    status->requests_accepted = from->requests_accepted;
    status->requests_ok = from->requests_ok;
    status->requests_failed = from->requests_failed;
    status->region_bytes = from->region_bytes;
    status->resident_bytes = from->resident_bytes;
    status->log_lines_dropped = from->log_lines_dropped;
    return INF_OK;
}

int inferd_status(inferd_client *client, inferd_server_status *status, struct inferd_error *err)
{
    *status = (inferd_server_status){0};
    return ask_status(client, take_status, status, err);
}

static enum inf_code take_checks(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    (void)err;
    const struct inf_server_status *from = &message->server_status;
    *(inferd_checks *)context = (inferd_checks){.answers_checked = from->answers_checked,
                                                .answers_drifted = from->answers_drifted,
                                                .answers_unchecked = from->answers_unchecked,
                                                .models_demoted = from->models_demoted};
    return INF_OK;
}

int inferd_status_checks(inferd_client *client, inferd_checks *checks, struct inferd_error *err)
{
    *checks = (inferd_checks){0};
    return ask_status(client, take_checks, checks, err);
}

// --- orders ---

enum inf_code inf_client_take_progress(void *context, const union inf_message *message, bool final,
                                       struct inf_error *err)
{
    (void)err;
    struct inf_progress *progress = context;
    if (final || progress->call == NULL)
        return INF_OK;
    INF_COPY_TEXT(progress->stage, message->load_progress.stage);
    progress->percent = message->load_progress.percent;
    progress->waiting = true;
    if (progress->running)
        return INF_OK;
    progress->running = true;
    while (progress->waiting) {
        char stage[sizeof progress->stage];
        INF_COPY_TEXT(stage, progress->stage);
        progress->waiting = false;
        unsigned held = inf_service_callback_begin(progress->client);
        progress->call(progress->context, stage, progress->percent);
        inf_service_callback_end(progress->client, held);
    }
    progress->running = false;
    return INF_OK;
}

int inferd_load(inferd_client *client, const char *name, const char *path, const char *device,
                inferd_progress progress, void *context, struct inferd_error *err)
{
    struct inf_progress told = {.client = client, .call = progress, .context = context};
    char absolute[PATH_MAX]; // the daemon has another working directory
    if (!is_name(name))
        return inf_client_refuse_name(err, name);
    if (path != NULL && path[0] != '/' && realpath(path, absolute) == NULL) {
        struct inf_error error;
        inf_fail(&error, INF_NOT_FOUND, "there is no '%.200s' to load", path);
        return inf_client_report(err, &error);
    }
    if (path != NULL && path[0] != '/')
        path = absolute;
    return inf_client_ask(
        client,
        &(struct inf_question){.method = INF_METHOD_REPOSITORY_MODEL_LOAD,
                               .kind = INF_MESSAGE_MODEL_LOAD_REQUEST,
                               .body.model = {.name = name, .path = path, .device = device},
                               .reply_kind = INF_MESSAGE_EMPTY,
                               .take = inf_client_take_progress,
                               .context = &told},
        err);
}

int inferd_unload(inferd_client *client, const char *name, const char *version,
                  struct inferd_error *err)
{
    if (!is_name(name))
        return inf_client_refuse_name(err, name);
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_REPOSITORY_MODEL_UNLOAD,
                                                 .kind = INF_MESSAGE_MODEL_UNLOAD_REQUEST,
                                                 .body.model = {.name = name, .version = version},
                                                 .reply_kind = INF_MESSAGE_EMPTY,
                                                 .limit_ns = INF_CLIENT_UNLOAD_NS},
                          err);
}

// --- limits ---

struct limit_rows {
    inferd_limit **rows;
    size_t *count;
};

static enum inf_code take_limits(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    const struct limit_rows *out = context;
    const struct inf_limit_list *list = &message->limit_list;
    inferd_limit *rows = calloc(INF_MAX(list->count, 1), sizeof *rows);
    if (rows == NULL)
        return inf_client_fail_memory(err);
    for (uint32_t i = 0; i < list->count; i++) {
        INF_COPY_TEXT(rows[i].name, list->entries[i].name);
        rows[i].value = list->entries[i].value;
        rows[i].least = list->entries[i].least;
        rows[i].most = list->entries[i].most;
    }
    *out->rows = rows;
    *out->count = list->count;
    return INF_OK;
}

int inferd_limits(inferd_client *client, const inferd_limit *set, size_t set_count,
                  inferd_limit **rows, size_t *count, struct inferd_error *err)
{
    struct inf_limit_list list = {.count = 0};
    struct limit_rows out = {rows, count};
    *rows = NULL;
    *count = 0;
    if (set_count > INF_LIVE_LIMITS) {
        struct inf_error error;
        inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER,
                        "%zu limits, wanted at most %d", set_count, INF_LIVE_LIMITS);
        return inf_client_report(err, &error);
    }
    for (size_t i = 0; i < set_count; i++)
        list.entries[list.count++] =
            (struct inf_limit_entry){.name = set[i].name, .value = set[i].value};
    return inf_client_ask(client,
                          &(struct inf_question){.method = INF_METHOD_SERVER_LIMITS,
                                                 .kind = INF_MESSAGE_LIMITS_REQUEST,
                                                 .limits = &list,
                                                 .reply_kind = INF_MESSAGE_LIMITS_REPLY,
                                                 .limit_ns = INF_CLIENT_ANSWER_NS,
                                                 .take = take_limits,
                                                 .context = &out},
                          err);
}
