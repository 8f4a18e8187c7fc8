// SPDX-License-Identifier: Apache-2.0
// The state of the daemon: devices, memory, counters (public functions).
#include <stdio.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "proto/core/span.h"

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

static enum inf_code copy_devices(void *context, const union inf_message *message, bool final,
                                  struct inf_error *err)
{
    (void) final;
    const struct device_list *list = context;
    const struct inf_device_index *index = &message->device_index;
    inferd_device_row *rows = calloc(INF_MAX(index->count, 1u), sizeof *rows);
    if (rows == NULL)
        return inf_client_question_fail_memory(err);
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
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_DEVICE_LIST,
                                      .kind = INF_MESSAGE_EMPTY,
                                      .reply_kind = INF_MESSAGE_DEVICE_INDEX,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_devices,
                                      .context = &list},
        err);
}

struct memory_list {
    inferd_memory_row **rows;
    size_t *count;
    inferd_memory_total *total; // NULL: the caller does not want the total
};

static enum inf_code copy_memory_info(void *context, const union inf_message *message, bool final,
                                      struct inf_error *err)
{
    (void) final;
    const struct memory_list *list = context;
    const struct inf_memory_info *info = &message->memory_info;
    inferd_memory_row *rows = calloc(INF_MAX(info->count, 1u), sizeof *rows);
    if (rows == NULL)
        return inf_client_question_fail_memory(err);
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
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_MEMORY_INFO,
                                      .kind = INF_MESSAGE_EMPTY,
                                      .reply_kind = INF_MESSAGE_MEMORY_INFO,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_memory_info,
                                      .context = &list},
        err);
}

static int ask_status(inferd_client *client,
                      enum inf_code (*on_reply)(void *context, const union inf_message *message,
                                                bool final, struct inf_error *err),
                      void *context, struct inferd_error *err)
{
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_SERVER_STATUS,
                                      .kind = INF_MESSAGE_EMPTY,
                                      .reply_kind = INF_MESSAGE_SERVER_STATUS,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = on_reply,
                                      .context = context},
        err);
}

static enum inf_code copy_status(void *context, const union inf_message *message, bool final,
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
    return ask_status(client, copy_status, status, err);
}

static enum inf_code copy_checks(void *context, const union inf_message *message, bool final,
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
    return ask_status(client, copy_checks, checks, err);
}
