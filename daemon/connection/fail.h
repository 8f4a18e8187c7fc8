// SPDX-License-Identifier: Apache-2.0
// Ending a connection because of an error.
#ifndef INF_DAEMON_CONNECTION_FAIL_H
#define INF_DAEMON_CONNECTION_FAIL_H

#include "daemon/connection/state.h"

// Sends the client an ERROR frame that describes its mistake, and closes the connection after the
// frame is written.
void inf_connection_fail(struct inf_connection *connection,
                         const struct inf_error *err) INF_ON_LOOP;

#endif
