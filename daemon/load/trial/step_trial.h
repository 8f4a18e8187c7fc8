// SPDX-License-Identifier: Apache-2.0
// Measures how many decoding steps of different sessions are worth running together. Used on the
// thread of races while the model is served, and by `inferctl compile`, which serves nothing.
#ifndef INF_DAEMON_LOAD_TRIAL_STEP_TRIAL_H
#define INF_DAEMON_LOAD_TRIAL_STEP_TRIAL_H

#include "daemon/load/served.h"

struct inf_step_trial {
    // A model for which inf_served_joins_steps() is true, and whose ladder is empty. A run has at
    // most served->rows_max steps.
    const struct inf_served *served;
    struct inf_idle_gate *idle_gate; // runs wait while requests are served; NULL: they do not wait
    const atomic_bool *stop;         // ends the trial when it becomes true; NULL: nothing does
    const struct inf_log *log;
};

// Runs 1, 2, 4 ... steps together, each of one row and with an empty history. A number of steps
// becomes a rung of findings->ladder if a step costs at least a tenth less time than on the
// previous rung. The ladder ends at the first number that does not pay. If that is 2, there is no
// ladder. The executables of the rungs stay in the model.
//
// INF_CANCELLED    the daemon ends, or *stop became true.
// INF_UNAVAILABLE  other programs disturbed too many runs: the caller tries again later.
// INF_EXHAUSTED    memory: the caller tries again later.
enum inf_code inf_step_trial_run(const struct inf_step_trial *trial,
                                 struct inf_step_findings *findings,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// If one step takes longer than this, nothing is measured, because the runs of the trial would
// occupy the machine for too long.
#define INF_STEP_TRIAL_MS_MAX 500u

#endif
