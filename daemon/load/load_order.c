// SPDX-License-Identifier: Apache-2.0
// A load takes its turn by its rank: models for which a request or an admin waits come first, then
// the priority of the settings decides, then how much the model was used, then its name.
#include "daemon/load/load_order.h"

#include <string.h>

int inf_load_rank_compare(const struct inf_load_rank *a, const struct inf_load_rank *b)
{
    if (a->wanted != b->wanted)
        return a->wanted ? -1 : 1;
    if (a->priority != b->priority)
        return a->priority > b->priority ? -1 : 1;
    if (a->uses != b->uses)
        return a->uses > b->uses ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool goes_before(const struct inf_load_job *a, const struct inf_load_job *b)
{
    const struct inf_load_rank ranks[] = {
        {a->model.wanted || a->model.by_admin, a->model.priority, a->model.uses, a->name},
        {b->model.wanted || b->model.by_admin, b->model.priority, b->model.uses, b->name},
    };
    return inf_load_rank_compare(&ranks[0], &ranks[1]) < 0;
}

// Returns true if an earlier job of the queue is about the same model.
static bool follows_own(const struct inf_load_job *queue, const struct inf_load_job *job)
{
    while (queue != job && strcmp(queue->name, job->name) != 0)
        queue = queue->next;
    return queue != job;
}

// Returns true if a job does not run yet. One that was cancelled only reports that.
static bool is_put_off(const struct inf_load_job *job, uint64_t now_ns)
{
    return job->kind == INF_LOAD_JOB_MODEL && job->model.not_before_ns > now_ns &&
           !atomic_load(&job->cancelled);
}

struct inf_load_job **inf_load_order_choose(struct inf_load_job **queue, uint64_t now_ns)
{
    struct inf_load_job **best = queue;
    while (*best != NULL && is_put_off(*best, now_ns))
        best = &(*best)->next;
    if (*best == NULL)
        return NULL;
    if ((*best)->kind != INF_LOAD_JOB_MODEL)
        return best;
    for (struct inf_load_job **link = &(*best)->next; *link != NULL; link = &(*link)->next)
        if ((*link)->kind == INF_LOAD_JOB_MODEL && !is_put_off(*link, now_ns) &&
            goes_before(*link, *best) && !follows_own(*queue, *link))
            best = link;
    return best;
}

uint64_t inf_load_order_next_ns(const struct inf_load_job *queue)
{
    uint64_t next_ns = UINT64_MAX;
    for (; queue != NULL; queue = queue->next)
        if (queue->kind == INF_LOAD_JOB_MODEL && queue->model.not_before_ns != 0)
            next_ns = INF_MIN(next_ns, queue->model.not_before_ns);
    return next_ns;
}
