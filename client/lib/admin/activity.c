// SPDX-License-Identifier: Apache-2.0
// Public functions that list and cancel requests in flight, and that list and close connections.
#include <stdio.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "proto/core/span.h"

// Pointers of the caller that receive the rows of a list and their numbers. `left_out` may be NULL.
struct row_list {
    void **rows;
    size_t *count, *left_out;
};

// Allocates `count` rows, and stores the rows and the numbers in *to. Returns the rows, or NULL if
// there is no memory.
static void *make_rows(const struct row_list *to, size_t row_bytes, uint32_t count,
                       uint32_t left_out)
{
    *to->rows = calloc(INF_MAX(count, 1u), row_bytes);
    *to->count = *to->rows != NULL ? count : 0;
    if (to->left_out != NULL)
        *to->left_out = left_out;
    return *to->rows;
}

static int ask_list(inferd_client *client, const struct inf_client_question *list,
                    struct row_list *to, struct inferd_error *err)
{
    struct inf_client_question question = *list;
    question.limit_ns = client->answer_ns;
    question.context = to;
    *to->rows = NULL;
    *to->count = 0;
    return inf_client_question_ask(client, &question, err);
}

static enum inf_code copy_requests(void *context, const union inf_message *message, bool final,
                                   struct inf_error *err)
{
    (void) final;
    const struct inf_request_list *list = &message->request_list;
    inferd_request_row *rows = make_rows(context, sizeof *rows, list->count, list->left_out);
    if (rows == NULL)
        return inf_client_question_fail_memory(err);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct inf_request_entry *entry = &list->entries[i];
        rows[i].client_id = entry->client_id;
        rows[i].stream_id = entry->stream_id;
        rows[i].uid = entry->uid;
        rows[i].pid = entry->pid;
        rows[i].age_ns = entry->age_ns;
        rows[i].data_bytes = entry->data_bytes;
        rows[i].rows = entry->rows;
        INF_COPY_TEXT(rows[i].method, entry->method);
        INF_COPY_TEXT(rows[i].model, entry->model);
        INF_COPY_TEXT(rows[i].version, entry->version);
        INF_COPY_TEXT(rows[i].device, entry->device);
        INF_COPY_TEXT(rows[i].phase, entry->phase);
        INF_COPY_TEXT(rows[i].id, entry->id);
    }
    return INF_OK;
}

int inferd_requests(inferd_client *client, inferd_request_row **rows, size_t *count,
                    size_t *left_out, struct inferd_error *err)
{
    return ask_list(client,
                    &(struct inf_client_question){.method = INF_METHOD_REQUEST_LIST,
                                                  .kind = INF_MESSAGE_EMPTY,
                                                  .reply_kind = INF_MESSAGE_REQUEST_LIST,
                                                  .on_reply = copy_requests},
                    &(struct row_list){(void **)rows, count, left_out}, err);
}

static enum inf_code copy_clients(void *context, const union inf_message *message, bool final,
                                  struct inf_error *err)
{
    (void) final;
    const struct inf_client_list *list = &message->client_list;
    inferd_client_row *rows = make_rows(context, sizeof *rows, list->count, list->left_out);
    if (rows == NULL)
        return inf_client_question_fail_memory(err);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct inf_client_entry *entry = &list->entries[i];
        rows[i].client_id = entry->client_id;
        rows[i].uid = entry->uid;
        rows[i].pid = entry->pid;
        rows[i].in_flight = entry->in_flight;
        rows[i].regions = entry->regions;
        rows[i].sessions = entry->sessions;
        rows[i].age_ns = entry->age_ns;
        rows[i].requests = entry->requests;
        rows[i].data_bytes = entry->data_bytes;
        rows[i].unread_bytes = entry->unread_bytes;
        rows[i].region_bytes = entry->region_bytes;
        INF_COPY_TEXT(rows[i].name, entry->name);
        INF_COPY_TEXT(rows[i].role, entry->role);
    }
    return INF_OK;
}

int inferd_clients(inferd_client *client, inferd_client_row **rows, size_t *count, size_t *left_out,
                   struct inferd_error *err)
{
    return ask_list(client,
                    &(struct inf_client_question){.method = INF_METHOD_CLIENT_LIST,
                                                  .kind = INF_MESSAGE_EMPTY,
                                                  .reply_kind = INF_MESSAGE_CLIENT_LIST,
                                                  .on_reply = copy_clients},
                    &(struct row_list){(void **)rows, count, left_out}, err);
}

static int end_target(inferd_client *client, uint16_t method, struct inf_client_target target,
                      struct inferd_error *err)
{
    return inf_client_question_ask(client,
                                   &(struct inf_client_question){.method = method,
                                                                 .kind = INF_MESSAGE_CLIENT_TARGET,
                                                                 .body.client_target = target,
                                                                 .reply_kind = INF_MESSAGE_EMPTY,
                                                                 .limit_ns = client->answer_ns},
                                   err);
}

int inferd_cancel_request(inferd_client *client, uint64_t client_id, uint64_t stream_id,
                          struct inferd_error *err)
{
    return end_target(client, INF_METHOD_REQUEST_CANCEL,
                      (struct inf_client_target){client_id, stream_id}, err);
}

int inferd_disconnect_client(inferd_client *client, uint64_t client_id, struct inferd_error *err)
{
    return end_target(client, INF_METHOD_CLIENT_DISCONNECT,
                      (struct inf_client_target){.client_id = client_id}, err);
}
