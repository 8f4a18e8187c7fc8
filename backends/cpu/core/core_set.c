// SPDX-License-Identifier: Apache-2.0
// Divides the cores of the cpu device among the runs in progress.
//
// The problem: one request at a time should use all cores, but with many requests one core for each
// run gives the most throughput. At the start of a run it is not known whether another one follows.
//
// The idea: a run computes on its calling thread, with helpers from a set that all runs share.
// There are `cores` - 1 helpers, so that a run that is alone can use every core. A run acquires
// helpers when it has work for them. A helper checks after each piece of work whether it must give
// way, so the division follows the number of runs within one piece of work, which takes some ten
// microseconds.
//
//     runs + helping <= cores        unless there are more runs than cores
//     share = cores / runs           a run with more threads than this gives way to another run
//
// A run whose model gains nothing from more than a few threads has these at most, and the others
// divide the rest: on 8 cores, a run of at most 2 threads leaves 6 to another one. If cores are
// left over by the division, runs get one core more than their share in the order in which they
// ask, until a run that has less than its share wants it.
//
// Example: with two cores, a run that is alone has one helper. A second run begins on its own
// thread at once. The helper finds 2 runs + 1 helper on 2 cores and returns; both runs go on alone.
//
// Keep a core for the next run. If one of two runs ends, its client often sends the next request
// within KEEP_NS. Waking a helper for so short a time costs more than it gains, so the other run
// does not take the free core at once.
//
// Follow the limits of the process. Its CPU quota and its cpuset may change while it runs. A run
// counts the usable cores when it begins and when it wants helpers, but at most once in
// INF_CPU_FOLLOW_MS, so an idle device needs no timer. If there are fewer cores, helpers find more
// threads than cores and leave, as they do for a new run.
//
// Why a crew can be freed after inf_cpu_core_set_wait(): a helper is present from the time at which
// the leader acquires it, and the decrement of `present` is its last access to the crew.
#include "backends/cpu/core/core_set.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/base/system/cores.h"
#include "backends/base/system/crash_note.h"
#include "backends/cpu/kernels/pause.h"
#include "proto/core/span.h"

#define KEEP_NS UINT64_C(300000)

// How often a thread checks whether all helpers have returned before it yields its core.
#define WAIT_SPINS 2000u

struct inf_cpu_helper {
    struct inf_cpu_core_set *set;
    struct inf_thread thread;
    struct inf_cond wake;
    // Guarded by the mutex of the set.
    struct inf_cpu_crew *crew; // the crew that acquired the helper; NULL: none
    size_t worker;             // number of the helper in its crew
    bool begun;                // true: the helper is in crew->help()
    bool close;                // true: the thread must end
};

static uint32_t count_cores(const struct inf_cpu_core_set *set)
{
    return atomic_load_explicit(&set->cores, memory_order_relaxed);
}

uint32_t inf_cpu_core_set_divide(const struct inf_cpu_core_set *set, bool round_up)
{
    uint32_t cores = count_cores(set);
    uint32_t runs = INF_MAX(atomic_load_explicit(&set->runs, memory_order_relaxed), 1u);
    for (uint32_t most = 1; most < set->threads && most * runs <= cores; most++) {
        uint32_t limited = atomic_load_explicit(&set->runs_of[most], memory_order_relaxed);
        limited = INF_MIN(limited, runs - 1);
        cores -= limited * most;
        runs -= limited;
    }
    return INF_MAX((cores + (round_up ? runs - 1 : 0)) / runs, 1u);
}

// Counts the cores that the process may use, if the last count is older than INF_CPU_FOLLOW_MS.
static void follow_usable(struct inf_cpu_core_set *set) INF_MAY_BLOCK
{
    uint64_t now_ns = inf_clock_ns();
    uint64_t due_ns = atomic_load_explicit(&set->count_again_ns, memory_order_relaxed);
    // One thread counts at a time, even if a count takes longer than INF_CPU_FOLLOW_MS. Otherwise
    // an old count might overwrite a newer one. Acquire and release order the stores of `cores` by
    // different threads.
    if (now_ns < due_ns ||
        !atomic_compare_exchange_strong_explicit(&set->count_again_ns, &due_ns, INF_CPU_COUNTING,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    uint32_t usable = set->count_usable();
    uint32_t cores = usable < set->usable ? INF_MIN(usable, set->cores_most) : set->cores_most;
    atomic_store_explicit(&set->cores, cores, memory_order_relaxed);
    atomic_store_explicit(&set->count_again_ns,
                          now_ns + (uint64_t)INF_CPU_FOLLOW_MS * INF_NS_PER_MS,
                          memory_order_release);
}

static uint32_t find_share(const struct inf_cpu_core_set *set)
{
    return inf_cpu_core_set_divide(set, false);
}

// Returns the number of cores that neither a run nor a helper uses.
static uint32_t count_free(const struct inf_cpu_core_set *set)
{
    uint32_t used = INF_MAX(atomic_load_explicit(&set->runs, memory_order_relaxed), 1u) +
                    atomic_load_explicit(&set->helping, memory_order_relaxed);
    uint32_t cores = count_cores(set);
    return used < cores ? cores - used : 0;
}

// Changes the number of working helpers of a crew, and adds up the time for which the helpers have
// been working.
static void change_working(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew, int change)
    INF_ATTR(requires_capability(set->mutex))
{
    uint64_t now_ns = inf_clock_ns();
    uint32_t working = atomic_load_explicit(&crew->working, memory_order_relaxed);
    crew->helper_ns += working * (now_ns - crew->counted_until_ns);
    crew->counted_until_ns = now_ns;
    atomic_fetch_add_explicit(&set->helping, (unsigned)change, memory_order_relaxed);
    atomic_fetch_add_explicit(&crew->working, (unsigned)change, memory_order_relaxed);
}

uint64_t inf_cpu_core_set_take_helper_ns(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew)
{
    inf_mutex_lock(&set->mutex);
    change_working(set, crew, 0);
    uint64_t helper_ns = crew->helper_ns;
    crew->helper_ns = 0;
    inf_mutex_unlock(&set->mutex);
    return helper_ns;
}

// Returns true if a run with `working` helpers may get another one: it has less than its share, or
// a core is left over.
static bool may_grow(const struct inf_cpu_core_set *set, uint32_t working)
{
    return working + 1 < find_share(set) ||
           (working + 1 < inf_cpu_core_set_divide(set, true) && count_free(set) > 0);
}

// --- helper threads ---

static void run_helper(void *context) INF_ATTR(no_thread_safety_analysis)
{
    struct inf_cpu_helper *helper = context;
    struct inf_cpu_core_set *set = helper->set;
    inf_mutex_lock(&set->mutex);
    while (!helper->close) {
        struct inf_cpu_crew *crew = helper->crew;
        if (crew == NULL) {
            inf_cond_wait(&helper->wake, &set->mutex);
            continue;
        }
        helper->begun = true;
        uint64_t run_key = crew->run_key;
        inf_mutex_unlock(&set->mutex);
        inf_crash_note_help(run_key);
        bool gave_way = crew->help(crew->context, helper->worker);
        inf_crash_note_help(0);
        inf_mutex_lock(&set->mutex);
        if (!gave_way)
            change_working(set, crew, -1);
        helper->begun = false;
        helper->crew = NULL;
        // The leader may free the crew after this.
        atomic_fetch_sub_explicit(&crew->present, 1, memory_order_release);
    }
    inf_mutex_unlock(&set->mutex);
}

bool inf_cpu_core_set_give_way(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew)
{
    uint32_t used = atomic_load_explicit(&set->runs, memory_order_relaxed) +
                    atomic_load_explicit(&set->helping, memory_order_relaxed);
    if (used <= count_cores(set) && !atomic_load_explicit(&set->wanted, memory_order_relaxed))
        return false;
    inf_mutex_lock(&set->mutex);
    // Check again under the mutex, so that only as many helpers return as there are threads too
    // many.
    uint32_t cores = count_cores(set);
    used = atomic_load(&set->runs) + atomic_load(&set->helping);
    bool give_way = (used > cores || atomic_load(&set->wanted)) &&
                    atomic_load(&crew->working) + 1 > find_share(set);
    if (give_way)
        change_working(set, crew, -1);
    if (give_way || used <= cores)
        atomic_store(&set->wanted, false);
    inf_mutex_unlock(&set->mutex);
    return give_way;
}

// --- the leader: acquiring and releasing helpers ---

static struct inf_cpu_helper *find_idle(const struct inf_cpu_core_set *set)
{
    for (uint32_t i = 0; i < set->helper_count; i++)
        if (set->helpers[i].crew == NULL)
            return &set->helpers[i];
    return NULL;
}

// Returns the smallest number from 1 that no helper of the crew has.
static size_t find_number(const struct inf_cpu_core_set *set, const struct inf_cpu_crew *crew)
{
    bool used[INF_CPU_THREADS_MAX + 1] = {false};
    size_t number = 1;
    for (uint32_t i = 0; i < set->helper_count; i++)
        if (set->helpers[i].crew == crew)
            used[set->helpers[i].worker] = true;
    while (used[number])
        number++;
    return number;
}

// Assigns one helper to the crew. Returns NULL if no core is free, or the crew has its share.
static struct inf_cpu_helper *assign_helper(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew)
    INF_ATTR(requires_capability(set->mutex))
{
    // A helper that gave way still has its number until it returns.
    if (atomic_load(&crew->present) >= crew->most || !may_grow(set, atomic_load(&crew->working)))
        return NULL;
    struct inf_cpu_helper *helper = count_free(set) > 0 ? find_idle(set) : NULL;
    if (helper == NULL) {
        if (atomic_load(&crew->working) + 1 < find_share(set))
            atomic_store(&set->wanted, true);
        return NULL;
    }
    helper->worker = find_number(set, crew);
    helper->crew = crew;
    change_working(set, crew, 1);
    atomic_fetch_add(&crew->present, 1);
    return helper;
}

// Returns true if a free core is kept for the next run.
static bool is_core_kept(const struct inf_cpu_core_set *set)
{
    uint64_t kept_until_ns = atomic_load_explicit(&set->kept_until_ns, memory_order_relaxed);
    return kept_until_ns != 0 && inf_clock_ns() < kept_until_ns;
}

bool inf_cpu_core_set_offers(struct inf_cpu_core_set *set, const struct inf_cpu_crew *crew)
{
    follow_usable(set);
    return atomic_load_explicit(&crew->working, memory_order_relaxed) > 0 ||
           (may_grow(set, 0) && !is_core_kept(set));
}

uint32_t inf_cpu_core_set_acquire(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew,
                                  uint32_t most)
{
    uint32_t working = atomic_load_explicit(&crew->working, memory_order_relaxed);
    most = INF_MIN(most, crew->most);
    while (working < most && may_grow(set, working) && !is_core_kept(set)) {
        inf_mutex_lock(&set->mutex);
        crew->run_key = inf_crash_note_key();
        struct inf_cpu_helper *helper = assign_helper(set, crew);
        inf_mutex_unlock(&set->mutex);
        if (helper == NULL)
            break;
        inf_cond_signal(&helper->wake);
        working = atomic_load_explicit(&crew->working, memory_order_relaxed);
    }
    return atomic_load_explicit(&crew->working, memory_order_relaxed);
}

void inf_cpu_core_set_release(struct inf_cpu_core_set *set, struct inf_cpu_crew *crew)
{
    if (atomic_load_explicit(&crew->present, memory_order_acquire) == 0)
        return;
    inf_mutex_lock(&set->mutex);
    for (uint32_t i = 0; i < set->helper_count; i++) {
        struct inf_cpu_helper *helper = &set->helpers[i];
        if (helper->crew != crew || helper->begun)
            continue;
        helper->crew = NULL;
        change_working(set, crew, -1);
        atomic_fetch_sub(&crew->present, 1);
    }
    inf_mutex_unlock(&set->mutex);
}

void inf_cpu_core_set_wait(struct inf_cpu_crew *crew)
{
    for (uint32_t spins = 0; atomic_load_explicit(&crew->present, memory_order_acquire) > 0;
         spins++) {
        inf_pause();
        if (spins > WAIT_SPINS)
            sched_yield();
    }
}

// --- counting runs ---

void inf_cpu_core_set_begin_run(struct inf_cpu_core_set *set, uint32_t threads)
{
    assert(threads <= INF_CPU_THREADS_MAX);
    follow_usable(set);
    atomic_fetch_add_explicit(&set->runs_of[threads], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&set->runs, 1, memory_order_relaxed);
}

void inf_cpu_core_set_end_run(struct inf_cpu_core_set *set, uint32_t threads)
{
    uint32_t alike = atomic_fetch_sub_explicit(&set->runs_of[threads], 1, memory_order_relaxed);
    uint32_t before = atomic_fetch_sub_explicit(&set->runs, 1, memory_order_relaxed);
    assert(alike > 0 && before > 0);
    uint64_t kept_until_ns = before > 1 ? inf_clock_ns() + KEEP_NS : 0;
    atomic_store_explicit(&set->kept_until_ns, kept_until_ns, memory_order_relaxed);
}

pthreadpool_t inf_cpu_core_set_acquire_pool(struct inf_cpu_core_set *set)
{
    if (set->pool == NULL || count_cores(set) == 1 ||
        atomic_load_explicit(&set->runs, memory_order_relaxed) > 1 ||
        atomic_exchange_explicit(&set->pool_taken, true, memory_order_acquire))
        return NULL;
    return set->pool;
}

void inf_cpu_core_set_release_pool(struct inf_cpu_core_set *set)
{
    atomic_store_explicit(&set->pool_taken, false, memory_order_release);
}

// --- creating and ending the threads ---

static void do_nothing(void *context, size_t index)
{
    (void)context;
    (void)index;
}

static enum inf_code start_helpers(struct inf_cpu_core_set *set, struct inf_error *err)
{
    set->helpers = calloc(set->cores_most, sizeof(*set->helpers));
    if (set->helpers == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for %" PRIu32 " threads", set->cores_most);
    for (uint32_t i = 0; i + 1 < set->cores_most; i++) {
        struct inf_cpu_helper *helper = &set->helpers[i];
        helper->set = set;
        inf_cond_init(&helper->wake);
        set->helper_count++;
        INF_TRY(inf_thread_start(&helper->thread, "inferd-helper", run_helper, helper, err));
    }
    sigset_t before;
    inf_thread_block_signals(&before);
    set->pool = pthreadpool_create(set->threads);
    inf_thread_restore_signals(&before);
    if (set->pool == NULL)
        return inf_fail(err, INF_EXHAUSTED, "cpu: the system refuses %" PRIu32 " threads",
                        set->threads);
    // New threads of a pool spin for milliseconds. After a call with this flag they sleep.
    pthreadpool_parallelize_1d(set->pool, do_nothing, NULL, set->threads,
                               PTHREADPOOL_FLAG_YIELD_WORKERS);
    return INF_OK;
}

enum inf_code inf_cpu_core_set_init(struct inf_cpu_core_set *set, uint32_t slots, uint32_t threads,
                                    struct inf_error *err)
{
    *set = (struct inf_cpu_core_set){.slots = slots, .threads = threads};
    if (slots > INF_CPU_SLOTS_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "cpu: %" PRIu32 " slots are more than %u", slots, INF_CPU_SLOTS_MAX);
    if (threads > INF_CPU_THREADS_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "cpu: %" PRIu32 " threads are more than %u", threads,
                               INF_CPU_THREADS_MAX);
    uint32_t usable = INF_MIN(inf_cores_usable(), INF_CPU_THREADS_MAX);
    if (slots == 0)
        set->slots = INF_MIN(usable, INF_CPU_AUTO_SLOTS_MAX);
    if (threads == 0)
        set->threads = INF_MIN(usable, INF_CPU_AUTO_THREADS_MAX);
    set->cores_most = INF_MAX(usable, set->threads);
    atomic_store(&set->cores, set->cores_most);
    set->usable = usable;
    set->count_usable = inf_cores_usable;
    inf_mutex_init(&set->mutex);
    enum inf_code code = set->threads > 1 ? start_helpers(set, err) : INF_OK;
    if (code != INF_OK)
        inf_cpu_core_set_fini(set);
    return code;
}

void inf_cpu_core_set_fini(struct inf_cpu_core_set *set)
{
    if (set->cores_most == 0)
        return;
    inf_mutex_lock(&set->mutex);
    for (uint32_t i = 0; i < set->helper_count; i++)
        set->helpers[i].close = true;
    inf_mutex_unlock(&set->mutex);
    for (uint32_t i = 0; i < set->helper_count; i++) {
        inf_cond_signal(&set->helpers[i].wake);
        inf_thread_join(&set->helpers[i].thread);
        inf_cond_fini(&set->helpers[i].wake);
    }
    free(set->helpers);
    pthreadpool_destroy(set->pool);
    inf_mutex_fini(&set->mutex);
    *set = (struct inf_cpu_core_set){0};
}
