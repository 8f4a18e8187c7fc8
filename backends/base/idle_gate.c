// SPDX-License-Identifier: Apache-2.0
#include "backends/base/idle_gate.h"

#include <time.h>

#include "backends/base/clock.h"

// How often whoever waits looks again.
#define LOOK_NS 1000000

void inf_calm_stir(struct inf_calm *calm)
{
    atomic_fetch_add(&calm->busy, 1);
    atomic_store(&calm->stirred, true);
}

void inf_calm_settle(struct inf_calm *calm)
{
    atomic_store(&calm->served_ns, inf_clock_ns());
    atomic_fetch_sub(&calm->busy, 1);
}

void inf_calm_end(struct inf_calm *calm)
{
    atomic_store(&calm->ending, true);
    atomic_store(&calm->stirred, true);
}

static bool is_calm(const struct inf_calm *calm)
{
    return atomic_load(&calm->busy) == 0 &&
           inf_clock_ns() - atomic_load(&calm->served_ns) >= INF_CALM_NS;
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
}

enum inf_calm_answer inf_calm_wait(struct inf_calm *calm)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_CALM_PATIENCE_NS;
    while (!atomic_load(&calm->ending)) {
        // Taken back before the look: what comes in between is seen by one of the two.
        atomic_store(&calm->stirred, false);
        if (is_calm(calm) && !atomic_load(&calm->ending))
            return INF_CALM_NOW;
        if (inf_clock_ns() >= end_ns)
            return INF_CALM_NEVER;
        nap();
    }
    return INF_CALM_ENDED;
}

void inf_calm_await(const struct inf_calm *calm, const atomic_bool *ending)
{
    inf_role_check_may_block();
    uint64_t end_ns = inf_clock_ns() + INF_CALM_PATIENCE_NS;
    while (!is_calm(calm) && !atomic_load(ending) && inf_clock_ns() < end_ns)
        nap();
}

bool inf_calm_pause(struct inf_calm *calm, uint64_t worked_ns)
{
    inf_role_check_may_block();
    uint64_t pause_ns = worked_ns < INF_CALM_PAUSE_MAX_NS / INF_CALM_PAUSES
                            ? worked_ns * INF_CALM_PAUSES
                            : INF_CALM_PAUSE_MAX_NS;
    uint64_t end_ns = inf_clock_ns() + pause_ns;
    while (!atomic_load(&calm->ending) && inf_clock_ns() < end_ns)
        nap();
    return !atomic_load(&calm->ending);
}
