// SPDX-License-Identifier: Apache-2.0
// Preloaded into a daemon. Files of the kernel about the control group and the memory are read
// below the directory $INF_FAKE_SYSTEM instead. If a file memory.pressure is opened for writing,
// the result is a connection to the TCP port in $INF_FAKE_SYSTEM/port: urgent data of the other
// side sets the condition EPOLLPRI, with which the kernel reports pressure. Both names of open()
// are replaced, so neither may stand for the other.
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define EXPORT __attribute__((visibility("default")))

int open64(const char *path, int flags, ...);

static bool is_faked(const char *path)
{
    static const char *const names[] = {"/sys/fs/cgroup", "/proc/self/cgroup", "/proc/meminfo",
                                        "/proc/pressure/"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strncmp(path, names[i], strlen(names[i])) == 0)
            return getenv("INF_FAKE_SYSTEM") != NULL;
    return false;
}

static int call_open(const char *path, int flags, int mode)
{
    int (*original)(const char *, int, ...);
    *(void **)&original = dlsym(RTLD_NEXT, "open");
    return original(path, flags, mode);
}

static int connect_to_test(const char *root)
{
    char path[PATH_MAX], text[16] = "";
    snprintf(path, sizeof path, "%s/port", root);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return -1;
    bool known = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                                  .sin_port = htons((in_port_t)atoi(text))};
    int fd = known ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    return fd;
}

static int open_path(const char *path, int flags, int mode)
{
    char faked[PATH_MAX];
    if (!is_faked(path))
        return call_open(path, flags, mode);
    const char *root = getenv("INF_FAKE_SYSTEM");
    if (strstr(path, "memory.pressure") != NULL && (flags & O_ACCMODE) == O_RDWR)
        return connect_to_test(root);
    snprintf(faked, sizeof faked, "%s%s", root, path);
    return call_open(faked, flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
    va_end(list);
    return open_path(path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
    va_list list;
    va_start(list, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(list, int) : 0;
    va_end(list);
    return open_path(path, flags, mode);
}
