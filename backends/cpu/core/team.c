// SPDX-License-Identifier: Apache-2.0
// The threads of a slot (one concurrent run), for one parallel region at a time.
//
// The problem: a program has many short steps. Waking the threads of a pool takes about as long as
// a short step, so the threads are woken once for a region of steps, and spin between the steps.
//
// The idea: a region is one call into the pool. Item 0 runs the leader's function; all other items
// help until the region ends. An epoch counts starts and ends of work. The epoch is odd while
// threads may take tiles.
//
//     leader                        helper
//     next = 0; epoch = odd         busy++
//     takes tiles                   takes tiles if the epoch is still the same odd one
//     epoch = even                  busy--
//     waits until busy == 0         waits for the next epoch: spins, then sleeps
//
// Why no helper touches work that is over: a helper increments `busy` before it reads the epoch,
// and the leader changes the epoch before it reads `busy`. Both are sequentially consistent, so at
// least one of the two threads sees the other: the helper takes no tile, or the leader waits for
// the helper. The leader never waits for a helper that has not begun.
#include "backends/cpu/core/team.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/cpu/kernels/pause.h"
#include "proto/core/span.h"

// How long a helper spins for work before it sleeps, and how long the leader spins until other
// threads finish their last tiles before it yields its CPU. About the time of a wake-up.
#define SPIN_NS UINT64_C(50000)

#define EPOCH_OVER UINT64_MAX

struct inf_cpu_region {
    void (*lead)(void *context);
    void *context;
    struct inf_cpu_team *team;

    // The work whose tiles are being run. The leader writes this pointer, and only while the epoch
    // is even.
    _Alignas(64) const struct inf_cpu_tiles *work;
    size_t workers;
    _Atomic uint64_t epoch;

    _Alignas(64) _Atomic size_t next; // number of the next tile to take
    _Alignas(64) _Atomic size_t busy; // helpers that may be running tiles

    // Guards no data. Makes the check for work and the sleep one atomic step, so that no wake-up is
    // lost.
    _Alignas(64) struct inf_mutex mutex;
    struct inf_cond change;
    _Atomic size_t asleep; // number of sleeping helpers
};

static void run_tiles(struct inf_cpu_region *region, size_t worker)
{
    const struct inf_cpu_tiles *work = region->work;
    for (;;) {
        size_t tile = atomic_fetch_add_explicit(&region->next, 1, memory_order_relaxed);
        if (tile >= work->tiles)
            return;
        work->tile(work->context, tile, worker);
    }
}

// --- helpers ---

static void join_tiles(struct inf_cpu_region *region, uint64_t epoch, size_t worker)
{
    atomic_fetch_add(&region->busy, 1);
    if (atomic_load(&region->epoch) == epoch && worker < region->workers)
        run_tiles(region, worker);
    atomic_fetch_sub(&region->busy, 1);
}

// Sleeps until the value of the epoch counter is no longer `epoch`.
static void sleep_through(struct inf_cpu_region *region, uint64_t epoch)
{
    inf_mutex_lock(&region->mutex);
    atomic_fetch_add(&region->asleep, 1);
    while (atomic_load(&region->epoch) == epoch)
        inf_cond_wait(&region->change, &region->mutex);
    atomic_fetch_sub(&region->asleep, 1);
    inf_mutex_unlock(&region->mutex);
}

static uint64_t wait_for_change(struct inf_cpu_region *region, uint64_t epoch)
{
    uint64_t until_ns = inf_clock_ns() + SPIN_NS;
    for (;;) {
        uint64_t now = atomic_load(&region->epoch);
        if (now != epoch)
            return now;
        inf_pause();
        if (inf_clock_ns() > until_ns)
            sleep_through(region, epoch);
    }
}

static void help_leader(struct inf_cpu_region *region, size_t worker)
{
    uint64_t epoch = atomic_load(&region->epoch);
    while (epoch != EPOCH_OVER) {
        if (epoch % 2 == 1)
            join_tiles(region, epoch, worker);
        epoch = wait_for_change(region, epoch);
    }
}

// --- the leader ---

static void change_epoch(struct inf_cpu_region *region, uint64_t epoch)
{
    atomic_store(&region->epoch, epoch);
    if (atomic_load(&region->asleep) == 0)
        return;
    inf_mutex_lock(&region->mutex);
    inf_cond_broadcast(&region->change);
    inf_mutex_unlock(&region->mutex);
}

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

void inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                            size_t workers)
{
    assert(work->tile != NULL);
    struct inf_cpu_region *region = team->region;
    if (region == NULL || INF_MIN(workers, work->tiles) <= 1) {
        for (size_t tile = 0; tile < work->tiles; tile++)
            work->tile(work->context, tile, 0);
        return;
    }
    uint64_t epoch = atomic_load_explicit(&region->epoch, memory_order_relaxed);
    region->work = work;
    region->workers = workers;
    atomic_store_explicit(&region->next, 0, memory_order_relaxed);
    change_epoch(region, epoch + 1);
    run_tiles(region, 0);
    // End the work without waking the sleeping helpers, because they have nothing to do until the
    // next work starts.
    atomic_store(&region->epoch, epoch + 2);
    wait_for_helpers(region);
}

static void run_thread(void *context, size_t worker)
{
    struct inf_cpu_region *region = context;
    if (worker > 0) {
        help_leader(region, worker);
        return;
    }
    region->team->region = region;
    region->lead(region->context);
    region->team->region = NULL;
    change_epoch(region, EPOCH_OVER);
}

void inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context), void *context)
{
    assert(lead != NULL && team->region == NULL);
    size_t threads = pthreadpool_get_threads_count(team->pool);
    if (threads == 1) {
        lead(context);
        return;
    }
    struct inf_cpu_region region = {.lead = lead, .context = context, .team = team};
    inf_mutex_init(&region.mutex);
    inf_cond_init(&region.change);
    pthreadpool_parallelize_1d(team->pool, run_thread, &region, threads,
                               PTHREADPOOL_FLAG_YIELD_WORKERS);
    inf_cond_fini(&region.change);
    inf_mutex_fini(&region.mutex);
}
