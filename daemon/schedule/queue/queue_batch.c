// SPDX-License-Identifier: Apache-2.0
// Chooses the queued jobs that one run computes together: jobs of one model, as many rows as the
// batch ladder of the model recommends. A decoding step counts as one row. It runs together only
// with steps of the same join key (daemon/schedule/history_joined.h).
#include "daemon/schedule/queue/queue_batch.h"

#include <stddef.h>

struct inf_job *inf_queue_batch_find_job(struct inf_fair_queue_entry *entry)
{
    return entry == NULL
               ? NULL
               : (struct inf_job *)((char *)entry - offsetof(struct inf_job, queue_entry));
}

// Lists the queued jobs that may run together with the queued job `first`, which is jobs[0]. Some
// of them may have no rows. Returns their number. Sets *of_model to the number of queued jobs of
// the model, but not more than INF_QUEUE_BATCH_JOBS.
static uint32_t list_alike(const struct inf_fair_queue *fair_queue, struct inf_job *first,
                           struct inf_job *jobs[INF_QUEUE_BATCH_JOBS], uint32_t *of_model)
{
    struct inf_fair_queue_entry *entries[INF_QUEUE_BATCH_JOBS];
    uint32_t count = 0;
    *of_model =
        inf_fair_queue_gather(fair_queue, &first->queue_entry, entries, INF_QUEUE_BATCH_JOBS);
    for (uint32_t i = 0; i < *of_model; i++) {
        struct inf_job *job = inf_queue_batch_find_job(entries[i]);
        if (job->join_key == first->join_key)
            jobs[count++] = job;
    }
    return count;
}

// Returns the earlier of two times in nanoseconds. If one of them is 0, which means that no time is
// set, returns the other.
static uint64_t find_earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

uint32_t inf_queue_batch_count(const struct inf_fair_queue *fair_queue, struct inf_job *first,
                               uint64_t fresh_ns, struct inf_batch_waiting *waiting)
{
    struct inf_job *jobs[INF_QUEUE_BATCH_JOBS];
    uint32_t of_model, count = list_alike(fair_queue, first, jobs, &of_model);
    *waiting = (struct inf_batch_waiting){.model = first->queue_entry.model};
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_job *job = jobs[i];
        waiting->rows += job->rows;
        if (job->accepted_ns >= fresh_ns)
            waiting->fresh += job->rows;
        waiting->deadline_ns = find_earlier(waiting->deadline_ns, job->deadline.at_ns);
        waiting->deadline_ns = find_earlier(waiting->deadline_ns, job->queue_deadline.at_ns);
    }
    return of_model;
}

uint32_t inf_queue_batch_gather(const struct inf_fair_queue *fair_queue, uint64_t idle,
                                struct inf_job *jobs[INF_QUEUE_BATCH_JOBS])
{
    const struct inf_batch_ladder *ladder = &jobs[0]->served->ladder;
    struct inf_job *alike[INF_QUEUE_BATCH_JOBS];
    uint32_t of_model, found = list_alike(fair_queue, jobs[0], alike, &of_model);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < found; i++)
        rows += alike[i]->rows;
    uint64_t share = (rows + idle) / (idle + 1);
    uint64_t room = inf_batch_choose(ladder, INF_MAX(share, jobs[0]->rows)).rows;
    uint32_t count = 1;
    uint64_t taken = jobs[0]->rows;
    for (uint32_t i = 1; i < found && taken < room; i++) {
        if (alike[i]->rows == 0 || taken + alike[i]->rows > room)
            continue;
        taken += alike[i]->rows;
        alike[i]->skip_run = false;
        jobs[count++] = alike[i];
    }
    return count;
}
