// SPDX-License-Identifier: Apache-2.0
// Whether joining decoding steps pays: clear results are decided after a few runs, results near the
// limit after more runs, and none if other programs disturbed the runs.
#include <criterion/criterion.h>

#include "daemon/policy/step_timing.h"

// Notes `turns` turns in which 1 step takes 1000 ns and 2 steps take `more_ns`.
static struct inf_step_timing time_turns(uint32_t turns, uint64_t more_ns)
{
    struct inf_step_timing timing = {.fewer = 1, .more = 2};
    for (uint32_t i = 0; i < turns; i++)
        inf_step_timing_note(&timing, (struct inf_step_time){1000, false},
                             (struct inf_step_time){more_ns, false});
    return timing;
}

static enum inf_step_verdict decide_after(uint32_t turns, uint64_t more_ns)
{
    struct inf_step_timing timing = time_turns(turns, more_ns);
    return inf_step_timing_decide(&timing);
}

Test(step_timing, decides_clear_results_after_a_few_runs)
{
    cr_expect_eq(decide_after(0, 1200), INF_STEP_UNDECIDED);
    cr_expect_eq(decide_after(2, 1200), INF_STEP_UNDECIDED);
    cr_expect_eq(decide_after(3, 1200), INF_STEP_PAYS);
    cr_expect_eq(decide_after(2, 2200), INF_STEP_UNDECIDED);
    cr_expect_eq(decide_after(3, 2200), INF_STEP_COSTS);
    struct inf_step_timing timing = time_turns(3, 1200);
    cr_expect_float_eq(inf_step_timing_factor(&timing), 0.6, 1e-12);
    timing = time_turns(0, 0);
    cr_expect_float_eq(inf_step_timing_factor(&timing), 0, 0);
}

Test(step_timing, takes_more_runs_near_the_limit)
{
    cr_expect_eq(decide_after(3, 1500), INF_STEP_PAYS, "not near yet");
    cr_expect_eq(decide_after(11, 1510), INF_STEP_UNDECIDED);
    cr_expect_eq(decide_after(12, 1510), INF_STEP_PAYS);
    cr_expect_eq(decide_after(11, 1800), INF_STEP_UNDECIDED);
    cr_expect_eq(decide_after(12, 1800), INF_STEP_PAYS);
    cr_expect_eq(decide_after(12, 1801), INF_STEP_COSTS);
    cr_expect_eq(decide_after(11, 2099), INF_STEP_UNDECIDED);
    cr_expect_eq(decide_after(3, 2100), INF_STEP_COSTS);
}

// The longer runs stand for runs that other programs delayed without interrupting their threads.
Test(step_timing, compares_the_least_times)
{
    struct inf_step_timing timing = {.fewer = 2, .more = 4};
    for (uint32_t i = 0; i < INF_STEP_RUNS_MIN; i++)
        inf_step_timing_note(&timing, (struct inf_step_time){i == 1 ? 1000 : 3000, false},
                             (struct inf_step_time){i == 2 ? 1400 : 9000, false});
    cr_expect_eq(timing.fewer_ns, 1000u);
    cr_expect_eq(timing.more_ns, 1400u);
    cr_expect_eq(inf_step_timing_decide(&timing), INF_STEP_PAYS);
}

Test(step_timing, does_not_count_disturbed_runs)
{
    struct inf_step_timing timing = {.fewer = 1, .more = 2};
    for (uint32_t i = 1; i < INF_STEP_TURNS_MAX; i++) {
        inf_step_timing_note(&timing, (struct inf_step_time){1000, false},
                             (struct inf_step_time){5000, true});
        cr_expect_eq(inf_step_timing_decide(&timing), INF_STEP_UNDECIDED, "turn %u", i);
    }
    inf_step_timing_note(&timing, (struct inf_step_time){1000, false},
                         (struct inf_step_time){500, true});
    cr_expect_eq(timing.more_ns, 0u);
    cr_expect_eq(inf_step_timing_decide(&timing), INF_STEP_DISTURBED);
    // The runs of fewer steps are disturbed.
    timing = (struct inf_step_timing){.fewer = 1, .more = 2};
    for (uint32_t i = 0; i < INF_STEP_TURNS_MAX; i++)
        inf_step_timing_note(&timing, (struct inf_step_time){1000, i > 1},
                             (struct inf_step_time){1200, false});
    cr_expect_eq(inf_step_timing_decide(&timing), INF_STEP_DISTURBED);
}

// It is enough if some of the runs are undisturbed.
Test(step_timing, decides_if_enough_runs_were_undisturbed)
{
    struct inf_step_timing timing = {.fewer = 1, .more = 2};
    for (uint32_t i = 0; i < 9; i++)
        inf_step_timing_note(&timing, (struct inf_step_time){1000, i % 3 != 0},
                             (struct inf_step_time){1200, i % 3 != 1});
    cr_expect_eq(inf_step_timing_decide(&timing), INF_STEP_PAYS);
}

Test(step_timing, makes_the_ladder_of_ratios)
{
    struct inf_step_findings findings = {.refused = 0};
    struct inf_step_timing timing = time_turns(3, 1200);
    inf_step_findings_add(&findings, &timing);
    cr_assert_eq(findings.ladder.count, 2);
    cr_expect_eq(findings.ladder.rungs[0].rows, 1u);
    cr_expect_eq(findings.ladder.rungs[0].run_ns, 1000u);
    cr_expect_eq(findings.ladder.rungs[1].rows, 2u);
    cr_expect_eq(findings.ladder.rungs[1].run_ns, 1200u);
    // The machine is half as fast from here on.
    timing = (struct inf_step_timing){.fewer = 2, .more = 4, .fewer_ns = 2400, .more_ns = 3600};
    inf_step_findings_add(&findings, &timing);
    cr_assert_eq(findings.ladder.count, 3);
    cr_expect_eq(findings.ladder.rungs[2].rows, 4u);
    cr_expect_eq(findings.ladder.rungs[2].run_ns, 1800u);
    timing = (struct inf_step_timing){.fewer = 4, .more = 8, .fewer_ns = 1000, .more_ns = 1931};
    inf_step_findings_refuse(&findings, &timing);
    cr_expect_eq(findings.ladder.count, 3);
    cr_expect_eq(findings.refused, 8u);
    cr_expect_eq(findings.refused_permille, 966u);
}
