// SPDX-License-Identifier: Apache-2.0
// The rounds that drive a client: read, check timeouts, retry, write, call callbacks.
#ifndef INF_CLIENT_LIB_EVENT_LOOP_H
#define INF_CLIENT_LIB_EVENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

// Calls the callbacks of calls that have ended. Returns false if no call had ended.
bool inf_client_event_loop_dispatch(inferd_client *client);

// Runs one round of the event loop: read, check timeouts, retry, write, call callbacks. Never
// blocks.
void inf_client_event_loop_run_once(inferd_client *client);

// Blocks until the socket is ready, or until `until_ns` (0: no limit), and runs a round. If a
// background thread serves the client, blocks until that thread has run a round. Returns false if
// there is nothing to wait for, because the time is over, the connection has failed, or the client
// has been closed.
bool inf_client_event_loop_wait(inferd_client *client, uint64_t until_ns);

#endif
