// SPDX-License-Identifier: Apache-2.0
// Reads the limits of memory of the process's control group. A limit of a group applies to all
// groups below it, so every group on the path from the process's own one to the root counts.
#include "daemon/system/memory_limit.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/system/control_group.h"

// Makes *limit smaller if a file of a control group, memory.high or memory.max, has a smaller
// limit.
static void apply_limit_file(struct inf_memory_limit *limit, const char *root, const char *group,
                             const char *file)
{
    char path[2 * PATH_MAX], text[32];
    uint64_t bytes;
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/%s", root, group, file);
    // The text "max" stands for no limit. A limit of 0 would allow nothing, so it is no limit that
    // the process can run with.
    if (!inf_kernel_file_read(path, text, sizeof text) || sscanf(text, "%" SCNu64, &bytes) != 1 ||
        bytes == 0 || bytes >= limit->bytes)
        return;
    limit->bytes = bytes;
    snprintf(limit->source, sizeof limit->source, "%s of %.100s", file,
             group[0] != '\0' ? group : "/");
}

// Returns a number of /proc/meminfo in bytes; 0 if it is not there.
static uint64_t find_memory_info(const char *text, const char *name)
{
    uint64_t kib = 0;
    const char *line = strstr(text, name);
    if (line != NULL)
        (void)sscanf(line + strlen(name), " %" SCNu64, &kib);
    return kib * 1024;
}

void inf_group_memory_limit_read(struct inf_memory_limit *limit, const char *root)
{
    char group[PATH_MAX];
    *limit = (struct inf_memory_limit){.bytes = UINT64_MAX};
    inf_control_group_find(root, group);
    for (char *end = group + strlen(group); end != NULL; end = strrchr(group, '/')) {
        *end = '\0';
        apply_limit_file(limit, root, group, "memory.high");
        apply_limit_file(limit, root, group, "memory.max");
    }
    if (limit->bytes == UINT64_MAX)
        limit->bytes = 0;
}

void inf_memory_limit_read(struct inf_memory_limit *limit, const char *root)
{
    char path[PATH_MAX], text[4096];
    inf_group_memory_limit_read(limit, root);
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    (void)inf_kernel_file_read(path, text, sizeof text);
    uint64_t total = find_memory_info(text, "MemTotal:");
    if (limit->bytes > 0 && (total == 0 || limit->bytes <= total))
        return;
    limit->bytes = find_memory_info(text, "MemAvailable:");
    limit->is_machine = true;
    snprintf(limit->source, sizeof limit->source, "%s",
             limit->bytes > 0 ? "MemAvailable of the machine" : "");
}

uint64_t inf_resident_bytes_read(void)
{
    char text[128];
    uint64_t pages;
    // The second number is that of the resident pages.
    if (!inf_kernel_file_read("/proc/self/statm", text, sizeof text) ||
        sscanf(text, "%*u %" SCNu64, &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
