// SPDX-License-Identifier: Apache-2.0
// The thread team of a slot (one concurrent run): the calling thread, which leads, and as many
// helpers as the core set grants. Helpers are woken once for a parallel region, which is a run of
// consecutive steps. Between two steps they spin for a while and then leave. They also leave if
// another run needs their core. The leader waits only for helpers that are computing a tile.
#ifndef INF_BACKENDS_CPU_CORE_TEAM_H
#define INF_BACKENDS_CPU_CORE_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/core/core_set.h"

struct inf_cpu_region;

// Thread team of one slot (one concurrent run). Not thread-safe. A zeroed struct is a team of the
// calling thread alone.
struct inf_cpu_team {
    struct inf_cpu_core_set *cores;
    uint32_t threads;              // most threads; 0 and 1: the calling thread works alone
    struct inf_cpu_region *region; // owned; NULL if there is no helper
    // The most threads that worked on the same tiles since the caller last set this member.
    uint32_t used;
    // True: the helpers' time has been counted from zero since inf_cpu_team_begin_count().
    bool counting;
    uint64_t pool_ns; // time of further threads that XNNPACK's thread pool used for this run
};

// Work that is cut into tiles. Each thread takes the next free tile until none is left. `worker` is
// the number of the thread, so that it can use its own scratch memory.
struct inf_cpu_tiles {
    void (*tile)(const void *context, size_t tile, size_t worker);
    const void *context;
    size_t tiles;
};

// Initialises a team of at most `threads` threads, which may be 1. Helpers come from `cores`, which
// must outlive the team.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_team_init(struct inf_cpu_team *team, struct inf_cpu_core_set *cores,
                                uint32_t threads, struct inf_error *err) INF_NODISCARD;

// Waits until all helpers have left, and frees the memory. A zeroed team is allowed.
void inf_cpu_team_fini(struct inf_cpu_team *team);

// Starts to count what the team uses, for inf_cpu_team_end_count(). Sets `used` to 1.
void inf_cpu_team_begin_count(struct inf_cpu_team *team);

// Returns the time for which threads other than the calling one have worked for the team since
// inf_cpu_team_begin_count(), summed over the threads.
uint64_t inf_cpu_team_end_count(struct inf_cpu_team *team);

// Calls lead(context) on this thread as a parallel region. Helpers take part in the tiles that
// `lead` passes to inf_cpu_team_run_tiles(). Regions do not nest.
void inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context), void *context);

// Runs all tiles of `work`, numbered from 0, on at most `workers` threads, and returns when all
// tiles are done. Each thread has a number below `workers`. Outside of a parallel region the
// calling thread runs all tiles itself.
void inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                            size_t workers);

#endif
