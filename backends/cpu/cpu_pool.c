// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/cpu_pool.h"

#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_THREADS_MAX 8u
#define CGROUP_ROOT         "/sys/fs/cgroup"

static uint32_t affinity_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    // Fails on machines of more than 1024 cores: then the quota alone decides.
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return UINT32_MAX;
    int count = CPU_COUNT(&set);
    return count > 0 ? (uint32_t)count : 1;
}

// The path of this process's group below the root of the unified hierarchy, without a slash at its
// end. False where there is none.
static bool own_cgroup(char *path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return false;
    char line[4096];
    bool found = false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = '\0';
        int length = snprintf(path, size, "%s%s", CGROUP_ROOT, line + 3);
        found = length > 0 && (size_t)length < size;
    }
    fclose(file);
    return found;
}

// Cores that cpu.max of the group at `path` grants, rounded up; UINT32_MAX where it sets no bound.
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

uint32_t inf_cpu_cores(void)
{
    uint32_t cores = affinity_cores();
    char path[4096];
    if (own_cgroup(path, sizeof(path))) {
        size_t root = strlen(CGROUP_ROOT);
        while (strlen(path) > root) {
            cores = INF_MIN(cores, quota_cores(path));
            *strrchr(path, '/') = '\0';
        }
    }
    return cores == UINT32_MAX ? 1 : cores;
}

static enum inf_code fill(struct inf_cpu_pools *pools, struct inf_error *err)
{
    pools->pools = calloc(pools->slots, sizeof(pthreadpool_t));
    if (pools->pools == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for %" PRIu32 " slots", pools->slots);
    if (pools->threads == 1)
        return INF_OK;
    for (uint32_t slot = 0; slot < pools->slots; slot++) {
        pools->pools[slot] = pthreadpool_create(pools->threads);
        if (pools->pools[slot] == NULL)
            return inf_fail(err, INF_EXHAUSTED, "cpu: the system refuses %" PRIu32 " threads",
                            pools->threads);
    }
    return INF_OK;
}

enum inf_code inf_cpu_pools_init(struct inf_cpu_pools *pools, uint32_t slots, uint32_t threads,
                                 struct inf_error *err)
{
    *pools = (struct inf_cpu_pools){.slots = slots, .threads = threads};
    if (slots > INF_CPU_SLOTS_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "cpu: %" PRIu32 " slots are more than %u", slots, INF_CPU_SLOTS_MAX);
    if (threads > INF_CPU_THREADS_MAX)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "cpu: %" PRIu32 " threads are more than %u", threads,
                               INF_CPU_THREADS_MAX);
    if (slots == 0)
        pools->slots = 1;
    if (threads == 0) {
        uint32_t half = INF_MAX(inf_cpu_cores() / 2, 1u);
        pools->threads = INF_MIN(half, DEFAULT_THREADS_MAX);
    }
    enum inf_code code = fill(pools, err);
    if (code != INF_OK)
        inf_cpu_pools_fini(pools);
    return code;
}

void inf_cpu_pools_fini(struct inf_cpu_pools *pools)
{
    for (uint32_t slot = 0; pools->pools != NULL && slot < pools->slots; slot++)
        pthreadpool_destroy(pools->pools[slot]);
    free(pools->pools);
    *pools = (struct inf_cpu_pools){0};
}
