// SPDX-License-Identifier: Apache-2.0
// Counts the cores that this process may use: the affinity mask, bounded by cpu.max of its control
// group and of all groups above it.
#include "backends/base/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/core/span.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define CGROUP_PATH 4096

static uint32_t affinity_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    // This call fails on machines with more than 1024 cores. Only the quota limits the count in
    // this case.
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return UINT32_MAX;
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

// Reads a file into `text`, as far as it fits, without an allocation: the cores are counted again
// in the middle of runs. Returns false if it cannot be read.
static bool read_text(const char *name, char *text, size_t size)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, text, size - 1);
    close(fd);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

// Writes the path of this process's control group below the root of the unified hierarchy, without
// a trailing slash. Returns false if the process has no such group.
static bool read_cgroup_path(const char *root, char *path, size_t size)
{
    char name[CGROUP_PATH], text[CGROUP_PATH];
    snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    if (!read_text(name, text, sizeof(text)))
        return false;
    // The line of the unified hierarchy is the first one, or comes after those of the old ones.
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (line == NULL)
        return false;
    line = strchr(line, '/');
    if (line == NULL)
        return false;
    int length =
        snprintf(path, size, "%s%s%.*s", root, CGROUP_ROOT, (int)strcspn(line, "\n"), line);
    return length > 0 && (size_t)length < size;
}

// Returns the number of cores that cpu.max of the group at `path` grants, rounded up; UINT32_MAX if
// there is no limit.
static uint32_t quota_cores(const char *path)
{
    char name[CGROUP_PATH + 16], text[64], *end;
    snprintf(name, sizeof(name), "%s/cpu.max", path);
    if (!read_text(name, text, sizeof(text)))
        return UINT32_MAX;
    // "QUOTA PERIOD", or "max PERIOD"
    uint64_t quota = strtoull(text, &end, 10);
    uint64_t period = strtoull(end, NULL, 10);
    if (quota == 0 || period == 0)
        return UINT32_MAX;
    uint64_t cores = quota / period + (quota % period != 0);
    return cores < UINT32_MAX ? (uint32_t)cores : UINT32_MAX;
}

uint32_t inf_cores_quota(const char *root)
{
    uint32_t cores = UINT32_MAX;
    char path[CGROUP_PATH];
    if (!read_cgroup_path(root, path, sizeof(path)))
        return cores;
    size_t top = strlen(root) + strlen(CGROUP_ROOT);
    while (strlen(path) > top) {
        cores = INF_MIN(cores, quota_cores(path));
        *strrchr(path, '/') = '\0';
    }
    return cores;
}

uint32_t inf_cores_usable(void)
{
    uint32_t cores = INF_MIN(affinity_cores(), inf_cores_quota(""));
    return cores == UINT32_MAX ? 1 : cores;
}
