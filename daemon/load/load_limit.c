// SPDX-License-Identifier: Apache-2.0
// Limits the time of a load. The thread sleeps on a condition, without a time limit while there is
// no job, so an idle daemon has no timer.
#include "daemon/load/load_limit.h"

#include "backends/base/clock.h"

static void watch_jobs(void *context)
{
    struct inf_load_limit *limit = context;
    inf_mutex_lock(&limit->mutex);
    while (!limit->stopping) {
        if (limit->job == NULL) {
            inf_cond_wait(&limit->changed, &limit->mutex);
        } else if (inf_clock_ns() < limit->end_ns) {
            (void)inf_cond_wait_until(&limit->changed, &limit->mutex, limit->end_ns);
        } else {
            inf_load_job_cancel(limit->job, INF_LOAD_STOP_LIMIT);
            limit->job = NULL;
        }
    }
    inf_mutex_unlock(&limit->mutex);
}

enum inf_code inf_load_limit_init(struct inf_load_limit *limit, struct inf_error *err)
{
    *limit = (struct inf_load_limit){.job = NULL};
    inf_mutex_init(&limit->mutex);
    inf_cond_init(&limit->changed);
    enum inf_code code = inf_thread_start(&limit->thread, "inferd-limit", watch_jobs, limit, err);
    if (code != INF_OK) {
        inf_cond_fini(&limit->changed);
        inf_mutex_fini(&limit->mutex);
    }
    return code;
}

void inf_load_limit_fini(struct inf_load_limit *limit)
{
    if (!limit->thread.started)
        return;
    inf_mutex_lock(&limit->mutex);
    limit->stopping = true;
    inf_mutex_unlock(&limit->mutex);
    inf_cond_signal(&limit->changed);
    inf_thread_join(&limit->thread);
    inf_cond_fini(&limit->changed);
    inf_mutex_fini(&limit->mutex);
}

// Sets the job that the thread watches; NULL: none.
static void set_job(struct inf_load_limit *limit, struct inf_load_job *job, uint64_t end_ns)
{
    inf_mutex_lock(&limit->mutex);
    limit->job = job;
    limit->end_ns = end_ns;
    inf_mutex_unlock(&limit->mutex);
    inf_cond_signal(&limit->changed);
}

void inf_load_limit_begin(struct inf_load_limit *limit, struct inf_load_job *job, uint32_t limit_ms)
{
    set_job(limit, job, inf_clock_ns() + limit_ms * INF_NS_PER_MS);
}

void inf_load_limit_end(struct inf_load_limit *limit)
{
    set_job(limit, NULL, 0);
}
