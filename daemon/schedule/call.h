// SPDX-License-Identifier: Apache-2.0
// A request whose answer comes later: what a connection keeps of it. The loop's.
#ifndef INF_DAEMON_SCHEDULE_CALL_H
#define INF_DAEMON_SCHEDULE_CALL_H

#include <stdbool.h>
#include <stdint.h>

struct inf_connection;
struct inf_quota_user;

enum inf_call_kind {
    INF_CALL_INFER, // a struct inf_job
    INF_CALL_LOAD,  // a struct inf_load
};

// First member of what it is a call of.
struct inf_call {
    enum inf_call_kind kind;
    struct inf_connection *connection; // NULL: the client is gone
    uint64_t stream_id;
    uint16_t method;
    uint64_t order_key;               // 0: none
    struct inf_quota_user *payer;     // a reference: who is charged for it, until it is released
    uint64_t paid_bytes;              // of its data segment
    bool answered;                    // the final reply is sent: nothing more may be
    struct inf_call *previous, *next; // among the calls of the connection
};

#endif
