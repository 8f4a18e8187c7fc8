// SPDX-License-Identifier: Apache-2.0
// A watch is one call into the pool: item 0 leads, the others help until it is over. Work is open while
// the epoch is odd. A helper says that it is busy before it looks whether the work is still open, the
// leader closes it before it looks who is busy: one of the two sees the other.
#include "backends/cpu/core/team.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/cpu/kernels/pause.h"
#include "proto/core/span.h"

// How long a helper looks out for work before it sleeps, and the leader for the end of a tile before it
// lets others have its core: about what it takes to wake up.
#define LOOK_OUT_NS UINT64_C(50000)

#define EPOCH_OVER UINT64_MAX

struct inf_cpu_region {
    void (*lead)(void *context);
    void *context;
    struct inf_cpu_team *team;

    // Written by the leader only, while the epoch is even.
    _Alignas(64) const struct inf_cpu_tiles *work;
    size_t workers;
    _Atomic uint64_t epoch;

    _Alignas(64) _Atomic size_t next; // tile
    _Alignas(64) _Atomic size_t busy; // helpers that may be at the work

    _Alignas(64) struct inf_mutex mutex; // guards nothing: no wake-up is lost
    struct inf_cond change;
    _Atomic size_t asleep; // helpers
};

static void take_tiles(struct inf_cpu_region *watch, size_t worker)
{
    const struct inf_cpu_tiles *work = watch->work;
    for (;;) {
        size_t tile = atomic_fetch_add_explicit(&watch->next, 1, memory_order_relaxed);
        if (tile >= work->tiles)
            return;
        work->tile(work->context, tile, worker);
    }
}

// --- helpers ---

static void join(struct inf_cpu_region *watch, uint64_t epoch, size_t worker)
{
    atomic_fetch_add(&watch->busy, 1);
    if (atomic_load(&watch->epoch) == epoch && worker < watch->workers)
        take_tiles(watch, worker);
    atomic_fetch_sub(&watch->busy, 1);
}

// Returns once the epoch is another.
static void sleep_through(struct inf_cpu_region *watch, uint64_t epoch)
{
    inf_mutex_lock(&watch->mutex);
    atomic_fetch_add(&watch->asleep, 1);
    while (atomic_load(&watch->epoch) == epoch)
        inf_cond_wait(&watch->change, &watch->mutex);
    atomic_fetch_sub(&watch->asleep, 1);
    inf_mutex_unlock(&watch->mutex);
}

static uint64_t wait_for_change(struct inf_cpu_region *watch, uint64_t epoch)
{
    uint64_t until_ns = inf_clock_ns() + LOOK_OUT_NS;
    for (;;) {
        uint64_t now = atomic_load(&watch->epoch);
        if (now != epoch)
            return now;
        inf_pause();
        if (inf_clock_ns() > until_ns)
            sleep_through(watch, epoch);
    }
}

static void help(struct inf_cpu_region *watch, size_t worker)
{
    uint64_t epoch = atomic_load(&watch->epoch);
    while (epoch != EPOCH_OVER) {
        if (epoch % 2 == 1)
            join(watch, epoch, worker);
        epoch = wait_for_change(watch, epoch);
    }
}

// --- the leader ---

static void change_epoch(struct inf_cpu_region *watch, uint64_t epoch)
{
    atomic_store(&watch->epoch, epoch);
    if (atomic_load(&watch->asleep) == 0)
        return;
    inf_mutex_lock(&watch->mutex);
    inf_cond_broadcast(&watch->change);
    inf_mutex_unlock(&watch->mutex);
}

static void wait_for_helpers(struct inf_cpu_region *watch)
{
    uint64_t until_ns = 0;
    while (atomic_load(&watch->busy) > 0) {
        inf_pause();
        if (until_ns == 0)
            until_ns = inf_clock_ns() + LOOK_OUT_NS;
        else if (inf_clock_ns() > until_ns)
            sched_yield();
    }
}

void inf_cpu_team_run_tiles(struct inf_cpu_team *team, const struct inf_cpu_tiles *work,
                            size_t workers)
{
    struct inf_cpu_region *watch = team->watch;
    if (watch == NULL || INF_MIN(workers, work->tiles) <= 1) {
        for (size_t tile = 0; tile < work->tiles; tile++)
            work->tile(work->context, tile, 0);
        return;
    }
    uint64_t epoch = atomic_load_explicit(&watch->epoch, memory_order_relaxed);
    watch->work = work;
    watch->workers = workers;
    atomic_store_explicit(&watch->next, 0, memory_order_relaxed);
    change_epoch(watch, epoch + 1);
    take_tiles(watch, 0);
    // Who sleeps has no need to know that the work is done.
    atomic_store(&watch->epoch, epoch + 2);
    wait_for_helpers(watch);
}

static void take_part(void *context, size_t worker)
{
    struct inf_cpu_region *watch = context;
    if (worker > 0) {
        help(watch, worker);
        return;
    }
    watch->team->watch = watch;
    watch->lead(watch->context);
    watch->team->watch = NULL;
    change_epoch(watch, EPOCH_OVER);
}

void inf_cpu_team_run_region(struct inf_cpu_team *team, void (*lead)(void *context), void *context)
{
    size_t threads = pthreadpool_get_threads_count(team->pool);
    if (threads == 1) {
        lead(context);
        return;
    }
    struct inf_cpu_region watch = {.lead = lead, .context = context, .team = team};
    inf_mutex_init(&watch.mutex);
    inf_cond_init(&watch.change);
    pthreadpool_parallelize_1d(team->pool, take_part, &watch, threads,
                               PTHREADPOOL_FLAG_YIELD_WORKERS);
    inf_cond_fini(&watch.change);
    inf_mutex_fini(&watch.mutex);
}
