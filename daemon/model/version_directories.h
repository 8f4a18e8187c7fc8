// SPDX-License-Identifier: Apache-2.0
// The directories of the versions of a model, in the directory of the model.
#ifndef INF_DAEMON_MODEL_VERSION_DIRECTORIES_H
#define INF_DAEMON_MODEL_VERSION_DIRECTORIES_H

#include "daemon/model/repository.h"

// Parses the name of a version's directory. Returns false if it is not a number.
bool inf_version_parse(const char *name, uint64_t *out_version);

// Returns true if the directory `name` in `directory_fd` lacks the file that the setting
// `ready_file` names, which is written last. Returns false if there is no such setting.
bool inf_version_is_incomplete(int directory_fd, const char *name,
                               const struct inf_model_wanted *wanted);

// What a search for a version has found.
struct inf_version_found {
    bool found;
    char name[INF_VERSION_TEXT]; // valid if `found`
    bool incomplete; // a wanted version was skipped because it lacks the file of `ready_file`
};

// Finds the wanted version in the directory of a model; if none is wanted, the highest one that is
// complete. Errors name the directory `label`.
//
// INF_DENIED  the directory cannot be read.
enum inf_code inf_version_find_highest(struct inf_version_found *found, int directory_fd,
                                       const char *label, const struct inf_model_wanted *wanted,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Lists the versions in the directory of a model that are complete, the highest first. Errors name
// the directory `label`.
//
// INF_DENIED  the directory cannot be read.
enum inf_code inf_version_list_fill(struct inf_version_list *list, int directory_fd,
                                    const char *label, const char *ready_file,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
