// SPDX-License-Identifier: Apache-2.0
#include "backends/base/spin_wait.h"

#include <sched.h>

#include "backends/base/clock.h"
#include "proto/core/attributes.h"

// Giving the processor away takes longer than this where somebody takes it who computes. A client that
// asks takes some 20 us; a tick of the clock 100 us in a virtual machine.
#define TAKEN_NS 200000u

void inf_patience_init(struct inf_patience *patience, uint32_t cores)
{
    *patience = (struct inf_patience){.possible = cores > 1, .limit_ns = INF_PATIENCE_LEAST_NS};
}

bool inf_patience_pays(const struct inf_patience *patience)
{
    return patience->possible && patience->lately;
}

void inf_patience_worked(struct inf_patience *patience, uint64_t took_ns)
{
    uint64_t share_ns = INF_MAX(took_ns / 4, (uint64_t)INF_PATIENCE_LEAST_NS);
    patience->limit_ns = INF_MIN(share_ns, (uint64_t)INF_PATIENCE_MOST_NS);
}

void inf_patience_note(struct inf_patience *patience, uint64_t waited_ns)
{
    patience->lately = waited_ns <= patience->limit_ns;
}

bool inf_patience_breathe(void)
{
    uint64_t begin_ns = inf_clock_ns();
    sched_yield();
    return inf_clock_ns() - begin_ns < TAKEN_NS;
}
