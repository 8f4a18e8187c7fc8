// SPDX-License-Identifier: Apache-2.0
// The model repository: loading, unloading and listing models.
#include <string.h>

#include "proto/core/utf8.h"
#include "proto/wire/message_codec.h"

typedef Inference__RepositoryIndexResponse__ModelIndex wire_entry;

// Checks the name of a model file: "", or one part of a path.
static enum inf_code check_file(const char *file, struct inf_error *err)
{
    INF_TRY(inf_check_text("file", file, INF_FILE_NAME_LIMIT, err));
    if (strchr(file, '/') != NULL || strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "file '%s': wanted the name of a file, without a directory",
                               inf_quote(file).text);
    return INF_OK;
}

static enum inf_code decode_load(union inf_message *message, const void *from,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__RepositoryModelLoadRequest *wire = from;
    message->model = (struct inf_model_request){.name = wire->model_name,
                                                .version = "",
                                                .device = wire->device,
                                                .path = wire->path,
                                                .file = wire->file,
                                                .save = wire->save};
    INF_TRY(inf_check_model_name("model_name", wire->model_name, err));
    INF_TRY(inf_check_text("device", wire->device, INF_TEXT_LIMIT, err));
    INF_TRY(inf_check_text("path", wire->path, INF_PATH_LIMIT, err));
    return check_file(wire->file, err);
}

static enum inf_code encode_load(const union inf_message *message, void *to,
                                 struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__RepositoryModelLoadRequest *wire = to;
    wire->model_name = inf_wire_text(message->model.name);
    wire->device = inf_wire_text(message->model.device);
    wire->path = inf_wire_text(message->model.path);
    wire->file = inf_wire_text(message->model.file);
    wire->save = message->model.save;
    return INF_OK;
}

const struct inf_message_codec inf_codec_model_load_request = {
    .descriptor = &inference__repository_model_load_request__descriptor,
    .decode = decode_load,
    .encode = encode_load,
};

static enum inf_code decode_unload(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__RepositoryModelUnloadRequest *wire = from;
    message->model = (struct inf_model_request){.name = wire->model_name,
                                                .version = wire->version,
                                                .device = "",
                                                .path = "",
                                                .file = "",
                                                .delete_files = wire->delete_files};
    return inf_decode_model("model_name", wire->model_name, "version", &message->model.version,
                            err);
}

static enum inf_code encode_unload(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    (void)err;
    Inference__RepositoryModelUnloadRequest *wire = to;
    wire->model_name = inf_wire_text(message->model.name);
    wire->version = inf_wire_text(message->model.version);
    wire->delete_files = message->model.delete_files;
    return INF_OK;
}

const struct inf_message_codec inf_codec_model_unload_request = {
    .descriptor = &inference__repository_model_unload_request__descriptor,
    .decode = decode_unload,
    .encode = encode_unload,
};

// Decodes the rows of a list of models.
static enum inf_code decode_models(struct inf_model_index *index, wire_entry *const *models,
                                   size_t count, struct inf_scratch *scratch, struct inf_error *err)
{
    index->count = (uint32_t)count;
    index->entries = inf_scratch_array(scratch, count, sizeof *index->entries, err);
    if (index->entries == NULL)
        return INF_EXHAUSTED;
    for (size_t i = 0; i < count; i++) {
        const wire_entry *entry = models[i];
        index->entries[i] = (struct inf_model_index_entry){
            .name = entry->name,
            .version = entry->version,
            .state = entry->state,
            .reason = entry->reason,
            .device = entry->device,
            .platform = entry->platform,
            .memory_bytes = entry->memory_bytes,
            .requests = entry->requests,
            .macs = entry->macs,
            .labels = entry->labels,
        };
    }
    return INF_OK;
}

static enum inf_code decode_index(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__RepositoryIndexResponse *wire = from;
    return decode_models(&message->model_index, wire->models, wire->n_models, scratch, err);
}

static void encode_entry(wire_entry *wire, const struct inf_model_index_entry *entry)
{
    wire->name = inf_wire_text(entry->name);
    wire->version = inf_wire_text(entry->version);
    wire->state = inf_wire_text(entry->state);
    wire->reason = inf_wire_text(entry->reason);
    wire->device = inf_wire_text(entry->device);
    wire->platform = inf_wire_text(entry->platform);
    wire->memory_bytes = entry->memory_bytes;
    wire->requests = entry->requests;
    wire->macs = entry->macs;
    wire->labels = inf_wire_text(entry->labels);
}

// Encodes the rows of a list of models. Returns NULL if the scratch is exhausted.
static wire_entry **encode_models(const struct inf_model_index *index, struct inf_scratch *scratch,
                                  struct inf_error *err)
{
    wire_entry **models = inf_wire_list(
        &inference__repository_index_response__model_index__descriptor, index->count, scratch, err);
    for (uint32_t i = 0; models != NULL && i < index->count; i++)
        encode_entry(models[i], &index->entries[i]);
    return models;
}

static enum inf_code encode_index(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    Inference__RepositoryIndexResponse *wire = to;
    wire->n_models = message->model_index.count;
    wire->models = encode_models(&message->model_index, scratch, err);
    return wire->models != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_model_index = {
    .descriptor = &inference__repository_index_response__descriptor,
    .decode = decode_index,
    .encode = encode_index,
};

typedef Inference__NodeReport wire_node;

#define NODE_TEXTS(X)   X(name) X(op) X(kernel) X(device) X(shape) X(inputs) X(verdict)
#define NODE_NUMBERS(X) NODE_COUNTS(X) X(threads) X(min) X(max) X(max_abs) X(max_rel) X(dot_share)
#define NODE_COUNTS(X)  X(start_ns) X(time_ns) X(macs) X(bytes) X(nan_count) X(inf_count)
#define TAKE(field)     to->field = from->field;
#define GIVE(field)     to->field = inf_wire_text(from->field);

static void decode_node(struct inf_node_entry *to, const wire_node *from)
{
    NODE_TEXTS(TAKE)
    NODE_NUMBERS(TAKE)
}

static void encode_node(wire_node *to, const struct inf_node_entry *from)
{
    NODE_TEXTS(GIVE)
    NODE_NUMBERS(TAKE)
}

static enum inf_code decode_progress(union inf_message *message, const void *from,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__LoadProgress *wire = from;
    struct inf_load_progress *progress = &message->load_progress;
    *progress = (struct inf_load_progress){
        .stage = wire->stage, .percent = wire->percent, .node_count = (uint32_t)wire->n_nodes};
    progress->nodes = inf_scratch_array(scratch, wire->n_nodes, sizeof *progress->nodes, err);
    if (progress->nodes == NULL)
        return INF_EXHAUSTED;
    for (size_t i = 0; i < wire->n_nodes; i++)
        decode_node(&progress->nodes[i], wire->nodes[i]);
    return INF_OK;
}

static enum inf_code encode_progress(const union inf_message *message, void *to,
                                     struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_load_progress *progress = &message->load_progress;
    Inference__LoadProgress *wire = to;
    wire->stage = inf_wire_text(progress->stage);
    wire->percent = progress->percent;
    wire->n_nodes = progress->node_count;
    wire->nodes =
        inf_wire_list(&inference__node_report__descriptor, progress->node_count, scratch, err);
    if (wire->nodes == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < progress->node_count; i++)
        encode_node(wire->nodes[i], &progress->nodes[i]);
    return INF_OK;
}

const struct inf_message_codec inf_codec_load_progress = {
    .descriptor = &inference__load_progress__descriptor,
    .decode = decode_progress,
    .encode = encode_progress,
};

// --- what a reload does ---

static enum inf_code decode_reload(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__RepositoryReloadResponse *wire = from;
    struct inf_reload_reply *reply = &message->reload_reply;
    reply->left_out = wire->left_out;
    reply->changed = wire->changed_settings;
    reply->need_restart = wire->restart_settings;
    reply->config_error = wire->config_error;
    return decode_models(&reply->models, wire->models, wire->n_models, scratch, err);
}

static enum inf_code encode_reload(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_reload_reply *reply = &message->reload_reply;
    Inference__RepositoryReloadResponse *wire = to;
    wire->left_out = reply->left_out;
    wire->changed_settings = inf_wire_text(reply->changed);
    wire->restart_settings = inf_wire_text(reply->need_restart);
    wire->config_error = inf_wire_text(reply->config_error);
    wire->n_models = reply->models.count;
    wire->models = encode_models(&reply->models, scratch, err);
    return wire->models != NULL ? INF_OK : INF_EXHAUSTED;
}

const struct inf_message_codec inf_codec_reload_reply = {
    .descriptor = &inference__repository_reload_response__descriptor,
    .decode = decode_reload,
    .encode = encode_reload,
};
