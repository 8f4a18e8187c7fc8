// SPDX-License-Identifier: Apache-2.0
// A request that is answered later: the information that its connection keeps about it. Used by the
// loop only.
#ifndef INF_DAEMON_SCHEDULE_CALL_H
#define INF_DAEMON_SCHEDULE_CALL_H

#include <stdbool.h>
#include <stdint.h>

struct inf_connection;
struct inf_quota_user;

enum inf_call_kind {
    INF_CALL_INFER, // an inference: the call is the first member of a struct inf_job
    INF_CALL_LOAD,  // a job of the model store: the call is the first member of a struct inf_load
    INF_CALL_EVENT, // a wait for an event: the call is the first member of a struct inf_event_wait
    // A wait for a model: the call is the first member of a struct inf_waiting_request.
    INF_CALL_WAIT,
};

// A request that is answered later. Embedded as the first member of struct inf_job, struct
// inf_load, struct inf_event_wait or struct inf_waiting_request.
struct inf_call {
    enum inf_call_kind kind;
    struct inf_connection *connection; // NULL: the client disconnected
    uint64_t stream_id;
    uint16_t method;
    uint64_t order_key; // order key of the request; 0: none
    // Entry of the request in the send log of its connection, plus 1; 0: none.
    uint32_t pending_plus_1;
    // The user who is charged for the request; a reference until the call is released.
    struct inf_quota_user *payer;
    uint64_t paid_bytes;              // data bytes that were charged to `payer`
    bool answered;                    // the final reply is sent or being sent; no other one may be
    struct inf_call *previous, *next; // links of the list of calls of the connection
};

#endif
