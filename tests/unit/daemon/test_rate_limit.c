// SPDX-License-Identifier: Apache-2.0
// The limit of device time per second.
#include <criterion/criterion.h>

#include "backends/base/clock.h"
#include "daemon/policy/rate_limit.h"

#define MS INF_NS_PER_MS

Test(rate_limit, allows_one_second_in_advance)
{
    struct inf_rate_limit rate_limit = {0};
    inf_rate_limit_take(&rate_limit, 499 * MS, 500, 0);
    cr_expect_eq(inf_rate_limit_wait_ns(&rate_limit, 500, 0), 0u);
    inf_rate_limit_take(&rate_limit, 501 * MS, 500, 0);
    // The user has exceeded its device time by 500 ms. At a rate of 500 ms per second, expect a
    // wait of one second.
    uint64_t wait_ns = inf_rate_limit_wait_ns(&rate_limit, 500, 0);
    cr_expect(wait_ns > 1000 * MS && wait_ns < 1001 * MS, "%llu", (unsigned long long)wait_ns);
    cr_expect_gt(inf_rate_limit_wait_ns(&rate_limit, 500, 999 * MS), 0u);
    cr_expect_eq(inf_rate_limit_wait_ns(&rate_limit, 500, 1001 * MS), 0u);
}

Test(rate_limit, drains_at_its_rate_independent_of_queries)
{
    struct inf_rate_limit rate_limit = {0};
    inf_rate_limit_take(&rate_limit, 2000 * MS, 1000, 0);
    for (uint64_t now_ns = 0; now_ns < 999 * MS; now_ns += 5000)
        cr_assert_gt(inf_rate_limit_wait_ns(&rate_limit, 1000, now_ns), 0u);
    cr_expect_eq(inf_rate_limit_wait_ns(&rate_limit, 1000, 1001 * MS), 0u);
}

Test(rate_limit, without_a_rate_is_unlimited)
{
    struct inf_rate_limit rate_limit = {0};
    inf_rate_limit_take(&rate_limit, UINT64_MAX, 0, 1);
    cr_expect_eq(inf_rate_limit_wait_ns(&rate_limit, 0, 1), 0u);
    cr_expect_eq(inf_rate_limit_wait_ns(&rate_limit, 1, 1), 0u);
}

Test(rate_limit, does_not_wrap)
{
    struct inf_rate_limit rate_limit = {0};
    inf_rate_limit_take(&rate_limit, UINT64_MAX, 1000000, 7);
    inf_rate_limit_take(&rate_limit, UINT64_MAX, 1000000, 7);
    cr_expect_gt(inf_rate_limit_wait_ns(&rate_limit, 1000000, 8), 0u);
    // The bucket contains at most one hour of device time, which drains within seconds at the rate
    // of a thousand devices. Expect no wait.
    cr_expect_eq(inf_rate_limit_wait_ns(&rate_limit, 1000000, UINT64_MAX), 0u);
}
