// SPDX-License-Identifier: Apache-2.0
// Quotas of a model.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/policy/model_quota.h"

#define START_NS (1000 * INF_NS_PER_S)

static enum inf_code begin_request(struct inf_model_quota *quota, uint64_t at_ns,
                                   uint64_t *wait_ns) INF_ON_LOOP
{
    struct inf_error err = {0};
    enum inf_code code = inf_model_quota_begin_request(quota, "m", at_ns, wait_ns, &err);
    if (code != INF_OK)
        cr_expect_eq(err.reason, INF_REASON_QUOTA_REQUESTS);
    return code;
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load(counter);
}

Test(model_quota, limits_requests_in_flight)
{
    inf_role_enter_loop();
    struct inf_model_quota *quota = inf_model_quota_create();
    uint64_t wait_ns = 7;
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(begin_request(quota, START_NS, &wait_ns), INF_OK);
    cr_expect_eq(wait_ns, 0);
    // A limit below what is held lets nothing end that runs, and nothing begin.
    quota->most[INF_MODEL_QUOTA_REQUESTS] = 999;
    cr_expect_eq(begin_request(quota, START_NS, &wait_ns), INF_EXHAUSTED);
    inf_model_quota_end_request(quota);
    cr_expect_eq(begin_request(quota, START_NS, &wait_ns), INF_EXHAUSTED);
    inf_model_quota_end_request(quota);
    cr_expect_eq(begin_request(quota, START_NS, &wait_ns), INF_OK);
    cr_expect_eq(begin_request(quota, START_NS, &wait_ns), INF_EXHAUSTED);
    cr_expect_eq(read_counter(&quota->held[INF_MODEL_QUOTA_REQUESTS]), 999u);
    cr_expect_eq(read_counter(&quota->refused[INF_MODEL_QUOTA_REQUESTS]), 3u);
    inf_model_quota_unref(&quota);
    cr_expect_null(quota);
}

Test(model_quota, limits_requests_of_a_second)
{
    inf_role_enter_loop();
    struct inf_model_quota *quota = inf_model_quota_create();
    uint64_t wait_ns;
    quota->most[INF_MODEL_QUOTA_RATE] = 4;
    for (int i = 0; i < 4; i++)
        cr_assert_eq(begin_request(quota, START_NS, &wait_ns), INF_OK, "%d", i);
    cr_expect_eq(begin_request(quota, START_NS, &wait_ns), INF_EXHAUSTED);
    cr_expect_eq(read_counter(&quota->refused[INF_MODEL_QUOTA_RATE]), 1u);
    cr_expect_eq(read_counter(&quota->held[INF_MODEL_QUOTA_RATE]), 0u);
    // One in 250 ms is allowed from now on. A refused request costs nothing.
    for (int i = 1; i < 9; i++) {
        const uint64_t at_ns = START_NS + (uint64_t)i * 250 * INF_NS_PER_MS;
        cr_expect_eq(begin_request(quota, at_ns - INF_NS_PER_MS, &wait_ns), INF_OK, "%d", i);
        cr_expect_eq(begin_request(quota, at_ns - INF_NS_PER_MS, &wait_ns), INF_EXHAUSTED, "%d", i);
        cr_expect(wait_ns > 0 && wait_ns <= 250 * INF_NS_PER_MS, "%llu",
                  (unsigned long long)wait_ns);
    }
    // After a pause the requests of one second may come at once, and no more.
    int count = 0;
    while (begin_request(quota, START_NS + 3600 * INF_NS_PER_S, &wait_ns) == INF_OK)
        count++;
    cr_expect_eq(count, 4);
    quota->most[INF_MODEL_QUOTA_RATE] = 1000000;
    while (begin_request(quota, START_NS + 7200 * INF_NS_PER_S, &wait_ns) == INF_OK)
        count++;
    cr_expect_eq(count, 4 + 1000000);
    inf_model_quota_unref(&quota);
}

// A rate that does not divide a second.
Test(model_quota, limits_any_rate_exactly)
{
    inf_role_enter_loop();
    const uint64_t rates[] = {1, 3, 7, 999};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct inf_model_quota *quota = inf_model_quota_create();
        uint64_t wait_ns, count = 0;
        quota->most[INF_MODEL_QUOTA_RATE] = rates[i];
        while (begin_request(quota, START_NS, &wait_ns) == INF_OK)
            count++;
        cr_expect_eq(count, rates[i]);
        // Those of the burst and of the ten seconds after it.
        for (uint64_t ms = 1; ms <= 10000; ms++)
            while (begin_request(quota, START_NS + ms * INF_NS_PER_MS, &wait_ns) == INF_OK)
                count++;
        cr_expect(count <= 11 * rates[i] && count >= 11 * rates[i] - 1, "%llu of %llu",
                  (unsigned long long)count, (unsigned long long)(11 * rates[i]));
        inf_model_quota_unref(&quota);
    }
}

Test(model_quota, limits_memory_of_sessions)
{
    inf_role_enter_loop();
    struct inf_model_quota *quota = inf_model_quota_create();
    struct inf_error err = {0};
    cr_expect_eq(inf_model_quota_charge_session(quota, UINT64_MAX / 2, &err), INF_OK);
    inf_model_quota_refund_session(quota, UINT64_MAX / 2);
    quota->most[INF_MODEL_QUOTA_SESSION_BYTES] = 100;
    cr_expect_eq(inf_model_quota_charge_session(quota, 60, &err), INF_OK);
    cr_expect_eq(inf_model_quota_charge_session(quota, 41, &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_QUOTA_BYTES);
    cr_expect_not_null(strstr(err.text, "60 bytes, and 41 more"), "%s", err.text);
    cr_expect_eq(inf_model_quota_charge_session(quota, UINT64_MAX, &err), INF_EXHAUSTED);
    cr_expect_eq(inf_model_quota_charge_session(quota, 40, &err), INF_OK);
    cr_expect_eq(read_counter(&quota->held[INF_MODEL_QUOTA_SESSION_BYTES]), 100u);
    cr_expect_eq(read_counter(&quota->refused[INF_MODEL_QUOTA_SESSION_BYTES]), 2u);
    struct inf_model_quota *other = inf_model_quota_ref(quota);
    inf_model_quota_unref(&quota);
    inf_model_quota_refund_session(other, 100);
    inf_model_quota_unref(&other);
    inf_model_quota_unref(&other);
}
