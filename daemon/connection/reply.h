// SPDX-License-Identifier: Apache-2.0
// Sending frames to a client.
#ifndef INF_DAEMON_CONNECTION_REPLY_H
#define INF_DAEMON_CONNECTION_REPLY_H

#include "daemon/connection/state.h"

// A frame to be sent, without its metadata.
struct inf_reply {
    uint8_t type;
    uint16_t flags;
    uint16_t method;
    uint64_t stream_id;
    uint64_t order_key; // order key of the request, for its final reply; else 0
    // The data bytes; must stay valid as long as `data` in struct inf_output_item requires.
    struct inf_span data;
    uint8_t *buffer; // a buffer of the buffer pool; the callee takes ownership; NULL: none
    size_t capacity;
    // Descriptor to send with the frame, plus 1; the callee closes the descriptor; 0: none.
    int fd_plus_1;
};

// Encodes and queues a frame. If the metadata does not fit, a Status with that error is sent
// instead. If there is no memory, the connection is closed.
void inf_connection_send(struct inf_connection *connection, const struct inf_reply *reply,
                         enum inf_message_kind kind, const union inf_message *message) INF_ON_LOOP;

// Sends a Status made from `fault`, like inf_connection_send(). INF_FRAME_FLAG_ERROR is added.
void inf_connection_send_fault(struct inf_connection *connection, const struct inf_reply *reply,
                               const struct inf_fault *fault) INF_ON_LOOP;

// Sends the final reply of a request: the error in `fault`, or `answer` if `fault` is NULL. Also
// updates the counters of answered and failed requests.
void inf_connection_answer(struct inf_connection *connection, const struct inf_reply *reply,
                           const struct inf_answer *answer,
                           const struct inf_fault *fault) INF_ON_LOOP;

// Marks the connection to be flushed by the next inf_connections_flush().
void inf_connection_mark_dirty(struct inf_connection *connection) INF_ON_LOOP;

// Sends MEM_RELEASED for every region that was released since the last call.
void inf_connection_report_released(struct inf_connection *connection) INF_ON_LOOP;

#endif
