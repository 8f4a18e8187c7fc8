// SPDX-License-Identifier: Apache-2.0
// Tests how runs share the cores: a run that is alone gets all cores, concurrent runs divide the
// cores, and helpers leave a run that has more than its share.
#include <criterion/criterion.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/cpu/core/core_set.h"

#define CORES      4
#define PATIENT_NS (UINT64_C(10) * 1000 * INF_NS_PER_MS)

// A run whose helpers stay until the test stops them or another run needs their cores.
struct run {
    struct inf_cpu_core_set *set;
    struct inf_cpu_crew crew;
    atomic_bool stop;
    // seen[n]: how many helpers with the number n work for the run at present; more than one is a
    // clash.
    atomic_uint seen[CORES + 1];
    atomic_uint clashes;
};

static bool stay_in_crew(void *context, size_t worker)
{
    struct run *run = context;
    bool give_way = false;
    if (worker < 1 || worker > CORES || atomic_fetch_add(&run->seen[worker], 1) != 0)
        atomic_fetch_add(&run->clashes, 1);
    while (!atomic_load(&run->stop) && !give_way) {
        give_way = inf_cpu_core_set_give_way(run->set, &run->crew);
        sched_yield();
    }
    atomic_fetch_sub(&run->seen[worker], 1);
    return give_way;
}

// The cores that the process of the test may use, as the set sees it.
static atomic_uint usable;

static uint32_t read_usable(void)
{
    return atomic_load(&usable);
}

// Opens a set of exactly CORES cores, whatever this machine has.
static void open_set(struct inf_cpu_core_set *set)
{
    struct inf_error err = {0};
    cr_assert_eq(inf_cpu_core_set_init(set, CORES, CORES, &err), INF_OK, "%s", err.text);
    set->cores = set->cores_most = set->usable = CORES;
    set->count_usable = read_usable;
    atomic_store(&usable, CORES);
}

static void begin_run(struct run *run, struct inf_cpu_core_set *set)
{
    run->set = set;
    run->crew = (struct inf_cpu_crew){.help = stay_in_crew, .context = run, .most = CORES - 1};
    inf_cpu_core_set_begin_run(set, CORES);
}

static void end_run(struct run *run)
{
    atomic_store(&run->stop, true);
    inf_cpu_core_set_release(run->set, &run->crew);
    inf_cpu_core_set_wait(&run->crew);
    inf_cpu_core_set_end_run(run->set, CORES);
    cr_assert_eq(run->clashes, 0u);
    cr_assert_eq(run->crew.working, 0u);
}

// Waits until the run has `helpers` helpers, and asserts that the run has the same number 2 ms
// later.
static void expect_helpers(struct run *run, uint32_t helpers)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    uint64_t until_ns = inf_clock_ns() + PATIENT_NS;
    while (atomic_load(&run->crew.working) != helpers && inf_clock_ns() < until_ns)
        sched_yield();
    nanosleep(&pause, NULL);
    cr_assert_eq(atomic_load(&run->crew.working), helpers);
}

Test(core_set, a_run_that_is_alone_gets_every_core)
{
    struct inf_cpu_core_set set;
    struct run run = {0};
    open_set(&set);
    begin_run(&run, &set);
    cr_assert(inf_cpu_core_set_offers(&set, &run.crew));
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &run.crew, 2), 2u);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &run.crew, CORES), 3u);
    expect_helpers(&run, 3);
    end_run(&run);
    cr_assert_eq(set.helping, 0u);
    inf_cpu_core_set_fini(&set);
}

// Waits until the set counts the usable cores again. Every run asks for its tiles.
static void wait_for_count(struct inf_cpu_core_set *set, struct run *run, uint32_t cores)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t until_ns = inf_clock_ns() + PATIENT_NS;
    atomic_store(&usable, cores);
    while (set->cores != cores && inf_clock_ns() < until_ns) {
        inf_cpu_core_set_offers(set, &run->crew);
        nanosleep(&pause, NULL);
    }
}

Test(core_set, follows_the_cores_that_the_process_may_use)
{
    struct inf_cpu_core_set set;
    struct run run = {0}, other = {0};
    open_set(&set);
    begin_run(&run, &set);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &run.crew, CORES), 3u);
    // A quota or a cpuset takes two cores away, and two helpers leave.
    wait_for_count(&set, &run, 2);
    cr_assert_eq(set.cores, 2u);
    expect_helpers(&run, 1);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &run.crew, CORES), 1u);
    // With one core, a run has no helper, and a second run takes turns with it.
    wait_for_count(&set, &run, 1);
    expect_helpers(&run, 0);
    cr_assert_not(inf_cpu_core_set_offers(&set, &run.crew));
    cr_assert_null(inf_cpu_core_set_acquire_pool(&set));
    begin_run(&other, &set);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &other.crew, CORES), 0u);
    end_run(&other);
    // The cores come back, and more than the set has threads for.
    wait_for_count(&set, &run, CORES);
    atomic_store(&usable, 2 * CORES);
    usleep(2 * INF_CPU_FOLLOW_MS * 1000);
    cr_assert(inf_cpu_core_set_offers(&set, &run.crew));
    cr_assert_eq(set.cores, CORES);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &run.crew, CORES), 3u);
    expect_helpers(&run, 3);
    end_run(&run);
    // A run of one thread never asks for tiles, so its begin counts too.
    atomic_store(&usable, 1);
    usleep(2 * INF_CPU_FOLLOW_MS * 1000);
    inf_cpu_core_set_begin_run(&set, 1);
    cr_assert_eq(set.cores, 1u);
    inf_cpu_core_set_end_run(&set, 1);
    inf_cpu_core_set_fini(&set);
}

// The set whose cores count_slowly() counts, and how often it was called.
static struct inf_cpu_core_set *slow_set;
static uint32_t slow_calls;

// Replaces count_usable() of `slow_set`. The first call takes longer than the time between two
// counts, and returns what was true at its beginning.
static uint32_t count_slowly(void)
{
    uint32_t found = read_usable();
    slow_calls++;
    if (slow_calls > 1)
        return found;
    // Meanwhile the process loses a core, and another run begins.
    usleep(2 * INF_CPU_FOLLOW_MS * 1000);
    atomic_store(&usable, 1);
    inf_cpu_core_set_begin_run(slow_set, 1);
    inf_cpu_core_set_end_run(slow_set, 1);
    return found;
}

Test(core_set, counts_do_not_overlap)
{
    struct inf_cpu_core_set set;
    open_set(&set);
    set.count_usable = count_slowly;
    slow_set = &set;
    atomic_store(&usable, 2);
    inf_cpu_core_set_begin_run(&set, 1);
    cr_expect_eq(slow_calls, 1u, "the run that began meanwhile did not count");
    cr_expect_eq(set.cores, 2u);
    inf_cpu_core_set_end_run(&set, 1);
    inf_cpu_core_set_begin_run(&set, 1);
    cr_expect_eq(slow_calls, 2u);
    cr_expect_eq(set.cores, 1u);
    inf_cpu_core_set_end_run(&set, 1);
    inf_cpu_core_set_begin_run(&set, 1);
    cr_expect_eq(slow_calls, 2u, "the next count is not due yet");
    inf_cpu_core_set_end_run(&set, 1);
    inf_cpu_core_set_fini(&set);
}

// A set may have more threads than there are cores if the caller says so. It keeps them until there
// are fewer cores than at the start.
Test(core_set, with_more_threads_than_cores_follows_too)
{
    struct inf_cpu_core_set set;
    struct run run = {0};
    open_set(&set);
    set.usable = 2;
    atomic_store(&usable, 2);
    begin_run(&run, &set);
    cr_assert_eq(set.cores, CORES);
    wait_for_count(&set, &run, 1);
    cr_assert_eq(set.cores, 1u);
    end_run(&run);
    inf_cpu_core_set_fini(&set);
}

// A race may find that a model gains nothing from more than some number of threads.
Test(core_set, gives_to_wide_runs_what_runs_of_few_threads_leave)
{
    static const struct {
        uint32_t threads[4]; // of runs in progress, the last one may have all 8
        uint32_t runs, share, share_up;
    } cases[] = {
        {{8}, 1, 8, 8},       {{2, 8}, 2, 6, 6},       {{3, 8}, 2, 5, 5},    {{5, 8}, 2, 4, 4},
        {{2, 2, 8}, 3, 4, 4}, {{1, 2, 8}, 3, 5, 5},    {{3, 8, 8}, 3, 2, 3}, {{1, 8, 8}, 3, 3, 4},
        {{2, 8, 8}, 3, 3, 3}, {{7, 7, 7, 8}, 4, 2, 2},
    };
    struct inf_cpu_core_set set;
    struct inf_error err = {0};
    cr_assert_eq(inf_cpu_core_set_init(&set, 8, 8, &err), INF_OK, "%s", err.text);
    set.cores = set.cores_most = set.usable = 8;
    set.count_usable = read_usable;
    atomic_store(&usable, 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint32_t k = 0; k < cases[i].runs; k++)
            inf_cpu_core_set_begin_run(&set, cases[i].threads[k]);
        uint32_t share = inf_cpu_core_set_divide(&set, false);
        uint32_t share_up = inf_cpu_core_set_divide(&set, true);
        cr_expect_eq(share, cases[i].share, "%zu: %u", i, share);
        cr_expect_eq(share_up, cases[i].share_up, "%zu: %u", i, share_up);
        for (uint32_t k = 0; k < cases[i].runs; k++)
            inf_cpu_core_set_end_run(&set, cases[i].threads[k]);
    }
    cr_assert_eq(inf_cpu_core_set_divide(&set, false), 8u);
    inf_cpu_core_set_fini(&set);
}

Test(core_set, counts_the_time_of_helpers)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    struct inf_cpu_core_set set;
    struct run run = {0};
    open_set(&set);
    begin_run(&run, &set);
    cr_assert_eq(inf_cpu_core_set_take_helper_ns(&set, &run.crew), 0u);
    uint64_t start_ns = inf_clock_ns();
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &run.crew, CORES), 3u);
    uint64_t acquired_ns = inf_clock_ns();
    nanosleep(&pause, NULL);
    uint64_t least_ns = inf_clock_ns() - acquired_ns;
    uint64_t took_ns = inf_cpu_core_set_take_helper_ns(&set, &run.crew);
    cr_assert_geq(took_ns, 3 * least_ns);
    cr_assert_leq(took_ns, 3 * (inf_clock_ns() - start_ns));
    // Three helpers go on for 2 ms. Then they leave, and the time after that is not counted.
    nanosleep(&pause, NULL);
    end_run(&run);
    uint64_t both_ns = took_ns + inf_cpu_core_set_take_helper_ns(&set, &run.crew);
    cr_assert_geq(both_ns, took_ns + 3 * 2000000u);
    cr_assert_leq(both_ns, 3 * (inf_clock_ns() - start_ns));
    nanosleep(&pause, NULL);
    cr_assert_eq(inf_cpu_core_set_take_helper_ns(&set, &run.crew), 0u);
    inf_cpu_core_set_fini(&set);
}

Test(core_set, helpers_give_way_to_other_runs)
{
    struct inf_cpu_core_set set;
    struct run first = {0}, second = {0}, third = {0}, fourth = {0};
    open_set(&set);
    begin_run(&first, &set);
    inf_cpu_core_set_acquire(&set, &first.crew, CORES);
    // The calling thread of the second run takes one core, so the first run keeps two of its three
    // helpers.
    begin_run(&second, &set);
    expect_helpers(&first, 2);
    // No core is free for a helper of the second run. But the first run has more than its share, so
    // it must give up one helper.
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &second.crew, CORES), 0u);
    expect_helpers(&first, 1);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &second.crew, CORES), 1u);
    expect_helpers(&second, 1);
    // Four cores are shared by three runs, so the share of a run is one core. Expect that the third
    // run gets no helper.
    begin_run(&third, &set);
    cr_assert_not(inf_cpu_core_set_offers(&set, &third.crew));
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &third.crew, CORES), 0u);
    begin_run(&fourth, &set);
    expect_helpers(&first, 0);
    expect_helpers(&second, 0);
    cr_assert_eq(set.helping, 0u);
    end_run(&first);
    end_run(&second);
    end_run(&third);
    end_run(&fourth);
    inf_cpu_core_set_fini(&set);
}

Test(core_set, runs_of_one_thread_leave_all_other_cores)
{
    struct inf_cpu_core_set set;
    struct run wide = {0};
    open_set(&set);
    inf_cpu_core_set_begin_run(&set, 1);
    begin_run(&wide, &set);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &wide.crew, CORES), 2u);
    expect_helpers(&wide, 2);
    inf_cpu_core_set_begin_run(&set, 1);
    expect_helpers(&wide, 1);
    inf_cpu_core_set_end_run(&set, 1);
    atomic_store(&set.kept_until_ns, 0);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &wide.crew, CORES), 2u);
    end_run(&wide);
    inf_cpu_core_set_end_run(&set, 1);
    // More runs of one thread than cores leave nothing to divide.
    for (int i = 0; i < 2 * CORES; i++)
        inf_cpu_core_set_begin_run(&set, 1);
    begin_run(&wide, &set);
    cr_assert_not(inf_cpu_core_set_offers(&set, &wide.crew));
    end_run(&wide);
    for (int i = 0; i < 2 * CORES; i++)
        inf_cpu_core_set_end_run(&set, 1);
    inf_cpu_core_set_fini(&set);
}

Test(core_set, a_core_that_is_left_over_goes_to_the_run_that_asks_first)
{
    struct inf_cpu_core_set set;
    struct run first = {0}, second = {0}, third = {0};
    open_set(&set);
    begin_run(&first, &set);
    begin_run(&second, &set);
    begin_run(&third, &set);
    // Four cores and three runs: one core is left over.
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &first.crew, CORES), 1u);
    cr_assert_not(inf_cpu_core_set_offers(&set, &second.crew));
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &second.crew, CORES), 0u);
    expect_helpers(&first, 1);
    // With two runs the share is two cores. The first run keeps its two.
    end_run(&third);
    atomic_store(&set.kept_until_ns, 0);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &first.crew, CORES), 1u);
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &second.crew, CORES), 1u);
    expect_helpers(&first, 1);
    end_run(&first);
    end_run(&second);
    inf_cpu_core_set_fini(&set);
}

Test(core_set, keeps_a_core_for_a_while_after_a_run_ended_beside_another)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct inf_cpu_core_set set;
    struct run first = {0}, second = {0};
    open_set(&set);
    begin_run(&first, &set);
    begin_run(&second, &set);
    end_run(&second);
    // Change the time until which the core is kept, because a busy machine may reach this line
    // later than that.
    cr_assert_gt(set.kept_until_ns, 0u);
    atomic_store(&set.kept_until_ns, UINT64_MAX);
    cr_assert_not(inf_cpu_core_set_offers(&set, &first.crew));
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &first.crew, CORES), 0u);
    atomic_store(&set.kept_until_ns, inf_clock_ns() + 100);
    nanosleep(&pause, NULL);
    cr_assert(inf_cpu_core_set_offers(&set, &first.crew));
    cr_assert_eq(inf_cpu_core_set_acquire(&set, &first.crew, CORES), 3u);
    end_run(&first);
    cr_assert_eq(set.kept_until_ns, 0u, "nothing is kept when no run is left");
    inf_cpu_core_set_fini(&set);
}

Test(core_set, gives_the_thread_pool_to_a_run_that_is_alone)
{
    struct inf_cpu_core_set set;
    struct run first = {0}, second = {0};
    open_set(&set);
    begin_run(&first, &set);
    cr_assert_not_null(inf_cpu_core_set_acquire_pool(&set));
    cr_assert_null(inf_cpu_core_set_acquire_pool(&set), "it is in use");
    inf_cpu_core_set_release_pool(&set);
    begin_run(&second, &set);
    cr_assert_null(inf_cpu_core_set_acquire_pool(&set));
    end_run(&second);
    cr_assert_not_null(inf_cpu_core_set_acquire_pool(&set));
    inf_cpu_core_set_release_pool(&set);
    end_run(&first);
    inf_cpu_core_set_fini(&set);
}

Test(core_set, one_thread_needs_no_helper)
{
    struct inf_cpu_core_set set;
    cr_assert_eq(inf_cpu_core_set_init(&set, 3, 1, NULL), INF_OK);
    cr_assert_eq(set.helper_count, 0u);
    cr_assert_null(inf_cpu_core_set_acquire_pool(&set));
    inf_cpu_core_set_fini(&set);
}

// Counts the threads of this process, and those of them that can receive SIGTERM.
static void count_threads(size_t *threads, size_t *receivers)
{
    DIR *tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    *threads = *receivers = 0;
    for (const struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[200];
        unsigned long long blocked = 0;
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        cr_assert_not_null(status);
        while (fgets(line, sizeof line, status) != NULL)
            sscanf(line, "SigBlk: %llx", &blocked);
        fclose(status);
        ++*threads;
        *receivers += (blocked >> (SIGTERM - 1) & 1) == 0;
    }
    closedir(tasks);
}

Test(core_set, threads_receive_no_signals)
{
    struct inf_cpu_core_set set;
    size_t before, threads, receivers_before, receivers;
    count_threads(&before, &receivers_before);
    cr_assert_eq(inf_cpu_core_set_init(&set, CORES, CORES, NULL), INF_OK);
    count_threads(&threads, &receivers);
    // The helpers, and the threads of the pool, of which its creator counts as one. A sanitizer may
    // start a thread of its own.
    cr_expect_geq(threads - before, 2 * (CORES - 1u));
    cr_expect_eq(receivers, receivers_before);
    inf_cpu_core_set_fini(&set);
}
