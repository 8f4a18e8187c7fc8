// SPDX-License-Identifier: Apache-2.0
// The calls of a connection. A call is a request that the service could not answer at once. Each
// call is linked to its connection, charged to its user, and answered exactly once.
#ifndef INF_DAEMON_CONNECTION_CALL_H
#define INF_DAEMON_CONNECTION_CALL_H

#include "daemon/connection/state.h"

// Links a new call into connection->calls, the calls in flight on this connection.
void inf_connection_link_call(struct inf_connection *connection, struct inf_call *call) INF_ON_LOOP;

// Removes a call from connection->calls.
void inf_connection_unlink_call(struct inf_connection *connection,
                                struct inf_call *call) INF_ON_LOOP;

// Records that the final reply of a call is queued or written. Called exactly once for each call.
void inf_connection_mark_answered(struct inf_connection *connection,
                                  struct inf_call *call) INF_ON_LOOP;

// Charges a request with this number of data bytes to the quota of the connection's user.
//
// INF_EXHAUSTED  the user has too many requests, or too much data, in flight.
enum inf_code inf_connection_charge(struct inf_connection *connection, uint64_t bytes,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Refunds what inf_connection_charge() took from a user.
void inf_connection_refund(struct inf_quota_user *payer, uint64_t bytes) INF_ON_LOOP;

// Fails if one more request with this number of data bytes would exceed the credit of the
// connection.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS, QUOTA_BYTES); fault->retry_after_ms is set.
enum inf_code inf_connection_check_credit(const struct inf_connection *connection, uint64_t bytes,
                                          struct inf_fault *fault) INF_NODISCARD;

// Asks the worker to stop computing a call. The worker still writes the reply of the call. If
// `abandon` is set, the call is also removed from the connection, as if it were answered.
void inf_connection_leave_call(struct inf_connection *connection, struct inf_call *call,
                               bool abandon) INF_ON_LOOP;

// Takes a call, which is not linked to a connection, back from the scheduler. Returns true if this
// freed and refunded the call, and false if a worker still runs it and will return it later.
bool inf_connection_withdraw_call(struct inf_connection *connection,
                                  struct inf_call *call) INF_ON_LOOP;

// Ends every call of the connection without a reply, because no reply can reach the client.
void inf_connection_abandon_calls(struct inf_connection *connection) INF_ON_LOOP;

// Frees a call that is done. Gives the bytes and requests that it held back to the quota of its
// user, and charges the device time of its run to the user.
void inf_connection_release_call(struct inf_connections *connections,
                                 struct inf_call *call) INF_ON_LOOP;

#endif
