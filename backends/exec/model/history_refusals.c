// SPDX-License-Identifier: Apache-2.0
// A small table of refused shapes and numbers of rows, searched from its beginning. Shapes are
// compared by a hash: if two sets of shapes have the same hash and the first one was refused, the
// second one runs without a history in place, which is slower but gives the same results.
#include "backends/exec/model/history_refusals.h"

#include <assert.h>

#include "proto/core/span.h"

void inf_history_refusals_init(struct inf_history_refusals *refusals)
{
    *refusals = (struct inf_history_refusals){.next = 0};
    inf_mutex_init(&refusals->mutex);
}

void inf_history_refusals_fini(struct inf_history_refusals *refusals)
{
    inf_mutex_fini(&refusals->mutex);
}

static uint64_t add_number(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

uint64_t inf_history_refusals_hash(const struct inf_shape *shapes, uint32_t count,
                                   uint32_t sessions)
{
    uint64_t hash = add_number(count, sessions);
    for (uint32_t i = 0; i < count; i++) {
        hash = add_number(hash, (uint64_t)shapes[i].rank);
        for (int32_t axis = 0; axis < shapes[i].rank; axis++)
            hash = add_number(hash, (uint64_t)shapes[i].dims[axis]);
    }
    return hash;
}

bool inf_history_refusals_have(struct inf_history_refusals *refusals, uint64_t shapes,
                               uint32_t room, uint64_t now_ns)
{
    bool found = false;
    inf_mutex_lock(&refusals->mutex);
    for (uint32_t i = 0; i < INF_HISTORY_REFUSALS_MAX; i++) {
        const struct inf_history_refusal *entry = &refusals->entries[i];
        found = found || (entry->room != 0 && entry->room <= room && entry->shapes == shapes &&
                          now_ns < entry->until_ns);
    }
    inf_mutex_unlock(&refusals->mutex);
    return found;
}

// Returns the entry for these shapes, or a new one if there is none, and lowers its room to `room`.
// A refusal that expires and one that does not have different entries.
static struct inf_history_refusal *obtain_entry(struct inf_history_refusals *refusals,
                                                uint64_t shapes, uint32_t room, bool expires)
    INF_ATTR(requires_capability(refusals->mutex))
{
    assert(room > 0);
    for (uint32_t i = 0; i < INF_HISTORY_REFUSALS_MAX; i++) {
        struct inf_history_refusal *entry = &refusals->entries[i];
        if (entry->room != 0 && entry->shapes == shapes &&
            (entry->until_ns != INF_HISTORY_FOR_EVER) == expires) {
            entry->room = INF_MIN(entry->room, room);
            return entry;
        }
    }
    uint32_t index = 0;
    while (index < INF_HISTORY_REFUSALS_MAX && refusals->entries[index].room != 0)
        index++;
    if (index == INF_HISTORY_REFUSALS_MAX) {
        index = refusals->next;
        refusals->next = (refusals->next + 1) % INF_HISTORY_REFUSALS_MAX;
    }
    refusals->entries[index] = (struct inf_history_refusal){
        .shapes = shapes, .room = room, .until_ns = expires ? 0 : INF_HISTORY_FOR_EVER};
    return &refusals->entries[index];
}

static void add_expiring(struct inf_history_refusals *refusals, uint64_t shapes, uint32_t room,
                         uint64_t now_ns) INF_ATTR(requires_capability(refusals->mutex))
{
    struct inf_history_refusal *entry = obtain_entry(refusals, shapes, room, true);
    entry->until_ns = now_ns + (INF_HISTORY_RETRY_NS << entry->doublings);
    if (entry->doublings < INF_HISTORY_RETRY_DOUBLINGS)
        entry->doublings++;
}

// Removes the refusals that expire, for these shapes with `room` rows or less.
static void forget_expiring(struct inf_history_refusals *refusals, uint64_t shapes, uint32_t room)
    INF_ATTR(requires_capability(refusals->mutex))
{
    for (uint32_t i = 0; i < INF_HISTORY_REFUSALS_MAX; i++) {
        struct inf_history_refusal *entry = &refusals->entries[i];
        if (entry->room <= room && entry->shapes == shapes &&
            entry->until_ns != INF_HISTORY_FOR_EVER)
            *entry = (struct inf_history_refusal){.room = 0};
    }
}

void inf_history_refusals_note(struct inf_history_refusals *refusals, uint64_t shapes,
                               struct inf_history_buffers buffers, enum inf_code code,
                               uint64_t now_ns)
{
    bool joined = buffers.sessions > 1;
    if (code == INF_OK && !joined)
        return; // most steps end here, without the mutex
    inf_mutex_lock(&refusals->mutex);
    if (code == INF_UNSUPPORTED || code == INF_INVALID ||
        (joined && code != INF_OK && code != INF_CANCELLED && code != INF_EXHAUSTED))
        (void)obtain_entry(refusals, shapes, buffers.room, false);
    else if (joined && code == INF_EXHAUSTED)
        add_expiring(refusals, shapes, buffers.room, now_ns);
    else if (joined && code == INF_OK)
        forget_expiring(refusals, shapes, buffers.room);
    inf_mutex_unlock(&refusals->mutex);
}
