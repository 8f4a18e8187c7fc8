// SPDX-License-Identifier: Apache-2.0
// Writes the output of connections, with back-pressure in two steps: above a soft limit of unread
// replies the daemon stops reading from the client; above a hard limit, or after a timeout, the
// daemon ends the connection.
#include "daemon/connection/flush.h"

#include <inttypes.h>

#include "backends/base/clock.h"
#include "daemon/connection/close.h"
#include "daemon/connection/fail.h"
#include "daemon/connection/kept.h"
#include "daemon/connection/reply.h"
#include "daemon/connection/watch.h"

void inf_connection_end_slow_reader(struct inf_connection *connection)
{
    struct inf_connections *set = connection->set;
    struct inf_error err;
    uint64_t bytes = inf_connection_waiting_bytes(connection);
    inf_log(set->options.log, INF_LOG_INFO, "client does not read, closing uid=%u bytes=%" PRIu64,
            (unsigned)connection->caller.uid, bytes);
    if (connection->state > INF_CONNECTION_OPEN) {
        inf_connection_close(connection);
        return;
    }
    inf_output_drop_unsent(&connection->output, &set->output_store);
    connection->soft_since_ns = 0;
    inf_fail_reason(&err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                    "%" PRIu64 " bytes of replies were not read in time", bytes);
    inf_connection_fail(connection, &err);
}

void inf_connection_flush(struct inf_connection *connection)
{
    struct inf_output *output = &connection->output;
    if (connection->state == INF_CONNECTION_OVER)
        return;
    enum inf_output_state state = INF_OUTPUT_EMPTY;
    if (output->first != NULL || connection->state == INF_CONNECTION_CLOSING) {
        if (!inf_reply_writer_enter_loop(connection->writer))
            return;
        state = inf_output_flush(output, &connection->set->output_store, connection->fd,
                                 connection->kept != NULL ? connection->kept->log : NULL);
        if (state == INF_OUTPUT_EMPTY)
            inf_reply_writer_leave_loop(connection->writer);
    }
    if (state == INF_OUTPUT_BROKEN ||
        (state == INF_OUTPUT_EMPTY && connection->state == INF_CONNECTION_CLOSING)) {
        inf_connection_close(connection);
        return;
    }
    inf_connection_set_writing(connection, state == INF_OUTPUT_BLOCKED);
    if (connection->state == INF_CONNECTION_OVER)
        return;
    const struct inf_config *config = connection->set->options.config;
    bool open = connection->state <= INF_CONNECTION_OPEN;
    uint64_t bytes = inf_connection_waiting_bytes(connection);
    if (open && bytes > config->reply_bytes_hard_max) {
        // This call also marks the connection as dirty, so that the next inf_connections_flush()
        // writes the ERROR frame.
        inf_connection_end_slow_reader(connection);
        return;
    }
    // Back-pressure: read no more requests from a client that does not read its replies.
    if (bytes > config->reply_bytes_soft_max)
        inf_connection_set_reading(connection, false);
    else if (bytes <= config->reply_bytes_soft_max / 2)
        inf_connection_set_reading(connection, open && !connection->paused);
    if (!open || bytes <= config->reply_bytes_soft_max)
        connection->soft_since_ns = 0;
    else if (connection->soft_since_ns == 0)
        connection->soft_since_ns = inf_clock_ns();
    inf_connection_watch(connection);
    inf_connection_keep(connection);
}

void inf_connections_flush(struct inf_connections *connections)
{
    inf_connections_begin_waiting(connections);
    inf_connections_answer_waits(connections);
    while (connections->dirty != NULL) {
        struct inf_connection *connection = connections->dirty;
        connections->dirty = connection->next_dirty;
        connection->dirty = false;
        inf_connection_flush(connection);
    }
    while (connections->over != NULL) {
        struct inf_connection *closed = connections->over;
        connections->over = closed->next_over;
        inf_connection_free(closed);
    }
}
