// SPDX-License-Identifier: Apache-2.0
// Opens files that must lie beneath a directory, whatever their names are.
#ifndef INF_BACKENDS_STORAGE_OPEN_BENEATH_H
#define INF_BACKENDS_STORAGE_OPEN_BENEATH_H

#include "backends/base/role.h"

// Opens `name` for reading beneath `directory_fd`, following no symbolic link and without waiting
// for the writer of a FIFO. Returns a file descriptor that the caller closes, or -1 with errno:
// EXDEV if the name leaves the directory, ELOOP if a link is on the way, else as open(2). Uses
// openat2(2), or inf_beneath_walk() if the kernel or a sandbox does not allow that.
int inf_beneath_open(int directory_fd, const char *name) INF_MAY_BLOCK;

// As inf_beneath_open(), by opening one part of the name after the other. ".." counts as leaving
// the directory.
int inf_beneath_walk(int directory_fd, const char *name) INF_MAY_BLOCK;

#endif
