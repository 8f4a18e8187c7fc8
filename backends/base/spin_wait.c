// SPDX-License-Identifier: Apache-2.0
#include "backends/base/spin_wait.h"

#include <sched.h>

#include "backends/base/clock.h"
#include "proto/core/attributes.h"

// Giving the processor away takes longer than this where somebody takes it who computes. A client that
// asks takes some 20 us; a tick of the clock 100 us in a virtual machine.
#define TAKEN_NS 200000u

void inf_spin_wait_init(struct inf_spin_wait *spin_wait, uint32_t cores)
{
    *spin_wait = (struct inf_spin_wait){.possible = cores > 1, .limit_ns = INF_SPIN_WAIT_MIN_NS};
}

bool inf_spin_wait_should_spin(const struct inf_spin_wait *spin_wait)
{
    return spin_wait->possible && spin_wait->lately;
}

void inf_spin_wait_note_work(struct inf_spin_wait *spin_wait, uint64_t took_ns)
{
    uint64_t share_ns = INF_MAX(took_ns / 4, (uint64_t)INF_SPIN_WAIT_MIN_NS);
    spin_wait->limit_ns = INF_MIN(share_ns, (uint64_t)INF_SPIN_WAIT_MAX_NS);
}

void inf_spin_wait_note_wait(struct inf_spin_wait *spin_wait, uint64_t waited_ns)
{
    spin_wait->lately = waited_ns <= spin_wait->limit_ns;
}

bool inf_spin_wait_yield(void)
{
    uint64_t begin_ns = inf_clock_ns();
    sched_yield();
    return inf_clock_ns() - begin_ns < TAKEN_NS;
}
