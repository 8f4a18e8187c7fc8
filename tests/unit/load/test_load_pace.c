// SPDX-License-Identifier: Apache-2.0
// Loads give way to requests of other models, and requests do not starve loads.
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/load/load_pace.h"

#define PERIOD INF_LOAD_NICE_PERIOD_NS

Test(load_nice, is_low_beside_requests_of_other_models)
{
    struct inf_load_nice load = {0}, wanted = {.wanted = true};
    cr_expect_eq(inf_load_nice_choose(&load, false, PERIOD, 0), 0);
    cr_expect_eq(inf_load_nice_choose(&load, true, 2 * PERIOD, PERIOD / 2), 19);
    cr_expect_eq(inf_load_nice_choose(&load, false, 3 * PERIOD, PERIOD), 0);
    cr_expect_eq(inf_load_nice_choose(&wanted, true, PERIOD, 0), 0);
    cr_expect_eq(inf_load_nice_choose(&wanted, true, 2 * PERIOD, 0), 0);
}

Test(load_nice, rises_while_the_load_gets_nearly_nothing)
{
    struct inf_load_nice load = {0};
    cr_expect_eq(inf_load_nice_choose(&load, true, 5 * PERIOD, 7), 19, "nothing is known yet");
    // 5 % of a core is enough, less is not.
    uint64_t cpu_ns = 7 + PERIOD / 20;
    cr_expect_eq(inf_load_nice_choose(&load, true, 6 * PERIOD, cpu_ns), 19);
    cpu_ns += PERIOD / 20 - 1;
    cr_expect_eq(inf_load_nice_choose(&load, true, 7 * PERIOD, cpu_ns), 10);
    cr_expect_eq(inf_load_nice_choose(&load, true, 8 * PERIOD, cpu_ns), 10);
    cpu_ns += PERIOD / 10;
    cr_expect_eq(inf_load_nice_choose(&load, true, 9 * PERIOD, cpu_ns), 19);
}

// A machine of one core whose other thread has nice 0: shares are by the kernel's weights, 15 for
// nice 19, 110 for nice 10 and 1024 for nice 0. The load ends in time.
Test(load_nice, lets_no_load_starve)
{
    struct inf_load_nice load = {0};
    const uint64_t wanted_ns = INF_NS_PER_S;
    uint64_t cpu_ns = 0, now_ns = 0;
    while (cpu_ns < wanted_ns) {
        int nice = inf_load_nice_choose(&load, true, now_ns += PERIOD, cpu_ns);
        uint64_t weight = nice == 19 ? 15 : nice == 10 ? 110 : 1024;
        cpu_ns += PERIOD * weight / (weight + 1024);
        cr_assert_leq(now_ns, 2 * INF_LOAD_STARVED_PARTS * wanted_ns);
    }
}

static int nice_of_thread(void)
{
    return getpriority(PRIO_PROCESS, (id_t)gettid());
}

// Waits until the calling thread has this nice value, for 5 s at most.
static bool wait_for_nice(int nice)
{
    for (int i = 0; i < 500 && nice_of_thread() != nice; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    return nice_of_thread() == nice;
}

// Begins a load beside requests. Returns true if it has the lowest priority at once. If this thread
// was not run for a period, the load may count as starved; then nothing is known.
static bool begins_low(struct inf_load_pace *pace)
{
    uint64_t start_ns = inf_clock_ns();
    inf_load_pace_begin(pace, false);
    bool low = nice_of_thread() == INF_LOAD_NICE_LOW;
    return low || inf_clock_ns() - start_ns >= PERIOD;
}

static bool start_pace(struct inf_load_pace *pace, const struct inf_idle_gate *idle_gate)
{
    cr_assert_eq(inf_load_pace_init(pace, idle_gate, NULL), INF_OK);
    return pace->thread.started;
}

Test(load_pace, follows_the_requests, .timeout = 60)
{
    struct inf_idle_gate idle_gate = {0};
    struct inf_load_pace pace;
    int own = nice_of_thread();
    if (own > 9 || !start_pace(&pace, &idle_gate))
        cr_skip_test("threads may not raise their priority here");
    inf_load_pace_begin(&pace, false);
    cr_expect_eq(nice_of_thread(), own, "no request was served yet");
    inf_idle_gate_begin_request(&idle_gate);
    cr_expect(wait_for_nice(19) || wait_for_nice(10));
    // This thread sleeps, so it counts as starved.
    cr_expect(wait_for_nice(10));
    inf_idle_gate_end_request(&idle_gate);
    cr_expect(wait_for_nice(own), "a second after the last request");
    inf_load_pace_end(&pace);
    inf_idle_gate_begin_request(&idle_gate);
    cr_expect(begins_low(&pace), "from the beginning of the next load");
    cr_expect(nice_of_thread() != 19 || sched_getscheduler(0) == SCHED_IDLE);
    inf_load_pace_end(&pace);
    inf_load_pace_begin(&pace, true);
    cr_expect_eq(nice_of_thread(), own, "a request waits for the model");
    cr_expect_eq(sched_getscheduler(0), SCHED_OTHER);
    inf_load_pace_end(&pace);
    inf_load_pace_fini(&pace);
}

// A daemon that was started with a nice value keeps it.
Test(load_pace, does_not_rise_above_the_daemon, .timeout = 60)
{
    struct inf_idle_gate idle_gate = {0};
    struct inf_load_pace pace;
    cr_assert_eq(setpriority(PRIO_PROCESS, (id_t)gettid(), 15), 0);
    if (!start_pace(&pace, &idle_gate))
        cr_skip_test("threads may not raise their priority here");
    inf_load_pace_begin(&pace, true);
    cr_expect_eq(nice_of_thread(), 15);
    inf_load_pace_end(&pace);
    inf_idle_gate_begin_request(&idle_gate);
    cr_expect(begins_low(&pace));
    cr_expect(wait_for_nice(15), "as if it were starved");
    inf_load_pace_end(&pace);
    inf_load_pace_fini(&pace);
}

Test(load_pace, does_nothing_without_an_idle_gate)
{
    struct inf_load_pace pace;
    cr_expect_not(start_pace(&pace, NULL));
    inf_load_pace_begin(&pace, false);
    inf_load_pace_end(&pace);
    inf_load_pace_fini(&pace);
}
