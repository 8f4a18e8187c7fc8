// SPDX-License-Identifier: Apache-2.0
// Registers the events of a connection with libevent. A connection has at most one timer, set to
// the earliest of its timeouts: for HELLO, for an incomplete frame or upload, and for replies that
// the client does not read. If libevent cannot watch a connection, the connection is closed,
// because it could be neither served nor timed out.
#include "daemon/connection/watch.h"

#include <event2/event.h>

#include "backends/base/clock.h"
#include "daemon/connection/close.h"
#include "daemon/connection/upload.h"

static void close_unwatched(struct inf_connection *connection) INF_ON_LOOP
{
    inf_log(connection->set->options.log, INF_LOG_WARNING,
            "no memory to watch a client, closing uid=%u", (unsigned)connection->caller.uid);
    inf_connection_close(connection);
}

// Registers the event with libevent or removes it, and records in *state whether it is registered.
static void set_watched(struct inf_connection *connection, struct event *event, bool *state,
                        bool on) INF_ON_LOOP
{
    if (*state == on)
        return;
    if ((on ? event_add(event, NULL) : event_del(event)) == 0)
        *state = on;
    else if (on)
        close_unwatched(connection);
}

void inf_connection_set_reading(struct inf_connection *connection, bool on)
{
    set_watched(connection, connection->read_event, &connection->reading, on);
}

void inf_connection_set_writing(struct inf_connection *connection, bool on)
{
    set_watched(connection, connection->write_event, &connection->writing, on);
}

// Returns the earlier of two times in nanoseconds. If `a` is 0, which means that no time is set,
// returns `b`.
static uint64_t find_earlier(uint64_t a, uint64_t b)
{
    return a == 0 ? b : INF_MIN(a, b);
}

uint64_t inf_connection_waiting_bytes(const struct inf_connection *connection)
{
    return connection->output.bytes + connection->stashed_bytes;
}

uint64_t inf_connection_due_ns(const struct inf_connection *connection)
{
    uint64_t due = 0;
    if (connection->state == INF_CONNECTION_GREETING)
        due = connection->opened_ns + INF_CONNECTION_GREETING_MS * INF_NS_PER_MS;
    if (connection->frame_since_ns != 0)
        due = find_earlier(due, connection->frame_since_ns + INF_LIMIT_FRAME_MS * INF_NS_PER_MS);
    if (connection->oldest_upload != NULL)
        due = find_earlier(due, inf_connection_uploads_due_ns(connection));
    uint64_t timeout_ns = (uint64_t)connection->set->options.config->reply_soft_ms * INF_NS_PER_MS;
    if (connection->output.first_since_ns != 0)
        due = find_earlier(due, connection->output.first_since_ns + timeout_ns);
    if (connection->soft_since_ns != 0)
        due = find_earlier(due, connection->soft_since_ns + timeout_ns);
    return due;
}

void inf_connection_watch(struct inf_connection *connection)
{
    if (connection->state == INF_CONNECTION_OVER)
        return;
    uint64_t due = inf_connection_due_ns(connection);
    if (due == 0 || (connection->timer_ns != 0 && connection->timer_ns <= due))
        return;
    uint64_t now = inf_clock_ns();
    uint64_t wait_us = due > now ? (due - now + 999) / 1000 : 0;
    struct timeval wait = {.tv_sec = (time_t)(wait_us / 1000000),
                           .tv_usec = (suseconds_t)(wait_us % 1000000)};
    if (event_add(connection->timer_event, &wait) == 0)
        connection->timer_ns = due;
    else
        close_unwatched(connection);
}
