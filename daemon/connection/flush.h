// SPDX-License-Identifier: Apache-2.0
// Writing queued frames.
#ifndef INF_DAEMON_CONNECTION_FLUSH_H
#define INF_DAEMON_CONNECTION_FLUSH_H

#include "daemon/connection/state.h"

// Writes queued frames, selects the next events to wait for, and ends a connection whose client
// does not read.
void inf_connection_flush(struct inf_connection *connection) INF_ON_LOOP;

// Replies to the Report requests that waited for an event, if such an event was added.
void inf_connections_answer_waits(struct inf_connections *connections) INF_ON_LOOP;

// Hands requests that waited for their model to the service again, if the model may be loaded now.
void inf_connections_begin_waiting(struct inf_connections *connections) INF_ON_LOOP;

// Ends the connection of a client that reads too slowly or not at all. Frames of which no byte is
// written are dropped and replaced by one ERROR frame.
void inf_connection_end_slow_reader(struct inf_connection *connection) INF_ON_LOOP;

#endif
