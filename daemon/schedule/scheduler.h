// SPDX-License-Identifier: Apache-2.0
// Which job runs when and where: a bounded lane and as many workers as slots for each device, and
// the deadlines of all jobs. Jobs go in by a call and come out as data, through two file
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
    struct inf_idle_gate *idle_gate;       // told of every job; outlives the scheduler
    uint32_t queue_requests_max;           // waiting, per device
    uint64_t queue_bytes_max;              // of their data segments, per device
};

// Starts a worker for each slot of each device. *out_scheduler is the caller's to destroy.
//
// INF_EXHAUSTED  memory, threads or file descriptors.
enum inf_code inf_scheduler_create(struct inf_scheduler **out_scheduler,
                                   const struct inf_scheduler_options *options,
                                   struct inf_error *err) INF_NODISCARD;

// Lets the workers finish what they took and joins them. Jobs that were not taken back with
// inf_scheduler_next_done() are the caller's loss, so withdraw them all, stop, and then take.
void inf_scheduler_stop(struct inf_scheduler *scheduler);

// Frees the scheduler, stopped or not. NULL is fine.
void inf_scheduler_destroy(struct inf_scheduler **scheduler);

// Gives a job to its device's lane, and starts its deadline. On failure it stays the caller's.
//
// INF_EXHAUSTED  (QUEUE_FULL) with the time after which there should be room.
// INF_DEADLINE   (PREDICTED) its deadline would pass before it is done, or its time in the queue before
//                it is begun, as far as the past tells.
enum inf_code inf_scheduler_submit(struct inf_scheduler *scheduler, struct inf_job *job,
                                   struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// How long after it came a job would be done on device number `index` of the list, as far as is known; a
// run takes `run_ns` where none like it is remembered there. At least 1.
uint64_t inf_scheduler_finish_ns(struct inf_scheduler *scheduler, uint32_t index,
                                 const struct inf_job *job, uint64_t run_ns) INF_ON_LOOP;

// Accepts a job that may not run yet: it has its place in the lane, and its deadline starts. On
// failure it stays the caller's. It ends with one of the three below.
//
// INF_EXHAUSTED  (QUEUE_FULL)
enum inf_code inf_scheduler_hold(struct inf_scheduler *scheduler, struct inf_job *job,
                                 struct inf_fault *fault) INF_NODISCARD INF_ON_LOOP;

// A held job may run now.
void inf_scheduler_resume(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// A held job has failed without having run: its fault says why, and it comes back through
// inf_scheduler_next_done().
void inf_scheduler_fail(struct inf_scheduler *scheduler, struct inf_job *job) INF_ON_LOOP;

// Nobody wants the job's result any more. True: it had not begun, and is the caller's again. False:
// a worker has it; it is told to stop and comes back through inf_scheduler_next_done().
bool inf_scheduler_withdraw(struct inf_scheduler *scheduler,
                            struct inf_job *job) INF_NODISCARD INF_ON_LOOP;

// Becomes readable each time a job is done and none waited: to be watched edge-triggered. Call
// inf_scheduler_next_done() until NULL.
int inf_scheduler_done_fd(const struct inf_scheduler *scheduler);
// The next job that is done, the caller's again; NULL where there is none.
struct inf_job *inf_scheduler_next_done(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Whether the loop had better look for jobs that are done by itself now than sleep: one is about to be.
// While it is true, inf_scheduler_done_fd() is not made readable.
bool inf_scheduler_poll(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Somebody else wants the loop's processor: no more looking until the next job. True where one is done
// that was not announced: to be taken at once.
bool inf_scheduler_stop_polling(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Readable while a deadline may have passed. Call next_expired until NULL.
int inf_scheduler_timer_fd(const struct inf_scheduler *scheduler);
// The next job whose deadline has passed, or whose time in the queue has while it waited, or NULL. It
// still has to be withdrawn.
struct inf_job *inf_scheduler_next_expired(struct inf_scheduler *scheduler) INF_ON_LOOP;

// Changes how much may wait for a device: requests up to what the scheduler was made with. What waits
// already goes on waiting.
void inf_scheduler_set_limits(struct inf_scheduler *scheduler, uint32_t queue_requests_max,
                              uint64_t queue_bytes_max) INF_ON_LOOP;

// What a device has done and has to do.
struct inf_device_load {
    uint32_t queue_depth, queue_limit;
    uint64_t requests; // run since start
    uint64_t busy_ns;  // time spent running them
};

// The load of device number `index` of the list.
struct inf_device_load inf_scheduler_device_load(struct inf_scheduler *scheduler,
                                                 uint32_t index) INF_ON_LOOP;

// Jobs that were submitted and not taken back yet.
uint32_t inf_scheduler_jobs(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// What the job took that was taken back last; 0 where there was none.
uint64_t inf_scheduler_last_run_ns(const struct inf_scheduler *scheduler) INF_ON_LOOP;

// How long the longest run that goes on now has taken so far; 0 where every worker is idle.
uint64_t inf_scheduler_longest_run_ns(struct inf_scheduler *scheduler) INF_ON_LOOP;

#endif
