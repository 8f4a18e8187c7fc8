// SPDX-License-Identifier: Apache-2.0
// Runs of low priority use what is idle and give way within one step.
//
// The problem: a request of low priority may run for seconds. Once it runs, its priority no longer
// matters, and if such runs have all slots, an urgent request waits for the end of one of them.
//
// The idea: one slot stays free of runs of low priority, so another request starts at once. While
// it runs, runs of low priority pause before their next step, so it has all cores. A single run of
// low priority still uses all cores while nothing else runs, by its helper threads.
//
//     slot 0   low ===== pause ------- low =====
//     slot 1         normal =========
//
// Why no run pauses for ever: a request that has waited or run for INF_FAIR_QUEUE_AGING_MS counts
// as one class more urgent, and no longer pauses. Why no run waits for one that pauses: only
// runs in progress make others pause. A request that waits, for example because its model may have
// one run and that run pauses, does not.
#include "daemon/schedule/queue/low_runs.h"

#include <assert.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

void inf_low_runs_init(struct inf_low_runs *runs, uint32_t slots)
{
    *runs = (struct inf_low_runs){.slots = slots};
    inf_run_pause_init(&runs->pause);
}

void inf_low_runs_fini(struct inf_low_runs *runs)
{
    inf_run_pause_fini(&runs->pause);
}

uint32_t inf_low_runs_count_startable(const struct inf_low_runs *runs)
{
    uint32_t most = INF_MAX(runs->slots, 2u) - 1;
    // A run that would pause at once only takes a slot from others.
    if (runs->slots > 1 && runs->others > 0)
        return 0;
    return most > runs->low ? most - runs->low : 0;
}

void inf_low_runs_begin(struct inf_low_runs *runs, struct inf_job *const *jobs, uint32_t count,
                        uint64_t now_ns)
{
    bool low = runs->slots > 1;
    uint64_t until_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_fair_queue_entry *entry = &jobs[i]->queue_entry;
        low = low && inf_fair_queue_is_low(entry, now_ns);
        until_ns = INF_MIN(until_ns, entry->since_ns + INF_FAIR_QUEUE_AGING_MS * INF_NS_PER_MS);
    }
    jobs[0]->pause_until_ns = low ? until_ns : 0;
    runs->low += low;
    runs->others += !low;
    atomic_store(&runs->pause.wanted, runs->others > 0);
}

bool inf_low_runs_end(struct inf_low_runs *runs, const struct inf_job *first)
{
    bool low = first->pause_until_ns != 0;
    assert(low ? runs->low > 0 : runs->others > 0);
    runs->low -= low;
    runs->others -= !low;
    atomic_store(&runs->pause.wanted, runs->others > 0);
    return !low && runs->others == 0 && runs->low > 0;
}

void inf_low_runs_resume(struct inf_low_runs *runs)
{
    inf_run_pause_end(&runs->pause);
}
