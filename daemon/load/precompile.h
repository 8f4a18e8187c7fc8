// SPDX-License-Identifier: Apache-2.0
// Compiling a served model for further shapes, or for another device, ahead of requests that use
// them.
#ifndef INF_DAEMON_LOAD_PRECOMPILE_H
#define INF_DAEMON_LOAD_PRECOMPILE_H

#include "daemon/load/load_job.h"

// Compiles job->base for the shapes of the job, without running it.
//
// INF_INVALID  the shapes cannot be parsed, or do not fit the model; the text says why.
// INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  inf_model_acquire() returned this error.
enum inf_code inf_precompile_run(const struct inf_load_job *job,
                                 const struct inf_load_progress_sink *progress,
                                 struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Compiles job->base for job->precompile.device, for the shapes that the settings of the model name
// and for the shapes of the job. So requests that move there after the loss of a GPU do not wait
// for the compiler. Only logs the outcome.
void inf_precompile_standby(const struct inf_load_job *job,
                            const struct inf_log *log) INF_MAY_BLOCK;

#endif
