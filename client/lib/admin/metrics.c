// SPDX-License-Identifier: Apache-2.0
// Public functions that read metrics, reports and events of the daemon as texts. A text is the data
// of the daemon's reply.
#include <stdlib.h>
#include <string.h>

#include "client/inferd.h"
#include "client/lib/admin/question.h"
#include "client/lib/client.h"

struct metrics_text {
    char **text;
    size_t *size; // NULL: the caller does not want the size
};

static enum inf_code copy_text(void *context, const union inf_message *message, bool final,
                               struct inf_error *err)
{
    (void) final;
    const struct metrics_text *to = context;
    const struct inf_span from = message->metrics_reply.text;
    char *text = malloc(from.size + 1);
    if (text == NULL)
        return inf_client_question_fail_memory(err);
    if (from.size > 0)
        memcpy(text, from.data, from.size);
    text[from.size] = '\0';
    *to->text = text;
    if (to->size != NULL)
        *to->size = from.size;
    return INF_OK;
}

static int ask_text(inferd_client *client, struct inf_client_question *question, bool wait,
                    char **text, size_t *size, struct inferd_error *err)
{
    struct metrics_text to = {text, size};
    *text = NULL;
    question->reply_kind = INF_MESSAGE_METRICS_REPLY;
    question->limit_ns = wait ? 0 : client->answer_ns;
    question->on_reply = copy_text;
    question->context = &to;
    return inf_client_question_ask(client, question, err);
}

int inferd_metrics(inferd_client *client, const char *format, char **text, size_t *size,
                   struct inferd_error *err)
{
    return ask_text(client,
                    &(struct inf_client_question){.method = INF_METHOD_METRICS,
                                                  .kind = INF_MESSAGE_METRICS_REQUEST,
                                                  .body.metrics_request = {.format = format}},
                    false, text, size, err);
}

int inferd_report(inferd_client *client, const char *topic, char **text, size_t *size,
                  struct inferd_error *err)
{
    return ask_text(client,
                    &(struct inf_client_question){.method = INF_METHOD_REPORT,
                                                  .kind = INF_MESSAGE_REPORT_REQUEST,
                                                  .body.report_request = {.topic = topic}},
                    false, text, size, err);
}

int inferd_event_log(inferd_client *client, uint64_t after, bool wait, char **text,
                     struct inferd_error *err)
{
    return ask_text(client,
                    &(struct inf_client_question){
                        .method = INF_METHOD_REPORT,
                        .kind = INF_MESSAGE_REPORT_REQUEST,
                        .body.report_request = {.topic = "events", .after = after, .wait = wait}},
                    wait, text, NULL, err);
}
