// SPDX-License-Identifier: Apache-2.0
// HELLO, the first frame of a client, and CREDIT frames, which change the limits granted in it.
#ifndef INF_DAEMON_CONNECTION_HELLO_H
#define INF_DAEMON_CONNECTION_HELLO_H

#include "daemon/connection/state.h"

// Handles the first frame of a connection, which must be HELLO.
void inf_connection_take_hello(struct inf_connection *connection,
                               struct inf_frame *frame) INF_ON_LOOP;

// Sends a CREDIT frame to every client whose credit changed since the last CREDIT frame.
void inf_connections_adjust_credit(struct inf_connections *connections) INF_ON_LOOP;

// Fills `err` for a frame that the client must not send in the present state of the connection. The
// text is "NAME frame: `wanted`".
enum inf_code inf_connection_refuse_frame(const struct inf_frame *frame, const char *wanted,
                                          struct inf_error *err);

#endif
