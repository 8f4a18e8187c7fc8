// SPDX-License-Identifier: Apache-2.0
// Finds the directories of the versions of a model: their names are numbers.
#include "daemon/model/version_directories.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/model/directory.h"
#include "proto/core/span.h"

bool inf_version_parse(const char *name, uint64_t *out_version)
{
    size_t digits = strspn(name, "0123456789");
    if (digits == 0 || digits > INF_VERSION_DIGITS || name[digits] != '\0')
        return false;
    *out_version = strtoull(name, NULL, 10);
    return true;
}

bool inf_version_is_incomplete(int directory_fd, const char *name,
                               const struct inf_model_wanted *wanted)
{
    struct stat status;
    char path[INF_VERSION_TEXT + 256 + 1];
    if (wanted->ready_file[0] == '\0')
        return false;
    snprintf(path, sizeof path, "%s/%s", name, wanted->ready_file);
    return fstatat(directory_fd, path, &status, AT_SYMLINK_NOFOLLOW) != 0;
}

// --- the highest version ---

struct highest {
    const struct inf_model_wanted *wanted;
    struct inf_version_found *found;
    uint64_t number; // of the version that was found
};

static enum inf_code visit_version(void *context, int directory_fd, const char *name,
                                   struct inf_error *err)
{
    (void)err;
    struct highest *highest = context;
    uint64_t number;
    struct stat status;
    const char *version = highest->wanted->version;
    if (!inf_version_parse(name, &number) || (highest->found->found && number <= highest->number) ||
        (version[0] != '\0' && strcmp(version, name) != 0) ||
        fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
        return INF_OK;
    if (inf_version_is_incomplete(directory_fd, name, highest->wanted)) {
        highest->found->incomplete = true;
        return INF_OK;
    }
    highest->found->found = true;
    highest->number = number;
    snprintf(highest->found->name, sizeof highest->found->name, "%s", name);
    return INF_OK;
}

enum inf_code inf_version_find_highest(struct inf_version_found *found, int directory_fd,
                                       const char *label, const struct inf_model_wanted *wanted,
                                       struct inf_error *err)
{
    struct highest highest = {.wanted = wanted, .found = found};
    *found = (struct inf_version_found){.name = ""};
    return inf_model_directory_visit(directory_fd, label, &highest, visit_version, err);
}

// --- all versions ---

// The context of visit_listed().
struct listing {
    struct inf_version_list *list;
    const struct inf_model_wanted *wanted;
};

// Inserts the version `name` into the list, which is in descending order. If the list is full,
// drops the lowest version.
static enum inf_code visit_listed(void *context, int directory_fd, const char *name,
                                  struct inf_error *err)
{
    (void)err;
    const struct listing *listing = context;
    struct inf_version_list *list = listing->list;
    struct stat status;
    uint64_t number;
    if (!inf_version_parse(name, &number) ||
        fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode) || inf_version_is_incomplete(directory_fd, name, listing->wanted))
        return INF_OK;
    uint32_t at = 0;
    while (at < list->count && list->versions[at].number > number)
        at++;
    if (at == INF_REPOSITORY_VERSIONS)
        return INF_OK;
    list->count = INF_MIN(list->count + 1, INF_REPOSITORY_VERSIONS);
    memmove(&list->versions[at + 1], &list->versions[at],
            (list->count - 1 - at) * sizeof list->versions[0]);
    list->versions[at].number = number;
    snprintf(list->versions[at].name, sizeof list->versions[at].name, "%s", name);
    return INF_OK;
}

enum inf_code inf_version_list_fill(struct inf_version_list *list, int directory_fd,
                                    const char *label, const char *ready_file,
                                    struct inf_error *err)
{
    const struct inf_model_wanted wanted = {.version = "", .ready_file = ready_file};
    struct listing listing = {.list = list, .wanted = &wanted};
    *list = (struct inf_version_list){0};
    return inf_model_directory_visit(directory_fd, label, &listing, visit_listed, err);
}
