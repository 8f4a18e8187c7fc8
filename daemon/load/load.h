// SPDX-License-Identifier: Apache-2.0
// One load, from a file to a model that has answered once.
#ifndef INF_DAEMON_LOAD_LOAD_H
#define INF_DAEMON_LOAD_LOAD_H

#include "daemon/load/loader.h"

// Who wants to hear how far it is.
struct inf_load_progress_sink {
    void (*report)(void *context, const char *version, const char *stage, uint32_t percent);
    void *context;
};

// Finds, imports, optimises, compiles and warms up the model that `job` names, on job->device, and
// puts it into job->served; sets job->unchanged where it is what is served already. The warm-up
// feeds zeros, of the shapes that daemon/load/warm_up.h plans; where a guess does not fit the model, it
// goes unwarmed. With job->base nothing is read: the new model has a copy of that one's graph.
//
// The errors are those of finding, importing and compiling.
enum inf_code inf_model_load(struct inf_load_job *job, const struct inf_loader_options *options,
                             const struct inf_load_progress_sink *progress,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Compiles job->base for the shapes of the job, without running it.
//
// INF_INVALID  the shapes cannot be read, or do not fit the model; the text says why.
// INF_UNSUPPORTED, INF_EXHAUSTED, INF_UNAVAILABLE  those of compiling.
enum inf_code inf_model_precompile(const struct inf_load_job *job,
                                   const struct inf_load_progress_sink *progress,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees a model that nobody refers to.
void inf_served_destroy(struct inf_served **served) INF_MAY_BLOCK;

#endif
