// SPDX-License-Identifier: Apache-2.0
// A leaky bucket of device time: use fills the bucket, and it drains at the allowed rate. A user
// may use the device as long as the bucket contains less than the device time allowed for one
// second.
#include "daemon/policy/rate_limit.h"

#include "backends/base/clock.h"
#include "proto/core/attributes.h"

// The highest content of a leaky bucket in nanoseconds. This maximum limits how long a user must
// wait after heavy use, and keeps products within 64 bits.
#define TAKEN_MAX_NS (3600 * INF_NS_PER_S)

static void drain_bucket(struct inf_rate_limit *rate_limit, uint64_t ms_per_s, uint64_t now_ns)
{
    uint64_t passed_ns = now_ns - INF_MIN(rate_limit->at_ns, now_ns);
    uint64_t made_up_ns = INF_MIN(passed_ns, TAKEN_MAX_NS) * ms_per_s / 1000;
    rate_limit->taken_ns -= INF_MIN(made_up_ns, rate_limit->taken_ns);
    rate_limit->at_ns = now_ns;
}

void inf_rate_limit_take(struct inf_rate_limit *rate_limit, uint64_t took_ns, uint64_t ms_per_s,
                         uint64_t now_ns)
{
    if (ms_per_s == 0) {
        *rate_limit = (struct inf_rate_limit){0};
        return;
    }
    drain_bucket(rate_limit, ms_per_s, now_ns);
    rate_limit->taken_ns +=
        INF_MIN(took_ns, TAKEN_MAX_NS - INF_MIN(rate_limit->taken_ns, TAKEN_MAX_NS));
}

uint64_t inf_rate_limit_wait_ns(struct inf_rate_limit *rate_limit, uint64_t ms_per_s,
                                uint64_t now_ns)
{
    uint64_t ahead_ns = ms_per_s * INF_NS_PER_MS;
    if (ms_per_s == 0)
        return 0;
    drain_bucket(rate_limit, ms_per_s, now_ns);
    if (rate_limit->taken_ns < ahead_ns)
        return 0;
    return (rate_limit->taken_ns - ahead_ns) / ms_per_s * 1000 + 1;
}
