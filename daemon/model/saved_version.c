// SPDX-License-Identifier: Apache-2.0
// Removes what a save has put into the repository, by the lists that it has left there
// (saved_files.h): one in the directory of the version, and one in the directory of the model if
// the save has made that too.
//
//     NAME/VERSION --rename--> NAME/.VERSION.gone --listed files--> nothing
//
// The rename is the moment at which the version is gone, and shows whether the repository can be
// written. If files of others are in the directory, they get its old name back. A process that ends
// in between leaves a hidden directory, which the next removal of this version removes first.
#include "daemon/model/saved_version.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/model/directory.h"
#include "daemon/model/saved_files.h"
#include "daemon/model/version_directories.h"

#define GONE_TEXT (INF_VERSION_TEXT + 8)

enum inf_code inf_saved_version_fail(struct inf_error *err, const char *name, const char *what,
                                     const char *doing)
{
    int error = errno;
    if (error == EROFS || error == EACCES || error == EPERM)
        return inf_fail(err, INF_DENIED,
                        "model '%s': the daemon cannot write to the repository (%s); inferd(8) "
                        "says how to allow it",
                        name, strerror(error));
    return inf_fail(err, error == ENOSPC ? INF_EXHAUSTED : INF_PRECONDITION,
                    "model '%s': '%.100s' was not %s: %s", name, what, doing, strerror(error));
}

// --- the directory of the version ---

// Removes the listed files of a hidden directory of a version, and the directory. Returns false if
// there are other files in it.
static bool empty_version(int model_fd, const char *hidden,
                          const struct inf_saved_files *files) INF_MAY_BLOCK
{
    int fd = inf_model_directory_open(model_fd, hidden);
    if (fd >= 0) {
        inf_saved_files_remove(files, fd);
        (void)unlinkat(fd, INF_SAVED_FILES_NAME, 0);
        close(fd);
    }
    return unlinkat(model_fd, hidden, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

// Completes a removal that an earlier process began.
static void remove_leftover(int model_fd, const char *hidden) INF_MAY_BLOCK
{
    struct inf_saved_files files;
    int fd = inf_model_directory_open(model_fd, hidden);
    if (fd < 0)
        return;
    if (inf_saved_files_read(&files, fd, NULL) != INF_OK)
        inf_saved_files_fini(&files);
    close(fd);
    (void)empty_version(model_fd, hidden, &files);
    inf_saved_files_fini(&files);
}

static enum inf_code remove_version(int model_fd, const char *name, const char *version,
                                    const struct inf_saved_files *files, bool *out_has_files,
                                    struct inf_error *err) INF_MAY_BLOCK
{
    char hidden[GONE_TEXT];
    snprintf(hidden, sizeof hidden, ".%s.gone", version);
    remove_leftover(model_fd, hidden);
    if (renameat2(model_fd, version, model_fd, hidden, RENAME_NOREPLACE) != 0)
        return errno == EEXIST
                   ? inf_fail(err, INF_PRECONDITION,
                              "model '%s': the directory '%s' is left from an earlier removal and "
                              "has files of others; remove it by hand",
                              name, hidden)
                   : inf_saved_version_fail(err, name, version, "removed");
    *out_has_files = !empty_version(model_fd, hidden, files);
    if (*out_has_files)
        (void)renameat2(model_fd, hidden, model_fd, version, RENAME_NOREPLACE);
    (void)fsync(model_fd);
    return INF_OK;
}

// --- the directory of the model ---

// What is in the directory of a model beside its settings file.
struct found_entries {
    const char *removed;            // the version that was removed
    bool has_versions;              // there is another version
    bool has_others, has_leftovers; // there are other files; files of others in `removed`
};

static enum inf_code visit_entry(void *context, int directory_fd, const char *name,
                                 struct inf_error *err)
{
    (void)directory_fd;
    (void)err;
    struct found_entries *found = context;
    uint64_t number;
    if (strcmp(name, found->removed) == 0)
        found->has_leftovers = true;
    else if (inf_version_parse(name, &number))
        found->has_versions = true;
    else
        found->has_others |= strcmp(name, INF_MODEL_CONFIG_FILE) != 0;
    return INF_OK;
}

// Returns true if the settings file is the one that the save wrote: it has not changed since the
// save wrote its list. Also returns true if there is none.
static bool is_config_unchanged(int model_fd, const struct inf_saved_files *files) INF_MAY_BLOCK
{
    struct stat config, list;
    if (fstatat(model_fd, INF_MODEL_CONFIG_FILE, &config, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if (files->count != 1 || strcmp(files->text, INF_MODEL_CONFIG_FILE) != 0 ||
        fstatat(model_fd, INF_SAVED_FILES_NAME, &list, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    const struct timespec changed = config.st_ctim, written = list.st_mtim;
    return changed.tv_sec < written.tv_sec ||
           (changed.tv_sec == written.tv_sec && changed.tv_nsec <= written.tv_nsec);
}

// Removes the directory of a model without versions, if the save has made it and nothing of others
// is in it.
static void remove_model(int repository_fd, int model_fd, const char *name) INF_MAY_BLOCK
{
    struct inf_saved_files files;
    if (inf_saved_files_read(&files, model_fd, NULL) == INF_OK &&
        is_config_unchanged(model_fd, &files)) {
        inf_saved_files_remove(&files, model_fd);
        (void)unlinkat(model_fd, INF_SAVED_FILES_NAME, 0);
        (void)unlinkat(repository_fd, name, AT_REMOVEDIR);
        (void)fsync(repository_fd);
    }
    inf_saved_files_fini(&files);
}

// --- finding the version ---

// Sets rest->version to the only version of a model.
static enum inf_code find_only_version(int model_fd, const char *name,
                                       struct inf_saved_version_rest *rest,
                                       struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_version_list list;
    INF_TRY(inf_version_list_fill(&list, model_fd, "of the model", "", err));
    if (list.count == 0)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s': its files were not put into the repository by a save; remove "
                        "them by hand",
                        name);
    if (list.count > 1)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s' has %u versions in the repository, from %s to %s: name the one "
                        "to delete",
                        name, list.count, list.versions[list.count - 1].name,
                        list.versions[0].name);
    snprintf(rest->version, sizeof rest->version, "%s", list.versions[0].name);
    return INF_OK;
}

static enum inf_code read_version_list(int model_fd, const char *name, const char *version,
                                       struct inf_saved_files *files,
                                       struct inf_error *err) INF_MAY_BLOCK
{
    uint64_t number;
    int fd = inf_version_parse(version, &number) ? inf_model_directory_open(model_fd, version) : -1;
    *files = (struct inf_saved_files){0};
    if (fd < 0)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                               "model '%s': the repository has no version '%.24s'", name, version);
    enum inf_code code = inf_saved_files_read(files, fd, err);
    close(fd);
    if (code == INF_NOT_FOUND)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s': version %s was not put into the repository by a save; remove "
                        "its files by hand",
                        name, version);
    return code == INF_OK ? INF_OK
                          : inf_error_prefix(err, code, "model '%s': version %s", name, version);
}

static enum inf_code remove_from_model(int repository_fd, int model_fd, const char *name,
                                       struct inf_saved_version_rest *rest,
                                       struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_saved_files files;
    struct found_entries found = {.removed = rest->version};
    if (rest->version[0] == '\0')
        INF_TRY(find_only_version(model_fd, name, rest, err));
    enum inf_code code = read_version_list(model_fd, name, rest->version, &files, err);
    if (code == INF_OK)
        code = remove_version(model_fd, name, rest->version, &files, &rest->has_files, err);
    inf_saved_files_fini(&files);
    INF_TRY(code);
    // If the directory cannot be read, it stays.
    if (inf_model_directory_visit(model_fd, "of the model", &found, visit_entry, NULL) != INF_OK)
        return INF_OK;
    rest->has_versions = found.has_versions;
    if (!found.has_versions && !found.has_others && !found.has_leftovers)
        remove_model(repository_fd, model_fd, name);
    return INF_OK;
}

enum inf_code inf_saved_version_remove(int repository_fd, const char *name, const char *version,
                                       struct inf_saved_version_rest *rest, struct inf_error *err)
{
    *rest = (struct inf_saved_version_rest){0};
    snprintf(rest->version, sizeof rest->version, "%s", version);
    int model_fd = inf_model_directory_open(repository_fd, name);
    if (model_fd < 0)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%s': the repository has no directory of it", name);
    enum inf_code code = remove_from_model(repository_fd, model_fd, name, rest, err);
    close(model_fd);
    return code;
}
