// SPDX-License-Identifier: Apache-2.0
#include "backends/base/idle_gate.h"

#include <time.h>

#include "backends/base/clock.h"

// How often whoever waits looks again.
#define LOOK_NS 1000000

void inf_idle_gate_stir(struct inf_idle_gate *idle_gate)
{
    atomic_fetch_add(&idle_gate->busy, 1);
    atomic_store(&idle_gate->stirred, true);
}

void inf_idle_gate_settle(struct inf_idle_gate *idle_gate)
{
    atomic_store(&idle_gate->served_ns, inf_clock_ns());
    atomic_fetch_sub(&idle_gate->busy, 1);
}

void inf_idle_gate_end(struct inf_idle_gate *idle_gate)
{
    atomic_store(&idle_gate->ending, true);
    atomic_store(&idle_gate->stirred, true);
}

static bool is_calm(const struct inf_idle_gate *idle_gate)
{
    return atomic_load(&idle_gate->busy) == 0 &&
           inf_clock_ns() - atomic_load(&idle_gate->served_ns) >= INF_IDLE_GATE_NS;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

enum inf_idle_gate_answer inf_idle_gate_wait(struct inf_idle_gate *idle_gate)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_IDLE_GATE_PATIENCE_NS;
    while (!atomic_load(&idle_gate->ending)) {
        // Taken back before the look: what comes in between is seen by one of the two.
        atomic_store(&idle_gate->stirred, false);
        if (is_calm(idle_gate) && !atomic_load(&idle_gate->ending))
            return INF_IDLE_GATE_NOW;
        if (inf_clock_ns() >= end_ns)
            return INF_IDLE_GATE_NEVER;
        nap();
    }
    return INF_IDLE_GATE_ENDED;
}

void inf_idle_gate_await(const struct inf_idle_gate *idle_gate, const atomic_bool *ending)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_IDLE_GATE_PATIENCE_NS;
    while (!is_calm(idle_gate) && !atomic_load(ending) && inf_clock_ns() < end_ns)
        nap();
}

bool inf_idle_gate_pause(struct inf_idle_gate *idle_gate, uint64_t worked_ns)
{
    inf_role_check_may_block();
    uint64_t pause_ns = worked_ns < INF_IDLE_GATE_PAUSE_MAX_NS / INF_IDLE_GATE_PAUSES
                            ? worked_ns * INF_IDLE_GATE_PAUSES
                            : INF_IDLE_GATE_PAUSE_MAX_NS;
    uint64_t end_ns = inf_clock_ns() + pause_ns;
    while (!atomic_load(&idle_gate->ending) && inf_clock_ns() < end_ns)
        nap();
    return !atomic_load(&idle_gate->ending);
}
