// SPDX-License-Identifier: Apache-2.0
// Limits of one model, for all its clients together: requests in flight, requests per second, and
// memory of sessions. Each function takes constant time and reads no clock; the caller passes the
// time. Only the loop uses an account, except that workers charge it for memory of sessions. Any
// thread may take and drop references.
#ifndef INF_DAEMON_POLICY_MODEL_QUOTA_H
#define INF_DAEMON_POLICY_MODEL_QUOTA_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "daemon/policy/rate_limit.h"
#include "proto/core/status.h"

enum inf_model_quota_kind {
    INF_MODEL_QUOTA_REQUESTS,      // requests in flight
    INF_MODEL_QUOTA_RATE,          // requests per second; `held` stays 0
    INF_MODEL_QUOTA_SESSION_BYTES, // memory of sessions
    INF_MODEL_QUOTA_KINDS
};

// The account of one model, for all its versions and signatures. Shared by reference.
struct inf_model_quota {
    _Atomic uint32_t references;
    _Atomic uint64_t most[INF_MODEL_QUOTA_KINDS]; // 0: no limit
    _Atomic uint64_t held[INF_MODEL_QUOTA_KINDS];
    _Atomic uint64_t refused[INF_MODEL_QUOTA_KINDS]; // charges that were refused
    struct inf_rate_limit rate;
    // Ranks of priorities (enum inf_model_priority): that of requests that name none, and the
    // highest one of a request.
    uint8_t priority, priority_max;
};

// Returns the name of a kind: "requests", "requests_per_second" or "session_bytes"; static.
const char *inf_model_quota_name(enum inf_model_quota_kind kind);

// Creates an account without limits, with one reference. Returns NULL if memory is exhausted.
struct inf_model_quota *inf_model_quota_create(void) INF_NODISCARD;

// Takes another reference. Any thread.
struct inf_model_quota *inf_model_quota_ref(struct inf_model_quota *quota) INF_NODISCARD;

// Drops a reference, and sets the pointer to NULL. Any thread. NULL is allowed.
void inf_model_quota_unref(struct inf_model_quota **quota);

// Charges the account for a request. On failure nothing is charged, and *out_wait_ns is the time
// after which the rate allows another request; 0: not known. `model` is for error texts.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS) too many requests are in flight, or came in the last second.
enum inf_code inf_model_quota_begin_request(struct inf_model_quota *quota, const char *model,
                                            uint64_t now_ns, uint64_t *out_wait_ns,
                                            struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Refunds a request that inf_model_quota_begin_request() has charged.
void inf_model_quota_end_request(struct inf_model_quota *quota) INF_ON_LOOP;

// Charges the account for memory of sessions. On failure nothing is charged. Any thread.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the sessions of the model would have too much memory.
enum inf_code inf_model_quota_charge_session(struct inf_model_quota *quota, uint64_t bytes,
                                             struct inf_error *err) INF_NODISCARD;

// Refunds memory of sessions. Any thread.
void inf_model_quota_refund_session(struct inf_model_quota *quota, uint64_t bytes);

#endif
