// SPDX-License-Identifier: Apache-2.0
// Decides how long an idle thread polls before it sleeps.
//
// Waking a sleeping CPU takes longer than a small request (about 40 us in a virtual machine). A
// thread that polls reacts immediately, but takes a CPU from other threads. Two rules limit that
// cost:
//
//   - Spin only if the last wait ended within the limit, because then the next wait probably does
//     too. After one long wait the thread sleeps without spinning, until a wait is short again.
//   - The limit is a quarter of the last run time, but at least INF_SPIN_WAIT_MIN_NS and at most
//     INF_SPIN_WAIT_MAX_NS. For long runs, spinning therefore uses at most a fifth of the CPU time.
//
// Between two polls the thread yields. If the yield takes long, another thread needs this CPU, and
// the caller stops spinning.
#include "backends/base/spin_wait.h"

#include <sched.h>

#include "backends/base/clock.h"
#include "proto/core/attributes.h"

// If a yield takes longer than this, a thread that computes used the CPU meanwhile. For comparison:
// a client that sends a request takes about 20 us, and a timer tick 100 us in a virtual machine.
#define TAKEN_NS 200000u

void inf_spin_wait_init(struct inf_spin_wait *spin_wait, uint32_t cores)
{
    *spin_wait = (struct inf_spin_wait){.possible = cores > 1, .limit_ns = INF_SPIN_WAIT_MIN_NS};
}

bool inf_spin_wait_should_spin(const struct inf_spin_wait *spin_wait)
{
    return spin_wait->possible && spin_wait->last_short;
}

void inf_spin_wait_note_work(struct inf_spin_wait *spin_wait, uint64_t took_ns)
{
    uint64_t share_ns = INF_MAX(took_ns / 4, (uint64_t)INF_SPIN_WAIT_MIN_NS);
    spin_wait->limit_ns = INF_MIN(share_ns, (uint64_t)INF_SPIN_WAIT_MAX_NS);
}

void inf_spin_wait_note_wait(struct inf_spin_wait *spin_wait, uint64_t waited_ns)
{
    spin_wait->last_short = waited_ns <= spin_wait->limit_ns;
}

bool inf_spin_wait_yield(void)
{
    uint64_t begin_ns = inf_clock_ns();
    sched_yield();
    return inf_clock_ns() - begin_ns < TAKEN_NS;
}
