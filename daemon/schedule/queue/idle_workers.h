// SPDX-License-Identifier: Apache-2.0
// The workers of a device queue that run no job: which of them takes the next job, and whether it
// must be woken for that. Part of struct inf_device_queue. The mutex of the queue guards it: all
// functions but inf_idle_workers_check() and inf_sleeping_worker_wake() are called with that mutex
// locked.
#ifndef INF_DAEMON_SCHEDULE_QUEUE_IDLE_WORKERS_H
#define INF_DAEMON_SCHEDULE_QUEUE_IDLE_WORKERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/thread.h"

// A worker that sleeps until it has something to do.
struct inf_sleeping_worker {
    struct inf_cond wake;
    bool asleep;
    struct inf_sleeping_worker *next; // next element of the list that contains it
};

struct inf_idle_workers {
    uint32_t workers; // number of workers of the queue, idle or not
    // One element for each worker. Those of sleeping workers are in the list `asleep`, the last one
    // that fell asleep first; the others are in the list `unused`.
    struct inf_sleeping_worker *elements, *asleep, *unused;
    uint32_t asleep_count; // number of elements of the list `asleep`
    // Number of workers that have finished their jobs and are about to pop again.
    uint32_t returning;
    // The time of the first push since the queue was empty that woke no sleeping worker, because
    // one that is awake should take the job. 0: no such job is queued. Read without the mutex by
    // the loop.
    _Atomic uint64_t not_woken_ns;
};

// Initialises the state for `workers` workers, none of which is idle.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_idle_workers_init(struct inf_idle_workers *idle, uint32_t workers,
                                    struct inf_error *err) INF_NODISCARD;

// Releases the memory. No worker sleeps.
void inf_idle_workers_fini(struct inf_idle_workers *idle);

// Sleeps until another thread takes this worker out of the list of sleeping workers, and wakes it.
// Unlocks `mutex`, the one of the queue, meanwhile.
void inf_idle_workers_sleep(struct inf_idle_workers *idle, struct inf_mutex *mutex)
    INF_ATTR(requires_capability(*mutex)) INF_MAY_BLOCK;

// Does the same, but sleeps at most until the time `until_ns` of inf_clock_ns().
void inf_idle_workers_sleep_until(struct inf_idle_workers *idle, struct inf_mutex *mutex,
                                  uint64_t until_ns)
    INF_ATTR(requires_capability(*mutex)) INF_MAY_BLOCK;

// Takes the worker that fell asleep last out of the list of sleeping workers; NULL if none sleeps.
// The caller wakes it.
struct inf_sleeping_worker *inf_idle_workers_take(struct inf_idle_workers *idle);

// Wakes a worker that was taken out of the list. `worker` may be NULL. The mutex need not be
// locked.
void inf_sleeping_worker_wake(struct inf_sleeping_worker *worker);

// A worker has finished its jobs and is about to pop again.
void inf_idle_workers_return(struct inf_idle_workers *idle);
// A worker pops.
void inf_idle_workers_arrive(struct inf_idle_workers *idle);

// Called after a push, when `queued` jobs are queued and `polling` workers poll. Returns the
// sleeping worker that the caller must wake. Returns NULL if none sleeps, or if workers that are
// awake can take all jobs; then the loop must watch that they do, by inf_idle_workers_check().
struct inf_sleeping_worker *inf_idle_workers_choose(struct inf_idle_workers *idle, uint32_t queued,
                                                    uint32_t polling);

// Called after jobs left the queue. Ends the watch of the loop if no job is queued any longer.
void inf_idle_workers_note_queued(struct inf_idle_workers *idle, uint32_t queued);

enum inf_hand_over {
    INF_HAND_OVER_NONE, // no job waits for a worker that is awake while another one sleeps
    INF_HAND_OVER_DUE,  // such a job waits, for a short time so far
    INF_HAND_OVER_LATE, // such a job has waited so long that another worker must be woken
};

// Returns the state of the hand-over of a job to a worker that is awake, at time `now_ns`. Called
// by the loop without the mutex. The time UINT64_MAX makes each hand-over late.
enum inf_hand_over inf_idle_workers_check(const struct inf_idle_workers *idle, uint64_t now_ns);

// Ends a late hand-over. Returns the sleeping worker that the caller must wake; NULL if none sleeps
// or no job is queued any longer.
struct inf_sleeping_worker *inf_idle_workers_replace(struct inf_idle_workers *idle,
                                                     uint32_t queued);

#endif
