// SPDX-License-Identifier: Apache-2.0
// Reads CLOCK_MONOTONIC.
#include "backends/base/clock.h"

#include <time.h>

uint64_t inf_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * INF_NS_PER_S + (uint64_t)now.tv_nsec;
}
