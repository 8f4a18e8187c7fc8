// SPDX-License-Identifier: Apache-2.0
// A limit of device time per second, as a leaky bucket. A user may use the device time of one
// second in advance. The functions read no clock; the caller passes the time.
#ifndef INF_DAEMON_POLICY_RATE_LIMIT_H
#define INF_DAEMON_POLICY_RATE_LIMIT_H

#include <stdint.h>

// The device time that one user has used. Embedded in the user's account. All zero means that
// nothing was used.
struct inf_rate_limit {
    // Content of the leaky bucket at time `at_ns`: device time used and not yet drained.
    uint64_t taken_ns;
    uint64_t at_ns; // time at which `taken_ns` was last updated
};

// Records that a user used `took_ns` of device time. `ms_per_s` is the allowed rate; 0: there is no
// limit, and nothing is recorded.
void inf_rate_limit_take(struct inf_rate_limit *rate_limit, uint64_t took_ns, uint64_t ms_per_s,
                         uint64_t now_ns);

// Returns the nanoseconds until more device time may be used; 0: it may be used now.
uint64_t inf_rate_limit_wait_ns(struct inf_rate_limit *rate_limit, uint64_t ms_per_s,
                                uint64_t now_ns);

#endif
