// SPDX-License-Identifier: Apache-2.0
// The threads of a slot while a program runs. They are called together once for a stretch of steps and
// dismissed after it: between two steps those that have nothing to do look out for more for a while,
// and sleep when it takes longer. Who leads never waits for one that has not begun.
#ifndef INF_BACKENDS_CPU_CORE_TEAM_H
#define INF_BACKENDS_CPU_CORE_TEAM_H

#include <pthreadpool.h>
#include <stddef.h>

struct inf_cpu_region;

// Of one slot of a program: used by one thread at a time. Zeroed but for `pool`.
struct inf_cpu_team {
    pthreadpool_t pool;           // NULL: the caller is alone
    struct inf_cpu_region *watch; // while inf_cpu_team_run_region() runs; NULL
};

// Tiles that threads take one after the other, each with memory of its own.
struct inf_cpu_tiles {
    void (*tile)(const void *context, size_t tile, size_t worker);
    const void *context;
    size_t tiles;
};

// Calls lead(context) on this thread. What it gives to inf_cpu_team_run_tiles() is done by all threads of
// the pool. Not within itself.
void inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context), void *context);

// Does all tiles of `work`, numbered from 0, with at most `workers` threads, of which each has a number
// below `workers`. The caller does them all where no inf_cpu_team_run_region() is under way.
void inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                            size_t workers);

#endif
