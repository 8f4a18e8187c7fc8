// SPDX-License-Identifier: Apache-2.0
#include "backends/base/idle_gate.h"

#include <time.h>

#include "backends/base/clock.h"

// How often whoever waits looks again.
#define LOOK_NS 1000000

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

static bool is_calm(const struct inf_idle_gate *idle_gate)
{
    return atomic_load(&idle_gate->busy) == 0 &&
           inf_clock_ns() - atomic_load(&idle_gate->served_ns) >= INF_IDLE_GATE_QUIET_NS;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

enum inf_idle_gate_result inf_idle_gate_wait_idle(struct inf_idle_gate *idle_gate)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_IDLE_GATE_TIMEOUT_NS;
    while (!atomic_load(&idle_gate->shutting_down)) {
        // Taken back before the look: what comes in between is seen by one of the two.
        atomic_store(&idle_gate->interrupted, false);
        if (is_calm(idle_gate) && !atomic_load(&idle_gate->shutting_down))
            return INF_IDLE_GATE_IDLE;
        if (inf_clock_ns() >= end_ns)
            return INF_IDLE_GATE_TIMEOUT;
        nap();
    }
    return INF_IDLE_GATE_SHUT_DOWN;
}

void inf_idle_gate_wait_shared(const struct inf_idle_gate *idle_gate, const atomic_bool *ending)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_IDLE_GATE_TIMEOUT_NS;
    while (!is_calm(idle_gate) && !atomic_load(ending) && inf_clock_ns() < end_ns)
        nap();
}

bool inf_idle_gate_back_off(struct inf_idle_gate *idle_gate, uint64_t worked_ns)
{
    inf_role_check_may_block();
    uint64_t pause_ns = worked_ns < INF_IDLE_GATE_BACK_OFF_MAX_NS / INF_IDLE_GATE_BACK_OFF_FACTOR
                            ? worked_ns * INF_IDLE_GATE_BACK_OFF_FACTOR
                            : INF_IDLE_GATE_BACK_OFF_MAX_NS;
    uint64_t end_ns = inf_clock_ns() + pause_ns;
    while (!atomic_load(&idle_gate->shutting_down) && inf_clock_ns() < end_ns)
        nap();
    return !atomic_load(&idle_gate->shutting_down);
}
