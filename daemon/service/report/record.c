// SPDX-License-Identifier: Apache-2.0
// Makes a record of an inference from its job, and passes records on. A job that ends early may be
// freed before its outcome is known, so the record is a copy. If nothing uses records, no record is
// made.
#include "daemon/service/report/record.h"

#include <stdio.h>

#include "backends/base/clock.h"
#include "daemon/service/audit.h"
#include "daemon/service/report/timeline.h"
#include "proto/core/span.h"

bool inf_service_wants_record(const struct inf_service *service, const struct inf_job *job)
{
    const struct inf_log *log = &service->options.logs[INF_LOG_PART_ACCESS];
    return job->trace.recorded || inf_timeline_is_on(&service->timeline) ||
           atomic_load_explicit(&log->level, memory_order_relaxed) >= INF_LOG_DEBUG;
}

void inf_service_fill_record(struct inf_service *service, const struct inf_job *job,
                             struct inf_request_record *record)
{
    *record = (struct inf_request_record){.client_id = job->client_id,
                                          .stream_id = job->call.stream_id,
                                          .uid = (uint32_t)job->queue_entry.user,
                                          .device_index = job->device_index,
                                          .rows = INF_MAX(job->rows, 1u),
                                          .accepted_ns = job->accepted_ns};
    if (job->trace.recorded)
        record->trace = job->trace;
    snprintf(record->model, sizeof record->model, "%s", job->served->name);
    snprintf(record->version, sizeof record->version, "%s", job->served->version);
    snprintf(record->device, sizeof record->device, "%s", inf_device_info(job->device)->name);
    // While a worker runs the job, it may write job->result, so the loop must not read it.
    if (inf_scheduler_job_place(service->scheduler, job) != INF_JOB_LOOP ||
        job->result.start_ns == 0)
        return;
    record->ran = true;
    record->worker = job->result.worker;
    record->batch_rows = job->result.batch_rows;
    record->start_ns = job->result.start_ns;
    record->begin_ns = job->result.begin_ns;
    record->end_ns = job->result.end_ns;
    record->done_ns = job->result.done_ns;
}

void inf_service_note_record(struct inf_service *service, struct inf_request_record *record,
                             const struct inf_error *err)
{
    record->ended_ns = inf_clock_ns();
    record->code = err != NULL ? err->code : INF_OK;
    record->reason = err != NULL ? err->reason : INF_REASON_NONE;
    if (record->trace.recorded)
        inf_trace_writer_push(service->trace_writer, record);
    if (inf_timeline_is_on(&service->timeline))
        inf_service_note_timeline(service, record);
    inf_service_log_inference(&service->options.logs[INF_LOG_PART_ACCESS], record,
                              err != NULL ? err->text : "");
}
