// SPDX-License-Identifier: Apache-2.0
// The thread team of one slot (concurrent run). Every tile runs exactly once, on a thread with a
// unique worker number, whether helper threads are awake, asleep or late.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <time.h>

#include "backends/base/clock.h"
#include "backends/cpu/core/team.h"

#define TILES_MAX 64
#define THREADS   3

struct count {
    _Atomic unsigned done[TILES_MAX];
    // at_work[n]: how many threads compute a tile as worker n at present
    _Atomic unsigned at_work[THREADS];
    _Atomic unsigned clashes, strangers;
    size_t workers;
};

static void count_tile(const void *context, size_t tile, size_t worker)
{
    struct count *count = (struct count *)(uintptr_t)context;
    if (worker >= count->workers)
        atomic_fetch_add(&count->strangers, 1);
    else if (atomic_fetch_add(&count->at_work[worker], 1) != 0)
        atomic_fetch_add(&count->clashes, 1);
    atomic_fetch_add(&count->done[tile], 1);
    for (volatile int i = 0; i < 50; i++)
        continue;
    if (worker < count->workers)
        atomic_fetch_sub(&count->at_work[worker], 1);
}

static void share_tiles(struct inf_cpu_team *team, size_t tiles, size_t workers)
{
    struct count count = {.workers = workers < THREADS ? workers : THREADS};
    struct inf_cpu_tiles work = {count_tile, &count, tiles};
    inf_cpu_team_run_tiles(team, &work, workers);
    // All tiles are done when the call returns, so no thread accesses this stack frame afterwards.
    for (size_t i = 0; i < TILES_MAX; i++)
        cr_assert_eq(count.done[i], i < tiles ? 1u : 0u, "tile %zu of %zu", i, tiles);
    cr_assert_eq(count.clashes, 0u);
    cr_assert_eq(count.strangers, 0u);
}

static void share_much(void *context)
{
    static const size_t workers[] = {1, 2, 3, SIZE_MAX};
    struct inf_cpu_team *team = context;
    for (size_t i = 0; i < 4000; i++)
        share_tiles(team, i % (TILES_MAX + 1), workers[i / 7 % 4]);
}

// Pauses longer than the helper threads spin before each call, so that the helpers are asleep.
static void share_with_sleepers(void *context)
{
    const struct timespec pause = {.tv_nsec = 300000};
    for (size_t i = 0; i < 20; i++) {
        nanosleep(&pause, NULL);
        share_tiles(context, 8, THREADS);
        share_tiles(context, 3, THREADS);
    }
}

static void do_nothing(void *context)
{
    *(int *)context += 1;
}

// Creates a core set of at least THREADS cores, and a team that may use THREADS of them.
static struct inf_cpu_team make_team(struct inf_cpu_core_set *cores)
{
    struct inf_error err = {0};
    struct inf_cpu_team team;
    cr_assert_eq(inf_cpu_core_set_init(cores, 1, THREADS, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_cpu_team_init(&team, cores, THREADS, &err), INF_OK, "%s", err.text);
    return team;
}

Test(team, runs_every_tile_once)
{
    struct inf_cpu_core_set cores;
    struct inf_cpu_team team = make_team(&cores);
    for (int i = 0; i < 5; i++)
        inf_cpu_team_run_region(&team, share_much, &team);
    inf_cpu_team_run_region(&team, share_with_sleepers, &team);
    inf_cpu_team_fini(&team);
    inf_cpu_core_set_fini(&cores);
}

// A tile that ends when `wanted` threads are in it, or after 10 s.
struct meeting {
    struct inf_cpu_team *team;
    atomic_uint present;
    unsigned wanted;
};

static void meet_threads(const void *context, size_t tile, size_t worker)
{
    (void)tile;
    (void)worker;
    struct meeting *meeting = *(struct meeting *const *)context;
    uint64_t until_ns = inf_clock_ns() + 10 * INF_NS_PER_S;
    atomic_fetch_add(&meeting->present, 1);
    while (atomic_load(&meeting->present) < meeting->wanted && inf_clock_ns() < until_ns)
        continue;
}

static void lead_meeting(void *context)
{
    struct meeting *meeting = context;
    const struct inf_cpu_tiles work = {meet_threads, &meeting, THREADS};
    inf_cpu_team_run_tiles(meeting->team, &work, THREADS);
}

Test(team, counts_the_threads_and_the_time_of_helpers)
{
    struct inf_cpu_core_set cores;
    struct inf_cpu_team team = make_team(&cores);
    struct meeting meeting = {.team = &team, .wanted = THREADS};
    uint64_t start_ns = inf_clock_ns();
    inf_cpu_team_begin_count(&team);
    inf_cpu_team_run_region(&team, lead_meeting, &meeting);
    uint64_t helper_ns = inf_cpu_team_end_count(&team);
    cr_assert_eq(team.used, (uint32_t)THREADS);
    cr_assert_gt(helper_ns, 0u);
    cr_assert_leq(helper_ns, (THREADS - 1) * (inf_clock_ns() - start_ns));
    // A run without a parallel region, and time between runs, count nothing.
    inf_cpu_team_begin_count(&team);
    lead_meeting(&meeting);
    cr_assert_eq(inf_cpu_team_end_count(&team), 0u);
    cr_assert_eq(team.used, 1u);
    inf_cpu_team_fini(&team);
    inf_cpu_core_set_fini(&cores);
}

Test(team, ends_a_region_without_work)
{
    struct inf_cpu_core_set cores;
    struct inf_cpu_team team = make_team(&cores);
    int calls = 0;
    for (int i = 0; i < 2000; i++)
        inf_cpu_team_run_region(&team, do_nothing, &calls);
    cr_assert_eq(calls, 2000);
    inf_cpu_team_fini(&team);
    inf_cpu_core_set_fini(&cores);
}

Test(team, runs_all_tiles_on_the_calling_thread_outside_of_a_region)
{
    struct inf_cpu_team alone = {0};
    share_tiles(&alone, TILES_MAX, THREADS);
    inf_cpu_team_run_region(&alone, share_much, &alone);
    struct inf_cpu_core_set cores;
    struct inf_cpu_team team = make_team(&cores);
    share_tiles(&team, TILES_MAX, THREADS);
    inf_cpu_team_fini(&team);
    inf_cpu_core_set_fini(&cores);
}
