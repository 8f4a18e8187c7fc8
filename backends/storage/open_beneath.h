// SPDX-License-Identifier: Apache-2.0
// Opens files that must lie beneath a directory, even if their names are malicious.
#ifndef INF_BACKENDS_STORAGE_OPEN_BENEATH_H
#define INF_BACKENDS_STORAGE_OPEN_BENEATH_H

#include "backends/base/role.h"

// Opens `name` for reading beneath `directory_fd`. Does not follow symbolic links and does not wait
// for the writer of a FIFO. Returns a file descriptor that the caller closes, or -1 with errno:
// EXDEV if the name leaves the directory, ELOOP if a part is a link, otherwise as open(2). Uses
// openat2(2), or inf_beneath_walk() if the kernel or a sandbox does not allow openat2(2).
int inf_beneath_open(int directory_fd, const char *name) INF_MAY_BLOCK;

// Opens `name` beneath `directory_fd` like inf_beneath_open(), but without openat2(2): opens one
// part of the name after the other. ".." counts as leaving the directory.
int inf_beneath_walk(int directory_fd, const char *name) INF_MAY_BLOCK;

#endif
