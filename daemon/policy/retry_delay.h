// SPDX-License-Identifier: Apache-2.0
// Says when a measurement in the background is repeated after an attempt that was disturbed. The
// delay doubles with each such attempt in a row. The function reads no clock.
#ifndef INF_DAEMON_POLICY_RETRY_DELAY_H
#define INF_DAEMON_POLICY_RETRY_DELAY_H

#include <stdint.h>

// How often the delay doubles at most.
#define INF_RETRY_DOUBLINGS 8u

// All zero is the initial state, and the state after an attempt that was not disturbed.
struct inf_retry_delay {
    uint64_t after_ns; // no attempt begins before this time (inf_clock_ns())
    uint32_t gave_up;  // attempts in a row that were disturbed, at most INF_RETRY_DOUBLINGS
};

// Notes that an attempt, which ended at `now_ns`, was disturbed. `first_ns` is the delay after the
// first such attempt in a row.
void inf_retry_delay_note(struct inf_retry_delay *delay, uint64_t first_ns, uint64_t now_ns);

#endif
