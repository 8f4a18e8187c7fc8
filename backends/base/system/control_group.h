// SPDX-License-Identifier: Apache-2.0
// The control group of the process (cgroup v2), and small files of the kernel. `root` is the
// directory for reading their files; "" except in tests.
#ifndef INF_BACKENDS_BASE_SYSTEM_CONTROL_GROUP_H
#define INF_BACKENDS_BASE_SYSTEM_CONTROL_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "backends/base/role.h"

// Reads a small file into a text that ends with a zero byte. Returns false if the file cannot be
// read or is empty; the text is then "".
bool inf_kernel_file_read(const char *path, char *text, size_t capacity) INF_MAY_BLOCK;

// Writes the path of the process's control group to `group`, such as
// "/system.slice/inferd.service"; "" if the process is in none, or in the root group.
void inf_control_group_find(const char *root, char group[PATH_MAX]) INF_MAY_BLOCK;

#endif
