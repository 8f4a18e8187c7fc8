// SPDX-License-Identifier: Apache-2.0
// Copies models into the repository. Where the copy grows:
//
//     REPOSITORY/.NAME.new/1/...    the model is new; renamed to REPOSITORY/NAME
//     REPOSITORY/NAME/.new/...      it has other versions; renamed to REPOSITORY/NAME/VERSION
//
// Names that begin with a dot are not looked at by the repository and its watch. Files and
// directories are on the disk before the rename, so that a power failure leaves the model complete
// or hidden. What an earlier process left hidden is removed by the next save of the same model.
#include "daemon/model/repository_save.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/cancel.h"
#include "backends/storage/file.h"
#include "daemon/model/directory.h"
#include "daemon/model/saved_files.h"
#include "daemon/model/saved_version.h"
#include "daemon/model/version_directories.h"
#include "proto/core/span.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define HIDDEN_TEXT (INF_LIMIT_MODEL_NAME + 8)

// --- removing ---

// Removes a file or a directory with all that is in it. Links are removed, not followed.
static void remove_entry(int directory_fd, const char *name, uint32_t depth) INF_MAY_BLOCK
{
    int fd = depth < INF_SAVED_FILES_DEPTH + 4
                 ? openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                 : -1;
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        if (fd >= 0)
            close(fd);
        (void)unlinkat(directory_fd, name, 0);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(fd, entry->d_name, depth + 1);
    closedir(directory);
    (void)unlinkat(directory_fd, name, AT_REMOVEDIR);
}

// --- copying ---

struct copying {
    const struct inf_repository_save_options *options;
    uint8_t *piece;               // PIECE_BYTES
    struct inf_saved_files files; // what was copied into the directory of the version
    struct inf_error *err;
};

static enum inf_code fail_writing(const struct copying *copying, const char *what)
{
    return inf_saved_version_fail(copying->err, copying->options->name, what, "saved");
}

// Adds a file or a directory of the version to the list.
static enum inf_code list_entry(struct copying *copying, const char *folder, const char *name)
{
    enum inf_code code = inf_saved_files_add(&copying->files, folder, name, copying->err);
    return code == INF_OK
               ? INF_OK
               : inf_error_prefix(copying->err, code, "model '%s'", copying->options->name);
}

// Writes a list of what was copied into a directory, and makes the directory durable.
static enum inf_code finish_directory(const struct copying *copying,
                                      const struct inf_saved_files *files, int fd,
                                      const char *name) INF_MAY_BLOCK
{
    if (inf_saved_files_write(files, fd, NULL) != INF_OK || fsync(fd) != 0)
        return fail_writing(copying, name);
    return INF_OK;
}

static enum inf_code make_directory(const struct copying *copying, int parent_fd, const char *name,
                                    int *out_fd) INF_MAY_BLOCK
{
    if (mkdirat(parent_fd, name, 0755) != 0)
        return fail_writing(copying, name);
    *out_fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *out_fd >= 0 ? INF_OK : fail_writing(copying, name);
}

// Copies `size` bytes of an open file to the new file `name` of a directory.
static enum inf_code copy_bytes(const struct copying *copying, int from_fd, uint64_t size,
                                int to_fd, const char *name) INF_MAY_BLOCK
{
    enum inf_code code = INF_OK;
    int fd = openat(to_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return fail_writing(copying, name);
    for (uint64_t at = 0; at < size && code == INF_OK; at += PIECE_BYTES) {
        size_t piece = (size_t)INF_MIN(size - at, PIECE_BYTES);
        code = inf_is_cancelled(copying->options->cancelled)
                   ? inf_fail(copying->err, INF_CANCELLED, "model '%s': not saved",
                              copying->options->name)
                   : inf_file_read(from_fd, name, at, copying->piece, piece, copying->err);
        if (code == INF_OK)
            code = inf_file_write_all(fd, copying->piece, piece) ? INF_OK
                                                                 : fail_writing(copying, name);
    }
    if (code == INF_OK && fsync(fd) != 0)
        code = fail_writing(copying, name);
    close(fd);
    return code;
}

static enum inf_code copy_file(const struct copying *copying, int from_fd, const char *name,
                               int to_fd, const char *new_name) INF_MAY_BLOCK
{
    uint64_t size;
    int fd;
    INF_TRY(inf_file_open_beneath(&fd, &size, from_fd, name, copying->err));
    enum inf_code code = copy_bytes(copying, fd, size, to_fd, new_name);
    close(fd);
    return code;
}

// A directory that is copied.
struct copied_directory {
    struct copying *copying;
    int to_fd;
    uint32_t depth;
    const char *folder; // its path in the directory of the version; "": that directory
};

static enum inf_code copy_directory(const struct copied_directory *directory,
                                    int from_fd) INF_MAY_BLOCK;

// Copies the directory `name` of a directory.
static enum inf_code copy_inner_directory(const struct copied_directory *directory, int from_fd,
                                          const char *name) INF_MAY_BLOCK
{
    struct copying *copying = directory->copying;
    char folder[(INF_SAVED_FILES_DEPTH + 1) * 256];
    struct copied_directory inner = {
        .copying = copying, .to_fd = -1, .depth = directory->depth + 1, .folder = folder};
    snprintf(folder, sizeof folder, "%s%s%s", directory->folder,
             directory->folder[0] != '\0' ? "/" : "", name);
    enum inf_code code = make_directory(copying, directory->to_fd, name, &inner.to_fd);
    if (code == INF_OK)
        code = copy_directory(&inner, from_fd);
    if (code == INF_OK)
        code = list_entry(copying, directory->folder, name);
    if (inner.to_fd >= 0)
        close(inner.to_fd);
    return code;
}

// Copies a file or a directory. Plans are left out: the daemon would own the copy, and would trust
// what a client made.
static enum inf_code copy_entry(void *context, int from_fd, const char *name,
                                struct inf_error *err) INF_MAY_BLOCK
{
    const struct copied_directory *directory = context;
    struct copying *copying = directory->copying;
    struct stat status;
    int inner_fd;
    if (inf_model_is_plan(name) ||
        (directory->depth == 0 && strcmp(name, INF_MODEL_CONFIG_FILE) == 0))
        return INF_OK;
    if (fstatat(from_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode)) {
        INF_TRY(list_entry(copying, directory->folder, name));
        return copy_file(copying, from_fd, name, directory->to_fd, name);
    }
    if (directory->depth == INF_SAVED_FILES_DEPTH)
        return inf_fail(err, INF_EXHAUSTED, "model '%s': too many directories",
                        copying->options->name);
    inner_fd = inf_model_directory_open(from_fd, name);
    if (inner_fd < 0)
        return inf_error_prefix(err, inf_model_refuse_unreadable(errno, err), "directory '%.100s'",
                                name);
    enum inf_code code = copy_inner_directory(directory, inner_fd, name);
    close(inner_fd);
    return code;
}

// Copies what is in a directory, without hidden entries. The descriptors stay open.
static enum inf_code copy_directory(const struct copied_directory *directory, int from_fd)
{
    struct copied_directory copied = *directory;
    const struct copying *copying = directory->copying;
    INF_TRY(inf_model_directory_visit(from_fd, "of the model", &copied, copy_entry, copying->err));
    return fsync(directory->to_fd) == 0 ? INF_OK : fail_writing(copying, "directory");
}

// Copies the settings of a new model to its directory, and lists them there.
static enum inf_code copy_settings(const struct copying *copying,
                                   const struct inf_model_location *source, int to_fd) INF_MAY_BLOCK
{
    struct inf_saved_files files = {0};
    struct stat status;
    enum inf_code code = INF_OK;
    if (source->config_fd >= 0 && fstat(source->config_fd, &status) == 0) {
        code = copy_bytes(copying, source->config_fd, (uint64_t)status.st_size, to_fd,
                          INF_MODEL_CONFIG_FILE);
        if (code == INF_OK)
            code = inf_saved_files_add(&files, "", INF_MODEL_CONFIG_FILE, copying->err);
    }
    if (code == INF_OK)
        code = finish_directory(copying, &files, to_fd, copying->options->name);
    inf_saved_files_fini(&files);
    return code;
}

// Copies the model to the open directory of its version.
static enum inf_code copy_model(struct copying *copying, const struct inf_model_location *source,
                                int fd) INF_MAY_BLOCK
{
    const char *suffix = strrchr(source->file, '.');
    const struct copied_directory directory = {.copying = copying, .to_fd = fd, .folder = ""};
    char file[32];
    if (source->has_directory)
        return copy_directory(&directory, source->directory_fd);
    // The name by which the repository recognises the format.
    snprintf(file, sizeof file, "model%.10s", suffix != NULL ? suffix : "");
    INF_TRY(list_entry(copying, "", file));
    return copy_file(copying, source->directory_fd, source->file, fd, file);
}

// Copies the files of one version into the new directory `name`.
static enum inf_code copy_version(struct copying *copying, const struct inf_model_location *source,
                                  int parent_fd, const char *name) INF_MAY_BLOCK
{
    const char *ready = copying->options->ready_file;
    struct stat status;
    int fd = -1;
    enum inf_code code = make_directory(copying, parent_fd, name, &fd);
    if (code == INF_OK)
        code = copy_model(copying, source, fd);
    if (code == INF_OK && ready[0] != '\0' && fstatat(fd, ready, &status, 0) != 0) {
        code = list_entry(copying, "", ready);
        if (code == INF_OK)
            code = copy_bytes(copying, -1, 0, fd, ready);
    }
    if (code == INF_OK)
        code = finish_directory(copying, &copying->files, fd, name);
    if (fd >= 0)
        close(fd);
    return code;
}

// --- finding a place ---

// What is in the directory of a model.
struct found_versions {
    uint64_t highest; // of its directories of versions; 0: there is none
    bool plain;       // it has files, or directories of other names
};

static enum inf_code visit_entry(void *context, int directory_fd, const char *name,
                                 struct inf_error *err)
{
    (void)directory_fd;
    (void)err;
    struct found_versions *found = context;
    uint64_t number;
    if (inf_version_parse(name, &number))
        found->highest = INF_MAX(found->highest, number);
    else
        found->plain |= strcmp(name, INF_MODEL_CONFIG_FILE) != 0;
    return INF_OK;
}

// Sets *out_highest to the highest version in the directory of a model. A model without directories
// of versions has version 1.
static enum inf_code find_highest(int model_fd, uint64_t *out_highest,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    struct found_versions found = {.highest = 0};
    INF_TRY(inf_model_directory_visit(model_fd, "of the model", &found, visit_entry, err));
    *out_highest = found.highest > 0 || !found.plain ? found.highest : 1;
    return INF_OK;
}

// Refuses a model whose name stands for a file of the repository.
static enum inf_code check_name(const struct inf_repository_save *save, struct inf_error *err)
{
    static const char *const suffixes[] = {".json", ".onnx", ".tflite"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(suffixes); i++) {
        char file[INF_LIMIT_MODEL_NAME + 8];
        struct stat status;
        snprintf(file, sizeof file, "%s%s", save->name, suffixes[i]);
        if (fstatat(save->repository_fd, file, &status, AT_SYMLINK_NOFOLLOW) == 0)
            return inf_fail(err, INF_INVALID,
                            "model '%s': the repository has it as the file '%s', which is not "
                            "replaced; remove it first, or choose another name",
                            save->name, file);
    }
    return INF_OK;
}

static enum inf_code save_new(struct inf_repository_save *save, struct copying *copying,
                              const struct inf_model_location *source) INF_MAY_BLOCK
{
    char hidden[HIDDEN_TEXT];
    int fd = -1;
    INF_TRY(check_name(save, copying->err));
    snprintf(hidden, sizeof hidden, ".%s.new", save->name);
    snprintf(save->version, sizeof save->version, "1");
    remove_entry(save->repository_fd, hidden, 0);
    enum inf_code code = make_directory(copying, save->repository_fd, hidden, &fd);
    if (code == INF_OK)
        code = copy_settings(copying, source, fd);
    if (code == INF_OK)
        code = copy_version(copying, source, fd, save->version);
    if (code == INF_OK &&
        (fsync(fd) != 0 || renameat2(save->repository_fd, hidden, save->repository_fd, save->name,
                                     RENAME_NOREPLACE) != 0))
        code = fail_writing(copying, save->name);
    if (fd >= 0)
        close(fd);
    if (code != INF_OK)
        remove_entry(save->repository_fd, hidden, 0);
    else
        (void)fsync(save->repository_fd);
    return code;
}

static enum inf_code save_version(struct inf_repository_save *save, struct copying *copying,
                                  const struct inf_model_location *source) INF_MAY_BLOCK
{
    uint64_t highest;
    INF_TRY(find_highest(save->model_fd, &highest, copying->err));
    if (highest + 1 >= UINT64_C(1000000000000000000))
        return inf_fail(copying->err, INF_EXHAUSTED, "model '%s': there is no higher version",
                        save->name);
    snprintf(save->version, sizeof save->version, "%llu", (unsigned long long)highest + 1);
    remove_entry(save->model_fd, ".new", 0);
    enum inf_code code = copy_version(copying, source, save->model_fd, ".new");
    if (code == INF_OK &&
        renameat2(save->model_fd, ".new", save->model_fd, save->version, RENAME_NOREPLACE) != 0)
        code = fail_writing(copying, save->version);
    if (code != INF_OK)
        remove_entry(save->model_fd, ".new", 0);
    else
        (void)fsync(save->model_fd);
    return code;
}

enum inf_code inf_repository_save(struct inf_repository_save *save,
                                  const struct inf_repository_save_options *options,
                                  const struct inf_model_location *source, struct inf_error *err)
{
    struct copying copying = {.options = options, .piece = malloc(PIECE_BYTES), .err = err};
    enum inf_code code = INF_OK;
    *save = (struct inf_repository_save){.repository_fd = -1, .model_fd = -1};
    snprintf(save->name, sizeof save->name, "%s", options->name);
    if (copying.piece == NULL)
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to copy files");
    if (code == INF_OK)
        code = options->repository != NULL
                   ? inf_directory_open(&save->repository_fd, options->repository, err)
                   : inf_fail(err, INF_NOT_FOUND, "model '%s': there is no repository to save it",
                              options->name);
    if (code == INF_OK) {
        save->model_fd = inf_model_directory_open(save->repository_fd, save->name);
        code = save->model_fd >= 0 ? save_version(save, &copying, source)
                                   : save_new(save, &copying, source);
    }
    free(copying.piece);
    inf_saved_files_fini(&copying.files);
    if (code != INF_OK)
        inf_repository_save_fini(save);
    return code;
}

void inf_repository_save_undo(struct inf_repository_save *save)
{
    struct inf_saved_version_rest rest;
    if (save->repository_fd >= 0)
        (void)!inf_saved_version_remove(save->repository_fd, save->name, save->version, &rest,
                                        NULL);
    inf_repository_save_fini(save);
}

void inf_repository_save_fini(struct inf_repository_save *save)
{
    if (save->repository_fd >= 0)
        close(save->repository_fd);
    if (save->model_fd >= 0)
        close(save->model_fd);
    save->repository_fd = save->model_fd = -1;
}
