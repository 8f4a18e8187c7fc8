// SPDX-License-Identifier: Apache-2.0
// Removes a version of a model that a save has put into the repository (repository_save.h).
#ifndef INF_DAEMON_MODEL_SAVED_VERSION_H
#define INF_DAEMON_MODEL_SAVED_VERSION_H

#include "daemon/model/repository.h"

// What is left of a model after one of its versions was removed.
struct inf_saved_version_rest {
    char version[INF_VERSION_TEXT]; // the version that was removed
    bool has_versions;              // the repository has another version of the model
    bool has_files; // files that the save did not put there stay in the directory of the version
};

// Removes the files of a version that a save has put there, and the directories that are empty
// then. The settings file of the model goes with its last version, if the save has put it there and
// it has not changed since. If `version` is "", the model must have one version only. The version
// disappears as a whole, by a rename, before its files are removed.
//
// INF_NOT_FOUND     (MODEL_NOT_FOUND, VERSION_NOT_FOUND) the repository has no such version.
// INF_PRECONDITION  the version was not put there by a save, or none is named and there are
//                   several.
// INF_DENIED        the daemon cannot write to the repository.
enum inf_code inf_saved_version_remove(int repository_fd, const char *name, const char *version,
                                       struct inf_saved_version_rest *rest,
                                       struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Fails with the reason in errno why the daemon could not change the repository. `what` is the file
// or directory.
enum inf_code inf_saved_version_fail(struct inf_error *err, const char *name, const char *what,
                                     const char *doing);

#endif
