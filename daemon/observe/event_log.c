// SPDX-License-Identifier: Apache-2.0
// Keeps the events in a ring: event number N is element N modulo INF_EVENT_LOG_EVENTS.
#include "daemon/observe/event_log.h"

#include <stdlib.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

struct inf_event_log {
    uint64_t last;
    struct inf_event events[INF_EVENT_LOG_EVENTS];
};

enum inf_code inf_event_log_create(struct inf_event_log **out_log, struct inf_error *err)
{
    *out_log = calloc(1, sizeof **out_log);
    return *out_log != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for events");
}

void inf_event_log_destroy(struct inf_event_log **log)
{
    free(*log);
    *log = NULL;
}

void inf_event_log_add(struct inf_event_log *log, const struct inf_event *event)
{
    struct inf_event *to = &log->events[++log->last % INF_EVENT_LOG_EVENTS];
    *to = *event;
    to->number = log->last;
    to->at_ns = inf_clock_ns();
}

uint64_t inf_event_log_last(const struct inf_event_log *log)
{
    return log->last;
}

const struct inf_event *inf_event_log_next(const struct inf_event_log *log, uint64_t after)
{
    uint64_t oldest = log->last - INF_MIN(log->last, INF_EVENT_LOG_EVENTS);
    uint64_t before = INF_MAX(after, oldest);
    return before < log->last ? &log->events[(before + 1) % INF_EVENT_LOG_EVENTS] : NULL;
}
