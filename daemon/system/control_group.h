// SPDX-License-Identifier: Apache-2.0
// The control group of the process (cgroup v2), and small files of the kernel. Every path begins
// with a directory `root`, which is "" for the real system; tests pass another directory.
#ifndef INF_DAEMON_SYSTEM_CONTROL_GROUP_H
#define INF_DAEMON_SYSTEM_CONTROL_GROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Reads a small file into a text that ends with a zero byte. Returns false if the file cannot be
// read or is empty; the text is then "".
bool inf_kernel_file_read(const char *path, char *text, size_t capacity);

// Writes the path of the process's control group to `group`, such as
// "/system.slice/inferd.service"; "" if the process is in none, or in the root group.
void inf_control_group_find(const char *root, char group[PATH_MAX]);

// How much memory the process may use.
struct inf_memory_limit {
    uint64_t bytes;  // 0: not known
    bool is_machine; // no control group has a limit; `bytes` is what the machine has left
    // Where the number comes from, such as "memory.high of /system.slice/inferd.service"; the path
    // is shortened if it is long.
    char source[128];
};

// Reads the limit of the control group: the smallest of memory.high and memory.max of the group and
// of all groups above. If there is none, limit->bytes is 0.
void inf_group_memory_limit_read(struct inf_memory_limit *limit, const char *root);

// Reads the memory that the process may use: the smallest of memory.high and memory.max of its
// control group and of all groups above. If none of them has a limit below the memory of the
// machine, it is the memory that the machine has left (MemAvailable).
void inf_memory_limit_read(struct inf_memory_limit *limit, const char *root);

// Returns the resident memory of the process; 0 if the kernel does not report it.
uint64_t inf_resident_bytes_read(void);

#endif
