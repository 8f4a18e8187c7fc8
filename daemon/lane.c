// SPDX-License-Identifier: Apache-2.0
#include "daemon/lane.h"

void inf_lane_init(struct inf_lane *lane, uint32_t count_max, uint64_t bytes_max)
{
    *lane = (struct inf_lane){.count_max = count_max, .bytes_max = bytes_max};
    inf_mutex_init(&lane->mutex);
    inf_cond_init(&lane->filled);
}

void inf_lane_fini(struct inf_lane *lane)
{
    inf_cond_fini(&lane->filled);
    inf_mutex_fini(&lane->mutex);
}

static void append(struct inf_lane *lane, struct inf_job *job)
{
    job->place = INF_JOB_QUEUE;
    job->next = NULL;
    job->previous = lane->last;
    if (lane->last != NULL)
        lane->last->next = job;
    else
        lane->first = job;
    lane->last = job;
    lane->count++;
    lane->bytes += job->data_bytes;
}

static void take_out(struct inf_lane *lane, struct inf_job *job)
{
    if (job->previous != NULL)
        job->previous->next = job->next;
    else
        lane->first = job->next;
    if (job->next != NULL)
        job->next->previous = job->previous;
    else
        lane->last = job->previous;
    job->previous = job->next = NULL;
    lane->count--;
    lane->bytes -= job->data_bytes;
}

bool inf_lane_push(struct inf_lane *lane, struct inf_job *job)
{
    inf_mutex_lock(&lane->mutex);
    // A lane that is empty takes a job of any size: else it could never run.
    bool fits = lane->count == 0 ||
                (lane->count < lane->count_max && lane->bytes + job->data_bytes <= lane->bytes_max);
    bool accepted = fits && !lane->closed;
    bool wake = false;
    if (accepted) {
        append(lane, job);
        wake = lane->waiting > 0;
    }
    inf_mutex_unlock(&lane->mutex);
    if (wake)
        inf_cond_signal(&lane->filled);
    return accepted;
}

bool inf_lane_withdraw(struct inf_lane *lane, struct inf_job *job)
{
    inf_mutex_lock(&lane->mutex);
    bool queued = job->place == INF_JOB_QUEUE;
    if (queued) {
        take_out(lane, job);
        job->place = INF_JOB_LOOP;
    }
    inf_mutex_unlock(&lane->mutex);
    // Relaxed: a hint to stop early; the job's result reaches the loop through the queue's lock.
    if (!queued)
        atomic_store_explicit(&job->cancelled, true, memory_order_relaxed);
    return queued;
}

struct inf_job *inf_lane_pop(struct inf_lane *lane)
{
    inf_role_check_may_block();
    inf_mutex_lock(&lane->mutex);
    while (lane->first == NULL && !lane->closed) {
        lane->waiting++;
        inf_cond_wait(&lane->filled, &lane->mutex);
        lane->waiting--;
    }
    struct inf_job *job = lane->first;
    if (job != NULL) {
        take_out(lane, job);
        job->place = INF_JOB_WORKER;
    }
    inf_mutex_unlock(&lane->mutex);
    return job;
}

uint32_t inf_lane_count(struct inf_lane *lane)
{
    inf_mutex_lock(&lane->mutex);
    uint32_t count = lane->count;
    inf_mutex_unlock(&lane->mutex);
    return count;
}

void inf_lane_close(struct inf_lane *lane)
{
    inf_mutex_lock(&lane->mutex);
    lane->closed = true;
    inf_mutex_unlock(&lane->mutex);
    inf_cond_broadcast(&lane->filled);
}
