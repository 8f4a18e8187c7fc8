// SPDX-License-Identifier: Apache-2.0
// Counts the cores that this process may use: the affinity mask, bounded by cpu.max of its control
// group and of all groups above it.
#include "backends/base/cores.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

// Writes the path of this process's control group below the root of the unified hierarchy, without
// a trailing slash. Returns false if the process has no such group.
static bool read_cgroup_path(const char *root, char *path, size_t size)
{
    char name[CGROUP_PATH];
    snprintf(name, sizeof(name), "%s/proc/self/cgroup", root);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return false;
    char line[CGROUP_PATH];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        int length = snprintf(path, size, "%s%s%s", root, CGROUP_ROOT, line + 3);
        found = length > 0 && (size_t)length < size;
    }
    fclose(file);
    return found;
}

// Returns the number of cores that cpu.max of the group at `path` grants, rounded up; UINT32_MAX if
// there is no limit.
static uint32_t quota_cores(const char *path)
{
    char name[4096 + 16];
    snprintf(name, sizeof(name), "%s/cpu.max", path);
    FILE *file = fopen(name, "re");
    if (file == NULL)
        return UINT32_MAX;
    uint64_t quota = 0;
    uint64_t period = 0;
    int fields = fscanf(file, "%" SCNu64 " %" SCNu64, &quota, &period);
    fclose(file);
    if (fields != 2 || quota == 0 || period == 0)
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
