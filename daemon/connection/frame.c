// SPDX-License-Identifier: Apache-2.0
// The state machine of a connection: one frame, one transition.
//
//   GREETING --HELLO accepted--> OPEN --protocol error--> CLOSING --all written--> OVER
//      |                          |                                                ^
//      +--bad HELLO, timeout--> CLOSING    client disconnects, no memory: any ------+
//
// GREETING takes HELLO only. OPEN takes every frame that clients may send. CLOSING and OVER ignore
// frames. A frame that a client must not send fails the connection; a request that fails is only
// answered.
#include "daemon/connection/frame.h"

#include "daemon/connection/accept.h"
#include "daemon/connection/fail.h"
#include "daemon/connection/hello.h"
#include "daemon/connection/region_frame.h"
#include "daemon/connection/reply.h"
#include "daemon/connection/request.h"

static void answer_ping(struct inf_connection *connection,
                        const struct inf_frame *frame) INF_ON_LOOP
{
    const struct inf_reply reply = {.type = INF_FRAME_PONG,
                                    .stream_id = frame->header.stream_id,
                                    .pending_plus_1 = connection->frame_pending_plus_1};
    inf_connection_send(connection, &reply, INF_MESSAGE_EMPTY, NULL);
}

static void take_open_frame(struct inf_connection *connection, struct inf_frame *frame) INF_ON_LOOP
{
    struct inf_error err;
    switch (frame->header.type) {
    case INF_FRAME_REQUEST:
        inf_connection_take_request(connection, frame);
        break;
    case INF_FRAME_DATA:
        inf_connection_take_data(connection, frame);
        break;
    case INF_FRAME_CANCEL:
        inf_connection_take_cancel(connection, frame);
        break;
    case INF_FRAME_MEM_REGISTER:
        inf_connection_register_region(connection, frame);
        break;
    case INF_FRAME_MEM_ALLOC:
        inf_connection_allocate_region(connection, frame);
        break;
    case INF_FRAME_MEM_UNREGISTER:
        inf_connection_unregister_region(connection, frame);
        break;
    case INF_FRAME_PING:
        answer_ping(connection, frame);
        break;
    case INF_FRAME_PONG:
        break;
    case INF_FRAME_HELLO:
        (void)inf_connection_refuse_frame(frame, "came again, wanted once", &err);
        inf_connection_fail(connection, &err);
        break;
    case INF_FRAME_HELLO_ACK:
    case INF_FRAME_RESPONSE:
    case INF_FRAME_MEM_REGISTERED:
    case INF_FRAME_MEM_RELEASED:
    case INF_FRAME_GOAWAY:
    case INF_FRAME_ERROR:
    case INF_FRAME_CREDIT:
        (void)inf_connection_refuse_frame(frame, "only the server sends this type", &err);
        inf_connection_fail(connection, &err);
        break;
    default:
        // Ignore a frame whose type this daemon does not know; it belongs to a later minor version
        // of the protocol. The assembler has already checked that the type may be ignored.
        break;
    }
}

void inf_connection_take_frame(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    switch (connection->state) {
    case INF_CONNECTION_GREETING:
        inf_connection_take_hello(connection, frame);
        break;
    case INF_CONNECTION_OPEN:
        inf_connection_accept_frame(connection, frame);
        take_open_frame(connection, frame);
        connection->frame_pending_plus_1 = 0;
        break;
    case INF_CONNECTION_CLOSING:
    case INF_CONNECTION_OVER:
        break;
    }
    inf_pool_release(set->options.pool, frame->data, frame->header.data_bytes);
    for (uint32_t i = 0; i < frame->fd_count; i++)
        inf_deferred_close_fd(set->options.deferred_close, frame->fds[i], connection->user);
}
