// SPDX-License-Identifier: Apache-2.0
// Numbers of the kernel about the process and its control group, for the metrics: how long tasks
// waited for a resource (pressure stall information), and how many descriptors are open. The files
// are opened once; reading them does not wait for a device.
#ifndef INF_DAEMON_SYSTEM_PRESSURE_H
#define INF_DAEMON_SYSTEM_PRESSURE_H

#include <stdbool.h>
#include <stdint.h>

enum inf_pressure_resource {
    INF_PRESSURE_CPU,
    INF_PRESSURE_MEMORY,
    INF_PRESSURE_IO,
    INF_PRESSURE_COUNT
};

// The open files; -1: the kernel has no such file.
struct inf_pressure {
    int fds[INF_PRESSURE_COUNT];
    // Whether the file is that of the process's control group, not of the whole machine.
    bool is_of_group[INF_PRESSURE_COUNT];
    int self_fd; // the directory /proc/self/fd
};

// Time since the control group began to exist in which tasks waited for a resource.
struct inf_pressure_times {
    uint64_t some_ns; // time in which at least one task waited
    uint64_t full_ns; // time in which all tasks that were not idle waited
};

// Sets all files to "not open", so that inf_pressure_close() may be called.
void inf_pressure_init(struct inf_pressure *pressure);

// Opens the files of the process's control group, or those of the whole machine if the group has
// none, below the directory `root` ("": the real system; tests pass another directory). Files that
// do not exist are left out.
void inf_pressure_open(struct inf_pressure *pressure, const char *root);

// Closes the files.
void inf_pressure_close(struct inf_pressure *pressure);

// Returns the name of a resource: "cpu", "memory" or "io".
const char *inf_pressure_name(enum inf_pressure_resource resource);

// Reads the times of a resource. Returns false if the kernel does not report them.
bool inf_pressure_read(const struct inf_pressure *pressure, enum inf_pressure_resource resource,
                       struct inf_pressure_times *out_times);

// Reads the number of descriptors that the process has open. Returns false if the kernel does not
// report it, as before Linux 6.2. Counting the descriptors one by one would take the loop too long.
bool inf_pressure_count_fds(const struct inf_pressure *pressure, uint64_t *out_count);

#endif
