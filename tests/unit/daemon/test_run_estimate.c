// SPDX-License-Identifier: Apache-2.0
// Estimates of run times.
#include <criterion/criterion.h>

#include "daemon/policy/run_estimate.h"

static struct inf_estimates estimates;

Test(estimate, is_empty_at_first)
{
    cr_expect_eq(inf_estimates_find(&estimates, 1).run_ns, 0);
}

Test(estimate, distinguishes_models_and_shapes)
{
    const int models[2] = {0, 0};
    const struct inf_shape a = INF_SHAPE(1, 3);
    const struct inf_shape b = INF_SHAPE(3, 1);
    uint64_t key = inf_estimate_key(&models[0], &a, 1);
    cr_expect_eq(key, inf_estimate_key(&models[0], &a, 1));
    cr_expect_neq(key, inf_estimate_key(&models[1], &a, 1));
    cr_expect_neq(key, inf_estimate_key(&models[0], &b, 1));
    cr_expect_neq(inf_estimate_key(&models[0], NULL, 0), 0);
}

Test(estimate, follows_the_run_times)
{
    inf_estimates_note(&estimates, 7, &(struct inf_estimate){.run_ns = 8000, .share_ns = 800});
    cr_expect_eq(inf_estimates_find(&estimates, 7).run_ns, 8000);
    cr_expect_eq(inf_estimates_find(&estimates, 7).share_ns, 800);
    // One run with another time moves the estimate by an eighth of the difference. Many runs with
    // another time move it all the way, upwards and downwards.
    inf_estimates_note(&estimates, 7, &(struct inf_estimate){.run_ns = 16000, .share_ns = 0});
    cr_expect_eq(inf_estimates_find(&estimates, 7).run_ns, 9000);
    cr_expect_eq(inf_estimates_find(&estimates, 7).share_ns, 700);
    for (int i = 0; i < 100; i++)
        inf_estimates_note(&estimates, 7, &(struct inf_estimate){.run_ns = 1000, .share_ns = 1000});
    cr_expect_leq(inf_estimates_find(&estimates, 7).run_ns, 1010);
    cr_expect_geq(inf_estimates_find(&estimates, 7).share_ns, 990);
}

Test(estimate, replaces_the_least_recently_used_entry)
{
    // Insert more keys into one set of the cache than it has entries. The upper half of a key
    // chooses the set. One of the keys is used all the time and must stay.
    for (uint64_t i = 1; i <= 100; i++) {
        inf_estimates_note(&estimates, i, &(struct inf_estimate){.run_ns = i, .share_ns = i});
        cr_expect_eq(inf_estimates_find(&estimates, i).run_ns, i);
        cr_expect_eq(inf_estimates_find(&estimates, 1).run_ns, 1);
    }
    cr_expect_eq(inf_estimates_find(&estimates, 50).run_ns, 0);
}
