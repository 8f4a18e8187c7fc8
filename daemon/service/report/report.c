// SPDX-License-Identifier: Apache-2.0
// Implements the Report method: prints the topic that the client asked for as JSON, which becomes
// the data of the reply.
#include "daemon/service/report/report.h"

#include <string.h>

#include "daemon/service/handlers.h"
#include "daemon/service/report/timeline.h"
#include "proto/core/utf8.h"

static enum inf_code print_topic(struct inf_service *service,
                                 const struct inf_report_reader *reader,
                                 struct inf_report_text *report, struct inf_error *err) INF_ON_LOOP
{
    if (strcmp(reader->topic, "slow") == 0)
        inf_service_print_slow(service, reader, report);
    else if (strcmp(reader->topic, "events") == 0)
        inf_service_print_events(service, reader, report);
    else if (strcmp(reader->topic, "memory") == 0)
        inf_service_print_budget(service, report);
    else if (strcmp(reader->topic, "timeline") == 0)
        INF_TRY(inf_service_print_timeline(service, reader, report, err));
    else if (strncmp(reader->topic, INF_REPORT_MODEL_TOPIC, strlen(INF_REPORT_MODEL_TOPIC)) == 0)
        INF_TRY(inf_service_print_model(service, reader, report, err));
    else
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "topic '%s', wanted slow, events, memory, timeline or model NAME",
                               inf_quote(reader->topic).text);
    if (report->full || report->size > reader->reply_bytes_max)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                               "the report has %zu bytes or more, the client accepts %u",
                               report->size, reader->reply_bytes_max);
    return INF_OK;
}

enum inf_code inf_service_make_report(struct inf_service *service,
                                      const struct inf_report_reader *reader,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    char *memory = inf_pool_acquire(service->options.pool, INF_REPORT_BYTES_MAX);
    if (memory == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the report");
    struct inf_report_text report;
    inf_report_begin(&report, memory, INF_REPORT_BYTES_MAX);
    enum inf_code code = print_topic(service, reader, &report, &fault->err);
    // Copy the text to memory of its own size, because a client that does not read its replies must
    // not make the daemon hold more.
    uint8_t *text = code == INF_OK ? inf_pool_acquire(service->options.pool, report.size) : NULL;
    if (text != NULL)
        memcpy(text, memory, report.size);
    inf_pool_release(service->options.pool, memory, INF_REPORT_BYTES_MAX);
    if (code == INF_OK && text == NULL)
        code = inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the report");
    if (code != INF_OK)
        return code;
    service->reply.metrics_reply = (struct inf_metrics_reply){.media_type = "application/json"};
    *answer = (struct inf_answer){.kind = INF_MESSAGE_METRICS_REPLY,
                                  .message = &service->reply,
                                  .data = text,
                                  .data_bytes = report.size,
                                  .data_capacity = report.size};
    return INF_OK;
}

enum inf_code inf_service_report(struct inf_service *service, struct inf_request *request,
                                 struct inf_answer *answer, struct inf_fault *fault)
{
    const struct inf_report_request *asked = &service->request.report_request;
    const struct inf_report_reader reader = {.topic = asked->topic,
                                             .after = asked->after,
                                             .admin = request->caller->admin,
                                             .caller = request->caller,
                                             .uid = request->caller->uid,
                                             .client_id = request->client_id,
                                             .reply_bytes_max = request->reply_bytes_max};
    if (asked->wait && strcmp(asked->topic, "events") == 0) {
        INF_TRY(inf_service_begin_wait(service, request, answer, fault));
        if (answer->call != NULL)
            return INF_OK;
    }
    return inf_service_make_report(service, &reader, answer, fault);
}

enum inf_code inf_service_wait_result(struct inf_service *service, const struct inf_call *call,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    const struct inf_event_wait *wait = (const struct inf_event_wait *)call;
    return inf_service_make_report(
        service,
        &(struct inf_report_reader){.topic = "events",
                                    .after = wait->after,
                                    .admin = wait->admin,
                                    .reply_bytes_max = wait->reply_bytes_max},
        answer, fault);
}
