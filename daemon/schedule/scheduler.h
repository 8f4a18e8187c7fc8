// SPDX-License-Identifier: Apache-2.0
// Decides which job runs when and where: a bounded queue and one worker per slot for each device,
// and the deadlines of all jobs. Jobs are submitted by a call and come back as data, through two
// descriptors that the loop watches. All functions are the loop's.
#ifndef INF_DAEMON_SCHEDULE_SCHEDULER_H
#define INF_DAEMON_SCHEDULE_SCHEDULER_H

#include "backends/base/idle_gate.h"
#include "backends/base/role.h"
#include "backends/registry.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/job.h"

struct inf_scheduler;

struct inf_scheduler_options {
    const struct inf_device_list *devices; // outlives the scheduler
    struct inf_pool *pool;                 // outlives the scheduler
    struct inf_idle_gate *idle_gate;       // closed while there are jobs; outlives the scheduler
    uint32_t queue_requests_max;           // queued jobs per device
    uint64_t queue_bytes_max;              // bytes of their data segments, per device
};

// Starts a worker for each slot of each device. *out_scheduler is the caller's to destroy.
//
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_scheduler_create(struct inf_scheduler **out_scheduler,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err) INF_NODISCARD;

// Lets the workers finish the jobs that they took, and joins them. Withdraw all jobs before, and
// take the remaining ones with inf_scheduler_next_done() afterwards; others are lost.
void inf_scheduler_stop(struct inf_scheduler *scheduler);

// Frees the scheduler, stopped or not. NULL is allowed.
void inf_scheduler_destroy(struct inf_scheduler **scheduler);

// Submits a job to the queue of its device, and starts its deadlines. On failure the job stays the
// caller's.
//
// INF_EXHAUSTED  (QUEUE_FULL) fault->retry_after_ms tells when there should be room.
// INF_DEADLINE   (PREDICTED) the job is expected to end after its deadline, or to start after its
//                queue deadline.
enum inf_code inf_scheduler_submit(struct inf_scheduler *scheduler, struct inf_job *job,
                                   struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Returns the expected time from the arrival of a job until it would be done on device `index` of
// the list, in nanoseconds. The run counts as `run_ns` if there is no estimate for it. At least 1.
uint64_t inf_scheduler_finish_ns(struct inf_scheduler *scheduler, uint32_t index,
                                 const struct inf_job *job, uint64_t run_ns) INF_ON_LOOP;

// Accepts a job that may not run yet: it has its place in the queue, and its deadlines start. On
// failure the job stays the caller's. It ends with one of the next three functions.
//
// INF_EXHAUSTED  (QUEUE_FULL)
enum inf_code inf_scheduler_hold(struct inf_scheduler *scheduler, struct inf_job *job,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Lets a held job run.
void inf_scheduler_resume(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Ends a held job without running it. Its fault gives the reason; it comes back through
// inf_scheduler_next_done().
void inf_scheduler_fail(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Withdraws a job whose result is not wanted. True: it had not started, and is the caller's again.
// False: a worker has it; the worker is asked to stop, and the job comes back through
// inf_scheduler_next_done().
bool inf_scheduler_withdraw(struct inf_scheduler *scheduler,
                            struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Returns a descriptor that becomes readable when a job is done and none was waiting; to be watched
// edge-triggered. Call inf_scheduler_next_done() until NULL.
int inf_scheduler_done_fd(const struct inf_scheduler *scheduler);
// Returns the next job that is done, the caller's again; NULL if there is none.
struct inf_job *inf_scheduler_next_done(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns true if the loop should poll for done jobs instead of sleeping, because a result is about
// to arrive. While it is true, inf_scheduler_done_fd() is not made readable.
bool inf_scheduler_poll(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Ends polling until the next job is submitted, because another thread needs the processor of the
// loop. Returns true if a job is done that was not announced; it must be taken at once.
bool inf_scheduler_stop_polling(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns a descriptor that is readable while a deadline may have passed. Call
// inf_scheduler_next_expired() until NULL.
int inf_scheduler_timer_fd(const struct inf_scheduler *scheduler);
// Returns the next job whose deadline passed, or whose queue deadline passed while it was queued;
// NULL if there is none. The caller still has to withdraw it.
struct inf_job *inf_scheduler_next_expired(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Changes the limits of every device queue; queue_requests_max is at most that at creation. Queued
// jobs stay queued.
void inf_scheduler_set_limits(struct inf_scheduler *scheduler, uint32_t queue_requests_max,
                              uint64_t queue_bytes_max) INF_ON_LOOP;

// The load of a device.
struct inf_device_load {
    uint32_t queue_depth, queue_limit;
    uint64_t requests; // done since the start
    uint64_t busy_ns;  // device time that they took
};

// Returns the load of device `index` of the list.
struct inf_device_load inf_scheduler_device_load(struct inf_scheduler *scheduler,
                                                 uint32_t index) INF_ON_LOOP;

// Returns the number of jobs that were submitted and not taken back.
uint32_t inf_scheduler_jobs(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns the time of the job that was taken back last, in nanoseconds; 0 if there was none.
uint64_t inf_scheduler_last_run_ns(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns how long the longest present run has taken so far, in nanoseconds; 0 if every worker is
// idle.
uint64_t inf_scheduler_longest_run_ns(struct inf_scheduler *scheduler) INF_ON_LOOP;

#endif
