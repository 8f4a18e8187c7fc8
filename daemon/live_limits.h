// SPDX-License-Identifier: Apache-2.0
// The limits that can be changed while the daemon runs: one place for their values. The loop's.
#ifndef INF_DAEMON_LIVE_LIMITS_H
#define INF_DAEMON_LIVE_LIMITS_H

#include <stdint.h>

enum inf_live {
    INF_LIVE_CONNECTIONS,
    INF_LIVE_CONNECTION_REQUESTS, // in flight on one connection: the credit
    // Of one user, in the order of enum inf_quota_kind:
    INF_LIVE_UID_CONNECTIONS,
    INF_LIVE_UID_REQUESTS,
    INF_LIVE_UID_REQUEST_BYTES,
    INF_LIVE_UID_REGIONS,
    INF_LIVE_UID_REGION_BYTES,
    INF_LIVE_UID_SESSION_BYTES,
    // Waiting for one device:
    INF_LIVE_QUEUE_REQUESTS,
    INF_LIVE_QUEUE_BYTES,
    INF_LIVE_COUNT
};

struct inf_live_limit {
    const char *name; // as the setting's
    uint64_t value;   // in force
    uint64_t least, most;
};

struct inf_live_limits {
    struct inf_live_limit limits[INF_LIVE_COUNT];
};

#endif
