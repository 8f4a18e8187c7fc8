// SPDX-License-Identifier: Apache-2.0
// Creates the thread pools of the slots (concurrent runs), and measures the time to wake the
// threads of a pool.
#include "backends/cpu/core/thread_pools.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "backends/base/clock.h"
#include "backends/base/cores.h"

#define DEFAULT_THREADS_MAX 8u

// The number of wake-up measurements, and how long the threads are given to fall asleep before each
// of them.
#define WAKE_CALLS 7
#define SLEEP_NS   200000

static enum inf_code create_pools(struct inf_cpu_pools *pools, struct inf_error *err)
{
    pools->pools = calloc(pools->slots, sizeof(pthreadpool_t));
    if (pools->pools == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for %" PRIu32 " slots", pools->slots);
    if (pools->threads == 1)
        return INF_OK;
    for (uint32_t slot = 0; slot < pools->slots; slot++) {
        pools->pools[slot] = pthreadpool_create(pools->threads);
        if (pools->pools[slot] == NULL)
            return inf_fail(err, INF_EXHAUSTED, "cpu: the system refuses %" PRIu32 " threads",
                            pools->threads);
    }
    return INF_OK;
}

static void do_nothing(void *context, size_t index)
{
    (void)context;
    (void)index;
}

static int compare_times(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

// Returns the median time of WAKE_CALLS calls into a pool whose threads sleep.
static uint64_t measure_wake_ns(pthreadpool_t pool, size_t threads)
{
    const struct timespec sleep = {.tv_nsec = SLEEP_NS};
    uint64_t times_ns[WAKE_CALLS];
    for (size_t i = 0; i < WAKE_CALLS; i++) {
        nanosleep(&sleep, NULL);
        uint64_t start_ns = inf_clock_ns();
        pthreadpool_parallelize_1d(pool, do_nothing, NULL, threads, PTHREADPOOL_FLAG_YIELD_WORKERS);
        times_ns[i] = inf_clock_ns() - start_ns;
    }
    qsort(times_ns, WAKE_CALLS, sizeof(*times_ns), compare_times);
    return times_ns[WAKE_CALLS / 2];
}

enum inf_code inf_cpu_pools_init(struct inf_cpu_pools *pools, uint32_t slots, uint32_t threads,
                                 struct inf_error *err)
{
    *pools = (struct inf_cpu_pools){.slots = slots, .threads = threads};
    if (slots > INF_CPU_SLOTS_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "cpu: %" PRIu32 " slots are more than %u", slots, INF_CPU_SLOTS_MAX);
    if (threads > INF_CPU_THREADS_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "cpu: %" PRIu32 " threads are more than %u", threads,
                               INF_CPU_THREADS_MAX);
    if (slots == 0)
        pools->slots = 1;
    if (threads == 0) {
        uint32_t half = INF_MAX(inf_cores_usable() / 2, 1u);
        pools->threads = INF_MIN(half, DEFAULT_THREADS_MAX);
    }
    enum inf_code code = create_pools(pools, err);
    if (code != INF_OK)
        inf_cpu_pools_fini(pools);
    else if (pools->threads > 1)
        pools->wake_ns = measure_wake_ns(pools->pools[0], pools->threads);
    return code;
}

void inf_cpu_pools_fini(struct inf_cpu_pools *pools)
{
    for (uint32_t slot = 0; pools->pools != NULL && slot < pools->slots; slot++)
        pthreadpool_destroy(pools->pools[slot]);
    free(pools->pools);
    *pools = (struct inf_cpu_pools){0};
}
