// SPDX-License-Identifier: Apache-2.0
// Detection of models that become slower.
#include <criterion/criterion.h>

#include "daemon/policy/latency_watch.h"

#define SECOND UINT64_C(1000000000)

static const struct inf_latency_watch_limits limits = {.factor = 1.25, .after_ns = 60 * SECOND};

// Records INF_LATENCY_WATCH_WINDOW runs that take `run_ns` each. The last of them ends at `now_ns`.
// Returns true if the model is reported as slow.
static bool run_window(struct inf_latency_watch *latency_watch, uint64_t run_ns, uint64_t now_ns)
{
    bool drifted = false;
    for (uint32_t i = 0; i < INF_LATENCY_WATCH_WINDOW; i++)
        drifted |= inf_latency_watch_note(latency_watch, &limits, 7, run_ns, now_ns);
    return drifted;
}

Test(latency_watch, reports_a_model_that_stays_slow)
{
    struct inf_latency_watch latency_watch = {0};
    cr_expect(!run_window(&latency_watch, 1000, 1 * SECOND));
    cr_expect(!run_window(&latency_watch, 1249, 2 * SECOND), "less than a quarter more");
    cr_expect(!run_window(&latency_watch, 1300, 10 * SECOND));
    cr_expect(!run_window(&latency_watch, 1300, 69 * SECOND));
    cr_expect(run_window(&latency_watch, 1300, 70 * SECOND), "sixty seconds of it");
    cr_expect_eq(latency_watch.best_ns, 1000u);
    cr_expect_eq(latency_watch.median_ns, 1300u);
    cr_expect(!run_window(&latency_watch, 1300, 71 * SECOND), "reported once");
}

Test(latency_watch, ignores_a_short_slowdown)
{
    struct inf_latency_watch latency_watch = {0};
    run_window(&latency_watch, 1000, 0);
    cr_expect(!run_window(&latency_watch, 5000, 1 * SECOND));
    cr_expect(!run_window(&latency_watch, 1000, 30 * SECOND));
    cr_expect(!run_window(&latency_watch, 5000, 62 * SECOND), "it started again");
    // Given single slow runs, expect no report.
    for (uint32_t i = 0; i < INF_LATENCY_WATCH_WINDOW; i++)
        cr_expect(!inf_latency_watch_note(&latency_watch, &limits, 7, i % 3 == 0 ? 90000 : 1000,
                                          200 * SECOND));
    cr_expect_eq(latency_watch.median_ns, 1000u);
}

Test(latency_watch, observes_runs_of_one_key_and_can_be_off)
{
    struct inf_latency_watch latency_watch = {0};
    const struct inf_latency_watch_limits off = {0};
    run_window(&latency_watch, 1000, 0);
    for (uint32_t i = 0; i < 10 * INF_LATENCY_WATCH_WINDOW; i++)
        cr_expect(!inf_latency_watch_note(&latency_watch, &limits, 8, 90000, 100 * SECOND * i));
    cr_expect_eq(latency_watch.median_ns, 1000u, "other shapes");
    for (uint32_t i = 0; i < 10 * INF_LATENCY_WATCH_WINDOW; i++)
        cr_expect(!inf_latency_watch_note(&latency_watch, &off, 7, 90000, 100 * SECOND * i));
}
