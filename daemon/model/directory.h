// SPDX-License-Identifier: Apache-2.0
// Directories with the files of models.
#ifndef INF_DAEMON_MODEL_DIRECTORY_H
#define INF_DAEMON_MODEL_DIRECTORY_H

#include <stdbool.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// The settings of a model, beside its files.
#define INF_MODEL_CONFIG_FILE "model.conf"
// The end of the name of a plan that was made ahead (inferctl compile).
#define INF_MODEL_PLAN_SUFFIX ".plan"

// The folder with the check of a model, beside the model file.
#define INF_MODEL_CHECK_FOLDER "check"

// Returns true if `name` is that of a plan.
bool inf_model_is_plan(const char *name);

// Fails because a directory or file, which exists, cannot be read. `cause` is the errno of the call
// that failed. The caller adds the name with inf_error_prefix().
//
// INF_EXHAUSTED, INF_UNAVAILABLE, INF_DENIED  as inf_file_failure_code() returns them.
enum inf_code inf_model_refuse_unreadable(int cause, struct inf_error *err) INF_NODISCARD;

// Opens the directory `name` in `parent_fd`. Links are not followed. Returns -1, and sets errno, if
// there is no such directory. The caller closes the descriptor.
int inf_model_directory_open(int parent_fd, const char *name) INF_NODISCARD;

// Calls `visit` for every entry of the directory whose name does not begin with a dot, until a call
// fails. Errors name the directory `label`.
//
// INF_EXHAUSTED, INF_UNAVAILABLE, INF_DENIED  the directory cannot be read
//                  (inf_file_failure_code()), or an error ended the list of entries.
enum inf_code inf_model_directory_visit(int directory_fd, const char *label, void *context,
                                        enum inf_code (*visit)(void *context, int directory_fd,
                                                               const char *name,
                                                               struct inf_error *err),
                                        struct inf_error *err) INF_NODISCARD;

#endif
