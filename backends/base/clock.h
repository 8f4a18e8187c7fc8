// SPDX-License-Identifier: Apache-2.0
// The only clock: monotonic, so that a change of the wall clock moves no deadline.
#ifndef INF_BACKENDS_BASE_CLOCK_H
#define INF_BACKENDS_BASE_CLOCK_H

#include <stdint.h>

// 64 bits wide: what is multiplied by them is in nanoseconds.
#define INF_NS_PER_MS UINT64_C(1000000)
#define INF_NS_PER_S  UINT64_C(1000000000)

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t inf_clock_ns(void);

#endif
