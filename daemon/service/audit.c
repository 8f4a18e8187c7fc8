// SPDX-License-Identifier: Apache-2.0
// Formats the log lines about requests. Names come from clients, so they are quoted: control
// characters become '?', quotation marks become apostrophes, and long texts are cut.
#include "daemon/service/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/utf8.h"
#include "proto/wire/frame.h"

// Room for what an act was about: up to three quoted texts and their keys.
#define SUBJECT_SIZE 320

// Describes what a request was about as "key=value" pairs, each with a leading space. Paths are
// left out, because the log must not contain paths of clients.
static void describe_subject(const struct inf_request *request, enum inf_message_kind kind,
                             const union inf_message *message, char subject[SUBJECT_SIZE])
{
    subject[0] = '\0';
    switch (kind) {
    case INF_MESSAGE_MODEL_LOAD_REQUEST:
        snprintf(subject, SUBJECT_SIZE, " model=\"%s\" from=%s device=\"%s\"",
                 inf_quote(message->model.name).text,
                 request->directory_fd >= 0       ? "descriptor"
                 : message->model.path[0] != '\0' ? "path"
                                                  : "repository",
                 inf_quote(message->model.device).text);
        break;
    case INF_MESSAGE_MODEL_UNLOAD_REQUEST:
        snprintf(subject, SUBJECT_SIZE, " model=\"%s\" version=\"%s\"%s",
                 inf_quote(message->model.name).text, inf_quote(message->model.version).text,
                 message->model.delete_files ? " delete=yes" : "");
        break;
    case INF_MESSAGE_PLACEMENT_REQUEST:
        snprintf(subject, SUBJECT_SIZE, " model=\"%s\" device=\"%s\" precision=\"%s\"",
                 inf_quote(message->placement_request.name).text,
                 inf_quote(message->placement_request.device).text,
                 inf_quote(message->placement_request.precision).text);
        break;
    case INF_MESSAGE_FLAG_SET:
        snprintf(subject, SUBJECT_SIZE, " flag=\"%s\" value=\"%s\"",
                 inf_quote(message->flag_set.name).text, inf_quote(message->flag_set.value).text);
        break;
    case INF_MESSAGE_INFER_REQUEST:
        snprintf(subject, SUBJECT_SIZE, " model=\"%s\"",
                 inf_quote(message->infer_request.model_name).text);
        break;
    case INF_MESSAGE_PRECOMPILE:
        snprintf(subject, SUBJECT_SIZE, " model=\"%s\" shapes=\"%s\"",
                 inf_quote(message->precompile.name).text,
                 inf_quote(message->precompile.shapes).text);
        break;
    case INF_MESSAGE_CLIENT_TARGET:
        snprintf(subject, SUBJECT_SIZE, " client=%" PRIu64 " stream=%" PRIu64,
                 message->client_target.client_id, message->client_target.stream_id);
        break;
    case INF_MESSAGE_LIMITS_REQUEST:
        snprintf(subject, SUBJECT_SIZE, " limits=%" PRIu32, message->limit_list.count);
        break;
    default:
        break;
    }
}

// The text of an error for a log line, which puts it between quotation marks. The error may quote a
// name from a model file, so quotation marks in the text become apostrophes.
struct error_text {
    char text[sizeof((struct inf_error *)0)->text];
};

static struct error_text quote_error(const char *error)
{
    struct error_text quoted;
    snprintf(quoted.text, sizeof quoted.text, "%s", error);
    for (char *at = quoted.text; (at = strchr(at, '"')) != NULL;)
        *at = '\'';
    return quoted;
}

void inf_service_log_act(const struct inf_log *log, const struct inf_request *request,
                         enum inf_message_kind kind, const union inf_message *message,
                         const struct inf_error *err, bool begun)
{
    char subject[SUBJECT_SIZE];
    describe_subject(request, kind, message, subject);
    if (err->code == INF_OK)
        inf_log(log, INF_LOG_NOTICE,
                "admin act method=%s uid=%" PRIu32 " pid=%" PRId32 "%s result=%s",
                inf_method_name(request->method), request->caller->uid, request->pid, subject,
                begun ? "begun" : "done");
    else
        inf_log(log, INF_LOG_NOTICE,
                "admin act method=%s uid=%" PRIu32 " pid=%" PRId32 "%s result=failed error=\"%s\"",
                inf_method_name(request->method), request->caller->uid, request->pid, subject,
                quote_error(err->text).text);
}

void inf_service_log_refusal(const struct inf_log *log, const struct inf_request *request,
                             const struct inf_error *err)
{
    inf_log(log, INF_LOG_DEBUG,
            "request failed method=%s uid=%" PRIu32 " client=%" PRIu64 " pid=%" PRId32
            " stream=%" PRIu64 " code=%s reason=%s error=\"%s\"",
            inf_method_name(request->method), request->caller->uid, request->client_id,
            request->pid, request->stream_id, inf_code_name(err->code),
            inf_reason_name(err->reason), quote_error(err->text).text);
}

void inf_service_log_reply(const struct inf_log *log, const struct inf_request *request)
{
    inf_log(log, INF_LOG_DEBUG,
            "request done method=%s uid=%" PRIu32 " client=%" PRIu64 " stream=%" PRIu64
            " result=done",
            inf_method_name(request->method), request->caller->uid, request->client_id,
            request->stream_id);
}

void inf_service_log_inference(const struct inf_log *log, const struct inf_request_record *record,
                               const char *error)
{
    uint64_t queue_end_ns = record->ran ? record->start_ns : record->ended_ns;
    bool failed = record->code != INF_OK;
    char result[512] = "done";
    if (failed)
        snprintf(result, sizeof result, "failed code=%s reason=%s error=\"%.400s\"",
                 inf_code_name(record->code), inf_reason_name(record->reason),
                 quote_error(error).text);
    inf_log(log, INF_LOG_DEBUG,
            "request done method=ModelInfer uid=%" PRIu32 " client=%" PRIu64 " stream=%" PRIu64
            " model=%s version=%s device=%s rows=%" PRIu32 " batch_rows=%" PRIu32
            " total_us=%" PRIu64 " queue_us=%" PRIu64 " input_us=%" PRIu64 " run_us=%" PRIu64
            " output_us=%" PRIu64 " result=%s",
            record->uid, record->client_id, record->stream_id, record->model, record->version,
            record->device, record->rows, record->batch_rows,
            inf_request_record_span_ns(record->accepted_ns, record->ended_ns) / 1000,
            inf_request_record_span_ns(record->accepted_ns, queue_end_ns) / 1000,
            inf_request_record_span_ns(record->start_ns, record->begin_ns) / 1000,
            inf_request_record_span_ns(record->begin_ns, record->end_ns) / 1000,
            inf_request_record_span_ns(record->end_ns, record->ended_ns) / 1000, result);
}
