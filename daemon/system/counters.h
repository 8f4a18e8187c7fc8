// SPDX-License-Identifier: Apache-2.0
// Counters of the daemon. Used by the loop only: workers report through their jobs.
#ifndef INF_DAEMON_SYSTEM_COUNTERS_H
#define INF_DAEMON_SYSTEM_COUNTERS_H

#include <stdint.h>

// Invariant: requests_accepted == requests_ok + requests_failed + requests_in_flight. Every request
// ends exactly once.
struct inf_counters {
    uint32_t connections;       // open now
    uint64_t connections_total; // accepted since start
    uint32_t requests_in_flight;
    uint64_t requests_accepted; // requests with a stream of their own
    uint64_t requests_ok;
    uint64_t requests_failed;
    uint32_t regions; // mapped now, including those of closed connections that workers use
    uint64_t region_bytes;
    uint32_t sessions; // open, or with requests in flight
    uint64_t session_bytes;
};

#endif
