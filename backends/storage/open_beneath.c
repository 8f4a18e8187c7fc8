// SPDX-License-Identifier: Apache-2.0
// Resolves names beneath a directory by openat2(2) with RESOLVE_BENEATH. If the kernel or a sandbox
// refuses that call, opens the parts of the name one by one with O_NOFOLLOW.
#include "backends/storage/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_FLAGS (O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

int inf_beneath_open(int directory_fd, const char *name)
{
    struct open_how how = {.flags = READ_FLAGS,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, directory_fd, name, &how, sizeof how);
    return fd < 0 && errno == ENOSYS ? inf_beneath_walk(directory_fd, name) : fd;
}

// Opens one part of a name. Fails with ELOOP if the part is a symbolic link instead of a directory.
static int open_part(int directory_fd, const char *part, bool last)
{
    struct stat status;
    int flags = last ? READ_FLAGS : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    if (strcmp(part, "..") == 0) {
        errno = EXDEV;
        return -1;
    }
    int fd = openat(directory_fd, part, flags);
    if (fd < 0 && errno == ENOTDIR) {
        bool link = fstatat(directory_fd, part, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISLNK(status.st_mode);
        errno = link ? ELOOP : ENOTDIR;
    }
    return fd;
}

int inf_beneath_walk(int directory_fd, const char *name)
{
    int at = directory_fd;
    if (name[0] == '/' || name[0] == '\0') {
        errno = name[0] == '/' ? EXDEV : ENOENT;
        return -1;
    }
    while (true) {
        char part[NAME_MAX + 1];
        size_t length = strcspn(name, "/");
        const char *rest = name + length + strspn(name + length, "/");
        int fd = -1;
        if (length < sizeof part) {
            snprintf(part, sizeof part, "%.*s", (int)length, name);
            fd = open_part(at, part, *rest == '\0');
        } else {
            errno = ENAMETOOLONG;
        }
        if (at != directory_fd) {
            int kept = errno;
            close(at);
            errno = kept;
        }
        if (fd < 0 || *rest == '\0')
            return fd;
        at = fd;
        name = rest;
    }
}
