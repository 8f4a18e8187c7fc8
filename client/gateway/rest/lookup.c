// SPDX-License-Identifier: Apache-2.0
// REST requests that ask the daemon a question. The thread of a question queue asks the question,
// and the answer is sent as the response. If the client's connection is closed before, the answer
// is dropped.
#include "client/gateway/rest/lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/gateway/core/metrics.h"
#include "client/gateway/oip/json_guard.h"
#include "client/gateway/oip/response_json.h"
#include "client/gateway/rest/reply.h"

struct lookup {
    struct inf_gateway *gateway;
    struct inf_http_exchange *exchange;
    struct inf_question *question;
    void (*reply)(struct lookup *lookup, struct inf_question *question);
    bool openmetrics; // for reply_metrics(): the format is OpenMetrics
    bool only_ready;  // for reply_index(): list only models that are ready
};

static void abandon_lookup(void *context)
{
    struct lookup *lookup = context;
    inf_question_forget(lookup->question);
    free(lookup);
}

static void handle_answer(void *context, struct inf_question *question)
{
    struct lookup *lookup = context;
    if (lookup != NULL) {
        lookup->exchange->user = NULL;
        // If the daemon's metrics cannot be read, the gateway still serves its own.
        if (question->err.code != INFERD_OK && question->kind != INF_QUESTION_METRICS)
            inf_rest_reply_error(lookup->exchange, &question->err);
        else
            lookup->reply(lookup, question);
        free(lookup);
    }
    inf_question_free(question);
}

static void ask_daemon(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                       enum inf_question_kind kind, const struct inf_span names[],
                       struct lookup from)
{
    struct inf_question_queue *queue =
        exchange->admin && kind >= INF_QUESTION_LOAD ? gateway->administration : gateway->questions;
    struct inf_question *question = calloc(1, sizeof *question);
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (question == NULL || lookup == NULL || names[0].size >= sizeof question->model ||
        names[1].size >= sizeof question->version) {
        bool memory = question != NULL && lookup != NULL;
        free(question);
        free(lookup);
        inf_rest_reply_status(exchange, memory ? 404 : 503,
                              memory ? "there is no model with this name" : "no memory");
        return;
    }
    *lookup = from;
    lookup->gateway = gateway;
    lookup->exchange = exchange;
    lookup->question = question;
    *question = (struct inf_question){.kind = kind, .callback = handle_answer, .context = lookup};
    question->format = from.openmetrics ? "openmetrics" : NULL;
    if (names[0].size > 0)
        memcpy(question->model, names[0].data, names[0].size);
    if (names[1].size > 0)
        memcpy(question->version, names[1].data, names[1].size);
    if (!inf_question_ask(queue, question)) {
        free(question);
        free(lookup);
        inf_rest_reply_status(exchange, 503, "too many questions wait for the daemon");
        return;
    }
    exchange->user = lookup;
    exchange->abandon = abandon_lookup;
}

static void reply_model(struct lookup *lookup, struct inf_question *question)
{
    inf_rest_reply_json(lookup->gateway, lookup->exchange, inf_oip_model_encode(question->info));
}

void inf_rest_lookup_model(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[])
{
    ask_daemon(gateway, exchange, INF_QUESTION_DESCRIBE, names,
               (struct lookup){.reply = reply_model});
}

// Responds with an error status if the model is not ready, because clients check only the status
// code.
static void reply_ready(struct lookup *lookup, struct inf_question *question)
{
    if (!question->ready) {
        inf_rest_reply_status(lookup->exchange, 503, "the model is not ready");
        return;
    }
    json_t *object = json_pack("{s:s, s:b}", "name", question->model, "ready", 1);
    inf_rest_reply_json(lookup->gateway, lookup->exchange,
                        object != NULL ? json_dumps(object, JSON_COMPACT) : NULL);
    json_decref(object);
}

void inf_rest_lookup_ready(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[])
{
    ask_daemon(gateway, exchange, INF_QUESTION_READY, names, (struct lookup){.reply = reply_ready});
}

static void reply_metrics(struct lookup *lookup, struct inf_question *question)
{
    const char *daemon = question->err.code == INFERD_OK ? question->text : "";
    bool openmetrics = lookup->openmetrics;
    struct inf_rest_text text = {
        .content_type = openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                    : "text/plain; version=0.0.4; charset=utf-8",
    };
    text.data = inf_gateway_metrics_print(lookup->gateway, daemon, openmetrics, &text.size);
    inf_rest_reply_text(lookup->gateway, lookup->exchange, &text);
}

void inf_rest_lookup_metrics(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                             const struct inf_span names[])
{
    const struct inf_http_head *head = &exchange->head;
    bool openmetrics =
        head->openmetrics_quality > 0 && head->openmetrics_quality >= head->text_quality;
    ask_daemon(gateway, exchange, INF_QUESTION_METRICS, names,
               (struct lookup){.reply = reply_metrics, .openmetrics = openmetrics});
}

static void reply_statistics(struct lookup *lookup, struct inf_question *question)
{
    inf_rest_reply_json(lookup->gateway, lookup->exchange,
                        inf_oip_statistics_encode(&question->statistics));
}

void inf_rest_lookup_statistics(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                                const struct inf_span names[])
{
    ask_daemon(gateway, exchange, INF_QUESTION_STATISTICS, names,
               (struct lookup){.reply = reply_statistics});
}

static void reply_index(struct lookup *lookup, struct inf_question *question)
{
    inf_rest_reply_json(
        lookup->gateway, lookup->exchange,
        inf_oip_index_encode(question->rows, question->row_count, lookup->only_ready));
}

// Parses the body of a repository request. *json is NULL if the body is empty; the caller frees
// *json with json_decref(). Returns false if the body is invalid and the request was answered with
// an error.
static bool parse_body(struct inf_http_exchange *exchange, json_t **json)
{
    *json = NULL;
    if (exchange->body.size == 0)
        return true;
    if (exchange->head.coding != INF_HTTP_IDENTITY) {
        inf_rest_reply_status(exchange, 415, "the body of this request must not be compressed");
        return false;
    }
    struct inf_error err;
    if (inf_oip_json_parse(exchange->body, json, &err) == INF_OK && json_is_object(*json))
        return true;
    json_decref(*json);
    inf_rest_reply_status(exchange, 400, "the body is no JSON object");
    return false;
}

void inf_rest_lookup_index(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                           const struct inf_span names[])
{
    json_t *json;
    if (!parse_body(exchange, &json))
        return;
    bool only_ready = json_is_true(json_object_get(json, "ready"));
    json_decref(json);
    ask_daemon(gateway, exchange, INF_QUESTION_MODELS, names,
               (struct lookup){.reply = reply_index, .only_ready = only_ready});
}

static void reply_done(struct lookup *lookup, struct inf_question *question)
{
    (void)question;
    inf_rest_reply_json(lookup->gateway, lookup->exchange, strdup("{}"));
}

// Loads or unloads a model. A body may have `parameters`, all of which must be allowed.
static void change_repository(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                              enum inf_question_kind kind, const struct inf_span names[])
{
    json_t *json;
    if (!parse_body(exchange, &json))
        return;
    const json_t *parameters = json_object_get(json, "parameters"), *value;
    const char *name;
    struct inf_error err = {0};
    if (parameters != NULL && !json_is_object(parameters))
        err.code = inf_fail(&err, INF_INVALID, "'parameters' is no object");
    json_object_foreach((json_t *)parameters, name, value) if (err.code == INF_OK) err.code =
        inf_oip_repository_parameter_check(name, kind == INF_QUESTION_LOAD, &err);
    json_decref(json);
    if (err.code != INF_OK)
        inf_rest_reply_failure(exchange, &err);
    else
        ask_daemon(gateway, exchange, kind, names, (struct lookup){.reply = reply_done});
}

void inf_rest_lookup_load(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                          const struct inf_span names[])
{
    change_repository(gateway, exchange, INF_QUESTION_LOAD, names);
}

void inf_rest_lookup_unload(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                            const struct inf_span names[])
{
    change_repository(gateway, exchange, INF_QUESTION_UNLOAD, names);
}
