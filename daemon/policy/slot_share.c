// SPDX-License-Identifier: Apache-2.0
// Divides the slots of a device among models with limits and reservations.
//
// The problem: a model that must answer within milliseconds shares a device with models whose runs
// take much longer. If those runs have all slots, the next request waits until one of them ends,
// whatever its priority is.
//
// The idea: a run of another model starts only if enough slots stay free for every reservation that
// is not in use. A run within a reservation needs only a free slot. An example with 4 slots, where
// A reserves 2:
//
//   running      free   kept for A   a run of B
//   -            4      2            may start
//   B            3      2            may start
//   B B          2      2            waits
//   B B A        1      1            waits
//   B A A        1      0            may start
//
// Reserved slots are free, but on the cpu device their cores are not idle: a run of B has helper
// threads on them, which leave as soon as A begins.
//
// Why no request waits for ever: reservations together keep at most `slots` - 1 slots free, so any
// model may start if nothing runs, and each end of a run lets the caller choose again.
#include "daemon/policy/slot_share.h"

#include <assert.h>
#include <stddef.h>

#include "backends/base/clock.h"
#include "proto/core/span.h"

static struct inf_slot_share_model *find_model(struct inf_slot_share *share, uint64_t model)
{
    for (uint32_t i = 0; i < share->count; i++)
        if (share->models[i].model == model)
            return &share->models[i];
    return NULL;
}

// Returns an element for a new model: an unused one, or that of the model without runs and waiting
// jobs whose last request is oldest. Returns NULL if all models run or wait.
static struct inf_slot_share_model *take_element(struct inf_slot_share *share)
{
    struct inf_slot_share_model *oldest = NULL;
    if (share->count < INF_SLOT_SHARE_MODELS)
        return &share->models[share->count++];
    for (uint32_t i = 0; i < share->count; i++) {
        struct inf_slot_share_model *entry = &share->models[i];
        bool idle = entry->running == 0 && entry->jobs.waiting == 0 && entry->jobs.running == 0;
        if (idle && (oldest == NULL || entry->asked_ns < oldest->asked_ns))
            oldest = entry;
    }
    return oldest;
}

void inf_slot_share_note(struct inf_slot_share *share, uint64_t model,
                         const struct inf_slot_limits *limits, uint64_t now_ns)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    if (entry == NULL) {
        if (limits->runs_max == 0 && limits->reserved == 0)
            return;
        entry = take_element(share);
        if (entry == NULL)
            return;
        *entry = (struct inf_slot_share_model){.model = model};
    }
    entry->limits = *limits;
    entry->asked_ns = now_ns;
}

uint32_t inf_slot_share_count_reserved(const struct inf_slot_share *share,
                                       const struct inf_slot_share_model *entry, uint64_t now_ns)
{
    bool idle = now_ns > entry->asked_ns + INF_SLOT_SHARE_IDLE_MS * INF_NS_PER_MS;
    return idle ? 0 : INF_MIN(entry->limits.reserved, share->slots);
}

// Returns how many slots must stay free for reservations of models other than `model`.
static uint32_t count_kept(const struct inf_slot_share *share, uint64_t model, uint64_t now_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < share->count; i++) {
        const struct inf_slot_share_model *entry = &share->models[i];
        uint32_t reserved = inf_slot_share_count_reserved(share, entry, now_ns);
        if (entry->model != model && reserved > entry->running)
            kept += reserved - entry->running;
    }
    return INF_MIN(kept, share->slots - 1);
}

uint32_t inf_slot_share_count_startable(const struct inf_slot_share *share, uint64_t model,
                                        uint64_t now_ns)
{
    assert(share->slots > 0);
    if (share->running >= share->slots)
        return 0;
    uint32_t free = share->slots - share->running, kept = count_kept(share, model, now_ns);
    uint32_t count = free > kept ? free - kept : 0, most = free;
    for (uint32_t i = 0; i < share->count; i++) {
        const struct inf_slot_share_model *entry = &share->models[i];
        if (entry->model != model)
            continue;
        if (entry->limits.runs_max > 0)
            most = INF_MIN(most, entry->limits.runs_max -
                                     INF_MIN(entry->running, entry->limits.runs_max));
        if (entry->limits.reserved > entry->running)
            count = INF_MAX(count, entry->limits.reserved - entry->running);
    }
    return INF_MIN(count, most);
}

bool inf_slot_share_may_begin(const struct inf_slot_share *share, uint64_t model, uint64_t now_ns)
{
    return inf_slot_share_count_startable(share, model, now_ns) > 0;
}

void inf_slot_share_begin(struct inf_slot_share *share, uint64_t model)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    share->running++;
    if (entry != NULL)
        entry->running++;
}

void inf_slot_share_end(struct inf_slot_share *share, uint64_t model)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    assert(share->running > 0);
    share->running--;
    // A model that got its element during the run was not counted when the run began.
    if (entry != NULL && entry->running > 0)
        entry->running--;
}

// --- counting the jobs of models with limits ---

// A model may get its element while some of its jobs wait or run, so those are not counted, and the
// functions below stop at zero.

void inf_slot_share_add_waiting(struct inf_slot_share *share, uint64_t model, uint64_t cost_ns)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    if (entry == NULL)
        return;
    entry->jobs.waiting++;
    entry->jobs.waiting_ns += cost_ns;
}

void inf_slot_share_remove_waiting(struct inf_slot_share *share, uint64_t model, uint64_t cost_ns)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    if (entry == NULL || entry->jobs.waiting == 0)
        return;
    entry->jobs.waiting--;
    entry->jobs.waiting_ns -= INF_MIN(cost_ns, entry->jobs.waiting_ns);
}

void inf_slot_share_begin_job(struct inf_slot_share *share, uint64_t model, uint64_t end_ns)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    if (entry == NULL)
        return;
    entry->jobs.running++;
    entry->jobs.ends_sum_ns += end_ns;
}

void inf_slot_share_end_job(struct inf_slot_share *share, uint64_t model, uint64_t end_ns)
{
    struct inf_slot_share_model *entry = find_model(share, model);
    if (entry == NULL || entry->jobs.running == 0)
        return;
    entry->jobs.running--;
    entry->jobs.ends_sum_ns -= INF_MIN(end_ns, entry->jobs.ends_sum_ns);
}
