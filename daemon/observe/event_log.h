// SPDX-License-Identifier: Apache-2.0
// Remembers the last events of the daemon by number. A reader asks for the events after the last
// number that it has seen, so it can continue after it was disconnected. There is no queue for each
// reader: a reader that is too slow learns how many events it has missed. Only the loop uses this
// log.
#ifndef INF_DAEMON_OBSERVE_EVENT_LOG_H
#define INF_DAEMON_OBSERVE_EVENT_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// The number of events that are remembered; a new event replaces the oldest one. Loading a model
// makes up to two events.
#define INF_EVENT_LOG_EVENTS 512u

struct inf_event {
    uint64_t number;  // from 1, without gaps
    uint64_t at_ns;   // time of the event, on the clock of inf_clock_ns()
    const char *kind; // a constant such as "model_ready"
    char model[INF_LIMIT_MODEL_NAME + 1], version[INF_LIMIT_MODEL_NAME + 1], device[32];
    char text[192];  // details, such as the reason of a failure; "": none
    bool admin_only; // only admins are allowed to read the event
};

struct inf_event_log;

// Creates an empty log. The caller destroys *out_log.
enum inf_code inf_event_log_create(struct inf_event_log **out_log,
                                   struct inf_error *err) INF_NODISCARD;

// Frees the log. NULL is allowed.
void inf_event_log_destroy(struct inf_event_log **log);

// Adds an event. The log sets its number and time.
void inf_event_log_add(struct inf_event_log *log, const struct inf_event *event) INF_ON_LOOP;

// Returns the number of the last event; 0: there was none.
uint64_t inf_event_log_last(const struct inf_event_log *log) INF_ON_LOOP;

// Returns the first remembered event whose number is greater than `after`; NULL if there is none.
const struct inf_event *inf_event_log_next(const struct inf_event_log *log,
                                           uint64_t after) INF_ON_LOOP;

#endif
