// SPDX-License-Identifier: Apache-2.0
// The events that a connection waits for: readable, writable, and the timer of the next timeout.
#ifndef INF_DAEMON_CONNECTION_WATCH_H
#define INF_DAEMON_CONNECTION_WATCH_H

#include "daemon/connection/state.h"

// Starts or stops reading from the socket.
void inf_connection_set_reading(struct inf_connection *connection, bool on) INF_ON_LOOP;

// Starts or stops waiting until the socket is writable.
void inf_connection_set_writing(struct inf_connection *connection, bool on) INF_ON_LOOP;

// Returns how many bytes of replies are queued because the client has not read them.
uint64_t inf_connection_waiting_bytes(const struct inf_connection *connection);

// Returns the time at which the connection's earliest timeout expires; 0: no timeout runs.
uint64_t inf_connection_due_ns(const struct inf_connection *connection);

// Sets the timer if it would otherwise fire after the earliest timeout. A timer that fires too
// early is harmless, because its callback sets it again; so the timer is not moved for every frame.
void inf_connection_watch(struct inf_connection *connection) INF_ON_LOOP;

#endif
