// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "daemon/policy/latency_watch.h"

#define SECOND UINT64_C(1000000000)

static const struct inf_drift_limits limits = {.factor = 1.25, .after_ns = 60 * SECOND};

// A window of runs of `run_ns`, the last of which ends at `now_ns`.
static bool run_window(struct inf_drift *drift, uint64_t run_ns, uint64_t now_ns)
{
    bool drifted = false;
    for (uint32_t i = 0; i < INF_DRIFT_WINDOW; i++)
        drifted |= inf_drift_note(drift, &limits, 7, run_ns, now_ns);
    return drifted;
}

Test(drift, tells_of_a_model_that_stays_slow)
{
    struct inf_drift drift = {0};
    cr_expect(!run_window(&drift, 1000, 1 * SECOND));
    cr_expect(!run_window(&drift, 1249, 2 * SECOND), "less than a quarter more");
    cr_expect(!run_window(&drift, 1300, 10 * SECOND));
    cr_expect(!run_window(&drift, 1300, 69 * SECOND));
    cr_expect(run_window(&drift, 1300, 70 * SECOND), "sixty seconds of it");
    cr_expect_eq(drift.best_ns, 1000u);
    cr_expect_eq(drift.median_ns, 1300u);
    cr_expect(!run_window(&drift, 1300, 71 * SECOND), "told once");
}

Test(drift, forgives_what_passes)
{
    struct inf_drift drift = {0};
    run_window(&drift, 1000, 0);
    cr_expect(!run_window(&drift, 5000, 1 * SECOND));
    cr_expect(!run_window(&drift, 1000, 30 * SECOND));
    cr_expect(!run_window(&drift, 5000, 62 * SECOND), "it began anew");
    // Single runs that are slow do not count.
    for (uint32_t i = 0; i < INF_DRIFT_WINDOW; i++)
        cr_expect(!inf_drift_note(&drift, &limits, 7, i % 3 == 0 ? 90000 : 1000, 200 * SECOND));
    cr_expect_eq(drift.median_ns, 1000u);
}

Test(drift, watches_runs_of_one_kind_and_can_be_off)
{
    struct inf_drift drift = {0};
    const struct inf_drift_limits off = {0};
    run_window(&drift, 1000, 0);
    for (uint32_t i = 0; i < 10 * INF_DRIFT_WINDOW; i++)
        cr_expect(!inf_drift_note(&drift, &limits, 8, 90000, 100 * SECOND * i));
    cr_expect_eq(drift.median_ns, 1000u, "other shapes");
    for (uint32_t i = 0; i < 10 * INF_DRIFT_WINDOW; i++)
        cr_expect(!inf_drift_note(&drift, &off, 7, 90000, 100 * SECOND * i));
}
