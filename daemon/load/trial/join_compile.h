// SPDX-License-Identifier: Apache-2.0
// Compiles a served model for joined decoding steps in the background. Until the executable is
// ready, the steps run one by one.
#ifndef INF_DAEMON_LOAD_TRIAL_JOIN_COMPILE_H
#define INF_DAEMON_LOAD_TRIAL_JOIN_COMPILE_H

#include "daemon/load/load_job.h"

// What is to be compiled: the arguments of inf_model_acquire_history().
struct inf_join_order {
    struct inf_device *device; // that of the model
    const struct inf_run_options *options;
    const struct inf_shape *shapes;
    struct inf_history_buffers buffers;
};

// Creates a job that compiles the model as `order` says. The caller submits the job to
// served->loader. Returns NULL if a job compiles this model for joined steps already, or if there
// is no memory. Never blocks. Any thread.
struct inf_load_job *inf_join_compile_create(struct inf_served *served,
                                             const struct inf_join_order *order) INF_NODISCARD;

// Runs a job of inf_join_compile_create(). A failure is logged.
enum inf_code inf_join_compile_run(const struct inf_load_job *job, const struct inf_log *log,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
