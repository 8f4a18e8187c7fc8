// SPDX-License-Identifier: Apache-2.0
// Puts a model into the repository: its files are copied into a hidden directory, which is renamed
// when it is complete, so that no half-copied model is ever visible. A model that is there already
// gets the next version.
#ifndef INF_DAEMON_MODEL_REPOSITORY_SAVE_H
#define INF_DAEMON_MODEL_REPOSITORY_SAVE_H

#include <stdatomic.h>

#include "daemon/model/repository.h"

// A model that was put into the repository. Zeroed, with descriptors -1: none.
struct inf_repository_save {
    int repository_fd;
    int model_fd; // the model's directory; -1: it was new
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_VERSION_TEXT];
};

// What to save.
struct inf_repository_save_options {
    const char *repository; // directory of the repository; NULL: there is none
    const char *name;       // a valid model name
    const char *ready_file; // is created in the directory if the model has none; "": none
    const atomic_bool *cancelled;
};

// Copies the files of a model that was found at `source` into the repository. If the model is one
// file, only this file is copied. If it has a directory, all files of that directory are copied,
// except hidden ones and plans. The settings file is copied only if the repository has no directory
// of the model; a directory that exists keeps its own settings. A list of the copied files is
// written beside them (saved_files.h). After success the caller calls
// inf_repository_save_undo() or inf_repository_save_fini(). After a failure the repository is as
// before.
//
// INF_DENIED     the daemon cannot write to the repository.
// INF_CANCELLED  the flag was set.
// INF_INVALID    the name is taken.
// INF_EXHAUSTED  there are too many files, the disk is full, or there is no memory.
// INF_NOT_FOUND  there is no repository.
// INF_PRECONDITION  a file cannot be written for another reason.
enum inf_code inf_repository_save(struct inf_repository_save *save,
                                  const struct inf_repository_save_options *options,
                                  const struct inf_model_location *source,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Removes from the repository what was saved, but nothing that others put beside it, and ends with
// inf_repository_save_fini().
void inf_repository_save_undo(struct inf_repository_save *save) INF_MAY_BLOCK;

// Closes the directories.
void inf_repository_save_fini(struct inf_repository_save *save);

#endif
