// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon. While the file $INF_FAIL_EVENTS exists, accept4() fails as if no
// descriptor were left, and libevent's event_add() fails as if no memory were left.
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct event;
struct timeval;
int event_add(struct event *event, const struct timeval *timeout);

static bool must_fail(void)
{
    const char *path = getenv("INF_FAIL_EVENTS");
    int before = errno;
    bool fail = path != NULL && access(path, F_OK) == 0;
    errno = before;
    return fail;
}

EXPORT int event_add(struct event *event, const struct timeval *timeout)
{
    int (*original)(struct event *, const struct timeval *);
    *(void **)&original = dlsym(RTLD_NEXT, "event_add");
    return must_fail() ? -1 : original(event, timeout);
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
    int (*original)(int, struct sockaddr *, socklen_t *, int);
    *(void **)&original = dlsym(RTLD_NEXT, "accept4");
    if (!must_fail())
        return original(fd, address, size, flags);
    errno = EMFILE;
    return -1;
}
