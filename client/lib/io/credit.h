// SPDX-License-Identifier: Apache-2.0
// Credit: how many requests, and how many bytes of request data, the daemon allows in flight.
//
// HELLO_ACK grants the first credit. Each request that is sent takes one unit, each final answer
// returns one unit, or as many as credit_return of the answer says, and a CREDIT frame replaces the
// total.
#ifndef INF_CLIENT_LIB_IO_CREDIT_H
#define INF_CLIENT_LIB_IO_CREDIT_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"

// What the client may still send. Zero-initialise.
struct inf_client_credit {
    uint32_t requests;        // number of further requests that may be sent
    uint64_t bytes;           // the most bytes of data in flight; 0: no limit
    uint64_t bytes_in_flight; // bytes of data of requests that were sent and are not answered
};

// Checks whether a request may be sent now. `err` may be NULL.
//
// INF_CANCELLED    the client has been closed.
// INF_UNAVAILABLE  the connection has failed, or the daemon is draining.
// INF_EXHAUSTED    (QUOTA_REQUESTS) no credit is left.
enum inf_code inf_client_credit_check_request(const inferd_client *client,
                                              struct inf_error *err) INF_NODISCARD;

// Checks whether another `bytes` of data may be in flight. A request that alone exceeds the limit
// passes if nothing else is in flight, and the daemon decides about it.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the sum with the data in flight exceeds the limit.
enum inf_code inf_client_credit_check_bytes(const inferd_client *client, size_t bytes,
                                            struct inf_error *err) INF_NODISCARD;

#endif
