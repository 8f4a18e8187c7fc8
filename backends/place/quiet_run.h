// SPDX-License-Identifier: Apache-2.0
// Timed runs in the background. A run waits until no request is served, and is repeated if a
// request arrived meanwhile. Whether other programs interrupted its threads is reported.
#ifndef INF_BACKENDS_PLACE_QUIET_RUN_H
#define INF_BACKENDS_PLACE_QUIET_RUN_H

#include "backends/base/idle_gate.h"
#include "backends/exec/executable.h"

// The state of a series of runs. The caller sets the first two members, and zeroes the third.
struct inf_quiet_runs {
    struct inf_idle_gate *idle_gate; // NULL: runs do not wait
    const atomic_bool *stop;         // ends the series when it becomes true; NULL: nothing does
    // Requests are served all the time, or every pause between them is too short for a run: runs no
    // longer wait, but each is followed by a pause in proportion to its time.
    bool restless;
};

// The outcome of a run.
struct inf_quiet_result {
    enum inf_code code; // of the run
    struct inf_error why;
    uint64_t took_ns;
    // Other programs interrupted the threads of the run: the threads used less processor time than
    // the time for which they were assigned to the run. A device that does not report its threads,
    // such as a GPU, is not checked.
    bool interrupted;
};

// Waits until no request is served, or sets runs->restless if that takes too long.
//
// INF_CANCELLED  the daemon ends, or *runs->stop became true.
enum inf_code inf_quiet_runs_wait(struct inf_quiet_runs *runs,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Ends a piece of work that took `worked_ns`: pauses if requests are served all the time.
//
// INF_CANCELLED  as inf_quiet_runs_wait().
enum inf_code inf_quiet_runs_pause(const struct inf_quiet_runs *runs, uint64_t worked_ns,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Runs the executable. `cancelled` and `core_use` of `execution` are not used. A run that fails is
// no failure of the function; result->code and result->why say so.
//
// INF_CANCELLED  as inf_quiet_runs_wait().
enum inf_code inf_quiet_runs_execute(struct inf_quiet_runs *runs, struct inf_executable *executable,
                                     const struct inf_execution *execution,
                                     struct inf_quiet_result *result,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
