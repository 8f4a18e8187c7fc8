// SPDX-License-Identifier: Apache-2.0
// Reads pressure stall information and the number of open descriptors. The files are kept open and
// read with pread(), which makes the kernel compute the present numbers.
#include "daemon/system/pressure.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/system/control_group.h"

#define NS_PER_US 1000

static const char *const names[INF_PRESSURE_COUNT] = {"cpu", "memory", "io"};

void inf_pressure_init(struct inf_pressure *pressure)
{
    for (int i = 0; i < INF_PRESSURE_COUNT; i++)
        pressure->fds[i] = -1;
    memset(pressure->is_of_group, 0, sizeof pressure->is_of_group);
    pressure->self_fd = -1;
}

void inf_pressure_open(struct inf_pressure *pressure, const char *root)
{
    char group[PATH_MAX], path[2 * PATH_MAX];
    inf_pressure_init(pressure);
    inf_control_group_find(root, group);
    for (int i = 0; i < INF_PRESSURE_COUNT; i++) {
        struct inf_pressure_times times;
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/%s.pressure", root, group, names[i]);
        pressure->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        // The file exists but cannot be read if pressure is switched off for the group.
        if (inf_pressure_read(pressure, (enum inf_pressure_resource)i, &times)) {
            pressure->is_of_group[i] = group[0] != '\0';
            continue;
        }
        if (pressure->fds[i] >= 0)
            close(pressure->fds[i]);
        snprintf(path, sizeof path, "%s/proc/pressure/%s", root, names[i]);
        pressure->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
    }
    snprintf(path, sizeof path, "%s/proc/self/fd", root);
    pressure->self_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void inf_pressure_close(struct inf_pressure *pressure)
{
    for (int i = 0; i < INF_PRESSURE_COUNT; i++)
        if (pressure->fds[i] >= 0)
            close(pressure->fds[i]);
    if (pressure->self_fd >= 0)
        close(pressure->self_fd);
    inf_pressure_init(pressure);
}

const char *inf_pressure_name(enum inf_pressure_resource resource)
{
    return names[resource];
}

// Returns the number behind "total=" in the line that begins with `word`, in nanoseconds; 0 if
// there is no such line, as some kernels have no "full" for the processors of the whole machine.
static uint64_t find_total_ns(const char *text, const char *word)
{
    const char *line = strstr(text, word);
    const char *total = line != NULL ? strstr(line, "total=") : NULL;
    uint64_t us = 0;
    if (total != NULL)
        (void)sscanf(total, "total=%" SCNu64, &us);
    return us * NS_PER_US;
}

bool inf_pressure_read(const struct inf_pressure *pressure, enum inf_pressure_resource resource,
                       struct inf_pressure_times *out_times)
{
    // Two lines such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=123456".
    char text[256];
    int fd = pressure->fds[resource];
    ssize_t size = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (size <= 0)
        return false;
    text[size] = '\0';
    *out_times = (struct inf_pressure_times){.some_ns = find_total_ns(text, "some "),
                                             .full_ns = find_total_ns(text, "full ")};
    return strstr(text, "some ") != NULL;
}

bool inf_pressure_count_fds(const struct inf_pressure *pressure, uint64_t *out_count)
{
    struct stat status;
    if (pressure->self_fd < 0 || fstat(pressure->self_fd, &status) != 0 || status.st_size <= 0)
        return false;
    *out_count = (uint64_t)status.st_size;
    return true;
}
