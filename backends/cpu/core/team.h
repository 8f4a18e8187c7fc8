// SPDX-License-Identifier: Apache-2.0
// The thread team of a slot (one concurrent run). Its threads are woken once for a parallel region,
// which is a run of consecutive steps. Between two steps of the region idle threads spin for a
// while, then sleep. The leading thread never waits for a thread that has not begun.
#ifndef INF_BACKENDS_CPU_CORE_TEAM_H
#define INF_BACKENDS_CPU_CORE_TEAM_H

#include <pthreadpool.h>
#include <stddef.h>

struct inf_cpu_region;

// Thread team of one slot (one concurrent run). Not thread-safe. Zero-initialise, then set `pool`.
struct inf_cpu_team {
    pthreadpool_t pool;            // NULL: the calling thread works alone
    struct inf_cpu_region *region; // set during inf_cpu_team_run_region(), otherwise NULL
};

// Work that is cut into tiles. Each thread takes the next free tile until none is left. `worker` is
// the number of the thread, so that it can use its own scratch memory.
struct inf_cpu_tiles {
    void (*tile)(const void *context, size_t tile, size_t worker);
    const void *context;
    size_t tiles;
};

// Calls lead(context) on this thread as a parallel region. All threads of the pool help with the
// tiles that `lead` passes to inf_cpu_team_run_tiles(). Regions do not nest.
void inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context), void *context);

// Runs all tiles of `work`, numbered from 0, on at most `workers` threads, and returns when all
// tiles are done. Each thread has a number below `workers`. Outside of a parallel region the
// calling thread runs all tiles itself.
void inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                            size_t workers);

#endif
