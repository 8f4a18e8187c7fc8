// SPDX-License-Identifier: Apache-2.0
// Ending a call before it is done.
#ifndef INF_DAEMON_CONNECTION_END_CALL_H
#define INF_DAEMON_CONNECTION_END_CALL_H

#include "daemon/connection/state.h"

// Why a call ends before it is done.
enum inf_call_end {
    INF_CALL_END_CANCEL,   // the client cancelled the call
    INF_CALL_END_ADMIN,    // an admin cancelled the call
    INF_CALL_END_USER,     // another connection of the same user cancelled the call
    INF_CALL_END_DEADLINE, // the deadline of the call passed
    INF_CALL_END_SHUTDOWN, // the daemon stops
};

// Withdraws a call and sends its reply, unless a worker is writing the reply or has written it.
void inf_connection_end_call(struct inf_connection *connection, struct inf_call *call,
                             enum inf_call_end end) INF_ON_LOOP;

#endif
