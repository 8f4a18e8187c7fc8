// SPDX-License-Identifier: Apache-2.0
// Loads one model: from finding its file to the first successful run.
#ifndef INF_DAEMON_LOAD_LOAD_H
#define INF_DAEMON_LOAD_LOAD_H

#include "daemon/load/load_job.h"

// Finds, imports, optimises, compiles and warms up the model that `job` names, and puts the result
// into job->model.served. If the same model is already served, sets job->model.unchanged instead.
// The warm-up runs on zeros (daemon/load/warm_up.h). If job->base is set, no model file is read:
// the new model gets a copy of that model's graph.
//
// Returns the errors of finding, importing and compiling a model.
enum inf_code inf_load_model(struct inf_load_job *job, const struct inf_load_options *options,
                             const struct inf_load_progress_sink *progress,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
