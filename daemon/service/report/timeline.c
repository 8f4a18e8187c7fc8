// SPDX-License-Identifier: Apache-2.0
// The topic "timeline" of the Report method. Entries are printed as lists of numbers, because a
// busy daemon has a hundred thousand of them in a second and the loop prints them. A report is cut
// at a size that delays requests by less than a millisecond; the reader asks again.
#include "daemon/service/report/timeline.h"
#include "backends/base/clock.h"
#include "daemon/service/report/report.h"

// A report ends with the entry that exceeds this size.
#define BYTES_MAX ((size_t)64 << 10)

void inf_service_note_slice(struct inf_service *service, enum inf_timeline_slice slice,
                            uint64_t client_id, uint64_t begin_ns)
{
    if (begin_ns == 0)
        return;
    const uint64_t now_ns = inf_clock_ns();
    const struct inf_timeline_entry entry = {
        .slice = slice, .client_id = client_id, .begin_ns = begin_ns, .end_ns = now_ns};
    inf_timeline_add(&service->timeline, &entry, now_ns);
}

void inf_service_note_gone(struct inf_service *service, uint64_t client_id)
{
    if (client_id != 0 && service->timeline.reader == client_id)
        inf_timeline_stop(&service->timeline);
}

uint64_t inf_service_begin_slice(const struct inf_service *service)
{
    return inf_timeline_is_on(&service->timeline) ? inf_clock_ns() : 0;
}

void inf_service_note_timeline(struct inf_service *service, const struct inf_request_record *record)
{
    struct inf_timeline_entry entry = {.request = true,
                                       .ran = record->ran,
                                       .code = record->code,
                                       .uid = record->uid,
                                       .device_index = record->device_index,
                                       .worker = record->worker,
                                       .rows = record->rows,
                                       .batch_rows = record->batch_rows,
                                       .client_id = record->client_id,
                                       .stream_id = record->stream_id,
                                       .begin_ns = record->accepted_ns,
                                       .end_ns = record->ended_ns,
                                       .start_ns = record->start_ns,
                                       .run_begin_ns = record->begin_ns,
                                       .run_end_ns = record->end_ns,
                                       .done_ns = record->done_ns};
    _Static_assert(sizeof entry.model == sizeof record->model, "the names fit");
    for (size_t i = 0; i < sizeof entry.model; i++)
        entry.model[i] = record->model[i];
    inf_timeline_add(&service->timeline, &entry, record->ended_ns);
}

static void print_entry(struct inf_report_text *report, const struct inf_timeline_entry *entry)
{
    inf_report_open(report, NULL, '[');
    inf_report_add_number(report, NULL, entry->request ? 2 : entry->slice);
    inf_report_add_number(report, NULL, entry->client_id);
    inf_report_add_number(report, NULL, entry->begin_ns);
    inf_report_add_number(report, NULL, entry->end_ns);
    if (entry->request) {
        inf_report_add_number(report, NULL, entry->stream_id);
        inf_report_add_number(report, NULL, entry->uid);
        inf_report_add_number(report, NULL, entry->device_index);
        inf_report_add_number(report, NULL, entry->worker);
        inf_report_add_number(report, NULL, entry->rows);
        inf_report_add_number(report, NULL, entry->batch_rows);
        inf_report_add_number(report, NULL, entry->start_ns);
        inf_report_add_number(report, NULL, entry->run_begin_ns);
        inf_report_add_number(report, NULL, entry->run_end_ns);
        inf_report_add_number(report, NULL, entry->done_ns);
        inf_report_add_text(report, NULL, entry->model);
        inf_report_add_text(report, NULL, inf_code_name(entry->code));
    }
    inf_report_close(report, ']');
}

enum inf_code inf_service_print_timeline(struct inf_service *service,
                                         const struct inf_report_reader *reader,
                                         struct inf_report_text *report, struct inf_error *err)
{
    struct inf_timeline *timeline = &service->timeline;
    const struct inf_device_list *devices = service->options.devices;
    const uint64_t now_ns = inf_clock_ns();
    if (!reader->admin)
        return inf_fail_reason(err, INF_DENIED, INF_REASON_ROLE,
                               "the timeline is for admins: use the admin socket");
    INF_TRY(inf_timeline_start(timeline, reader->client_id, now_ns, err));
    inf_report_open(report, NULL, '{');
    inf_report_add_number(report, "now_ns", now_ns);
    inf_report_add_number(report, "lost", timeline->lost);
    timeline->lost = 0;
    inf_report_open(report, "devices", '[');
    for (uint32_t i = 0; i < devices->count; i++)
        inf_report_add_text(report, NULL, inf_device_info(devices->devices[i])->name);
    inf_report_close(report, ']');
    inf_report_open(report, "entries", '[');
    const size_t bytes_max = INF_MIN(BYTES_MAX, (size_t)reader->reply_bytes_max / 2);
    const struct inf_timeline_entry *entry;
    while (report->size < bytes_max && (entry = inf_timeline_take(timeline)) != NULL)
        print_entry(report, entry);
    inf_report_close(report, ']');
    inf_report_add_number(report, "left", timeline->count);
    inf_report_close(report, '}');
    return INF_OK;
}
