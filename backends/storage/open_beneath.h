// SPDX-License-Identifier: Apache-2.0
// Opening files that must lie beneath a directory, whatever their names say.
#ifndef INF_BACKENDS_STORAGE_OPEN_BENEATH_H
#define INF_BACKENDS_STORAGE_OPEN_BENEATH_H

#include "backends/base/role.h"

// Opens `name` for reading beneath `directory_fd`, without a symbolic link on the way and without waiting
// for a FIFO's writer. Gives a file descriptor, the caller's to close; -1 with errno: EXDEV where the name
// leaves the directory, ELOOP where there is a link, else as open(2). By openat2(2), RESOLVE_BENEATH |
// RESOLVE_NO_SYMLINKS; where the kernel or a sandbox does not know that, by inf_beneath_walk().
int inf_beneath_open(int directory_fd, const char *name) INF_MAY_BLOCK;

// The same, part of the name by part of it. ".." always leaves the directory.
int inf_beneath_walk(int directory_fd, const char *name) INF_MAY_BLOCK;

#endif
