// SPDX-License-Identifier: Apache-2.0
// Bounds the memory of executables that requests make, per user and over all models. If a user
// exceeds the bound, the executables of that user that were not used for the longest time are
// freed. Any thread.
#ifndef INF_BACKENDS_EXEC_MODEL_ARENA_BUDGET_H
#define INF_BACKENDS_EXEC_MODEL_ARENA_BUDGET_H

#include <stdatomic.h>

#include "backends/base/thread.h"

struct inf_arena_entry;

// How the owner of entries frees them.
struct inf_arena_entry_ops {
    // Takes the object of the entry out of use, so that only the caller has it. Returns false if it
    // is in use, or about to be freed.
    bool (*detach)(struct inf_arena_entry *entry);
    // Frees a detached object together with the entry.
    void (*destroy)(struct inf_arena_entry *entry);
};

// One executable; embedded in its owner. Zeroed: in no budget.
struct inf_arena_entry {
    struct inf_arena_entry *next;
    const struct inf_arena_entry_ops *ops;
    uint64_t user;            // 0: none
    uint64_t bytes;           // weights and arenas of the executable
    _Atomic uint64_t used_ns; // time of the last use, on the clock of inf_clock_ns()
    bool is_listed, is_taken; // guarded by the mutex of the budget
    uint64_t tried;           // the last search that tried to free the entry
};

// Embedded in its owner, and outlives every entry.
struct inf_arena_budget {
    _Atomic uint64_t bytes_max;         // of each user; 0: no bound
    _Atomic uint64_t request_bytes_max; // intermediate results of one request; 0: no bound
    // What memory_max leaves for further executables, as far as known; 0: no bound.
    _Atomic uint64_t room_bytes;
    struct inf_mutex mutex; // guards the fields below
    struct inf_cond changed;
    struct inf_arena_entry *entries;
    uint64_t searches;
};

// Initialises an embedded budget.
void inf_arena_budget_init(struct inf_arena_budget *budget, uint64_t bytes_max);

// Releases an embedded budget, which must be empty. A zeroed struct is not allowed.
void inf_arena_budget_fini(struct inf_arena_budget *budget);

// Adds an entry whose members `ops`, `user` and `bytes` are set, and frees other entries of the
// user until the bound holds or all of them are in use. Frees memory, so it may take long.
void inf_arena_budget_add(struct inf_arena_budget *budget,
                          struct inf_arena_entry *entry) INF_MAY_BLOCK;

// Removes an entry that its owner is about to free. Does nothing if the entry was never added.
void inf_arena_budget_remove(struct inf_arena_budget *budget, struct inf_arena_entry *entry);

#endif
