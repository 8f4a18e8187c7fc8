// SPDX-License-Identifier: Apache-2.0
// The callbacks of libevent for a connection.
#ifndef INF_DAEMON_CONNECTION_IO_H
#define INF_DAEMON_CONNECTION_IO_H

#include "daemon/connection/state.h"

// The socket is readable. `context` is the connection.
void inf_connection_on_readable(int fd, short what, void *context);
// The socket is writable. `context` is the connection.
void inf_connection_on_writable(int fd, short what, void *context);
// The timer of the connection fired. `context` is the connection.
void inf_connection_on_timer(int fd, short what, void *context);

// Handles bytes that were read, and all frames that end in them. `bytes` lies in the read buffer of
// the connection, or is empty if the bytes were read to where the assembler wants them.
void inf_connection_feed(struct inf_connection *connection, struct inf_span bytes) INF_ON_LOOP;

#endif
