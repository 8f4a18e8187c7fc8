// SPDX-License-Identifier: Apache-2.0
// The only clock: monotonic, so that a change of the wall clock moves no deadline.
#ifndef INF_BACKENDS_BASE_CLOCK_H
#define INF_BACKENDS_BASE_CLOCK_H

#include <stdint.h>

#define INF_NS_PER_MS 1000000u
#define INF_NS_PER_S  1000000000u

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t inf_clock_ns(void);

#endif
