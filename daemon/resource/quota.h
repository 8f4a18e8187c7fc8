// SPDX-License-Identifier: Apache-2.0
// What each user holds of the daemon's, and may hold at most. Whoever takes something is charged for
// it and refunded when it is really gone: also what a client that has left still has with a worker.
// The loop's.
#ifndef INF_DAEMON_RESOURCE_QUOTA_H
#define INF_DAEMON_RESOURCE_QUOTA_H

#include <stdint.h>
#include <sys/types.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

enum inf_quota_kind {
    INF_QUOTA_CONNECTIONS,
    INF_QUOTA_REQUESTS,      // in flight, of all connections
    INF_QUOTA_REQUEST_BYTES, // of their data segments
    INF_QUOTA_REGIONS,       // mapped
    INF_QUOTA_REGION_BYTES,  // of them
    INF_QUOTA_SESSION_BYTES, // of tensors kept in sessions
    INF_QUOTA_FDS,           // descriptors: sockets, and those that came and are not dealt with
    INF_QUOTA_DEVICE_MS,     // device time a second, not held but spent; 0: no limit
    INF_QUOTA_KIND_COUNT
};

struct inf_quota;
// One user's account.
struct inf_quota_user;

// Makes an empty book; most[kind] is what one user may hold. *out_quota is the caller's to destroy.
enum inf_code inf_quota_create(struct inf_quota **out_quota,
                               const uint64_t most[INF_QUOTA_KIND_COUNT],
                               struct inf_error *err) INF_NODISCARD;

// Frees the book and every account in it. NULL is fine.
void inf_quota_destroy(struct inf_quota **quota);

// The account of a user, opened where there is none, and a reference to it. NULL without memory.
struct inf_quota_user *inf_quota_open(struct inf_quota *quota, uid_t uid) INF_NODISCARD INF_ON_LOOP;

// Another reference.
struct inf_quota_user *inf_quota_ref(struct inf_quota_user *user) INF_NODISCARD INF_ON_LOOP;

// Drops a reference and sets the pointer NULL; with the last one the account goes. NULL is fine.
void inf_quota_unref(struct inf_quota_user **user) INF_ON_LOOP;

// Charges a user for `amount`, or leaves everything as it is.
//
// INF_EXHAUSTED  (QUOTA_REQUESTS, QUOTA_BYTES) it would be more than a user may hold.
enum inf_code inf_quota_charge(struct inf_quota_user *user, enum inf_quota_kind kind,
                               uint64_t amount, struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Gives back what was charged.
void inf_quota_refund(struct inf_quota_user *user, enum inf_quota_kind kind,
                      uint64_t amount) INF_ON_LOOP;

// A user's requests have taken so much of the devices' time.
void inf_quota_spend(struct inf_quota_user *user, uint64_t device_ns) INF_ON_LOOP;

// Whether a user may have more of the devices' time now. It is taken later, by inf_quota_spend(); what is
// owed is remembered when the user has left.
//
// INF_EXHAUSTED  (QUOTA_TIME) not for *out_wait_ns.
enum inf_code inf_quota_check_device_time(struct inf_quota_user *user, uint64_t *out_wait_ns,
                                          struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Changes what one user may hold. Who holds more already keeps it, and gets nothing more.
void inf_quota_set_most(struct inf_quota *quota, enum inf_quota_kind kind,
                        uint64_t most) INF_ON_LOOP;

// What a user holds.
uint64_t inf_quota_held(const struct inf_quota_user *user, enum inf_quota_kind kind) INF_ON_LOOP;

#endif
