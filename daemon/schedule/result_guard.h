// SPDX-License-Identifier: Apache-2.0
// Runs in less than fp32 are looked at when they are over: an answer that is not finite, though it is
// in fp32, never gets out.
#ifndef INF_DAEMON_SCHEDULE_RESULT_GUARD_H
#define INF_DAEMON_SCHEDULE_RESULT_GUARD_H

#include "daemon/load/served.h"

// Runs `executable`, which is of served->model on `device`. Where it computes in less than fp32 and an
// output of the run is not finite, or the device saw a value overflow, the same is run once more in
// fp32; where that mends it, served->recomputed is raised, if the model is placed so. *out_precision: of what is in the outputs.
//
// As inf_model_acquire_in() and inf_executable_run().
enum inf_code inf_result_guard_run(struct inf_served *served, struct inf_device *device,
                                   struct inf_executable *executable,
                                   const struct inf_execution *execution,
                                   enum inf_precision *out_precision,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
