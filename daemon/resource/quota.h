// SPDX-License-Identifier: Apache-2.0
// What each user holds of the daemon's resources, and may hold at most. A user is charged when it
// takes something and refunded when that is really released, also if its client is gone and a
// worker still uses it. Used by the loop only.
#ifndef INF_DAEMON_RESOURCE_QUOTA_H
#define INF_DAEMON_RESOURCE_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

enum inf_quota_kind {
    INF_QUOTA_CONNECTIONS,
    INF_QUOTA_REQUESTS,      // requests in flight, of all connections
    INF_QUOTA_REQUEST_BYTES, // bytes of their data segments
    INF_QUOTA_REGIONS,       // mapped regions
    INF_QUOTA_REGION_BYTES,  // bytes of the regions
    INF_QUOTA_SESSION_BYTES, // bytes of tensors kept in sessions
    INF_QUOTA_FDS,           // descriptors: sockets, and received ones that are not closed yet
    INF_QUOTA_DEVICE_MS,     // device time per second, which is spent and not held; 0: no limit
    INF_QUOTA_KIND_COUNT
};

struct inf_quota;
// The account of one user.
struct inf_quota_user;

// Creates an empty set of accounts; most[kind] is the limit of each user. *out_quota is the
// caller's to destroy.
enum inf_code inf_quota_create(struct inf_quota **out_quota,
                               const uint64_t most[INF_QUOTA_KIND_COUNT],
                               struct inf_error *err) INF_NODISCARD;

// Frees all accounts. NULL is allowed.
void inf_quota_destroy(struct inf_quota **quota);

// Returns a reference to the account of a user, which is created if there is none. NULL without
// memory.
struct inf_quota_user *inf_quota_open(struct inf_quota *quota, uid_t uid) INF_NODISCARD INF_ON_LOOP;

// Takes another reference.
struct inf_quota_user *inf_quota_ref(struct inf_quota_user *user) INF_NODISCARD INF_ON_LOOP;

// Drops a reference and sets the pointer to NULL. The last one closes the account. NULL is allowed.
void inf_quota_unref(struct inf_quota_user **user) INF_ON_LOOP;

// Charges a user for `amount`. On failure nothing is charged.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS, QUOTA_BYTES) the user would exceed its limit.
enum inf_code inf_quota_charge(struct inf_quota_user *user, enum inf_quota_kind kind,
                               uint64_t amount, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Charges a user for `amount` that it holds already, also beyond its limit.
void inf_quota_charge_held(struct inf_quota_user *user, enum inf_quota_kind kind,
                           uint64_t amount) INF_ON_LOOP;

// Refunds what was charged.
void inf_quota_refund(struct inf_quota_user *user, enum inf_quota_kind kind,
                      uint64_t amount) INF_ON_LOOP;

// Records device time that requests of the user took.
void inf_quota_spend(struct inf_quota_user *user, uint64_t device_ns) INF_ON_LOOP;

// Checks whether a user may use more device time. The time itself is recorded later, by
// inf_quota_spend(). A debt is remembered after the user has left.
//
// INF_EXHAUSTED  (QUOTA_TIME) the user must wait for *out_wait_ns.
enum inf_code inf_quota_check_device_time(struct inf_quota_user *user, uint64_t *out_wait_ns,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Changes a limit. A user who already holds more keeps it, but gets nothing further.
void inf_quota_set_most(struct inf_quota *quota, enum inf_quota_kind kind,
                        uint64_t most) INF_ON_LOOP;

// Returns what a user holds.
uint64_t inf_quota_held(const struct inf_quota_user *user, enum inf_quota_kind kind) INF_ON_LOOP;

#endif
