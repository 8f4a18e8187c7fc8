// SPDX-License-Identifier: Apache-2.0
// Lets the service list the connections and their requests, and end one of them.
#ifndef INF_DAEMON_CONNECTION_ACTIVITY_H
#define INF_DAEMON_CONNECTION_ACTIVITY_H

#include "daemon/connection/state.h"

// Gives the service the functions that list and end the connections of this set and their requests
// (struct inf_client_directory).
void inf_connections_publish(struct inf_connections *connections);

#endif
