// SPDX-License-Identifier: Apache-2.0
// Runs of low priority on a device: they leave one slot free for other requests, and pause while
// other runs are in progress. All functions but inf_low_runs_resume() are called with the mutex of
// the device queue.
#ifndef INF_DAEMON_SCHEDULE_QUEUE_LOW_RUNS_H
#define INF_DAEMON_SCHEDULE_QUEUE_LOW_RUNS_H

#include "backends/device/run_pause.h"
#include "daemon/schedule/job.h"

// Embedded in a device queue.
struct inf_low_runs {
    uint32_t slots;  // of the device
    uint32_t low;    // runs of low priority in progress
    uint32_t others; // other runs in progress
    struct inf_run_pause pause;
};

// Initialises the runs of a device with `slots` slots.
void inf_low_runs_init(struct inf_low_runs *runs, uint32_t slots);

// Releases them. No run may be in progress.
void inf_low_runs_fini(struct inf_low_runs *runs);

// Returns how many runs of low priority may start: they leave one slot free, unless the device has
// only one.
uint32_t inf_low_runs_count_startable(const struct inf_low_runs *runs);

// Counts a run of these jobs, and sets pause_until_ns of its first job: 0 if the run does not
// pause, because one of the jobs is not of low priority or the device has one slot.
void inf_low_runs_begin(struct inf_low_runs *runs, struct inf_job *const *jobs, uint32_t count,
                        uint64_t now_ns);

// Ends the run of which this job is the first. Returns true if the caller must call
// inf_low_runs_resume() after it has released the mutex.
bool inf_low_runs_end(struct inf_low_runs *runs, const struct inf_job *first) INF_NODISCARD;

// Lets the runs that pause go on.
void inf_low_runs_resume(struct inf_low_runs *runs);

#endif
