// SPDX-License-Identifier: Apache-2.0
// Order keys: final replies of requests with the same key are sent in the order of the requests.
#ifndef INF_DAEMON_CONNECTION_ORDER_H
#define INF_DAEMON_CONNECTION_ORDER_H

#include "daemon/connection/state.h"

// Records a request that has an order key. Returns false if memory is exhausted.
bool inf_connection_order_begin(struct inf_connection *connection, uint64_t stream_id,
                                uint64_t order_key) INF_NODISCARD INF_ON_LOOP;

// Returns the queue for the final reply of a request with an order key: the output of the
// connection if the request is the first with its key, else a stash.
struct inf_output *inf_connection_order_place(struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// Records that the final reply is queued. If the request was the first with its key, the stashed
// replies behind it are queued too.
void inf_connection_order_end(struct inf_connection *connection, uint64_t stream_id) INF_ON_LOOP;

// Drops all keys and stashes.
void inf_connection_order_clear(struct inf_connection *connection) INF_ON_LOOP;

// Frees the unused struct inf_ordered entries that the set keeps for later requests.
void inf_connections_order_fini(struct inf_connections *connections);

#endif
