// SPDX-License-Identifier: Apache-2.0
// Events about models come from a comparison: whenever a load or a request of an admin has ended,
// the list of models is compared with the previous list, and each difference becomes an event.
//
// The daemon has no queue for each reader. All events are in one ring, and a reader names the last
// event that it knows. If events after that one were already replaced, the reader gets the number
// of lost events.
#include "daemon/service/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/service/report/report.h"

void inf_service_add_event(struct inf_service *service, const struct inf_event *event)
{
    inf_event_log_add(service->event_log, event);
}

void inf_service_add_model_event(struct inf_service *service, const char *kind,
                                 const struct inf_served *served, const char *text)
{
    // Of a model that is not for every client, only admins see the events: the access of a model
    // that is gone is not known.
    struct inf_event event = {
        .kind = kind,
        .admin_only = inf_model_store_is_restricted(service->options.store, served->name)};
    snprintf(event.model, sizeof event.model, "%s", served->name);
    snprintf(event.version, sizeof event.version, "%s", served->version);
    snprintf(event.device, sizeof event.device, "%s", inf_device_info(served->device)->name);
    snprintf(event.text, sizeof event.text, "%.190s", text);
    inf_service_add_event(service, &event);
}

// --- watching models ---

static void add_row_event(struct inf_service *service, const char *kind,
                          const struct inf_model_row *row) INF_ON_LOOP
{
    struct inf_event event = {.kind = kind, .admin_only = row->is_restricted};
    snprintf(event.model, sizeof event.model, "%s", row->name);
    snprintf(event.version, sizeof event.version, "%s", row->version);
    snprintf(event.device, sizeof event.device, "%s", row->device);
    snprintf(event.text, sizeof event.text, "%.190s", row->reason);
    inf_service_add_event(service, &event);
}

// Compares two rows of the same model, and adds an event if they differ. `old` is NULL if the model
// or this version of it is new.
static void compare_rows(struct inf_service *service, const struct inf_model_row *old,
                         const struct inf_model_row *row) INF_ON_LOOP
{
    static const char *const kinds[] = {
        [INF_MODEL_LOADING] = "model_loading", [INF_MODEL_WARMING] = "model_warming",
        [INF_MODEL_READY] = "model_ready",     [INF_MODEL_IDLE] = "model_idle",
        [INF_MODEL_FAILED] = "model_failed",   [INF_MODEL_UNLOADING] = "model_unloading",
    };
    _Static_assert(INF_ARRAY_LENGTH(kinds) == INF_MODEL_FAILED + 1, "each state has a kind");
    if (old == NULL || old->state != row->state)
        add_row_event(service, kinds[row->state], row);
    else if (strcmp(old->version, row->version) != 0 && row->state == INF_MODEL_READY)
        add_row_event(service, "model_replaced", row);
    else if (strcmp(old->device, row->device) != 0)
        add_row_event(service, "model_moved", row);
    else if (strcmp(old->reason, row->reason) != 0 && row->reason[0] != '\0')
        add_row_event(service, "model_reload_failed", row);
}

// Consecutive rows of a list: the versions of one model.
struct row_group {
    const struct inf_model_row *rows;
    uint32_t count;
};

// Returns the group of rows that begins at `rows`: consecutive rows with the same model name, at
// most `count`.
static struct row_group find_group(const struct inf_model_row *rows, uint32_t count)
{
    struct row_group group = {rows, 0};
    while (group.count < count && strcmp(rows[group.count].name, rows[0].name) == 0)
        group.count++;
    return group;
}

static const struct inf_model_row *find_version(const struct row_group *group, const char *version)
{
    for (uint32_t i = 0; i < group->count; i++)
        if (strcmp(group->rows[i].version, version) == 0)
            return &group->rows[i];
    return NULL;
}

// Compares the rows of one model, before and now. One group may be empty. A model with one version
// before and one now may have replaced it; otherwise each version is compared with itself.
static void compare_groups(struct inf_service *service, const struct row_group *old,
                           const struct row_group *now) INF_ON_LOOP
{
    if (old->count == 1 && now->count == 1) {
        compare_rows(service, old->rows, now->rows);
        return;
    }
    for (uint32_t i = 0; i < now->count; i++)
        compare_rows(service, find_version(old, now->rows[i].version), &now->rows[i]);
    // A row without a version stood for a load that had not chosen its version yet.
    for (uint32_t i = 0; i < old->count; i++)
        if (find_version(now, old->rows[i].version) == NULL &&
            (now->count == 0 || old->rows[i].version[0] != '\0'))
            add_row_event(service, "model_unloaded", &old->rows[i]);
}

void inf_service_watch_models(struct inf_service *service)
{
    struct inf_model_row *rows = service->model_rows;
    struct inf_model_row *old = service->watched_models;
    uint32_t count =
        inf_model_store_list(service->options.store, NULL, rows, INF_SERVICE_MODELS_MAX);
    count = INF_MIN(count, INF_SERVICE_MODELS_MAX);
    uint32_t old_count = service->watched_model_count;
    // Both lists are sorted by name.
    for (uint32_t i = 0, k = 0; i < count || k < old_count;) {
        int order = i == count ? 1 : k == old_count ? -1 : strcmp(rows[i].name, old[k].name);
        struct row_group was = find_group(old + k, order < 0 ? 0 : old_count - k);
        struct row_group now = find_group(rows + i, order > 0 ? 0 : count - i);
        compare_groups(service, &was, &now);
        i += now.count;
        k += was.count;
    }
    memcpy(old, rows, count * sizeof *rows);
    service->watched_model_count = count;
}

// --- the report ---

// Returns the first event after number `after` that the reader is allowed to see; NULL if there is
// none. `admin` is true if the reader is an admin.
static const struct inf_event *next_visible(const struct inf_service *service, bool admin,
                                            uint64_t after) INF_ON_LOOP
{
    const struct inf_event *event;
    while ((event = inf_event_log_next(service->event_log, after)) != NULL && event->admin_only &&
           !admin)
        after = event->number;
    return event;
}

// Returns the event number after which a reader continues: usually `after`. If no event has had the
// number `after`, the number dates from before a restart of the daemon, and the reader begins with
// the first event.
static uint64_t find_after(const struct inf_service *service, uint64_t after) INF_ON_LOOP
{
    return after > inf_event_log_last(service->event_log) ? 0 : after;
}

void inf_service_print_events(const struct inf_service *service,
                              const struct inf_report_reader *reader,
                              struct inf_report_text *report)
{
    const uint64_t now_ns = inf_clock_ns();
    uint64_t after = find_after(service, reader->after);
    const struct inf_event *event = inf_event_log_next(service->event_log, after);
    uint64_t lost = event != NULL ? event->number - after - 1 : 0;
    inf_report_open(report, NULL, '{');
    inf_report_add_number(report, "daemon_started_ns", service->started_ns);
    inf_report_add_number(report, "lost", lost);
    inf_report_open(report, "events", '[');
    // Stop at half of the size limit. The reader gets later events with its next request.
    size_t bytes_max = INF_MIN(reader->reply_bytes_max, INF_REPORT_BYTES_MAX) / 2;
    while (report->size < bytes_max &&
           (event = next_visible(service, reader->admin, after)) != NULL) {
        after = event->number;
        inf_report_open(report, NULL, '{');
        inf_report_add_number(report, "number", event->number);
        inf_report_add_number(report, "age_ns", now_ns - event->at_ns);
        inf_report_add_text(report, "kind", event->kind);
        inf_report_add_text(report, "model", event->model);
        inf_report_add_text(report, "version", event->version);
        inf_report_add_text(report, "device", event->device);
        inf_report_add_text(report, "text", event->text);
        inf_report_close(report, '}');
    }
    inf_report_close(report, ']');
    inf_report_add_number(report, "last",
                          event == NULL ? inf_event_log_last(service->event_log) : after);
    inf_report_close(report, '}');
}

// --- waiting ---

enum inf_code inf_service_begin_wait(struct inf_service *service, const struct inf_request *request,
                                     struct inf_answer *answer, struct inf_fault *fault)
{
    uint64_t after = find_after(service, service->request.report_request.after);
    if (next_visible(service, request->caller->admin, after) != NULL)
        return INF_OK;
    struct inf_event_wait *wait = calloc(1, sizeof *wait);
    if (wait == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a request");
    wait->call.kind = INF_CALL_EVENT;
    wait->accepted_ns = inf_clock_ns();
    wait->after = after;
    wait->admin = request->caller->admin;
    wait->reply_bytes_max = request->reply_bytes_max;
    wait->next = service->event_waits;
    service->event_waits = wait;
    answer->call = &wait->call;
    return INF_OK;
}

struct inf_call *inf_service_next_wait(struct inf_service *service)
{
    // The loop calls this function in every iteration, so it must be cheap if no event was added.
    const uint64_t last = inf_event_log_last(service->event_log);
    if (service->event_waits == NULL || service->waits_checked == last)
        return NULL;
    for (struct inf_event_wait *wait = service->event_waits; wait != NULL; wait = wait->next)
        if (next_visible(service, wait->admin, wait->after) != NULL)
            return &wait->call;
    service->waits_checked = last;
    return NULL;
}

void inf_service_release_wait(struct inf_service *service, struct inf_event_wait *wait)
{
    struct inf_event_wait **link = &service->event_waits;
    while (*link != wait)
        link = &(*link)->next;
    *link = wait->next;
    free(wait);
}
