// SPDX-License-Identifier: Apache-2.0
// Decides which job runs when and where. Each device has a bounded queue and one worker per slot (a
// slot is one concurrent run). The scheduler also tracks the deadlines of all jobs. A call submits
// a job; done jobs and passed deadlines are announced through two descriptors that the loop
// watches. Only the loop calls these functions.
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
    // Gate for background work; closed while there are jobs; outlives the scheduler.
    struct inf_idle_gate *idle_gate;
    uint32_t queue_requests_max; // queued jobs per device
    uint64_t queue_bytes_max;    // bytes of the data segments of queued jobs, per device
};

// Starts a worker for each slot of each device. The caller destroys *out_scheduler.
//
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_scheduler_create(struct inf_scheduler **out_scheduler,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err) INF_NODISCARD;

// Lets the workers finish the jobs that they took, and joins them. The caller must withdraw all
// jobs before, and take the remaining ones with inf_scheduler_next_done() afterwards; others are
// lost.
void inf_scheduler_stop(struct inf_scheduler *scheduler);

// Frees the scheduler, whether it was stopped or not. NULL is allowed.
void inf_scheduler_destroy(struct inf_scheduler **scheduler);

// Submits a job to the queue of its device, and starts its deadlines. On failure the caller still
// owns the job.
//
// INF_EXHAUSTED  (QUEUE_FULL) fault->retry_after_ms says when there should be room.
// INF_DEADLINE   (PREDICTED) the job is expected to end after its deadline, or to start after its
//                queue deadline.
enum inf_code inf_scheduler_submit(struct inf_scheduler *scheduler, struct inf_job *job,
                                   struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Returns the expected time, in nanoseconds, from the arrival of a job until device `index` of the
// list would be done with it. If there is no estimate for the run, it counts as `run_ns`. The
// result is at least 1.
uint64_t inf_scheduler_finish_ns(struct inf_scheduler *scheduler, uint32_t index,
                                 const struct inf_job *job, uint64_t run_ns) INF_ON_LOOP;

// Accepts a job that may not run yet: it gets a place in the queue, and its deadlines start. On
// failure the caller still owns the job. One of the next three functions must end the hold.
//
// INF_EXHAUSTED  (QUEUE_FULL)
enum inf_code inf_scheduler_hold(struct inf_scheduler *scheduler, struct inf_job *job,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Lets a job run that inf_scheduler_hold() accepted, by pushing it to the queue of its device.
void inf_scheduler_resume(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Ends a held job without running it. The job's fault gives the reason. inf_scheduler_next_done()
// returns the job.
void inf_scheduler_fail(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Withdraws a job whose result is not wanted. Returns true if the job had not started; then the
// caller owns the job again. Returns false if a worker has the job; then the worker is asked to
// stop, and inf_scheduler_next_done() returns the job later.
bool inf_scheduler_withdraw(struct inf_scheduler *scheduler,
                            struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Returns a descriptor that becomes readable when a job is done and none was waiting. The loop must
// watch it edge-triggered, and call inf_scheduler_next_done() until NULL.
int inf_scheduler_done_fd(const struct inf_scheduler *scheduler);
// Returns the next job that is done, which the caller owns again; NULL if there is none.
struct inf_job *inf_scheduler_next_done(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns true if the loop should poll for done jobs instead of sleeping, because a result is about
// to arrive. While it is true, inf_scheduler_done_fd() is not made readable.
bool inf_scheduler_poll(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Ends polling until the next job is submitted, because another thread needs the processor of the
// loop. Returns true if a job was done without an announcement; the caller must take it at once.
bool inf_scheduler_stop_polling(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns a descriptor that is readable while a deadline may have passed. Call
// inf_scheduler_next_expired() until NULL.
int inf_scheduler_timer_fd(const struct inf_scheduler *scheduler);
// Returns the next job whose deadline passed, or whose queue deadline passed while the job was
// queued; NULL if there is none. The caller must withdraw the job.
struct inf_job *inf_scheduler_next_expired(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Changes the limits of every device queue. queue_requests_max may not exceed its value at
// creation. Queued jobs stay queued.
void inf_scheduler_set_limits(struct inf_scheduler *scheduler, uint32_t queue_requests_max,
                              uint64_t queue_bytes_max) INF_ON_LOOP;

// How busy a device is.
struct inf_device_load {
    uint32_t queue_depth, queue_limit;
    uint64_t requests; // requests done since the start
    uint64_t busy_ns;  // device time that these requests took
};

// Returns the load of device `index` of the list.
struct inf_device_load inf_scheduler_device_load(struct inf_scheduler *scheduler,
                                                 uint32_t index) INF_ON_LOOP;

// Returns the number of jobs that were submitted and that the loop has not taken back.
uint32_t inf_scheduler_jobs(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns the run time of the job that the loop took back last, in nanoseconds; 0 if there was
// none.
uint64_t inf_scheduler_last_run_ns(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns how long the longest current run has taken so far, in nanoseconds; 0 if every worker is
// idle.
uint64_t inf_scheduler_longest_run_ns(struct inf_scheduler *scheduler) INF_ON_LOOP;

#endif
