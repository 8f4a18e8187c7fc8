// SPDX-License-Identifier: Apache-2.0
// The events of the socket that a client waits for, and the next time at which the client must act.
#ifndef INF_CLIENT_LIB_IO_POLL_STATE_H
#define INF_CLIENT_LIB_IO_POLL_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/inferd.h"

// Returns the socket and the events to poll for; the descriptor is -1 if the connection has failed.
struct pollfd inf_client_poll_state_socket(const inferd_client *client);

// Returns the time at which the client has to act without an event of the socket (timeouts and
// retries), on the clock of inf_client_now_ns(); 0: never.
uint64_t inf_client_poll_state_wake_ns(const inferd_client *client);

// Returns how many milliseconds poll() may wait: until inf_client_poll_state_wake_ns() or
// `until_ns` (0: no limit), whichever is first. Returns -1 if there is no limit.
int inf_client_poll_state_timeout_ms(const inferd_client *client, uint64_t until_ns);

// Returns whether the current connection takes no requests (it has failed or is draining), so that
// the client must connect again before it can send a request.
bool inf_client_poll_state_needs_connection(const inferd_client *client);

#endif
