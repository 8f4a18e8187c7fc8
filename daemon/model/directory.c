// SPDX-License-Identifier: Apache-2.0
// Opens and lists the directories of models. Links are not followed.
#include "daemon/model/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backends/storage/file.h"

bool inf_model_is_plan(const char *name)
{
    size_t length = strlen(name), end = strlen(INF_MODEL_PLAN_SUFFIX);
    return length > end && strcmp(name + length - end, INF_MODEL_PLAN_SUFFIX) == 0;
}

int inf_model_directory_open(int parent_fd, const char *name)
{
    return openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

enum inf_code inf_model_refuse_unreadable(int cause, struct inf_error *err)
{
    enum inf_code code = inf_file_failure_code(cause);
    return inf_fail(err, code, "%s%s", strerror(cause),
                    code == INF_DENIED ? "; wanted one that the user of the daemon can read" : "");
}

enum inf_code inf_model_directory_visit(int directory_fd, const char *label, void *context,
                                        enum inf_code (*visit)(void *context, int directory_fd,
                                                               const char *name,
                                                               struct inf_error *err),
                                        struct inf_error *err)
{
    int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        int cause = errno;
        if (fd >= 0)
            close(fd);
        return inf_error_prefix(err, inf_model_refuse_unreadable(cause, err), "directory '%s'",
                                label);
    }
    enum inf_code code = INF_OK;
    const struct dirent *entry;
    while (code == INF_OK && (errno = 0, entry = readdir(directory)) != NULL) {
        if (entry->d_name[0] != '.')
            code = visit(context, directory_fd, entry->d_name, err);
    }
    if (code == INF_OK && errno != 0)
        code = inf_fail(err, INF_UNAVAILABLE, "directory '%s': %s", label, strerror(errno));
    closedir(directory);
    return code;
}
