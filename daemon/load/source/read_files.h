// SPDX-License-Identifier: Apache-2.0
// Finds out whether a file that a load reads changes during the load. Neighbours that the load does
// not read, such as a log, do not count.
#ifndef INF_DAEMON_LOAD_SOURCE_READ_FILES_H
#define INF_DAEMON_LOAD_SOURCE_READ_FILES_H

#include <stdbool.h>

#include "daemon/model/repository.h"

// Buffer size for the name of an entry of a directory.
#define INF_READ_FILES_NAME 256

// The fingerprints of the files of one model, and which of them are read. Used by one thread.
struct inf_read_files;

// Notes the fingerprints of all entries of the model's directory, if it has one of its own, and
// that the model file is read. `location` is borrowed and must outlive the result. The caller
// destroys *out_files.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_read_files_create(struct inf_read_files **out_files,
                                    const struct inf_model_location *location,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Notes that the load reads `path`, relative to the directory of the model file. The whole entry of
// that directory counts: a file, or the folder that `path` begins with. The entry need not exist;
// if it exists later, it has changed. Call this before the file is opened.
void inf_read_files_note(struct inf_read_files *files, const char *path) INF_MAY_BLOCK;

// Returns true if an entry that is read has changed since inf_read_files_create(), or, if it was
// not listed then, since the first inf_read_files_note() for it. Stores its name in `name`, or ""
// if it is unknown which entry changed.
bool inf_read_files_find_changed(const struct inf_read_files *files,
                                 char name[INF_READ_FILES_NAME]) INF_MAY_BLOCK;

// Frees the list. NULL is allowed.
void inf_read_files_destroy(struct inf_read_files **files);

#endif
