// SPDX-License-Identifier: Apache-2.0
// The queue of frames that have not been written to the socket yet.
#ifndef INF_CLIENT_LIB_IO_SEND_QUEUE_H
#define INF_CLIENT_LIB_IO_SEND_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/inferd.h"
#include "client/lib/io/outgoing.h"
#include "proto/core/status.h"
#include "proto/wire/frame.h"
#include "proto/wire/message.h"

struct inf_client_send_queue {
    struct inf_client_outgoing *head, **tail;
    bool failed; // true: the socket accepts no further bytes, so new frames are dropped
};

// Writes the header before the metadata and appends the frame to the queue. The sizes and the
// number of descriptors in `header` are set from the frame. Never writes to the socket.
void inf_client_send_queue_push(inferd_client *client, struct inf_client_outgoing *outgoing,
                                struct inf_frame_header header);

// Appends a request. If its data exceed one frame, the first of the data are queued in DATA frames
// before the REQUEST frame, which has the last of them.
//
// INF_EXHAUSTED  there is no memory; some of the DATA frames may have been queued.
enum inf_code inf_client_send_queue_push_request(inferd_client *client,
                                                 struct inf_client_outgoing *outgoing,
                                                 struct inf_frame_header header,
                                                 struct inf_error *err) INF_NODISCARD;

// Appends a small frame whose message is client->control. Takes ownership of `fd` (-1: none), also
// on failure.
enum inf_code inf_client_send_queue_push_control(inferd_client *client,
                                                 struct inf_frame_header header,
                                                 enum inf_message_kind kind, int fd,
                                                 struct inf_error *err) INF_NODISCARD;

// Returns the maximum bytes of data in one frame.
size_t inf_client_send_queue_frame_data_max(const inferd_client *client);

// Returns the maximum bytes of data of one request in all its frames.
size_t inf_client_send_queue_request_data_max(const inferd_client *client);

// Writes as many bytes as the socket accepts. Never blocks.
void inf_client_send_queue_flush(inferd_client *client);

// Drops all queued frames and clears `failed`.
void inf_client_send_queue_reset(inferd_client *client);

#endif
