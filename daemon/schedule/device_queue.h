// SPDX-License-Identifier: Apache-2.0
// The bounded queue of jobs in front of one device, and what the device is expected to take for them.
// The loop puts jobs in and takes waiting ones back; workers take them out in the order of their
// turns (daemon/policy/fair_queue.h) and say what they took. A lock is held for a swap only.
#ifndef INF_DAEMON_SCHEDULE_DEVICE_QUEUE_H
#define INF_DAEMON_SCHEDULE_DEVICE_QUEUE_H

#include <stdatomic.h>

#include "backends/base/role.h"
#include "backends/base/spin_wait.h"
#include "backends/base/thread.h"
#include "daemon/policy/batch_ladder.h"
#include "daemon/policy/batch_wait.h"
#include "daemon/policy/fair_queue.h"
#include "daemon/policy/run_estimate.h"
#include "daemon/schedule/job.h"

// Jobs that one worker takes at once: each has a row at least.
#define INF_DEVICE_QUEUE_JOBS INF_BATCH_ROWS_MAX

struct inf_device_queue_limits {
    uint32_t requests_max; // waiting
    uint64_t bytes_max;    // of their data segments
};

// Embedded; does not move once in use.
struct inf_device_queue {
    uint32_t workers;       // that take from it
    struct inf_mutex mutex; // guards everything below, and the lane's part of jobs
    struct inf_cond filled;
    struct inf_fair_queue *fair_queue;
    struct inf_estimates estimates;
    struct inf_device_queue_limits limits;
    uint32_t count;
    uint64_t bytes; // of data segments
    uint32_t held;  // jobs that have a place, and are not in yet
    uint64_t held_bytes;
    uint32_t waiting; // workers that sleep in inf_device_queue_pop()
    bool looking;     // another is awake there, and looks at `pushes`
    struct inf_spin_wait spin_wait;
    struct inf_batch_wait batch_wait;
    bool closed;
    uint32_t running;     // jobs
    uint64_t ends_sum_ns; // when each of them is expected to end
    uint64_t typical_ns;  // a running mean over all models, for those not known yet
    // Changed under the mutex, and looked at without it by whoever takes it next.
    atomic_uint pushes; // jobs that ever got in, and 1 when the lane was closed
};

// Who takes from a lane, and how many jobs there can be.
struct inf_device_queue_options {
    uint32_t workers;
    uint32_t jobs_max; // that wait or run
    uint32_t cores;    // that the process may use
    struct inf_device_queue_limits limits;
};

// Prepares an embedded lane.
enum inf_code inf_device_queue_init(struct inf_device_queue *queue,
                                    const struct inf_device_queue_options *options,
                                    struct inf_error *err) INF_NODISCARD;

// Releases a lane that no worker uses any more. All zero is fine.
void inf_device_queue_fini(struct inf_device_queue *queue);

enum inf_device_queue_verdict {
    INF_DEVICE_QUEUE_TAKEN,
    INF_DEVICE_QUEUE_FULL, // or closed
    INF_DEVICE_QUEUE_LATE, // its deadline would pass before it is done
    INF_DEVICE_QUEUE_LONG, // its time in the queue would run out before it is begun
};

// Keeps a place for a job that may not run yet; its place becomes INF_JOB_HELD. Never INF_DEVICE_QUEUE_LATE.
enum inf_device_queue_verdict inf_device_queue_hold(struct inf_device_queue *queue,
                                                    struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Gives the place of a held job up.
void inf_device_queue_drop(struct inf_device_queue *queue, struct inf_job *job) INF_ON_LOOP;

// Puts a job in, unless there is no room or it would be late; one that is held gets in in any case. *out_wait_ns is how long all that
// waits will keep the workers busy, as far as is known.
enum inf_device_queue_verdict
inf_device_queue_push(struct inf_device_queue *queue, struct inf_job *job,
                      uint64_t *out_wait_ns) INF_NODISCARD INF_ON_LOOP;

// How long after it came a job would be done here, as far as is known: what is ahead of it, and a run of
// `run_ns` where the lane remembers none like it. At least 1.
uint64_t inf_device_queue_finish_ns(struct inf_device_queue *queue, const struct inf_job *job,
                                    uint64_t run_ns) INF_ON_LOOP;

// Takes a job back that no worker has begun; true also where that was done before. False: a worker has it.
bool inf_device_queue_recall(struct inf_device_queue *queue,
                             struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// As inf_device_queue_recall(); where a worker has the job, job->cancelled is set.
bool inf_device_queue_withdraw(struct inf_device_queue *queue,
                               struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Takes the job whose turn it is, waiting for one, and with it those that had best run together with
// it (daemon/policy/batch_ladder.h). Writes them to `jobs` and returns how many; 0 once the lane is closed and
// empty. One that is given up comes alone, and is not to be run: others would get the device's time for
// nothing. Blocks.
uint32_t inf_device_queue_pop(struct inf_device_queue *queue,
                              struct inf_job *jobs[INF_DEVICE_QUEUE_JOBS])
    INF_NODISCARD INF_ON_WORKER INF_MAY_BLOCK;

// Jobs that were taken have run: the times of their results are read, to charge for them and to learn
// from them. Before they are posted.
void inf_device_queue_settle(struct inf_device_queue *queue, struct inf_job *const *jobs,
                             uint32_t count) INF_ON_WORKER;

// Changes the limits. What waits already goes on waiting.
void inf_device_queue_set_limits(struct inf_device_queue *queue,
                                 const struct inf_device_queue_limits *limits) INF_ON_LOOP;

// Jobs waiting now. Any thread.
uint32_t inf_device_queue_count(struct inf_device_queue *queue);

// No further job gets in; workers get what is left, and then NULL. Any thread.
void inf_device_queue_close(struct inf_device_queue *queue);

#endif
