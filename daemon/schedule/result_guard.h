// SPDX-License-Identifier: Apache-2.0
// Checks the outputs of reduced-precision runs, so that no client gets a NaN or infinity that fp32
// would not have produced.
#ifndef INF_DAEMON_SCHEDULE_RESULT_GUARD_H
#define INF_DAEMON_SCHEDULE_RESULT_GUARD_H

#include "daemon/load/served.h"

// Runs `executable`, which belongs to served->model on `device`. If the executable computes in less
// than fp32, and an output is not finite or the device reports an overflow, the run is repeated in
// fp32. If that repairs the outputs and the model is placed on this device in this precision,
// served->recomputed is incremented. *out_precision is the precision of the outputs.
//
// Returns the errors of inf_model_acquire_with() and inf_executable_run().
enum inf_code inf_result_guard_run(struct inf_served *served, struct inf_device *device,
                                   struct inf_executable *executable,
                                   const struct inf_execution *execution,
                                   enum inf_precision *out_precision,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Returns true if all f32 outputs of the run are finite.
bool inf_result_guard_accepts(const struct inf_executable *executable,
                              const struct inf_execution *execution);

#endif
