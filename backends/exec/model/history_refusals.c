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
                               uint32_t room)
{
    bool found = false;
    inf_mutex_lock(&refusals->mutex);
    for (uint32_t i = 0; i < INF_HISTORY_REFUSALS_MAX; i++)
        found = found || (refusals->entries[i].room != 0 && refusals->entries[i].room <= room &&
                          refusals->entries[i].shapes == shapes);
    inf_mutex_unlock(&refusals->mutex);
    return found;
}

void inf_history_refusals_add(struct inf_history_refusals *refusals, uint64_t shapes, uint32_t room)
{
    assert(room > 0);
    inf_mutex_lock(&refusals->mutex);
    uint32_t index = 0;
    while (index < INF_HISTORY_REFUSALS_MAX &&
           (refusals->entries[index].room == 0 || refusals->entries[index].shapes != shapes))
        index++;
    if (index == INF_HISTORY_REFUSALS_MAX) {
        index = refusals->next;
        refusals->next = (refusals->next + 1) % INF_HISTORY_REFUSALS_MAX;
        refusals->entries[index].shapes = shapes;
        refusals->entries[index].room = room;
    }
    refusals->entries[index].room = INF_MIN(refusals->entries[index].room, room);
    inf_mutex_unlock(&refusals->mutex);
}
