// SPDX-License-Identifier: Apache-2.0
// Ends the connection after a protocol error: abandons the calls, stops reading, and sends an ERROR
// frame as the last frame.
#include "daemon/connection/fail.h"

#include "daemon/connection/call.h"
#include "daemon/connection/reply.h"
#include "daemon/connection/upload.h"
#include "daemon/connection/watch.h"

void inf_connection_fail(struct inf_connection *connection, const struct inf_error *err)
{
    struct inf_connections *set = connection->set;
    if (connection->state > INF_CONNECTION_OPEN)
        return;
    inf_log(set->options.log, INF_LOG_DEBUG, "closing connection uid=%u error=\"%s\"",
            (unsigned)connection->caller.uid, err->text);
    // The ERROR frame is the last one of a connection, so calls in flight cannot be answered after
    // it.
    inf_connection_abandon_calls(connection);
    inf_connection_drop_uploads(connection);
    inf_connection_set_reading(connection, false);
    connection->frame_since_ns = 0;
    connection->state = INF_CONNECTION_CLOSING;
    const struct inf_reply reply = {.type = INF_FRAME_ERROR};
    struct inf_fault fault;
    inf_fault_init(&fault);
    fault.err = *err;
    fault.phase = "frame";
    inf_connection_send_fault(connection, &reply, &fault);
}
