// SPDX-License-Identifier: Apache-2.0
// Predicts how long a job waits for a slot.
//
// Without limits, all slots work off the jobs that go first: wait = work / slots. Limits divide the
// slots, so two corrections follow.
//
// Other models. The work of another model is left out, together with the slots that it uses, if the
// model has those slots for itself:
//   - a model with `runs_max` whose own work takes longer on `runs_max` slots than all work takes
//     on all slots. It uses exactly `runs_max` slots, and the rest serves the other models.
//   - a model with a reservation whose own work takes less time on its reserved slots than all work
//     takes on all slots. It stays within its reservation, which the other models cannot use.
//
// The model itself. A model with `runs_max` waits at least until its own work is done by that many
// slots. A model with a reservation waits at most until its reserved slots have done its own work.
//
// An example with 2 slots, where A has runs_max = 1 and 10 jobs of 100 ms, one of them running, and
// B has one running job with 20 ms left:
//
//   next job of B   without limits (1000 + 20) / 2 = 510 ms; A keeps one slot, so 20 / 1 = 20 ms
//   next job of A   without limits 510 ms; its own work takes 1000 / 1 = 1000 ms
#include "daemon/policy/wait_estimate.h"

#include <stddef.h>

#include "proto/core/span.h"

// Returns the remaining device time of the running jobs of a model, from their expected end times.
static uint64_t find_running_ns(const struct inf_slot_share_jobs *jobs, uint64_t now_ns)
{
    uint64_t elapsed_ns = jobs->running * now_ns;
    return jobs->ends_sum_ns > elapsed_ns ? jobs->ends_sum_ns - elapsed_ns : 0;
}

static uint64_t find_work_ns(const struct inf_slot_share_model *entry, uint64_t now_ns)
{
    return entry->jobs.waiting_ns + find_running_ns(&entry->jobs, now_ns);
}

static const struct inf_slot_share_model *find_model(const struct inf_slot_share *share,
                                                     uint64_t model)
{
    for (uint32_t i = 0; i < share->count; i++)
        if (share->models[i].model == model)
            return &share->models[i];
    return NULL;
}

// Returns how many waiting jobs belong to other models that may not start a run.
static uint32_t count_blocked(const struct inf_slot_share *share, uint64_t model, uint64_t now_ns)
{
    uint32_t blocked = 0;
    for (uint32_t i = 0; i < share->count; i++) {
        const struct inf_slot_share_model *entry = &share->models[i];
        if (entry->model != model && entry->jobs.waiting > 0 &&
            !inf_slot_share_may_begin(share, entry->model, now_ns))
            blocked += entry->jobs.waiting;
    }
    return blocked;
}

bool inf_wait_estimate_starts_at_once(const struct inf_slot_share *share, uint64_t model,
                                      uint32_t queued, uint64_t now_ns)
{
    uint32_t startable = inf_slot_share_count_startable(share, model, now_ns);
    const struct inf_slot_share_model *entry = find_model(share, model);
    // Other models leave the reserved slots free, so only the model's own jobs compete for them.
    if (entry != NULL && entry->limits.reserved > entry->running &&
        entry->jobs.waiting < INF_MIN(startable, entry->limits.reserved - entry->running))
        return true;
    // Jobs of the model beyond its limit leave the slots to other models, and so do blocked jobs.
    uint32_t blocked = count_blocked(share, model, now_ns);
    return queued < startable + INF_MIN(blocked, queued);
}

// Returns true if a model has slots for itself, and sets *out_slots to their number. `all_ns` is
// the time in which all slots do all work.
static bool has_own_slots(const struct inf_slot_share *share,
                          const struct inf_slot_share_model *entry, uint64_t all_ns,
                          uint64_t now_ns, uint32_t *out_slots)
{
    uint32_t most = entry->limits.runs_max;
    uint32_t reserved = inf_slot_share_count_reserved(share, entry, now_ns);
    uint64_t own_ns = find_work_ns(entry, now_ns);
    bool limited = most > 0 && own_ns / most > all_ns;
    *out_slots = limited ? most : reserved;
    return limited || (reserved > 0 && own_ns / reserved <= all_ns);
}

// Returns the time in which the other slots have done the work that goes first, without that of
// other models that have slots for themselves. At least one slot stays.
static uint64_t find_shared_ns(const struct inf_slot_share *share, uint64_t model,
                               const struct inf_wait_work *work, uint64_t now_ns)
{
    uint32_t slots = share->slots, own_slots = 0;
    uint64_t all_ns = (work->ahead_ns + work->running_ns) / slots;
    uint64_t waiting_ns = work->waiting_ns, running_ns = work->running_ns;
    for (uint32_t i = 0; i < share->count; i++) {
        const struct inf_slot_share_model *entry = &share->models[i];
        if (entry->model == model || !has_own_slots(share, entry, all_ns, now_ns, &own_slots) ||
            own_slots >= slots)
            continue;
        slots -= own_slots;
        waiting_ns -= INF_MIN(entry->jobs.waiting_ns, waiting_ns);
        running_ns -= INF_MIN(find_running_ns(&entry->jobs, now_ns), running_ns);
    }
    return (INF_MIN(work->ahead_ns, waiting_ns) + running_ns) / slots;
}

uint64_t inf_wait_estimate_start_ns(const struct inf_slot_share *share, uint64_t model,
                                    const struct inf_wait_work *work, uint64_t now_ns)
{
    if (inf_wait_estimate_starts_at_once(share, model, work->queued, now_ns))
        return 0;
    const struct inf_slot_share_model *entry = find_model(share, model);
    uint64_t wait_ns = find_shared_ns(share, model, work, now_ns);
    if (entry == NULL)
        return wait_ns;
    // Not all waiting jobs of the model go first: some may be less urgent.
    uint64_t own_ns =
        INF_MIN(entry->jobs.waiting_ns, work->ahead_ns) + find_running_ns(&entry->jobs, now_ns);
    if (entry->limits.reserved > 0)
        wait_ns = INF_MIN(wait_ns, own_ns / INF_MIN(entry->limits.reserved, share->slots));
    if (entry->limits.runs_max > 0)
        wait_ns = INF_MAX(wait_ns, own_ns / entry->limits.runs_max);
    return wait_ns;
}

uint64_t inf_wait_estimate_drain_ns(const struct inf_slot_share *share,
                                    const struct inf_wait_work *work, uint64_t now_ns)
{
    uint64_t drain_ns = (work->waiting_ns + work->running_ns) / share->slots;
    for (uint32_t i = 0; i < share->count; i++) {
        const struct inf_slot_share_model *entry = &share->models[i];
        if (entry->limits.runs_max > 0)
            drain_ns = INF_MAX(drain_ns, find_work_ns(entry, now_ns) / entry->limits.runs_max);
    }
    return drain_ns;
}
