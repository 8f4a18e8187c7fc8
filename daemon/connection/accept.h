// SPDX-License-Identifier: Apache-2.0
// Which frames of a kept connection this process answers, and which it leaves to the next one.
#ifndef INF_DAEMON_CONNECTION_ACCEPT_H
#define INF_DAEMON_CONNECTION_ACCEPT_H

#include "daemon/connection/state.h"

// Accepts a frame: from here on, the client gets one answer to it, from this process or from the
// next one. Sets connection->frame_pending_plus_1.
void inf_connection_accept_frame(struct inf_connection *connection,
                                 const struct inf_frame *frame) INF_ON_LOOP;

// Stops reading from a kept connection while the daemon drains, unless a frame or the data of a
// request has come in part. What is not read stays in the socket for the next process.
void inf_connection_pause(struct inf_connection *connection) INF_ON_LOOP;

// Returns the most bytes that may be read at once: while the daemon drains, those of the frame that
// has come in part.
size_t inf_connection_read_limit(const struct inf_connection *connection, size_t size) INF_ON_LOOP;

#endif
