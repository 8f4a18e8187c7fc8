// SPDX-License-Identifier: Apache-2.0
// Chooses device and precision of a new model, compiles it there and runs it once.
#ifndef INF_DAEMON_LOAD_WARM_UP_H
#define INF_DAEMON_LOAD_WARM_UP_H

#include "daemon/load/kept_plan.h"
#include "daemon/load/load_job.h"
#include "daemon/load/warm_plan.h"

// The state of one warm-up. All objects that its pointers refer to outlive it.
struct inf_warm_up {
    const struct inf_load_job *job; // the job, of kind INF_LOAD_JOB_MODEL
    const atomic_bool *cancelled;   // set to end the warm-up
    const struct inf_load_options *options;
    const struct inf_load_progress_sink *progress;
    struct inf_allow_rules allow; // rules for which devices may be chosen
    struct inf_device *pinned;    // the device that the settings name, borrowed; NULL: choose
    // The new model, whose device, placement and other fields are filled in.
    struct inf_served *served;
    const struct inf_kept_plan *kept; // what an earlier load kept of the model; NULL: nothing
    bool kept_elsewhere;              // that load may have been one on another machine
    struct inf_warm_plan plan; // the shape sets to compile and run; valid until inf_warm_up_fini()
};

// The progress in percent at which each stage of a typical load begins.
#define INF_LOAD_PERCENT_READ     0u
#define INF_LOAD_PERCENT_OPTIMISE 40u
#define INF_LOAD_PERCENT_COMPILE  60u
#define INF_LOAD_PERCENT_WARM_UP  90u

// Places the model, compiles it for the shapes of a warm plan and runs it on zeros. If only guessed
// shapes fail, the model is placed but not warmed up.
//
// INF_PRECONDITION  the precision that the settings name is not available.
// INF_INVALID, INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  the model cannot run for shapes
//                   that the settings name.
enum inf_code inf_warm_up_run(struct inf_warm_up *warm_up,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the plan of the warm-up.
void inf_warm_up_fini(struct inf_warm_up *warm_up);

#endif
