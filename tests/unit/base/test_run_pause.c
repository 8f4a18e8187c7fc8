// SPDX-License-Identifier: Apache-2.0
// Runs that pause between two steps: until the pause ends, the run is cancelled, or its time is up.
#include <criterion/criterion.h>

#include "backends/base/clock.h"
#include "backends/device/run_step.h"

#define MS         INF_NS_PER_MS
#define PATIENT_NS (UINT64_C(10) * 1000 * MS)

static struct inf_run_pause pause_state;
static struct inf_run_step step;

static void start_test(void)
{
    inf_run_pause_init(&pause_state);
    inf_run_step_init(&step);
}

static void end_test(void)
{
    inf_run_step_fini(&step);
    inf_run_pause_fini(&pause_state);
}

TestSuite(run_pause, .init = start_test, .fini = end_test, .timeout = 60);

static void watch_pause(uint64_t until_ns)
{
    step.pause = &pause_state;
    step.pause_until_ns = until_ns;
    step.paused_ns = 0;
}

Test(run_pause, only_a_wanted_pause_stops_a_run)
{
    cr_expect_not(inf_run_step_must_pause(NULL));
    cr_expect_not(inf_run_step_must_pause(&step), "the run watches no pause");
    watch_pause(UINT64_MAX);
    cr_expect_not(inf_run_step_must_pause(&step));
    atomic_store(&pause_state.wanted, true);
    cr_expect(inf_run_step_must_pause(&step));
}

Test(run_pause, ends_when_the_time_of_the_run_is_up)
{
    uint64_t begin_ns = inf_clock_ns();
    atomic_store(&pause_state.wanted, true);
    watch_pause(begin_ns + 12 * MS);
    inf_run_step_pause(&step, NULL);
    cr_expect_geq(inf_clock_ns(), begin_ns + 12 * MS);
    cr_expect_gt(step.paused_ns, 0u);
    cr_expect_leq(step.paused_ns, inf_clock_ns() - begin_ns);
    cr_expect_not(inf_run_step_must_pause(&step), "it pauses no longer");
}

// Runs of loads pause while requests are served.
Test(run_pause, lasts_while_requests_are_served)
{
    static atomic_bool cancelled = true;
    struct inf_idle_gate idle_gate = {0};
    step.idle_gate = &idle_gate;
    step.pause_until_ns = inf_clock_ns() + PATIENT_NS;
    step.paused_ns = 0;
    cr_expect_not(inf_run_step_must_pause(&step));
    inf_idle_gate_begin_request(&idle_gate);
    cr_expect(inf_run_step_must_pause(&step));
    inf_run_step_pause(&step, &cancelled);
    cr_expect(inf_run_step_must_pause(&step), "a cancelled run only leaves the pause");
    inf_idle_gate_end_request(&idle_gate);
    inf_run_step_pause(&step, NULL);
    cr_expect_not(inf_run_step_must_pause(&step));
    inf_idle_gate_begin_request(&idle_gate);
    step.pause_until_ns = inf_clock_ns() + 12 * MS;
    inf_run_step_pause(&step, NULL);
    cr_expect_gt(step.paused_ns, 0u);
    cr_expect_not(inf_run_step_must_pause(&step), "it pauses no longer");
}

Test(run_pause, ends_if_the_run_is_cancelled)
{
    static atomic_bool cancelled = true;
    uint64_t begin_ns = inf_clock_ns();
    atomic_store(&pause_state.wanted, true);
    watch_pause(begin_ns + PATIENT_NS);
    inf_run_step_pause(&step, &cancelled);
    cr_expect_lt(inf_clock_ns(), begin_ns + PATIENT_NS);
}

static void pause_patiently(void *context)
{
    watch_pause(inf_clock_ns() + PATIENT_NS);
    inf_run_step_pause(&step, NULL);
    *(uint64_t *)context = inf_clock_ns();
}

Test(run_pause, ends_for_all_runs_at_once)
{
    struct inf_thread thread = {0};
    uint64_t ended_ns = 0, begin_ns = inf_clock_ns();
    atomic_store(&pause_state.wanted, true);
    cr_assert_eq(inf_thread_start(&thread, "pauses", pause_patiently, &ended_ns, NULL), INF_OK);
    atomic_store(&pause_state.wanted, false);
    inf_run_pause_end(&pause_state);
    inf_thread_join(&thread);
    cr_expect_lt(ended_ns, begin_ns + PATIENT_NS);
    cr_expect_not_null(step.pause);
}
