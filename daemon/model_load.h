// SPDX-License-Identifier: Apache-2.0
// One load, from a file to a model that has answered once.
#ifndef INF_DAEMON_MODEL_LOAD_H
#define INF_DAEMON_MODEL_LOAD_H

#include "daemon/model_loader.h"

// Who wants to hear how far it is.
struct inf_load_progress_sink {
    void (*report)(void *context, const char *version, const char *stage, uint32_t percent);
    void *context;
};

// Finds, imports, optimises, compiles and warms up the model that `job` names, on job->device, and
// puts it into job->served; sets job->unchanged where it is what is served already. The warm-up
// feeds zeros, with 1 for every dimension that is unknown; where such a guess does not fit the
// model, it goes unwarmed. With job->base nothing is read: the new model has a copy of that one's graph.
//
// The errors are those of finding, importing and compiling.
enum inf_code inf_model_load(struct inf_load_job *job, const struct inf_loader_options *options,
                             const struct inf_load_progress_sink *progress,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Fills the shapes to warm up with: the graph's, with 1 for every dimension that is unknown, which
// *out_guessed tells. False where not even their ranks are known.
bool inf_model_default_shapes(const struct inf_graph *graph, struct inf_shape *shapes,
                              bool *out_guessed);

// Frees a model that nobody refers to.
void inf_served_destroy(struct inf_served **served) INF_MAY_BLOCK;

#endif
