// SPDX-License-Identifier: Apache-2.0
// Order keys: final replies of requests with the same key leave in the order of these requests.
#ifndef INF_DAEMON_CONNECTION_ORDER_H
#define INF_DAEMON_CONNECTION_ORDER_H

#include "daemon/connection/state.h"

// Records a request that has an order key. Returns false if memory is exhausted.
bool inf_connection_order_begin(struct inf_connection *connection, uint64_t stream_id,
                                uint64_t order_key) INF_NODISCARD INF_ON_LOOP;

// Returns the queue for the final reply of a request with an order key: the output of the
// connection if the request is the oldest unanswered one with its key, else a stash in which the
// reply waits.
struct inf_output *inf_connection_order_place(struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// Records that the final reply of this stream is queued. If the stream was the oldest unanswered
// one with its key, the stashed replies that waited for it are queued too.
void inf_connection_order_end(struct inf_connection *connection, uint64_t stream_id) INF_ON_LOOP;

// Forgets all order keys of the connection, and drops the replies that wait in stashes.
void inf_connection_order_clear(struct inf_connection *connection) INF_ON_LOOP;

// Frees the struct inf_ordered entries that struct inf_connections keeps for reuse.
void inf_connections_order_fini(struct inf_connections *connections);

#endif
