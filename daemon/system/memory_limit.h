// SPDX-License-Identifier: Apache-2.0
// How much memory the process may use and uses. Every path begins with a directory `root`, which is
// "" for the real system; tests pass another directory.
#ifndef INF_DAEMON_SYSTEM_MEMORY_LIMIT_H
#define INF_DAEMON_SYSTEM_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

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
