// SPDX-License-Identifier: Apache-2.0
// A trigger of the kernel's pressure stall information (Documentation/accounting/psi.rst). The
// kernel reports a trigger as EPOLLPRI on the file. libevent has no event for that condition, so
// the file is in an epoll instance of its own: that instance becomes readable when the trigger
// fires, and the loop watches it like any other descriptor. The file is watched edge-triggered,
// because a descriptor of a test keeps its urgent data.
#include "daemon/system/memory_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "backends/base/system/control_group.h"

// The trigger: at least one task waited for memory for 150 ms within 2 s. Processes without
// CAP_SYS_RESOURCE may only use windows that are multiples of 2 s.
static const char trigger_text[] = "some 150000 2000000";

void inf_memory_trigger_init(struct inf_memory_trigger *trigger)
{
    *trigger = (struct inf_memory_trigger){.pressure_fd = -1, .epoll_fd = -1};
}

void inf_memory_trigger_close(struct inf_memory_trigger *trigger)
{
    if (trigger->epoll_fd >= 0)
        close(trigger->epoll_fd);
    if (trigger->pressure_fd >= 0)
        close(trigger->pressure_fd);
    inf_memory_trigger_init(trigger);
}

enum inf_code inf_memory_trigger_adopt(struct inf_memory_trigger *trigger, int fd,
                                       struct inf_error *err)
{
    struct epoll_event event = {.events = EPOLLPRI | EPOLLET};
    inf_memory_trigger_init(trigger);
    trigger->pressure_fd = fd;
    trigger->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (trigger->epoll_fd >= 0 && epoll_ctl(trigger->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
        return INF_OK;
    enum inf_code code = inf_fail(err, errno == EPERM ? INF_UNSUPPORTED : INF_EXHAUSTED,
                                  "no trigger for the pressure on memory: %s", strerror(errno));
    inf_memory_trigger_close(trigger);
    return code;
}

// Opens a file for pressure and writes the trigger to it. Returns -1 on failure.
static int open_pressure_file(const char *path)
{
    int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    // The kernel expects the zero byte at the end of the text.
    if (fd >= 0 && write(fd, trigger_text, sizeof trigger_text) != sizeof trigger_text) {
        close(fd);
        fd = -1;
    }
    return fd;
}

enum inf_code inf_memory_trigger_open(struct inf_memory_trigger *trigger, const char *root,
                                      struct inf_error *err)
{
    char group[PATH_MAX], path[2 * PATH_MAX];
    inf_memory_trigger_init(trigger);
    inf_control_group_find(root, group);
    if (group[0] == '\0')
        return inf_fail(err, INF_UNSUPPORTED,
                        "no trigger for the pressure on memory: the process is in no control "
                        "group of its own");
    snprintf(path, sizeof path, "%s/sys/fs/cgroup%s/memory.pressure", root, group);
    int fd = open_pressure_file(path);
    if (fd < 0)
        return inf_fail(err, INF_UNSUPPORTED, "no trigger for the pressure on memory: %s",
                        strerror(errno));
    return inf_memory_trigger_adopt(trigger, fd, err);
}

int inf_memory_trigger_fd(const struct inf_memory_trigger *trigger)
{
    return trigger->epoll_fd;
}

bool inf_memory_trigger_clear(struct inf_memory_trigger *trigger)
{
    struct epoll_event event;
    // The kernel reports EPOLLERR for a control group that was removed.
    return epoll_wait(trigger->epoll_fd, &event, 1, 0) <= 0 || (event.events & EPOLLERR) == 0;
}
