// SPDX-License-Identifier: Apache-2.0
// Lets background work run only while no request is served.
//
// The gate counts requests when they begin and end. Work starts after the count has been 0 for
// INF_IDLE_GATE_QUIET_NS. A request that arrives meanwhile sets `interrupted`, which the background
// run polls as its `cancelled` flag. A waiter polls once per millisecond, so that no request has to
// wake a waiter. Requests therefore cost only two atomic operations.
//
// A daemon that is never idle must not starve background work. After INF_IDLE_GATE_TIMEOUT_NS the
// caller may run one short piece at a time, and then backs off for INF_IDLE_GATE_BACK_OFF_FACTOR
// times as long.
#include "backends/base/idle_gate.h"

#include <time.h>

#include "backends/base/clock.h"

// The time between two polls while waiting.
#define POLL_NS 1000000

void inf_idle_gate_begin_request(struct inf_idle_gate *idle_gate)
{
    atomic_fetch_add(&idle_gate->busy, 1);
    atomic_store(&idle_gate->interrupted, true);
}

void inf_idle_gate_end_request(struct inf_idle_gate *idle_gate)
{
    atomic_store(&idle_gate->served_ns, inf_clock_ns());
    atomic_fetch_sub(&idle_gate->busy, 1);
}

void inf_idle_gate_shut_down(struct inf_idle_gate *idle_gate)
{
    atomic_store(&idle_gate->shutting_down, true);
    atomic_store(&idle_gate->interrupted, true);
}

static bool is_idle(const struct inf_idle_gate *idle_gate)
{
    return atomic_load(&idle_gate->busy) == 0 &&
           inf_clock_ns() - atomic_load(&idle_gate->served_ns) >= INF_IDLE_GATE_QUIET_NS;
}

static void sleep_until_poll(void)
{
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

enum inf_idle_gate_result inf_idle_gate_wait_idle(struct inf_idle_gate *idle_gate)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_IDLE_GATE_TIMEOUT_NS;
    while (!atomic_load(&idle_gate->shutting_down)) {
        // Clear the flag before the check, so that a request that arrives in between is noticed by
        // the flag or by the check.
        atomic_store(&idle_gate->interrupted, false);
        if (is_idle(idle_gate) && !atomic_load(&idle_gate->shutting_down))
            return INF_IDLE_GATE_IDLE;
        if (inf_clock_ns() >= end_ns)
            return INF_IDLE_GATE_TIMEOUT;
        sleep_until_poll();
    }
    return INF_IDLE_GATE_SHUT_DOWN;
}

bool inf_idle_gate_wait_shared(const struct inf_idle_gate *idle_gate, const atomic_bool *stop)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_IDLE_GATE_TIMEOUT_NS;
    bool idle;
    while (!(idle = is_idle(idle_gate)) && !atomic_load(stop) && inf_clock_ns() < end_ns)
        sleep_until_poll();
    return idle;
}

bool inf_idle_gate_back_off(struct inf_idle_gate *idle_gate, uint64_t worked_ns)
{
    inf_role_check_may_block();
    uint64_t pause_ns = worked_ns < INF_IDLE_GATE_BACK_OFF_MAX_NS / INF_IDLE_GATE_BACK_OFF_FACTOR
                            ? worked_ns * INF_IDLE_GATE_BACK_OFF_FACTOR
                            : INF_IDLE_GATE_BACK_OFF_MAX_NS;
    uint64_t end_ns = inf_clock_ns() + pause_ns;
    while (!atomic_load(&idle_gate->shutting_down) && inf_clock_ns() < end_ns)
        sleep_until_poll();
    return !atomic_load(&idle_gate->shutting_down);
}
