// SPDX-License-Identifier: Apache-2.0
// Bounds the memory of executables per user.
//
// The entries belong to models, whose classes have a mutex of their own, and no thread may hold two
// mutexes. So a search marks the entry that it wants to free as taken, releases the mutex of the
// budget, and asks the owner to detach the object. The owner refuses if the object is in use. An
// owner that frees the object for another reason waits until the entry is not taken any longer.
//
//   search:  mark as taken --> detach() --true--> unlist, destroy()
//                                       --false-> unmark, try the next entry
//   owner:   wait while taken, unlist, free
#include "backends/exec/model/arena_budget.h"

#include <assert.h>
#include <stddef.h>

void inf_arena_budget_init(struct inf_arena_budget *budget, uint64_t bytes_max)
{
    *budget = (struct inf_arena_budget){.entries = NULL};
    atomic_init(&budget->bytes_max, bytes_max);
    atomic_init(&budget->request_bytes_max, 0);
    atomic_init(&budget->room_bytes, 0);
    inf_mutex_init(&budget->mutex);
    inf_cond_init(&budget->changed);
}

void inf_arena_budget_fini(struct inf_arena_budget *budget)
{
    assert(budget->entries == NULL && "an executable outlives its budget");
    inf_cond_fini(&budget->changed);
    inf_mutex_fini(&budget->mutex);
}

static void unlist_entry(struct inf_arena_budget *budget, struct inf_arena_entry *entry)
    INF_ATTR(requires_capability(budget->mutex))
{
    struct inf_arena_entry **link = &budget->entries;
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    entry->is_listed = false;
}

// Returns the entry of the user that was not used for the longest time, and that this search has
// not tried yet; NULL if there is none or the bound holds. Marks it as taken.
static struct inf_arena_entry *take_oldest(struct inf_arena_budget *budget,
                                           const struct inf_arena_entry *newest, uint64_t search)
    INF_ATTR(requires_capability(budget->mutex))
{
    struct inf_arena_entry *oldest = NULL;
    uint64_t bytes = 0;
    for (struct inf_arena_entry *entry = budget->entries; entry != NULL; entry = entry->next) {
        if (entry->user != newest->user)
            continue;
        bytes += entry->bytes;
        if (entry != newest && !entry->is_taken && entry->tried != search &&
            (oldest == NULL || atomic_load(&entry->used_ns) < atomic_load(&oldest->used_ns)))
            oldest = entry;
    }
    uint64_t bytes_max = atomic_load(&budget->bytes_max);
    if (bytes_max == 0 || bytes <= bytes_max || oldest == NULL)
        return NULL;
    oldest->is_taken = true;
    oldest->tried = search;
    return oldest;
}

void inf_arena_budget_add(struct inf_arena_budget *budget, struct inf_arena_entry *entry)
{
    inf_mutex_lock(&budget->mutex);
    entry->next = budget->entries;
    budget->entries = entry;
    entry->is_listed = true;
    // Until the owner of the budget counts again.
    uint64_t room_bytes = atomic_load(&budget->room_bytes);
    if (room_bytes != 0)
        atomic_store(&budget->room_bytes,
                     room_bytes > entry->bytes ? room_bytes - entry->bytes : 1);
    uint64_t search = ++budget->searches;
    struct inf_arena_entry *oldest;
    while ((oldest = take_oldest(budget, entry, search)) != NULL) {
        inf_mutex_unlock(&budget->mutex);
        bool detached = oldest->ops->detach(oldest);
        inf_mutex_lock(&budget->mutex);
        oldest->is_taken = false;
        if (detached)
            unlist_entry(budget, oldest);
        inf_mutex_unlock(&budget->mutex);
        inf_cond_broadcast(&budget->changed);
        if (detached)
            oldest->ops->destroy(oldest);
        inf_mutex_lock(&budget->mutex);
    }
    inf_mutex_unlock(&budget->mutex);
}

void inf_arena_budget_remove(struct inf_arena_budget *budget, struct inf_arena_entry *entry)
{
    inf_mutex_lock(&budget->mutex);
    while (entry->is_taken)
        inf_cond_wait(&budget->changed, &budget->mutex);
    if (entry->is_listed)
        unlist_entry(budget, entry);
    inf_mutex_unlock(&budget->mutex);
}
