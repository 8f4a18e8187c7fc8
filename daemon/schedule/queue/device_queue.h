// SPDX-License-Identifier: Apache-2.0
// The bounded queue of jobs of one device, with an estimate of their run times. The loop pushes
// jobs and may take queued jobs back. Workers pop them in the order of the fair queue
// (daemon/policy/fair_queue.h) and report how long they took. device_queue.c explains the ideas.
#ifndef INF_DAEMON_SCHEDULE_QUEUE_DEVICE_QUEUE_H
#define INF_DAEMON_SCHEDULE_QUEUE_DEVICE_QUEUE_H

#include <stdatomic.h>

#include "backends/base/role.h"
#include "backends/base/spin_wait.h"
#include "backends/base/thread.h"
#include "daemon/policy/batch_wait.h"
#include "daemon/policy/fair_queue.h"
#include "daemon/policy/run_estimate.h"
#include "daemon/policy/slot_share.h"
#include "daemon/policy/wait_estimate.h"
#include "daemon/schedule/job.h"
#include "daemon/schedule/queue/idle_workers.h"
#include "daemon/schedule/queue/low_runs.h"
#include "daemon/schedule/queue/queue_batch.h"

struct inf_device_queue_limits {
    uint32_t requests_max; // the most jobs that may be queued
    uint64_t bytes_max;    // the most bytes in the data segments of queued jobs
};

// The queue of one device. Embedded in the scheduler. Must not move while it is used.
struct inf_device_queue {
    uint32_t workers; // number of workers that pop from this queue
    // Guards all fields after it, and the `place` and `queue_entry` of each queued job.
    struct inf_mutex mutex;
    struct inf_idle_workers idle;
    struct inf_fair_queue *fair_queue;
    struct inf_estimates estimates;
    struct inf_device_queue_limits limits;
    uint32_t count; // number of queued jobs
    uint64_t bytes; // bytes of the data segments of queued jobs
    // Number of jobs that take room in the queue but must not run yet, because an earlier job of
    // the same session is not done.
    uint32_t held;
    uint64_t held_bytes;
    bool polling; // one worker in inf_device_queue_pop() is awake and polls `pushes`
    struct inf_spin_wait spin_wait;
    struct inf_batch_wait batch_wait;
    struct inf_slot_share slot_share; // one slot for each worker
    struct inf_low_runs low_runs;
    // True: a worker found queued jobs but none that may start, so it may have to be woken when
    // that changes. Set to false when no job is queued.
    bool held_back;
    bool closed;
    uint32_t running;     // number of jobs that workers are running
    uint64_t begun;       // number of jobs that workers have taken so far
    uint32_t last_uid;    // user of the job that a worker took last
    uint64_t ends_sum_ns; // sum of the expected end times of the running jobs
    // Running mean of the device time of all jobs, for models without an estimate.
    uint64_t typical_ns;
    // Changed under the mutex, but read without it by the worker that polls.
    atomic_uint pushes; // number of jobs ever pushed, plus 1 when the queue is closed
};

struct inf_device_queue_options {
    uint32_t workers;  // number of workers that pop from the queue
    uint32_t jobs_max; // the most jobs that are queued or running
    uint32_t cores;    // number of processors that the process may use
    struct inf_device_queue_limits limits;
};

// Initialises the queue of one device, which is embedded in the scheduler.
enum inf_code inf_device_queue_init(struct inf_device_queue *queue,
                                    const struct inf_device_queue_options *options,
                                    struct inf_error *err) INF_NODISCARD;

// Releases the memory of a queue that no worker uses. A zeroed struct is allowed.
void inf_device_queue_fini(struct inf_device_queue *queue);

enum inf_device_queue_verdict {
    INF_DEVICE_QUEUE_ACCEPTED,
    INF_DEVICE_QUEUE_FULL,       // the queue is full or closed
    INF_DEVICE_QUEUE_LATE_END,   // the job would end after its deadline
    INF_DEVICE_QUEUE_LATE_START, // the job would start after its queue deadline
};

// Reserves room in the queue for a job that may not run yet, and sets job->place to INF_JOB_HELD.
// Checks no deadline.
enum inf_device_queue_verdict inf_device_queue_hold(struct inf_device_queue *queue,
                                                    struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Gives up the room that inf_device_queue_hold() reserved for a job.
void inf_device_queue_drop(struct inf_device_queue *queue, struct inf_job *job) INF_ON_LOOP;

// Pushes a job, unless the queue is full or the job would be too late. A held job is always
// accepted. *out_wait_ns is the expected time until the workers have done all queued jobs.
enum inf_device_queue_verdict
inf_device_queue_push(struct inf_device_queue *queue, struct inf_job *job,
                      uint64_t *out_wait_ns) INF_NODISCARD INF_ON_LOOP;

// Returns true if a queued job may be waiting for a worker that is awake although another worker
// sleeps. The loop must not sleep then, but call the function again soon. If the job has waited for
// longer than a hand-over takes at time `now_ns`, wakes the sleeping worker and returns false. The
// time UINT64_MAX wakes it at once.
bool inf_device_queue_check_hand_over(struct inf_device_queue *queue,
                                      uint64_t now_ns) INF_NODISCARD INF_ON_LOOP;

// Returns the expected time, in nanoseconds, from the arrival of a job until this device would have
// run it. If the queue has no estimate for the run itself, the run is expected to take `run_ns`.
// The result is at least 1.
uint64_t inf_device_queue_finish_ns(struct inf_device_queue *queue, const struct inf_job *job,
                                    uint64_t run_ns) INF_ON_LOOP;

// Removes a job from the queue before a worker takes it. Returns true on success, and also if the
// job was removed before. Returns false if a worker already has the job.
bool inf_device_queue_recall(struct inf_device_queue *queue,
                             struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Removes a job from the queue, like inf_device_queue_recall(). If a worker already has the job,
// sets job->cancelled, so that the worker stops early, and returns false.
bool inf_device_queue_withdraw(struct inf_device_queue *queue,
                               struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Returns where a job of this device is: held, in this queue, or taken by a worker.
enum inf_job_place inf_device_queue_place(struct inf_device_queue *queue,
                                          const struct inf_job *job) INF_ON_LOOP;

// Waits for the next job and pops it, together with jobs that should run in one batch with it.
// Writes them to `jobs` and returns their number; 0 once the queue is closed and empty. A job with
// skip_run set is returned alone and must not be run, because it would miss its deadline. Blocks.
uint32_t inf_device_queue_pop(struct inf_device_queue *queue,
                              struct inf_job *jobs[INF_QUEUE_BATCH_JOBS])
    INF_NODISCARD INF_ON_WORKER INF_MAY_BLOCK;

// Ends popped jobs: charges their users for the device time, and updates the estimates with the run
// times in their results. The worker must call it before it posts the jobs to the loop.
void inf_device_queue_finish(struct inf_device_queue *queue, struct inf_job *const *jobs,
                             uint32_t count) INF_ON_WORKER;

// Changes the limits of the queue. Queued jobs stay queued even if they exceed the new limits.
void inf_device_queue_set_limits(struct inf_device_queue *queue,
                                 const struct inf_device_queue_limits *limits) INF_ON_LOOP;

// Returns the number of queued jobs. Any thread may call it.
uint32_t inf_device_queue_count(struct inf_device_queue *queue);

// Closes the queue: it accepts no further job, and inf_device_queue_pop() returns 0 once it is
// empty. Any thread may call it.
void inf_device_queue_close(struct inf_device_queue *queue);

#endif
