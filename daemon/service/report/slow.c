// SPDX-License-Identifier: Apache-2.0
// Takes the times of a slow request from its job, and prints them: as a log line, and as a report.
#include "daemon/service/report/slow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/service/report/report.h"

// Returns the shortest duration of a slow request for this model, in nanoseconds; 0: no request is
// slow.
static uint64_t find_threshold_ns(const struct inf_service *service,
                                  const struct inf_served *served) INF_ON_LOOP
{
    uint32_t slow_ms = served->config.slow_ms;
    return (slow_ms != 0 ? slow_ms : service->options.environment->config->slow_ms) * INF_NS_PER_MS;
}

static void fill_request(struct inf_slow_request *slow, const struct inf_job *job,
                         const struct inf_metrics_answer *answer)
{
    *slow = (struct inf_slow_request){
        .ended_ns = job->result.done_ns,
        .id = inf_quote(job->id),
        .uid = answer->uid,
        .stream_id = job->call.stream_id,
        .duration_ns = answer->duration_ns,
        .queue_ns = answer->queue_ns,
        .input_ns = answer->input_ns,
        .compute_ns = answer->compute_ns,
        .output_ns = answer->output_ns,
        .input_bytes = answer->input_bytes,
        .output_bytes = answer->output_bytes,
        .rows = answer->rows,
        .batch_rows = answer->batch_rows,
        .ahead = job->ahead,
        .behind_uid = job->behind_uid,
    };
    snprintf(slow->model, sizeof slow->model, "%s", job->served->name);
    snprintf(slow->version, sizeof slow->version, "%s", job->served->version);
    snprintf(slow->device, sizeof slow->device, "%s", inf_device_info(job->device)->name);
}

static void log_slow(struct inf_service *service, const struct inf_slow_request *slow,
                     uint64_t now_ns) INF_ON_LOOP
{
    uint64_t left_out;
    if (!inf_slow_log_may_write(service->slow_log, now_ns, &left_out))
        return;
    inf_log(service->log, INF_LOG_NOTICE,
            "request slow model=%s version=%s device=%s uid=%" PRIu32 " ms=%" PRIu64
            " queue_ms=%" PRIu64 " input_ms=%" PRIu64 " run_ms=%" PRIu64 " output_ms=%" PRIu64
            " batch_rows=%" PRIu32 " ahead=%" PRIu64 " behind_uid=%" PRIu32
            " lines_left_out=%" PRIu64 " id=\"%s\"",
            slow->model, slow->version, slow->device, slow->uid, slow->duration_ns / INF_NS_PER_MS,
            slow->queue_ns / INF_NS_PER_MS, slow->input_ns / INF_NS_PER_MS,
            slow->compute_ns / INF_NS_PER_MS, slow->output_ns / INF_NS_PER_MS, slow->batch_rows,
            slow->ahead, slow->behind_uid, left_out, slow->id.text);
}

void inf_service_note_duration(struct inf_service *service, const struct inf_job *job,
                               const struct inf_metrics_answer *answer, uint64_t now_ns)
{
    const uint64_t threshold_ns = find_threshold_ns(service, job->served);
    if (!inf_slow_log_wants(service->slow_log, answer->series, answer->duration_ns, threshold_ns,
                            now_ns))
        return;
    struct inf_slow_request slow;
    fill_request(&slow, job, answer);
    bool over = threshold_ns > 0 && answer->duration_ns >= threshold_ns;
    inf_slow_log_add(service->slow_log, answer->series, &slow, over, now_ns);
    if (over)
        log_slow(service, &slow, now_ns);
}

static void print_request(struct inf_report_text *report, const struct inf_slow_request *slow,
                          uint64_t now_ns)
{
    inf_report_open(report, NULL, '{');
    inf_report_add_number(report, "age_ns", now_ns - slow->ended_ns);
    inf_report_add_text(report, "model", slow->model);
    inf_report_add_text(report, "version", slow->version);
    inf_report_add_text(report, "device", slow->device);
    inf_report_add_number(report, "uid", slow->uid);
    inf_report_add_number(report, "stream_id", slow->stream_id);
    inf_report_add_text(report, "id", slow->id.text);
    inf_report_add_number(report, "duration_ns", slow->duration_ns);
    inf_report_add_number(report, "queue_ns", slow->queue_ns);
    inf_report_add_number(report, "input_ns", slow->input_ns);
    inf_report_add_number(report, "compute_ns", slow->compute_ns);
    inf_report_add_number(report, "output_ns", slow->output_ns);
    inf_report_add_number(report, "input_bytes", slow->input_bytes);
    inf_report_add_number(report, "output_bytes", slow->output_bytes);
    inf_report_add_number(report, "rows", slow->rows);
    inf_report_add_number(report, "batch_rows", slow->batch_rows);
    inf_report_add_number(report, "ahead", slow->ahead);
    if (slow->ahead > 0)
        inf_report_add_number(report, "behind_uid", slow->behind_uid);
    inf_report_close(report, '}');
}

void inf_service_print_slow(const struct inf_service *service,
                            const struct inf_report_reader *reader, struct inf_report_text *report)
{
    const struct inf_slow_request *slow;
    const uint64_t now_ns = inf_clock_ns();
    uint32_t cursor = 0;
    inf_report_open(report, NULL, '[');
    while ((slow = inf_slow_log_next(service->slow_log, &cursor, now_ns)) != NULL)
        if (reader->admin || reader->uid == slow->uid)
            print_request(report, slow, now_ns);
    inf_report_close(report, ']');
}
