// SPDX-License-Identifier: Apache-2.0
// Numbers that change when files change: computed from names, inodes, sizes and modification times,
// without reading a file.
#ifndef INF_DAEMON_MODEL_FINGERPRINT_H
#define INF_DAEMON_MODEL_FINGERPRINT_H

#include <stdint.h>

#include "backends/base/role.h"

// The number of nested directories that a fingerprint covers: a model, a version of it, a folder in
// that version (such as the check folder or a folder with weights), and one folder below.
#define INF_FINGERPRINT_DEPTH 4

// The most entries that one fingerprint covers, so that a huge directory cannot occupy the thread.
#define INF_FINGERPRINT_ENTRIES_MAX 16384u

// Returns the fingerprint of the entry `name` of a directory, and of everything below it; 0 if it
// does not exist. A symbolic link counts by its own inode and is not followed.
uint64_t inf_fingerprint_entry(int directory_fd, const char *name) INF_MAY_BLOCK;

// Does what inf_fingerprint_entry() does, and covers at most *left entries. *left is decremented
// for each entry; if it is 0 afterwards, the fingerprint may not cover all of them.
uint64_t inf_fingerprint_entry_within(int directory_fd, const char *name,
                                      uint32_t *left) INF_MAY_BLOCK;

// Returns the fingerprint of the directory, model files and settings file of a model in a
// repository; 0 if none of them exists. *out_age_ns is the time since one of the files changed
// last; UINT64_MAX: there is no file, or the time of the change is in the future.
uint64_t inf_fingerprint_model(int repository_fd, const char *name,
                               uint64_t *out_age_ns) INF_MAY_BLOCK;

// Returns the fingerprint of all entries of a directory except `skipped` (NULL: none). Hidden
// entries do not count. The result is never 0.
uint64_t inf_fingerprint_directory(int directory_fd, const char *skipped) INF_MAY_BLOCK;

#endif
