// SPDX-License-Identifier: Apache-2.0
// Where a load gets the plan of a model from: the cache of earlier loads, or a file that was made
// ahead (inferctl compile) and lies beside the model's file. A plan in the cache is found by the
// identity and time of the model's file. It lists the identities and times of all files that the
// load has read, so that the next load need not read these files. A plan beside the model may come
// from another machine, so it is found by the contents of the files.
#ifndef INF_DAEMON_LOAD_LOAD_PLAN_H
#define INF_DAEMON_LOAD_LOAD_PLAN_H

#include "daemon/load/kept_plan.h"
#include "daemon/load/load_job.h"
#include "daemon/load/source/read_files.h"

// The model whose plan is wanted.
struct inf_load_plan_question {
    const char *name; // of the model
    const struct inf_model_location *location;
    const struct inf_model_config *config;
    const struct inf_load_options *options;
    // The files that the load reads. If a plan is found, the files that the plan was made from are
    // added.
    struct inf_read_files *files;
    // True: the model is in the repository, so a plan beside it may be used. A client that sends a
    // model from elsewhere could send a plan of its own beside it.
    bool in_repository;
};

// Returns the key of the model's plan in the cache: it names the model's file, the settings that
// change what a plan has, and the devices. 0: plans are not kept.
uint64_t inf_load_plan_key(const struct inf_load_plan_question *question);

// Reads the plan with this key from the cache or, if the cache has none, the plan beside the model,
// and sets *ahead to whether it was that. Returns false if there is no plan that can be used; the
// reason is logged. Otherwise like inf_kept_plan_find().
bool inf_load_plan_find(struct inf_kept_plan *kept, bool *ahead, uint64_t key,
                        const struct inf_load_plan_question *question) INF_NODISCARD INF_MAY_BLOCK;

// Buffer size for the name of a plan beside a model.
#define INF_LOAD_PLAN_NAME 264

// Writes the name of the plan beside the model file `file`: "model.onnx" has "model.plan".
void inf_load_plan_name(char name[INF_LOAD_PLAN_NAME], const char *file);

// Writes a plan of the served model to the file `name` of a directory, for a daemon that finds it
// beside the same model files. `served` must have been loaded from `location` just before.
//
// INF_UNSUPPORTED  the model is a single file, but reads others.
// INF_INVALID, INF_EXHAUSTED, INF_UNAVAILABLE  the model's files cannot be read, or the plan cannot
// be written.
enum inf_code inf_load_plan_write(struct inf_served *served,
                                  const struct inf_model_location *location, const char *build,
                                  int directory_fd, const char *name,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
