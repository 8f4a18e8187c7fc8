// SPDX-License-Identifier: Apache-2.0
// What a client waits for: the events of its socket and the next time at which it has something to
// do.
#ifndef INF_CLIENT_LIB_IO_POLL_STATE_H
#define INF_CLIENT_LIB_IO_POLL_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

// Returns the socket and the events to poll for; the descriptor is -1 if the connection has failed.
struct pollfd inf_client_poll_state_socket(const inferd_client *client);

// Returns when the client has to act without an event of the socket (timeouts and retries), as a
// time of inf_client_now_ns(); 0: never.
uint64_t inf_client_poll_state_wake_ns(const inferd_client *client);

// Returns how many milliseconds poll() may wait: until inf_client_poll_state_wake_ns() or
// `until_ns` (0: no limit), whichever is first. -1: without a limit.
int inf_client_poll_state_timeout_ms(const inferd_client *client, uint64_t until_ns);

// Returns whether requests can be sent on another connection only.
bool inf_client_poll_state_needs_connection(const inferd_client *client);

#endif
