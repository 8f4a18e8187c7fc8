// SPDX-License-Identifier: Apache-2.0
// Timed runs in the background. Each run waits until no request is served, and is repeated if a
// request arrives before the run ends. The result says whether other programs interrupted the
// threads of the run.
#ifndef INF_BACKENDS_PLACE_QUIET_RUN_H
#define INF_BACKENDS_PLACE_QUIET_RUN_H

#include "backends/base/idle_gate.h"
#include "backends/exec/executable.h"

// The state of a series of runs. The caller sets `idle_gate` and `stop`, and zeroes `restless`.
struct inf_quiet_runs {
    struct inf_idle_gate *idle_gate; // NULL: runs do not wait
    const atomic_bool *stop;         // ends the series when it becomes true; NULL: nothing does
    // true: runs do not wait until no request is served, because requests are served all the time,
    // or because every pause between them is too short for a run. Instead, a pause in proportion to
    // its time follows each run.
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

// Call this function after work that took `worked_ns`. If runs->restless is set, pauses for a time
// in proportion to `worked_ns`, so that requests get most of the processor time.
//
// INF_CANCELLED  as inf_quiet_runs_wait().
enum inf_code inf_quiet_runs_pause(const struct inf_quiet_runs *runs, uint64_t worked_ns,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Runs the executable until no request disturbs the run, and stores the outcome in *result. Ignores
// the members `cancelled` and `core_use` of `execution`. If the run fails, the function returns
// INF_OK, and result->code and result->why describe the failure.
//
// INF_CANCELLED  as inf_quiet_runs_wait().
enum inf_code inf_quiet_runs_execute(struct inf_quiet_runs *runs, struct inf_executable *executable,
                                     const struct inf_execution *execution,
                                     struct inf_quiet_result *result,
                                     struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
