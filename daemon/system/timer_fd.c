// SPDX-License-Identifier: Apache-2.0
// One-shot timers on timerfds.
#include "daemon/system/timer_fd.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum inf_code inf_timer_fd_create(int *out_fd, struct inf_error *err)
{
    *out_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return *out_fd >= 0 ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no timer: %s", strerror(errno));
}

void inf_timer_fd_set(int fd, uint32_t ms)
{
    const struct itimerspec when = {
        .it_value = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}};
    // Cannot fail, because the descriptor is a timer and the time is valid.
    int result = timerfd_settime(fd, 0, &when, NULL);
    assert(result == 0);
    (void)result;
}

void inf_timer_fd_clear(int fd)
{
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
}
