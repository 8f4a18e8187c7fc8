// SPDX-License-Identifier: Apache-2.0
// Finds out whether a file that a load reads changes, during the load and later. Files beside it
// that the load does not read, such as a log, do not count.
#ifndef INF_DAEMON_LOAD_SOURCE_READ_FILES_H
#define INF_DAEMON_LOAD_SOURCE_READ_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/model/repository.h"

// Buffer size for the name of an entry of a directory.
#define INF_READ_FILES_NAME 256

// The fingerprints of the files of one model, and which of them are read. One thread fills a list;
// after inf_read_files_close() it does not change, and any thread may use it. Shared by reference.
struct inf_read_files;

// Notes the fingerprints of all entries of the model's directory, if it has one of its own, and
// that the model file is read. `location` is borrowed until inf_read_files_close(). The caller
// drops the only reference to *out_files.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_read_files_create(struct inf_read_files **out_files,
                                    const struct inf_model_location *location,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Notes that the load reads `path`, relative to the directory of the model file. The whole entry of
// that directory counts: a file, or the folder that `path` begins with. The entry need not exist;
// if it exists later, it has changed. Call this before the file is opened.
void inf_read_files_note(struct inf_read_files *files, const char *path) INF_MAY_BLOCK;

// Adds the entries that the load of `from` has read, with the fingerprints that they had then. So a
// change since that load counts.
void inf_read_files_adopt(struct inf_read_files *files, const struct inf_read_files *from);

// Completes the list: removes the entries that the load has not read. NULL is allowed.
void inf_read_files_close(struct inf_read_files *files);

// Returns true if an entry that is read has changed since inf_read_files_create(), or, if it was
// not listed then, since the first inf_read_files_note() for it. `location` says where the model is
// at present; if it names another file or version, that file counts as changed. Stores the name of
// the changed entry in `name`, or "" if it is unknown which entry changed.
bool inf_read_files_find_changed(const struct inf_read_files *files,
                                 const struct inf_model_location *location,
                                 char name[INF_READ_FILES_NAME]) INF_MAY_BLOCK;

// Returns the names and fingerprints of the entries that are read, as bytes that the caller frees.
// Returns NULL if there is no memory, or if the list is incomplete.
void *inf_read_files_encode(const struct inf_read_files *files, size_t *out_size) INF_NODISCARD;

// Notes that the load reads the entries in `size` bytes that inf_read_files_encode() made. If
// `unchanged` is true, fails if a present fingerprint differs from the one in the bytes. Nothing in
// the bytes is trusted.
//
// INF_INVALID  an entry has changed, or the bytes are not a list.
enum inf_code inf_read_files_decode(struct inf_read_files *files, const void *data, size_t size,
                                    bool unchanged,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Takes another reference. NULL is allowed.
struct inf_read_files *inf_read_files_ref(struct inf_read_files *files) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. NULL is allowed.
void inf_read_files_unref(struct inf_read_files **files);

#endif
