// SPDX-License-Identifier: Apache-2.0
// Device time that may be taken at a rate: a bucket that fills with what was taken and runs dry as time
// passes. A second's worth may be taken ahead. Knows no clock: the caller has one.
#ifndef INF_DAEMON_POLICY_RATE_LIMIT_H
#define INF_DAEMON_POLICY_RATE_LIMIT_H

#include <stdint.h>

// Embedded; all zero is one of which nothing was taken.
struct inf_rate_limit {
    uint64_t taken_ns; // and not made up for at `at_ns`
    uint64_t at_ns;
};

// So much was taken; `ms_per_s` is the rate, 0: there is no limit, and nothing is noted.
void inf_rate_limit_take(struct inf_rate_limit *rate_limit, uint64_t took_ns, uint64_t ms_per_s,
                         uint64_t now_ns);

// How long until more may be taken; 0: now.
uint64_t inf_rate_limit_wait_ns(struct inf_rate_limit *rate_limit, uint64_t ms_per_s,
                                uint64_t now_ns);

#endif
