// SPDX-License-Identifier: Apache-2.0
// Limits the time of a load: a thread that cancels the job of a loader when its time is up. The
// loader thread cannot do this itself, because it is in the middle of the job.
#ifndef INF_DAEMON_LOAD_LOAD_LIMIT_H
#define INF_DAEMON_LOAD_LOAD_LIMIT_H

#include <stdatomic.h>

#include "backends/base/thread.h"
#include "daemon/load/load_job.h"

// Embedded in a loader.
struct inf_load_limit {
    struct inf_thread thread;
    struct inf_mutex mutex; // guards the fields below
    struct inf_cond changed;
    bool stopping;
    struct inf_load_job *job; // the job whose time is limited; NULL: none
    uint64_t end_ns;          // on the clock of inf_clock_ns()
};

// Starts the thread.
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_load_limit_init(struct inf_load_limit *limit,
                                  struct inf_error *err) INF_NODISCARD;

// Stops the thread. A zeroed struct is allowed.
void inf_load_limit_fini(struct inf_load_limit *limit);

// Cancels `job` with INF_LOAD_STOP_LIMIT after `limit_ms`, unless inf_load_limit_end() is called
// before.
void inf_load_limit_begin(struct inf_load_limit *limit, struct inf_load_job *job,
                          uint32_t limit_ms);

// Ends the time limit of the job. Afterwards the job may be freed.
void inf_load_limit_end(struct inf_load_limit *limit);

#endif
