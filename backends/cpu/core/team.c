// SPDX-License-Identifier: Apache-2.0
// The threads of a slot (one concurrent run), for one parallel region at a time.
//
// The problem: a program has many short steps. Waking threads takes about as long as a short step,
// so helpers are woken once for a region of steps, and spin between the steps.
//
// The idea: helpers that the core set grants stay in help_leader() until the region ends, or there
// is no work for SPIN_NS, or another run needs their core. An epoch counts starts and ends of work.
// The epoch is odd while threads may take tiles.
//
//     leader                        helper
//     next = 0; epoch = odd         busy++
//     takes tiles                   takes tiles if the epoch is still the same odd one
//     epoch = even                  busy--
//     waits until busy == 0         spins until the epoch changes
//
// Why no helper touches work that is over: a helper increments `busy` before it reads the epoch,
// and the leader changes the epoch before it reads `busy`. Both are sequentially consistent, so at
// least one of the two threads sees the other: the helper takes no tile, or the leader waits for
// the helper. The leader never waits for a helper that has not begun, and a helper may leave after
// every tile, because the leader itself takes the tiles that are left.
//
// At the end of a region the leader does not wait for helpers either: one that the system has
// interrupted may take milliseconds to notice the end. The state of a region therefore lives as
// long as the team, and the epoch goes on counting. A helper that comes back late leaves, or helps
// with the next region.
#include "backends/cpu/core/team.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/cpu/kernels/pause.h"
#include "proto/core/span.h"

// How long a helper spins for work before it leaves, and how long the leader spins until helpers
// finish their last tiles before it yields its CPU. About the time of a wake-up.
#define SPIN_NS UINT64_C(50000)

struct inf_cpu_region {
    struct inf_cpu_core_set *cores;
    atomic_bool open; // true: a region is in progress, so helpers stay

    // The tiles that the threads are computing. The leader writes these members, and only while the
    // epoch is even, so no helper reads them at that time.
    _Alignas(64) const struct inf_cpu_tiles *work;
    size_t workers;
    _Atomic uint64_t epoch;

    _Alignas(64) _Atomic size_t next; // number of the next tile to take
    _Alignas(64) _Atomic size_t busy; // helpers that may be running tiles

    _Alignas(64) struct inf_cpu_crew crew;
};

// --- helper threads: taking tiles and spinning ---

// Takes tiles until none is left. Returns true if the helper must give its core to another run.
static bool take_tiles(struct inf_cpu_region *region, size_t worker)
{
    const struct inf_cpu_tiles *work = region->work;
    for (;;) {
        size_t tile = atomic_fetch_add_explicit(&region->next, 1, memory_order_relaxed);
        if (tile >= work->tiles)
            return false;
        work->tile(work->context, tile, worker);
        if (inf_cpu_core_set_give_way(region->cores, &region->crew))
            return true;
    }
}

static bool join_tiles(struct inf_cpu_region *region, uint64_t epoch, size_t worker)
{
    bool give_way = false;
    atomic_fetch_add(&region->busy, 1);
    if (atomic_load(&region->epoch) == epoch && worker < region->workers)
        give_way = take_tiles(region, worker);
    atomic_fetch_sub(&region->busy, 1);
    return give_way;
}

// The body of a helper: see struct inf_cpu_crew.
static bool help_leader(void *context, size_t worker)
{
    struct inf_cpu_region *region = context;
    uint64_t seen = 0;
    uint64_t until_ns = inf_clock_ns() + SPIN_NS;
    for (;;) {
        uint64_t epoch = atomic_load(&region->epoch);
        if (epoch != seen) {
            seen = epoch;
            if (epoch % 2 == 1 && join_tiles(region, epoch, worker))
                return true;
            until_ns = inf_clock_ns() + SPIN_NS;
            continue;
        }
        if (inf_cpu_core_set_give_way(region->cores, &region->crew))
            return true;
        if (!atomic_load_explicit(&region->open, memory_order_relaxed) || inf_clock_ns() > until_ns)
            return false;
        inf_pause();
    }
}

// --- creating and destroying teams ---

enum inf_code inf_cpu_team_init(struct inf_cpu_team *team, struct inf_cpu_core_set *cores,
                                uint32_t threads, struct inf_error *err)
{
    assert(threads > 0);
    *team = (struct inf_cpu_team){.cores = cores, .threads = threads};
    if (threads == 1)
        return INF_OK;
    struct inf_cpu_region *region = aligned_alloc(_Alignof(struct inf_cpu_region), sizeof(*region));
    if (region == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for a team of threads");
    memset(region, 0, sizeof(*region));
    region->cores = cores;
    region->crew =
        (struct inf_cpu_crew){.help = help_leader, .context = region, .most = threads - 1};
    team->region = region;
    return INF_OK;
}

void inf_cpu_team_fini(struct inf_cpu_team *team)
{
    if (team->region != NULL)
        inf_cpu_core_set_wait(&team->region->crew);
    free(team->region);
    *team = (struct inf_cpu_team){0};
}

// --- the leading thread: starting and ending regions, and handing out tiles ---

static void wait_for_helpers(struct inf_cpu_region *region)
{
    uint64_t until_ns = 0;
    while (atomic_load(&region->busy) > 0) {
        inf_pause();
        if (until_ns == 0)
            until_ns = inf_clock_ns() + SPIN_NS;
        else if (inf_clock_ns() > until_ns)
            sched_yield();
    }
}

static void run_alone(const struct inf_cpu_tiles *work)
{
    for (size_t tile = 0; tile < work->tiles; tile++)
        work->tile(work->context, tile, 0);
}

static void lead_tiles(struct inf_cpu_region *region)
{
    const struct inf_cpu_tiles *work = region->work;
    for (;;) {
        size_t tile = atomic_fetch_add_explicit(&region->next, 1, memory_order_relaxed);
        if (tile >= work->tiles)
            return;
        work->tile(work->context, tile, 0);
    }
}

void inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                            size_t workers)
{
    assert(work->tile != NULL);
    struct inf_cpu_region *region = team->region;
    size_t most = INF_MIN(INF_MIN(workers, work->tiles), (size_t)team->threads);
    if (most <= 1 || !atomic_load_explicit(&region->open, memory_order_relaxed)) {
        run_alone(work);
        return;
    }
    if (!inf_cpu_core_set_offers(team->cores, &region->crew)) {
        run_alone(work);
        return;
    }
    uint64_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);
    region->work = work;
    region->workers = workers;
    atomic_store_explicit(&region->next, 0, memory_order_relaxed);
    atomic_store(&region->epoch, epoch + 1);
    // Acquire helpers only when there is work, because a helper that wakes up on the CPU of this
    // thread would spin there without work while this thread waits.
    uint32_t helpers = inf_cpu_core_set_acquire(team->cores, &region->crew, (uint32_t)most - 1);
    team->used = INF_MAX(team->used, helpers + 1);
    lead_tiles(region);
    atomic_store(&region->epoch, epoch + 2);
    wait_for_helpers(region);
}

// --- counting the time of helpers ---

void inf_cpu_team_begin_count(struct inf_cpu_team *team)
{
    team->used = 1;
    team->pool_ns = 0;
    team->counting = false;
}

// Discards what a late helper of the run before has added. Called when the first region of a run
// begins, so that a run without regions takes no lock.
static void start_counting(struct inf_cpu_team *team)
{
    if (!team->counting)
        (void)inf_cpu_core_set_take_helper_ns(team->cores, &team->region->crew);
    team->counting = true;
}

uint64_t inf_cpu_team_end_count(struct inf_cpu_team *team)
{
    uint64_t helper_ns = team->pool_ns;
    if (team->counting)
        helper_ns += inf_cpu_core_set_take_helper_ns(team->cores, &team->region->crew);
    team->counting = false;
    return helper_ns;
}

// --- parallel regions ---

void inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context), void *context)
{
    struct inf_cpu_region *region = team->region;
    assert(lead != NULL);
    if (region == NULL) {
        lead(context);
        return;
    }
    assert(!atomic_load_explicit(&region->open, memory_order_relaxed));
    start_counting(team);
    atomic_store_explicit(&region->open, true, memory_order_relaxed);
    lead(context);
    atomic_store_explicit(&region->open, false, memory_order_relaxed);
    inf_cpu_core_set_release(team->cores, &region->crew);
}
