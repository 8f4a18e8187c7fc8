// SPDX-License-Identifier: Apache-2.0
// Checks the outputs of reduced-precision runs, so that no client gets a NaN or infinity that fp32
// would not have produced.
#ifndef INF_DAEMON_SCHEDULE_RESULT_GUARD_H
#define INF_DAEMON_SCHEDULE_RESULT_GUARD_H

#include "daemon/load/served.h"

// Where the guard gets the executable that computes the same in fp32.
struct inf_fp32_source {
    // Returns an executable that the guard releases with inf_model_release(). May block.
    enum inf_code (*acquire)(void *context, struct inf_executable **out_executable,
                             struct inf_error *err);
    void *context;
};

// Runs `executable`, which belongs to served->model on `device`. If the executable computes in less
// than fp32, and an output is not finite or the device reports an overflow, the run is repeated in
// fp32, by an executable of `fp32`, or by the one for the same shapes if `fp32` is NULL. If that
// repairs the outputs and the model is placed on this device in this precision, served->recomputed
// is incremented. *out_precision is the precision of the outputs.
//
// Returns the errors of fp32->acquire() or inf_model_acquire_with(), and of inf_executable_run().
enum inf_code inf_result_guard_run(struct inf_served *served, struct inf_device *device,
                                   struct inf_executable *executable,
                                   const struct inf_execution *execution,
                                   const struct inf_fp32_source *fp32,
                                   enum inf_precision *out_precision,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
