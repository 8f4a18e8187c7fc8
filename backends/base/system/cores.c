// SPDX-License-Identifier: Apache-2.0
// Counts the cores that this process may use: the affinity mask, bounded by cpu.max of its control
// group and of all groups above it.
#include "backends/base/system/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/system/control_group.h"
#include "proto/core/span.h"

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

// Returns the number of cores that cpu.max of the group grants, rounded up; UINT32_MAX if there is
// no limit.
static uint32_t quota_cores(const char *root, const char *group)
{
    char path[2 * PATH_MAX], text[64], *end;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/cpu.max", root, group);
    if (!inf_kernel_file_read(path, text, sizeof text))
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
    char group[PATH_MAX];
    inf_control_group_find(root, group);
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        *end = '\0';
        cores = INF_MIN(cores, quota_cores(root, group));
    }
    return cores;
}

uint32_t inf_cores_usable(void)
{
    uint32_t cores = INF_MIN(affinity_cores(), inf_cores_quota(""));
    return cores == UINT32_MAX ? 1 : cores;
}
