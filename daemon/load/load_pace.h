// SPDX-License-Identifier: Apache-2.0
// Sets the priority of the loader thread while it runs a job, as daemon/policy/load_nice.h decides:
// a thread that asks each INF_LOAD_NICE_PERIOD_NS, and sleeps while there is no job.
#ifndef INF_DAEMON_LOAD_LOAD_PACE_H
#define INF_DAEMON_LOAD_LOAD_PACE_H

#include "backends/base/idle_gate.h"
#include "backends/base/thread.h"
#include "daemon/policy/load_nice.h"

// Embedded in a loader.
struct inf_load_pace {
    struct inf_thread thread; // not started: the system lets no thread raise its priority
    const struct inf_idle_gate *idle_gate;
    struct inf_mutex mutex; // guards the fields below
    struct inf_cond changed;
    bool stopping;
    bool loading;                   // a job runs
    bool known;                     // `paced` is set, at the first job
    struct inf_thread_handle paced; // the thread that loads, with its own nice value
    int nice;                       // its present value
    struct inf_load_nice load;
};

// Starts the thread. Does nothing if the system does not let a thread raise its priority again;
// loads then run at that of the daemon.
//
// INF_EXHAUSTED  the system refuses a thread.
enum inf_code inf_load_pace_init(struct inf_load_pace *pace, const struct inf_idle_gate *idle_gate,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Stops the thread. A zeroed struct is allowed.
void inf_load_pace_fini(struct inf_load_pace *pace);

// Begins a job of the calling thread, whose priority changes until inf_load_pace_end(). `wanted`: a
// request waits for the end of the job.
void inf_load_pace_begin(struct inf_load_pace *pace, bool wanted);

// Ends the job.
void inf_load_pace_end(struct inf_load_pace *pace);

#endif
