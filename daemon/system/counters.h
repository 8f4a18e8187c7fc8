// SPDX-License-Identifier: Apache-2.0
// Counters of the daemon. Used by the loop only: workers report through their jobs.
#ifndef INF_DAEMON_SYSTEM_COUNTERS_H
#define INF_DAEMON_SYSTEM_COUNTERS_H

#include <stdint.h>

// Invariant: requests_accepted == requests_ok + requests_failed + requests_in_flight, because every
// request ends exactly once.
struct inf_counters {
    uint32_t connections;       // number of connections that are open at present
    uint64_t connections_total; // connections accepted since the start
    uint32_t requests_in_flight;
    // Number of requests that were accepted for processing; each has a stream id of its own.
    uint64_t requests_accepted;
    uint64_t requests_ok;
    uint64_t requests_failed;
    // Number of shared-memory regions that are mapped, including regions of closed connections that
    // workers still use.
    uint32_t regions;
    uint64_t region_bytes;
    uint32_t sessions;              // number of sessions that are open or have requests in flight
    _Atomic uint64_t session_bytes; // workers add what they reserve
    int64_t session_uses; // requests of sessions, and sessions that were opened, since the start
};

#endif
