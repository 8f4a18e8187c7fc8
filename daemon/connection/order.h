// SPDX-License-Identifier: Apache-2.0
// Order keys: final replies of requests with the same key are sent in the order of the requests.
#ifndef INF_DAEMON_CONNECTION_ORDER_H
#define INF_DAEMON_CONNECTION_ORDER_H

#include "daemon/connection/state.h"

// Notes that a request with an order key has come. False without memory.
bool inf_connection_order_begin(struct inf_connection *connection, uint64_t stream_id,
                                uint64_t order_key) INF_NODISCARD INF_ON_LOOP;

// Where the final reply of such a request goes: the connection's output where no other of its key
// is before it, else a stash.
struct inf_output *inf_connection_order_place(struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// That reply is where it goes: it and what waited for it is on its way now.
void inf_connection_order_end(struct inf_connection *connection, uint64_t stream_id) INF_ON_LOOP;

// Forgets every key and stash.
void inf_connection_order_clear(struct inf_connection *connection) INF_ON_LOOP;

// Frees what is kept for later requests.
void inf_connections_order_fini(struct inf_connections *connections);

#endif
