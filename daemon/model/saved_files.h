// SPDX-License-Identifier: Apache-2.0
// The list of the files that a save has put into the repository. It is a hidden file beside them,
// so that a later removal, in another process too, removes these files and nothing else.
#ifndef INF_DAEMON_MODEL_SAVED_FILES_H
#define INF_DAEMON_MODEL_SAVED_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// Name of the list, in the directory of a version and in that of a model.
#define INF_SAVED_FILES_NAME ".saved"

// The most files and directories of a model that is saved.
#define INF_SAVED_FILES_MAX 4096u
// The most directories within each other, below that of the version.
#define INF_SAVED_FILES_DEPTH 8u

// A list of paths, relative to the directory of the list. A directory comes after what is in it.
// All zero: empty.
struct inf_saved_files {
    char *text; // paths, each with its final NUL
    size_t size, capacity;
    uint32_t count;
};

// Adds the path `folder`/`name`, or `name` if `folder` is "".
//
// INF_EXHAUSTED  there are INF_SAVED_FILES_MAX paths already, or memory is exhausted.
enum inf_code inf_saved_files_add(struct inf_saved_files *files, const char *folder,
                                  const char *name, struct inf_error *err) INF_NODISCARD;

// Frees the list, which is empty then.
void inf_saved_files_fini(struct inf_saved_files *files);

// Writes the list to the file INF_SAVED_FILES_NAME of a directory, which must not exist.
//
// INF_EXHAUSTED     the disk is full.
// INF_PRECONDITION  the list cannot be written for another reason, which errno has.
enum inf_code inf_saved_files_write(const struct inf_saved_files *files, int directory_fd,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads the list of a directory. The caller calls inf_saved_files_fini(), even after a failure.
//
// INF_NOT_FOUND  the directory has no list.
// INF_INVALID    the list is damaged, or belongs neither to root nor to the user of the daemon.
enum inf_code inf_saved_files_read(struct inf_saved_files *files, int directory_fd,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Removes the listed files, and listed directories that are empty then, from a directory. What
// cannot be removed stays. Links are removed, not followed.
void inf_saved_files_remove(const struct inf_saved_files *files, int directory_fd) INF_MAY_BLOCK;

#endif
