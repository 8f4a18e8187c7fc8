// SPDX-License-Identifier: Apache-2.0
// Reads CLOCK_MONOTONIC and CLOCK_THREAD_CPUTIME_ID.
#include "backends/base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * INF_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t inf_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t inf_clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
