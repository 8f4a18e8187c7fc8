// SPDX-License-Identifier: Apache-2.0
// Limits the time of a run. Each worker has one watch. The worker begins and ends it; the loop
// checks it, cancels the run when the time is up, and logs what was run for which user.
#ifndef INF_DAEMON_SCHEDULE_RUN_WATCH_H
#define INF_DAEMON_SCHEDULE_RUN_WATCH_H

#include <stdatomic.h>

#include "backends/base/log.h"
#include "backends/exec/executable.h"
#include "daemon/schedule/job.h"

// How long a run may take.
struct inf_run_limits {
    uint32_t limit_ms; // after this time the run is cancelled
    // If the run has not ended this much later, it counts as stuck, because its kernel does not
    // check for the cancellation.
    uint32_t grace_ms;
};

// Embedded in a worker.
struct inf_run_watch {
    // Cancels a run of several jobs. A run of one job is cancelled by the flag of the job.
    atomic_bool cancelled;
    struct inf_run_step step;    // the node that is computed
    struct inf_mutex mutex;      // guards the fields below
    struct inf_job *const *jobs; // the jobs that are run; NULL: none
    uint32_t count;
    uint64_t since_ns;  // start of the run, on the clock of inf_clock_ns()
    uint32_t passed_ms; // the limit that the run exceeded; 0: none
    bool is_stuck;      // the run did not end within the grace period
};

// Initialises an embedded watch.
void inf_run_watch_init(struct inf_run_watch *watch);

// Releases an embedded watch. Its worker must have ended. A zeroed struct is allowed.
void inf_run_watch_fini(struct inf_run_watch *watch);

// Begins to watch a run of `count` jobs of one model, which started at `since_ns`. The array and
// the jobs must be valid until inf_run_watch_end().
void inf_run_watch_begin(struct inf_run_watch *watch, struct inf_job *const *jobs, uint32_t count,
                         uint64_t since_ns) INF_ON_WORKER;

// Ends a run. If the run exceeded the limit, each of its jobs that was cancelled fails with
// INF_DEADLINE (IN_EXEC), with a text that names the model and the limit.
void inf_run_watch_end(struct inf_run_watch *watch) INF_ON_WORKER;

// Returns true if the run in progress exceeded the limit.
bool inf_run_watch_has_passed(struct inf_run_watch *watch) INF_ON_WORKER;

// Checks the run that is in progress, if there is one. Cancels it at the limit, and reports it as
// stuck after the grace period; each is logged once. Returns the time of the next check, on the
// clock of inf_clock_ns(); 0 if no further check of this run is needed. `log` may be NULL.
uint64_t inf_run_watch_check(struct inf_run_watch *watch, const struct inf_run_limits *limits,
                             uint64_t now_ns, const struct inf_log *log) INF_ON_LOOP;

// Returns true if the run in progress is stuck. Any thread.
bool inf_run_watch_is_stuck(struct inf_run_watch *watch);

#endif
