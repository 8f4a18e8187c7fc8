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
#include "daemon/schedule/run_watch.h"

struct inf_scheduler;

struct inf_scheduler_options {
    const struct inf_device_list *devices; // outlives the scheduler
    struct inf_pool *pool;                 // outlives the scheduler
    // Gate that lets background work run only while there are no jobs; outlives the scheduler.
    struct inf_idle_gate *idle_gate;
    uint32_t queue_requests_max; // the most queued jobs per device
    // The most that inf_scheduler_set_limits() may set; 0: queue_requests_max.
    uint32_t queue_requests_most;
    uint64_t queue_bytes_max; // the most bytes in data segments of queued jobs, per device
    struct inf_run_limits run_limits;
    const struct inf_log *log; // receives a line for each run that exceeds a limit; may be NULL
};

// Starts a worker for each slot of each device. The caller destroys *out_scheduler.
//
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_scheduler_create(struct inf_scheduler **out_scheduler,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err) INF_NODISCARD;

// Lets the workers finish the jobs that they run, and joins them. The caller must withdraw all jobs
// before, and take the jobs that workers still had with inf_scheduler_next_done() afterwards; jobs
// that it does not take are lost.
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
// device list would have run it. If there is no estimate for the run, it is expected to take
// `run_ns`. The result is at least 1.
uint64_t inf_scheduler_finish_ns(struct inf_scheduler *scheduler, uint32_t index,
                                 const struct inf_job *job, uint64_t run_ns) INF_ON_LOOP;

// Accepts a job that may not run yet: it takes room in the queue, and its deadlines start. On
// failure the caller still owns the job. The caller must end the hold with inf_scheduler_resume(),
// inf_scheduler_fail() or inf_scheduler_withdraw().
//
// INF_EXHAUSTED  (QUEUE_FULL) the queue of the device is full.
enum inf_code inf_scheduler_hold(struct inf_scheduler *scheduler, struct inf_job *job,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// Lets a job run that inf_scheduler_hold() accepted, by pushing it to the queue of its device.
void inf_scheduler_resume(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Ends a held job without running it. The caller has set the job's fault to the reason.
// inf_scheduler_next_done() returns the job.
void inf_scheduler_fail(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Withdraws a job whose result is not wanted. Returns true if the job had not started; then the
// caller owns the job again. Returns false if a worker has the job; then the worker is asked to
// stop, and inf_scheduler_next_done() returns the job later.
bool inf_scheduler_withdraw(struct inf_scheduler *scheduler,
                            struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Returns where a job is. The job was submitted or held, and inf_scheduler_next_done() has not
// returned it.
enum inf_job_place inf_scheduler_job_place(struct inf_scheduler *scheduler,
                                           const struct inf_job *job) INF_ON_LOOP;

// Returns a descriptor that becomes readable when a worker adds a job to the empty queue of done
// jobs. The loop must watch it edge-triggered, and then call inf_scheduler_next_done() until it
// returns NULL.
int inf_scheduler_done_fd(const struct inf_scheduler *scheduler);
// Returns the next job that is done, which the caller owns again; NULL if there is none.
struct inf_job *inf_scheduler_next_done(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns true if the loop should poll for done jobs instead of sleeping, because a result is about
// to arrive, or because a worker should take a job within microseconds and another must be woken if
// it does not. While it is true, inf_scheduler_done_fd() is not made readable.
bool inf_scheduler_poll(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Ends polling until the next job is submitted, because another thread needs the processor of the
// loop. Returns true if a job became done meanwhile without making inf_scheduler_done_fd()
// readable; the caller must take it at once.
bool inf_scheduler_stop_polling(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns a descriptor that is readable while a deadline may have passed. Then the loop must call
// inf_scheduler_next_expired() until it returns NULL.
int inf_scheduler_timer_fd(const struct inf_scheduler *scheduler);
// Returns the next job whose deadline passed, or whose queue deadline passed while the job was
// queued; NULL if there is none. The caller must withdraw the job.
struct inf_job *inf_scheduler_next_expired(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Changes the limits of every device queue. queue_requests_max may not exceed queue_requests_most,
// with which the scheduler was created. Queued jobs stay queued.
void inf_scheduler_set_limits(struct inf_scheduler *scheduler, uint32_t queue_requests_max,
                              uint64_t queue_bytes_max) INF_ON_LOOP;

// How busy a device is.
struct inf_device_load {
    uint32_t queue_depth, queue_limit;
    uint64_t requests; // number of requests that the device has done since the daemon started
    uint64_t busy_ns;  // device time that these requests took
};

// Returns the load of device `index` of the device list.
struct inf_device_load inf_scheduler_device_load(struct inf_scheduler *scheduler,
                                                 uint32_t index) INF_ON_LOOP;

// Returns the number of jobs that were submitted and that the loop has not taken back.
uint32_t inf_scheduler_jobs(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// Returns the run time of the job that the loop took back last, in nanoseconds; 0 if there was
// none.
uint64_t inf_scheduler_last_run_ns(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// Changes how long runs may take; applies to current runs too.
void inf_scheduler_set_run_limits(struct inf_scheduler *scheduler,
                                  const struct inf_run_limits *limits) INF_ON_LOOP;

// Returns true if a run has not ended although its grace period is over, so that one worker of the
// process is lost.
bool inf_scheduler_is_stuck(struct inf_scheduler *scheduler) INF_ON_LOOP;

#endif
