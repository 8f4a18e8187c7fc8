// SPDX-License-Identifier: Apache-2.0
// Models of the daemon: described, listed, loaded and unloaded (public functions).
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/inferd.h"
#include "client/lib/admin/progress.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "proto/core/shape.h"
#include "proto/core/span.h"

// How long inferd_unload() waits, because the daemon first finishes the requests in flight.
#define UNLOAD_NS ((uint64_t)120 * 1000 * 1000 * 1000)

static size_t sum_name_sizes(const struct inf_tensor_entry *entries, uint32_t count)
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
        if (entries[i].dtype == INF_DTYPE_BYTES ||
            !inf_shape_bytes(&entries[i].shape, entries[i].dtype, &tensors[i].size))
            tensors[i].size = 0; // the size depends on the request
    }
}

static inferd_model_info *make_info(const struct inf_model_metadata *model)
{
    size_t tensor_count = (size_t)model->input_count + model->output_count;
    // One allocation holds the info, the tensors and their names.
    inferd_model_info *info = calloc(1, sizeof *info + tensor_count * sizeof(inferd_tensor) +
                                            sum_name_sizes(model->inputs, model->input_count) +
                                            sum_name_sizes(model->outputs, model->output_count));
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

// Copies the description to the caller, and stores another copy in the metadata cache, which
// inf_client_model_check_cached() uses to check later requests.
static enum inf_code handle_metadata(void *context, const union inf_message *message, bool final,
                                     struct inf_error *err)
{
    (void) final;
    const struct description *target = context;
    *target->info = make_info(&message->model_metadata);
    if (*target->info == NULL)
        return inf_client_question_fail_memory(err);
    struct inf_client_metadata *metadata =
        inf_client_metadata_cache_add(&target->client->metadata, target->name, target->version);
    if (metadata == NULL)
        return INF_OK;
    inf_client_metadata_drop_info(metadata);
    metadata->info = make_info(&message->model_metadata);
    metadata->info_ns = inf_client_now_ns();
    return INF_OK;
}

int inferd_model_describe(inferd_client *client, const char *name, const char *version,
                          inferd_model_info **info, struct inferd_error *err)
{
    *info = NULL;
    if (!inf_client_question_is_model_name(name))
        return inf_client_question_refuse_name(err, name);
    struct description target = {client, name, version != NULL ? version : "", info};
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_MODEL_METADATA,
                                      .kind = INF_MESSAGE_MODEL_METADATA_REQUEST,
                                      .body.model = {.name = name, .version = version},
                                      .reply_kind = INF_MESSAGE_MODEL_METADATA,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = handle_metadata,
                                      .context = &target},
        err);
}

void inferd_model_info_free(inferd_model_info *info)
{
    free(info);
}

static enum inf_code copy_flag(void *context, const union inf_message *message, bool final,
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
    if (!inf_client_question_is_model_name(name))
        return inf_client_question_refuse_name(err, name);
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_MODEL_READY,
                                      .kind = INF_MESSAGE_MODEL_READY_REQUEST,
                                      .body.model = {.name = name, .version = version},
                                      .reply_kind = INF_MESSAGE_MODEL_READY_REPLY,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_flag,
                                      .context = ready},
        err);
}

struct model_list {
    inferd_model_row **rows;
    size_t *count;
};

static enum inf_code copy_models(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    const struct model_list *list = context;
    const struct inf_model_index *index = &message->model_index;
    inferd_model_row *rows = calloc(INF_MAX(index->count, 1u), sizeof *rows);
    if (rows == NULL)
        return inf_client_question_fail_memory(err);
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
        INF_COPY_TEXT(rows[i].labels, entry->labels);
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
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_REPOSITORY_INDEX,
                                      .kind = INF_MESSAGE_EMPTY,
                                      .reply_kind = INF_MESSAGE_MODEL_INDEX,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_models,
                                      .context = &list},
        err);
}

// Opens the directory of a model: `path` itself if it is a directory, otherwise the directory that
// contains it, and then *file is the name of the file in it. The daemon receives the descriptor, so
// that it reaches directories that are hidden from it, such as those below /home and /tmp.
static enum inf_code open_model_directory(const char *path, int *out_fd, const char **file,
                                          struct inf_error *err)
{
    char parent[PATH_MAX];
    struct stat status;
    *file = "";
    *out_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*out_fd >= 0)
        return INF_OK;
    if (stat(path, &status) != 0)
        return inf_fail(err, errno == ENOENT ? INF_NOT_FOUND : INF_DENIED, "model '%.200s': %s",
                        path, strerror(errno));
    const char *slash = strrchr(path, '/');
    size_t length = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof parent)
        return inf_fail(err, INF_INVALID, "the path of the model is longer than %zu characters",
                        sizeof parent);
    snprintf(parent, sizeof parent, "%.*s", (int)length, path);
    *file = path + length;
    *out_fd = open(length > 0 ? parent : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return *out_fd >= 0 ? INF_OK
                        : inf_fail(err, INF_DENIED, "directory of model '%.200s': %s", path,
                                   strerror(errno));
}

// Loads the model `order->name` from `path`, or from the repository if it is NULL.
static int load_model(inferd_client *client, const struct inf_model_request *order,
                      const char *path, struct inf_client_progress *progress,
                      struct inferd_error *err)
{
    int directory_fd = -1;
    const char *file = "";
    if (!inf_client_question_is_model_name(order->name))
        return inf_client_question_refuse_name(err, order->name);
    if (path != NULL) {
        struct inf_error error;
        if (open_model_directory(path, &directory_fd, &file, &error) != INF_OK)
            return inf_client_report_error(err, &error);
    }
    int code = inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_REPOSITORY_MODEL_LOAD,
                                      .kind = INF_MESSAGE_MODEL_LOAD_REQUEST,
                                      .body.model = {.name = order->name,
                                                     .file = file,
                                                     .device = order->device,
                                                     .save = order->save},
                                      .fd = path != NULL ? &directory_fd : NULL,
                                      .reply_kind = INF_MESSAGE_EMPTY,
                                      .on_reply = inf_client_progress_handle,
                                      .context = progress},
        err);
    if (path != NULL)
        close(directory_fd);
    return code;
}

int inferd_load(inferd_client *client, const char *name, const char *path, const char *device,
                inferd_progress progress, void *context, struct inferd_error *err)
{
    struct inf_client_progress state = {.client = client, .callback = progress, .context = context};
    return load_model(client, &(struct inf_model_request){.name = name, .device = device}, path,
                      &state, err);
}

int inferd_save(inferd_client *client, const char *name, const char *path, const char *device,
                inferd_progress progress, void *context, struct inferd_error *err)
{
    struct inf_client_progress state = {.client = client, .callback = progress, .context = context};
    return load_model(client,
                      &(struct inf_model_request){.name = name, .device = device, .save = true},
                      path, &state, err);
}

static int unload_model(inferd_client *client, const char *name, const char *version, bool deletes,
                        struct inferd_error *err)
{
    if (!inf_client_question_is_model_name(name))
        return inf_client_question_refuse_name(err, name);
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){
            .method = INF_METHOD_REPOSITORY_MODEL_UNLOAD,
            .kind = INF_MESSAGE_MODEL_UNLOAD_REQUEST,
            .body.model = {.name = name, .version = version, .delete_files = deletes},
            .reply_kind = INF_MESSAGE_EMPTY,
            .limit_ns = UNLOAD_NS},
        err);
}

int inferd_unload(inferd_client *client, const char *name, const char *version,
                  struct inferd_error *err)
{
    return unload_model(client, name, version, false, err);
}

int inferd_delete(inferd_client *client, const char *name, const char *version,
                  struct inferd_error *err)
{
    return unload_model(client, name, version, true, err);
}

// --- reading the repository again ---

static enum inf_code copy_report(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    inferd_reload_report **target = context;
    const struct inf_reload_reply *reply = &message->reload_reply;
    // One allocation holds the report and its rows.
    inferd_reload_report *report =
        calloc(1, sizeof *report + (size_t)reply->models.count * sizeof report->rows[0]);
    if (report == NULL)
        return inf_client_question_fail_memory(err);
    report->rows = (inferd_reload_row *)(report + 1);
    report->count = reply->models.count;
    report->left_out = reply->left_out;
    INF_COPY_TEXT(report->changed_settings, reply->changed);
    INF_COPY_TEXT(report->restart_settings, reply->need_restart);
    INF_COPY_TEXT(report->config_error, reply->config_error);
    for (uint32_t i = 0; i < reply->models.count; i++) {
        INF_COPY_TEXT(report->rows[i].model, reply->models.entries[i].name);
        INF_COPY_TEXT(report->rows[i].outcome, reply->models.entries[i].state);
        INF_COPY_TEXT(report->rows[i].reason, reply->models.entries[i].reason);
    }
    free(*target);
    *target = report;
    return INF_OK;
}

int inferd_reload(inferd_client *client, inferd_reload_report **report, struct inferd_error *err)
{
    *report = NULL;
    // No limit: the daemon answers after the loads that were queued before.
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_REPOSITORY_RELOAD,
                                      .kind = INF_MESSAGE_EMPTY,
                                      .reply_kind = INF_MESSAGE_RELOAD_REPLY,
                                      .on_reply = copy_report,
                                      .context = report},
        err);
}

void inferd_reload_report_free(inferd_reload_report *report)
{
    free(report);
}
