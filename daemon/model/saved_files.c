// SPDX-License-Identifier: Apache-2.0
// The file has a first text that names its format, and then the paths. Each text ends with a NUL,
// because a file name may have a line end. The file is trusted only if root or the daemon's own
// user wrote it, and each path is checked, so that nothing outside of the directory is removed.
#include "daemon/model/saved_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "daemon/model/directory.h"
#include "proto/core/span.h"

#define FORMAT     "inferd-saved 1"
#define PATH_BYTES ((INF_SAVED_FILES_DEPTH + 1) * 256u)
// The most bytes of a list that is read.
#define LIST_BYTES_MAX ((uint64_t)16 << 20)

enum inf_code inf_saved_files_add(struct inf_saved_files *files, const char *folder,
                                  const char *name, struct inf_error *err)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    if (files->count == INF_SAVED_FILES_MAX)
        return inf_fail(err, INF_EXHAUSTED, "more than %u files", INF_SAVED_FILES_MAX);
    if (files->capacity - files->size < size) {
        size_t capacity = INF_MAX(2 * files->capacity, files->size + size + 1024);
        char *text = realloc(files->text, capacity);
        if (text == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a list of files");
        files->text = text;
        files->capacity = capacity;
    }
    int length = snprintf(files->text + files->size, size, "%s%s%s", folder,
                          folder[0] != '\0' ? "/" : "", name);
    files->size += (size_t)length + 1;
    files->count++;
    return INF_OK;
}

void inf_saved_files_fini(struct inf_saved_files *files)
{
    free(files->text);
    *files = (struct inf_saved_files){0};
}

// --- writing ---

enum inf_code inf_saved_files_write(const struct inf_saved_files *files, int directory_fd,
                                    struct inf_error *err)
{
    int fd = openat(directory_fd, INF_SAVED_FILES_NAME,
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    bool ok = fd >= 0 && inf_file_write_all(fd, FORMAT, sizeof FORMAT) &&
              inf_file_write_all(fd, files->text, files->size) && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    if (ok)
        return INF_OK;
    return inf_fail(err, error == ENOSPC ? INF_EXHAUSTED : INF_PRECONDITION,
                    "the list of saved files was not written: %s", strerror(error));
}

// --- reading ---

// Returns true if a path stays in its directory and is short enough: no part of it is empty, "." or
// "..".
static bool is_path_valid(const char *path)
{
    uint32_t parts = 0;
    if (strlen(path) >= PATH_BYTES)
        return false;
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || strncmp(part, "..", INF_MAX(length, 2)) == 0 ||
            strncmp(part, ".", INF_MAX(length, 1)) == 0 || ++parts > INF_SAVED_FILES_DEPTH + 1)
            return false;
        part += length;
        if (*part == '\0')
            return true;
    }
}

static enum inf_code parse_list(struct inf_saved_files *files, const char *text, size_t size,
                                struct inf_error *err)
{
    if (size < sizeof FORMAT || memcmp(text, FORMAT, sizeof FORMAT) != 0 || text[size - 1] != '\0')
        return inf_fail(err, INF_INVALID, "the list of saved files is damaged");
    for (const char *path = text + sizeof FORMAT; path < text + size; path += strlen(path) + 1) {
        if (!is_path_valid(path))
            return inf_fail(err, INF_INVALID, "the list of saved files is damaged");
        INF_TRY(inf_saved_files_add(files, "", path, err));
    }
    return INF_OK;
}

static enum inf_code read_list(struct inf_saved_files *files, int fd,
                               struct inf_error *err) INF_MAY_BLOCK
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        (status.st_uid != 0 && status.st_uid != geteuid()) ||
        (uint64_t)status.st_size > LIST_BYTES_MAX)
        return inf_fail(err, INF_INVALID,
                        "the list of saved files is not one that the daemon wrote");
    size_t size = (size_t)status.st_size;
    char *text = malloc(size + 1);
    if (text == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a list of files");
    enum inf_code code = inf_file_read(fd, INF_SAVED_FILES_NAME, 0, text, size, err);
    if (code == INF_OK)
        code = parse_list(files, text, size, err);
    free(text);
    return code;
}

enum inf_code inf_saved_files_read(struct inf_saved_files *files, int directory_fd,
                                   struct inf_error *err)
{
    *files = (struct inf_saved_files){0};
    int fd =
        openat(directory_fd, INF_SAVED_FILES_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return inf_fail(err, INF_NOT_FOUND, "there is no list of saved files: %s", strerror(errno));
    enum inf_code code = read_list(files, fd, err);
    close(fd);
    return code;
}

// --- removing ---

// Removes one path. Each directory on the way is opened without following links.
static void remove_path(int directory_fd, const char *path) INF_MAY_BLOCK
{
    char part[PATH_BYTES];
    int fd = directory_fd;
    const char *rest = path, *slash;
    while (fd >= 0 && (slash = strchr(rest, '/')) != NULL) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - rest), rest);
        int inner = inf_model_directory_open(fd, part);
        if (fd != directory_fd)
            close(fd);
        fd = inner;
        rest = slash + 1;
    }
    if (fd >= 0 && unlinkat(fd, rest, 0) != 0)
        (void)unlinkat(fd, rest, AT_REMOVEDIR);
    if (fd >= 0 && fd != directory_fd)
        close(fd);
}

void inf_saved_files_remove(const struct inf_saved_files *files, int directory_fd)
{
    const char *path = files->text;
    for (uint32_t i = 0; i < files->count; i++, path += strlen(path) + 1)
        remove_path(directory_fd, path);
}
