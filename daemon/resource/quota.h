// SPDX-License-Identifier: Apache-2.0
// Counts how much of the daemon's resources each user holds, and enforces a limit. A user is
// charged when it acquires a resource. The user is refunded when the resource is really released,
// which may be after its client is gone if a worker still uses the resource. Used by the loop only,
// except that workers charge for memory of sessions.
#ifndef INF_DAEMON_RESOURCE_QUOTA_H
#define INF_DAEMON_RESOURCE_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

enum inf_quota_kind {
    INF_QUOTA_CONNECTIONS,
    INF_QUOTA_REQUESTS,      // number of requests in flight, over all connections
    INF_QUOTA_REQUEST_BYTES, // bytes of input data in requests in flight
    INF_QUOTA_REGIONS,       // number of mapped shared memory regions
    INF_QUOTA_REGION_BYTES,  // bytes of mapped shared memory regions
    INF_QUOTA_FILLED_BYTES,  // bytes that outputs allocated in regions that the daemon made
    INF_QUOTA_SESSION_BYTES, // bytes of tensors that are kept in sessions
    INF_QUOTA_FDS,           // sockets, and received descriptors that are not closed yet
    INF_QUOTA_DEVICE_MS, // device time per second, which is used up rather than held; 0: no limit
    INF_QUOTA_KIND_COUNT
};

struct inf_quota;
// The account of one user.
struct inf_quota_user;

// Creates an empty set of accounts. most[kind] is how much of a resource each user may hold. The
// caller destroys *out_quota.
enum inf_code inf_quota_create(struct inf_quota **out_quota,
                               const uint64_t most[INF_QUOTA_KIND_COUNT],
                               struct inf_error *err) INF_NODISCARD;

// Frees all accounts. NULL is allowed.
void inf_quota_destroy(struct inf_quota **quota);

// Returns a reference to the account of a user, and creates the account if there is none. Returns
// NULL if memory is exhausted.
struct inf_quota_user *inf_quota_open(struct inf_quota *quota, uid_t uid) INF_NODISCARD INF_ON_LOOP;

// Takes another reference to an account.
struct inf_quota_user *inf_quota_ref(struct inf_quota_user *user) INF_NODISCARD INF_ON_LOOP;

// Drops a reference and sets the pointer to NULL. Dropping the last reference closes the account.
// NULL is allowed.
void inf_quota_unref(struct inf_quota_user **user) INF_ON_LOOP;

// Charges a user for `amount` of a resource. On failure nothing is charged.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS, QUOTA_BYTES) the user would exceed its limit.
enum inf_code inf_quota_charge(struct inf_quota_user *user, enum inf_quota_kind kind,
                               uint64_t amount, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Charges a user for memory of sessions (INF_QUOTA_SESSION_BYTES), like inf_quota_charge(). The
// caller may be any thread that holds a reference to a session of the user.
enum inf_code inf_quota_charge_session(struct inf_quota_user *user, uint64_t bytes,
                                       struct inf_error *err) INF_NODISCARD;

// Refunds memory of sessions. The caller may be any thread, as for inf_quota_charge_session().
void inf_quota_refund_session(struct inf_quota_user *user, uint64_t bytes);

// Charges a user for `amount` of a resource that the user already holds. This never fails, even if
// the user exceeds its limit.
void inf_quota_charge_held(struct inf_quota_user *user, enum inf_quota_kind kind,
                           uint64_t amount) INF_ON_LOOP;

// Refunds `amount` of a resource that the user was charged for.
void inf_quota_refund(struct inf_quota_user *user, enum inf_quota_kind kind,
                      uint64_t amount) INF_ON_LOOP;

// Records device time that requests of the user took.
void inf_quota_spend(struct inf_quota_user *user, uint64_t device_ns) INF_ON_LOOP;

// Checks whether a user may use more device time. inf_quota_spend() records the time of a run after
// it has ended, so a user may use too much and then owes device time. This debt is remembered even
// if the user disconnects.
//
// INF_EXHAUSTED  (QUOTA_TIME) the user must wait for *out_wait_ns.
enum inf_code inf_quota_check_device_time(struct inf_quota_user *user, uint64_t *out_wait_ns,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Changes how much of a resource each user may hold. A user who already holds more keeps it, but
// cannot acquire more.
void inf_quota_set_most(struct inf_quota *quota, enum inf_quota_kind kind,
                        uint64_t most) INF_ON_LOOP;

// Returns how much of a resource a user holds.
uint64_t inf_quota_held(const struct inf_quota_user *user, enum inf_quota_kind kind) INF_ON_LOOP;

// Returns how much of a resource all users hold.
uint64_t inf_quota_total(const struct inf_quota *quota, enum inf_quota_kind kind) INF_ON_LOOP;

#endif
