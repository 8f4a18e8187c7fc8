// SPDX-License-Identifier: Apache-2.0
// Closing happens in two steps. inf_connection_close() releases everything that the connection
// holds, and may be called inside any callback. The memory of the connection is freed only by
// inf_connections_flush() at the end of the callback, so that the callers of
// inf_connection_close() may still read its fields.
#include "daemon/connection/close.h"

#include <event2/event.h>
#include <stdlib.h>

#include "daemon/connection/call.h"
#include "daemon/connection/kept.h"
#include "daemon/connection/order.h"
#include "daemon/connection/upload.h"

void inf_connection_free(struct inf_connection *connection)
{
    if (connection->read_event != NULL)
        event_free(connection->read_event);
    if (connection->write_event != NULL)
        event_free(connection->write_event);
    if (connection->timer_event != NULL)
        event_free(connection->timer_event);
    if (connection->user != NULL) {
        inf_quota_refund(connection->user, INF_QUOTA_CONNECTIONS, 1);
        if (connection->socket_charged)
            inf_quota_refund(connection->user, INF_QUOTA_FDS, 1);
    }
    inf_quota_unref(&connection->user);
    inf_reply_writer_unref(&connection->writer);
    inf_caller_fini(&connection->caller);
    free(connection);
}

void inf_connection_close(struct inf_connection *connection)
{
    struct inf_connections *set = connection->set;
    if (connection->state == INF_CONNECTION_OVER)
        return;
    connection->state = INF_CONNECTION_OVER;
    inf_connection_abandon_calls(connection);
    inf_service_note_gone(set->options.service, connection->id);
    inf_connection_drop_uploads(connection);
    inf_session_table_fini(&connection->sessions);
    inf_region_table_fini(&connection->regions);
    inf_connection_order_clear(connection);
    inf_output_clear(&connection->output, &set->output_store);
    inf_assembler_fini(&connection->assembler);
    // Remove the events before the descriptor is closed: its number may soon belong to another
    // connection.
    event_del(connection->read_event);
    event_del(connection->write_event);
    event_del(connection->timer_event);
    if (set->ending && inf_connection_is_kept(connection))
        inf_reply_writer_keep_open(connection->writer);
    inf_reply_writer_close(connection->writer);
    inf_connection_end_keeping(connection);

    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        set->all = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
    set->options.counters->connections--;
    connection->next_over = set->over;
    set->over = connection;
}
