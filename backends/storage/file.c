// SPDX-License-Identifier: Apache-2.0
// Opens and reads model files. Every name is resolved beneath a directory that the caller opened,
// so that a model cannot name files of other users.
#include "backends/storage/file.h"
#include "backends/base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/open_beneath.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

enum inf_code inf_directory_open(int *out_fd, const char *path, struct inf_error *err)
{
    inf_role_check_may_block();
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return inf_fail(err, errno == ENOENT || errno == ENOTDIR ? INF_NOT_FOUND : INF_DENIED,
                        "directory '%s': %s", last_part(path), strerror(errno));
    *out_fd = fd;
    return INF_OK;
}

// Fails unless `fd` is a regular file with one hard link. A second link may belong to another user.
static enum inf_code check_regular(int fd, const char *name, uint64_t *out_size,
                                   struct inf_error *err)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return inf_fail(err, INF_INTERNAL, "file '%s': %s", name, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return inf_fail(err, INF_DENIED, "file '%s': not a regular file", name);
    if (status.st_nlink > 1)
        return inf_fail(err, INF_DENIED, "file '%s': has %lu hard links, wanted 1", name,
                        (unsigned long)status.st_nlink);
    *out_size = (uint64_t)status.st_size;
    return INF_OK;
}

enum inf_code inf_file_open_beneath(int *out_fd, uint64_t *out_size_bytes, int directory_fd,
                                    const char *name, struct inf_error *err)
{
    inf_role_check_may_block();
    int fd = inf_beneath_open(directory_fd, name);
    if (fd < 0 && errno == ENOENT)
        return inf_fail(err, INF_NOT_FOUND, "file '%s': does not exist", name);
    if (fd < 0 && (errno == EXDEV || errno == ELOOP))
        return inf_fail(err, INF_DENIED, "file '%s': leaves the model's directory, or is a link",
                        name);
    if (fd < 0)
        return inf_fail(err, INF_DENIED, "file '%s': %s", name, strerror(errno));
    enum inf_code code = check_regular(fd, name, out_size_bytes, err);
    if (code == INF_OK)
        *out_fd = fd;
    else
        close(fd);
    return code;
}

enum inf_code inf_file_read(int fd, const char *name, uint64_t offset, void *buffer, size_t size,
                            struct inf_error *err)
{
    inf_role_check_may_block();
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return inf_fail(err, INF_UNAVAILABLE, "file '%s': read: %s", name, strerror(errno));
        if (got == 0)
            return inf_fail(err, INF_RANGE, "file '%s': ends at byte %llu, wanted %llu", name,
                            (unsigned long long)(offset + done),
                            (unsigned long long)(offset + size));
        done += (size_t)got;
    }
    return INF_OK;
}

// Reads all `size` bytes of an open file into memory that the caller frees.
static enum inf_code read_open(char **out_data, int fd, const char *name, uint64_t size,
                               struct inf_error *err)
{
    // Large pages: a model's file is read once, and small pages cost as much as the copy.
    char *data = inf_pages_alloc(sizeof(void *), (size_t)size + 1);
    if (data == NULL)
        return inf_fail(err, INF_EXHAUSTED, "file '%s': no memory for %llu bytes", name,
                        (unsigned long long)size);
    enum inf_code code = inf_file_read(fd, name, 0, data, (size_t)size, err);
    if (code != INF_OK) {
        free(data);
        return code;
    }
    data[size] = '\0';
    *out_data = data;
    return INF_OK;
}

enum inf_code inf_file_read_all(char **out_data, size_t *out_size_bytes, int directory_fd,
                                const char *name, uint64_t limit_bytes, struct inf_error *err)
{
    int fd;
    uint64_t size;
    INF_TRY(inf_file_open_beneath(&fd, &size, directory_fd, name, err));
    enum inf_code code =
        size > limit_bytes
            ? inf_fail(err, INF_EXHAUSTED, "file '%s': %llu bytes, at most %llu allowed", name,
                       (unsigned long long)size, (unsigned long long)limit_bytes)
            : read_open(out_data, fd, name, size, err);
    close(fd);
    if (code == INF_OK)
        *out_size_bytes = (size_t)size;
    return code;
}
