// SPDX-License-Identifier: Apache-2.0
// Sending frames to a client.
#ifndef INF_DAEMON_CONNECTION_REPLY_H
#define INF_DAEMON_CONNECTION_REPLY_H

#include "daemon/connection/state.h"

// A frame to be sent to the client: all but its metadata, which the caller passes separately.
struct inf_reply {
    uint8_t type;
    uint16_t flags;
    uint16_t method;
    uint64_t stream_id;
    uint64_t order_key; // if this is a final reply: order key of the request; otherwise 0
    // Entry of the send log that this frame answers, plus 1; 0: none.
    uint32_t pending_plus_1;
    // The data bytes of the frame: in `buffer`, or in the buffer of a later frame of the same
    // reply.
    struct inf_span data;
    uint8_t *buffer; // pool buffer that holds `data`; the callee takes ownership; NULL: none
    size_t capacity;
    // Descriptor to send with the frame, plus 1; the callee closes the descriptor; 0: none.
    int fd_plus_1;
};

// Returns the final reply of a call, without its data.
static inline struct inf_reply inf_reply_of(const struct inf_call *call)
{
    return (struct inf_reply){.stream_id = call->stream_id,
                              .method = call->method,
                              .order_key = call->order_key,
                              .pending_plus_1 = call->pending_plus_1};
}

// Encodes and queues a frame. If the metadata does not fit into a frame, sends a Status message
// with this error instead. If memory is exhausted, closes the connection.
void inf_connection_send(struct inf_connection *connection, const struct inf_reply *reply,
                         enum inf_message_kind kind, const union inf_message *message) INF_ON_LOOP;

// Sends `fault` as a Status message, like inf_connection_send(). Adds INF_FRAME_FLAG_ERROR.
void inf_connection_send_fault(struct inf_connection *connection, const struct inf_reply *reply,
                               const struct inf_fault *fault) INF_ON_LOOP;

// Sends the final reply of a request: the error in `fault`, or `answer` if `fault` is NULL. Also
// updates the counters of answered and failed requests.
void inf_connection_answer(struct inf_connection *connection, const struct inf_reply *reply,
                           const struct inf_answer *answer,
                           const struct inf_fault *fault) INF_ON_LOOP;

// Marks the connection as having queued frames, which the next inf_connections_flush() writes.
void inf_connection_mark_dirty(struct inf_connection *connection) INF_ON_LOOP;

// Sends a MEM_RELEASED frame for every region released since the last call of this function.
void inf_connection_report_released(struct inf_connection *connection) INF_ON_LOOP;

#endif
