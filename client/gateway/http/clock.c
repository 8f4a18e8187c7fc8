// SPDX-License-Identifier: Apache-2.0
// Reads CLOCK_MONOTONIC, not CLOCK_MONOTONIC_COARSE: the coarse clock is up to some milliseconds
// late, so that a time could be later than the present.
#include "client/gateway/http/clock.h"

#include <time.h>

uint64_t inf_http_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t inf_http_clock_ms(void)
{
    return inf_http_clock_ns() / 1000000;
}
