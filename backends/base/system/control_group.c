// SPDX-License-Identifier: Apache-2.0
// Finds the control group of the process, and reads small files of the kernel. Nothing is
// allocated, because runs count the cores of the group again.
#include "backends/base/system/control_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool inf_kernel_file_read(const char *path, char *text, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, capacity - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    return size > 0;
}

void inf_control_group_find(const char *root, char group[PATH_MAX])
{
    char path[PATH_MAX], text[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    group[0] = '\0';
    if (!inf_kernel_file_read(path, text, sizeof text))
        return;
    // The unified hierarchy has the line "0::PATH".
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    const char *start = line != NULL ? strchr(line, '/') : NULL;
    if (start != NULL)
        snprintf(group, PATH_MAX, "%.*s", (int)strcspn(start, "\n"), start);
    if (strcmp(group, "/") == 0)
        group[0] = '\0';
}
