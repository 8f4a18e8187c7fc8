// SPDX-License-Identifier: Apache-2.0
// Closing a connection.
#ifndef INF_DAEMON_CONNECTION_CLOSE_H
#define INF_DAEMON_CONNECTION_CLOSE_H

#include "daemon/connection/state.h"

// Closes the connection for good: withdraws its calls and releases its sessions and regions. The
// next inf_connections_flush() frees the memory.
void inf_connection_close(struct inf_connection *connection) INF_ON_LOOP;

// Frees a closed connection, or one that was never added to struct inf_connections.
void inf_connection_free(struct inf_connection *connection) INF_ON_LOOP;

#endif
