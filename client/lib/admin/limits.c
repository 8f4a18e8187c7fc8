// SPDX-License-Identifier: Apache-2.0
// Limits of the daemon that can be changed while it runs (public function).
#include <stdio.h>
#include <stdlib.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "proto/core/span.h"

struct limit_rows {
    inferd_limit **rows;
    size_t *count;
};

static enum inf_code copy_limits(void *context, const union inf_message *message, bool final,
                                 struct inf_error *err)
{
    (void) final;
    const struct limit_rows *out = context;
    const struct inf_limit_list *list = &message->limit_list;
    inferd_limit *rows = calloc(INF_MAX(list->count, 1), sizeof *rows);
    if (rows == NULL)
        return inf_client_question_fail_memory(err);
    for (uint32_t i = 0; i < list->count; i++) {
        INF_COPY_TEXT(rows[i].name, list->entries[i].name);
        rows[i].value = list->entries[i].value;
        rows[i].min = list->entries[i].min;
        rows[i].max = list->entries[i].max;
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
        return inf_client_report_error(err, &error);
    }
    for (size_t i = 0; i < set_count; i++)
        list.entries[list.count++] =
            (struct inf_limit_entry){.name = set[i].name, .value = set[i].value};
    return inf_client_question_ask(
        client,
        &(struct inf_client_question){.method = INF_METHOD_SERVER_LIMITS,
                                      .kind = INF_MESSAGE_LIMITS_REQUEST,
                                      .limits = &list,
                                      .reply_kind = INF_MESSAGE_LIMITS_REPLY,
                                      .limit_ns = client->answer_ns,
                                      .on_reply = copy_limits,
                                      .context = &out},
        err);
}
