// SPDX-License-Identifier: Apache-2.0
// The clock that the project uses. It is monotonic, so that a change of the wall clock moves no
// deadline. A second one measures processor time.
#ifndef INF_BACKENDS_BASE_CLOCK_H
#define INF_BACKENDS_BASE_CLOCK_H

#include <stdint.h>

// 64 bits wide, so that products with these constants do not overflow 32 bits.
#define INF_NS_PER_MS UINT64_C(1000000)
#define INF_NS_PER_S  UINT64_C(1000000000)

// Returns the time of CLOCK_MONOTONIC in nanoseconds.
uint64_t inf_clock_ns(void);

// Returns the processor time of the calling thread in nanoseconds. Waiting does not count.
uint64_t inf_clock_thread_ns(void);

#endif
