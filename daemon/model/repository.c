// SPDX-License-Identifier: Apache-2.0
// Looks models up in directories. Files are opened relative to directory descriptors and without
// following links, so that a model cannot refer to files outside of the repository.
#include "daemon/model/repository.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "daemon/model/directory.h"
#include "daemon/model/fingerprint.h"
#include "daemon/model/version_directories.h"
#include "proto/wire/message.h"

#define CONFIG_SUFFIX ".conf"
// Number of bytes at the beginning of a JSON file in which MODEL_KEY is searched. A file with
// weights has them after the key, so the search need not read them.
#define GLANCE_BYTES (64u << 10)
#define MODEL_KEY    "\"modelTopology\""

// The file formats of models, with the names by which they are recognised.
static const struct {
    const char *name; // standard name; such a file takes precedence in a directory
    const char *suffix;
    // True: a file is a model only if its beginning contains MODEL_KEY, because other JSON files
    // have the same suffix.
    bool glance;
} kinds[] = {{"model.json", ".json", true},
             {"model.onnx", ".onnx", false},
             {"model.tflite", ".tflite", false}};
#define KINDS INF_ARRAY_LENGTH(kinds)
// Length of the longest suffix.
#define SUFFIX_CHARS_MAX 7
// The names of kinds[], for messages.
#define WANTED_NAMES "model.json, model.onnx or model.tflite"

// --- parsing names of files ---

// Returns the index in kinds[] of the format that a file name stands for; KINDS if it stands for
// none.
static size_t find_kind(const char *name)
{
    size_t length = strlen(name);
    for (size_t kind = 0; kind < KINDS; kind++) {
        size_t suffix = strlen(kinds[kind].suffix);
        if (length > suffix && strcmp(name + length - suffix, kinds[kind].suffix) == 0)
            return kind;
    }
    return KINDS;
}

// --- recognising model files ---

// Returns true if the beginning of the file contains MODEL_KEY.
static bool holds_model(int directory_fd, const char *name)
{
    int fd;
    uint64_t size;
    if (inf_file_open_beneath(&fd, &size, directory_fd, name, NULL) != INF_OK)
        return false;
    size_t wanted = (size_t)INF_MIN(size, (uint64_t)GLANCE_BYTES);
    char *text = malloc(wanted + 1);
    bool found = text != NULL && inf_file_read(fd, name, 0, text, wanted, NULL) == INF_OK &&
                 memmem(text, wanted, MODEL_KEY, strlen(MODEL_KEY)) != NULL;
    free(text);
    close(fd);
    return found;
}

// Returns the reason why an entry of a directory cannot be used, although its name looks like a
// model or like a version directory. Returns NULL if the entry can be used or does not look like a
// model.
static const char *explain_entry(int directory_fd, const char *name)
{
    struct stat status;
    uint64_t number;
    if ((find_kind(name) == KINDS && !inf_version_parse(name, &number)) ||
        fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return NULL;
    if (S_ISLNK(status.st_mode))
        return "a link, which is not followed";
    if (S_ISREG(status.st_mode) && faccessat(directory_fd, name, R_OK, AT_EACCESS) != 0)
        return strerror(errno);
    return NULL;
}

// Returns true if a file is a model, by its name and, if that is not enough, by its content.
static bool is_model_file(int directory_fd, const char *name)
{
    struct stat status;
    size_t kind = find_kind(name);
    if (kind == KINDS || fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode))
        return false;
    return !kinds[kind].glance || holds_model(directory_fd, name);
}

// Opens the settings file `name` in `directory_fd`, if it exists.
static enum inf_code take_config(struct inf_model_location *location, int directory_fd,
                                 const char *name, struct inf_error *err)
{
    uint64_t size;
    struct inf_error why = {0};
    snprintf(location->config_file, sizeof location->config_file, "%s", name);
    // The stamp is taken first, so that it is never newer than what is read.
    location->config_stamp = inf_fingerprint_entry(directory_fd, name);
    enum inf_code code =
        inf_file_open_beneath(&location->config_fd, &size, directory_fd, name, &why);
    if (code == INF_OK)
        return INF_OK;
    location->config_fd = -1;
    location->config_stamp = 0;
    if (code == INF_NOT_FOUND)
        return INF_OK;
    if (err != NULL)
        *err = why;
    return code;
}

// Opens the settings file of the model file `file`: NAME.conf for NAME.json or NAME.onnx.
static enum inf_code take_sibling_config(struct inf_model_location *location, const char *file,
                                         struct inf_error *err)
{
    char name[sizeof location->file + sizeof CONFIG_SUFFIX];
    const char *dot = strrchr(file, '.');
    int length = dot != NULL && dot != file ? (int)(dot - file) : (int)strlen(file);
    snprintf(name, sizeof name, "%.*s" CONFIG_SUFFIX, length, file);
    return take_config(location, location->directory_fd, name, err);
}

// Records in `location` that the model is the file `name` in location->directory_fd.
static enum inf_code take_file(struct inf_model_location *location, const char *name,
                               const char *version, struct inf_error *err)
{
    size_t length = strlen(name);
    if (length >= sizeof location->file)
        return inf_fail(err, INF_INVALID, "file '%.64s...': the name is longer than %zu characters",
                        name, sizeof location->file - 1);
    memcpy(location->file, name, length + 1);
    snprintf(location->version, sizeof location->version, "%s", version);
    location->stamp = inf_fingerprint_entry(location->directory_fd, name);
    return INF_OK;
}

// The model files that a directory contains.
struct candidates {
    uint32_t count;
    char names[2][256]; // names of the first two candidates
    char unusable[256]; // an entry that looks like a model and cannot be used; "": none
    const char *why;    // why the file `unusable` cannot be used
};

static enum inf_code visit_candidate(void *context, int directory_fd, const char *name,
                                     struct inf_error *err)
{
    (void)err;
    struct candidates *found = context;
    if (!is_model_file(directory_fd, name)) {
        const char *why = explain_entry(directory_fd, name);
        if (why != NULL) {
            snprintf(found->unusable, sizeof found->unusable, "%s", name);
            found->why = why;
        }
        return INF_OK;
    }
    if (found->count < INF_ARRAY_LENGTH(found->names))
        snprintf(found->names[found->count], sizeof found->names[0], "%s", name);
    found->count++;
    return INF_OK;
}

// Returns true if the errno `cause` says that there is no such file or directory, or that a link or
// a file is where a directory is wanted.
static bool is_absent(int cause)
{
    return cause == ENOENT || cause == ENOTDIR || cause == ELOOP;
}

// Finds which of the files `names`, one per model format, exists in the directory. Sets *out_name
// to NULL if none does. Fails if there are two.
static enum inf_code find_named(int directory_fd, const char *const names[KINDS],
                                const char **out_name, struct inf_error *err)
{
    struct stat status;
    *out_name = NULL;
    for (size_t i = 0; i < KINDS; i++) {
        int failed = fstatat(directory_fd, names[i], &status, AT_SYMLINK_NOFOLLOW);
        if (failed && !is_absent(errno))
            return inf_error_prefix(err, inf_model_refuse_unreadable(errno, err), "file '%s'",
                                    names[i]);
        if (failed || S_ISDIR(status.st_mode))
            continue;
        if (*out_name != NULL)
            return inf_fail(err, INF_INVALID, "files '%s' and '%s': wanted one of them", *out_name,
                            names[i]);
        *out_name = names[i];
    }
    return INF_OK;
}

// Finds the model file in location->directory_fd, which is the directory of the model or of a
// version of it.
static enum inf_code find_file(struct inf_model_location *location, const char *version,
                               const char *label, struct inf_error *err)
{
    const char *named;
    const char *const names[KINDS] = {kinds[0].name, kinds[1].name, kinds[2].name};
    location->has_directory = true;
    enum inf_code code = find_named(location->directory_fd, names, &named, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "directory '%s'", label);
    if (named != NULL)
        return take_file(location, named, version, err);
    struct candidates found = {0};
    INF_TRY(inf_model_directory_visit(location->directory_fd, label, &found, visit_candidate, err));
    if (found.count == 0 && found.why != NULL)
        return inf_fail(err, INF_INVALID,
                        "directory '%s': holds no model file, wanted " WANTED_NAMES
                        "; '%.64s' is not used: %s",
                        label, found.unusable, found.why);
    if (found.count == 0)
        return inf_fail(err, INF_INVALID,
                        "directory '%s': holds no model file, wanted " WANTED_NAMES, label);
    if (found.count > 1)
        return inf_fail(
            err, INF_INVALID,
            "directory '%s': holds %u model files ('%.48s', '%.48s'), none called " WANTED_NAMES,
            label, found.count, found.names[0], found.names[1]);
    return take_file(location, found.names[0], version, err);
}

// --- choosing the version of a model ---

static enum inf_code refuse_incomplete(const char *label, const struct inf_model_wanted *wanted,
                                       struct inf_error *err)
{
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                           "model '%.64s': incomplete, the file '%.64s' is not there yet", label,
                           wanted->ready_file);
}

static enum inf_code refuse_version(const char *label, const char *version, struct inf_error *err)
{
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                           "model '%.64s' has no version '%.24s' in the repository", label,
                           version);
}

// Finds the model in location->directory_fd, or in the directory of the wanted version.
static enum inf_code find_version(struct inf_model_location *location, const char *label,
                                  const struct inf_model_wanted *wanted, struct inf_error *err)
{
    struct inf_version_found highest;
    const char *version = wanted->version;
    INF_TRY(take_config(location, location->directory_fd, INF_MODEL_CONFIG_FILE, err));
    INF_TRY(inf_version_find_highest(&highest, location->directory_fd, label, wanted, err));
    if (!highest.found &&
        (highest.incomplete || inf_version_is_incomplete(location->directory_fd, ".", wanted)))
        return refuse_incomplete(label, wanted, err);
    if (!highest.found && version[0] != '\0' && strcmp(version, "1") != 0)
        return refuse_version(label, version, err);
    if (!highest.found)
        return find_file(location, "1", label, err);
    int fd = inf_model_directory_open(location->directory_fd, highest.name);
    if (fd < 0)
        return inf_error_prefix(err, inf_model_refuse_unreadable(errno, err), "directory '%s/%s'",
                                label, highest.name);
    location->config_directory_fd = location->directory_fd;
    location->directory_fd = fd;
    char version_label[2 * INF_LIMIT_MODEL_NAME + INF_VERSION_TEXT];
    snprintf(version_label, sizeof version_label, "%.*s/%s", 2 * (int)INF_LIMIT_MODEL_NAME - 1,
             label, highest.name);
    return find_file(location, highest.name, version_label, err);
}

enum inf_code inf_version_list_read(struct inf_version_list *list, int *out_config_fd,
                                    const char *repository, const char *name,
                                    const char *ready_file, struct inf_error *err)
{
    int repository_fd;
    struct inf_model_location location = INF_MODEL_LOCATION_NONE;
    *list = (struct inf_version_list){0};
    INF_TRY(inf_directory_open(&repository_fd, repository, err));
    int fd = inf_model_directory_open(repository_fd, name);
    close(repository_fd);
    if (fd < 0)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%s' has no directory in the repository", name);
    enum inf_code code = inf_version_list_fill(list, fd, name, ready_file, err);
    if (code == INF_OK)
        code = take_config(&location, fd, INF_MODEL_CONFIG_FILE, err);
    *out_config_fd = location.config_fd;
    close(fd);
    return code;
}

static const struct inf_model_wanted any_version = {.version = "", .ready_file = ""};

static enum inf_code find_in_directory(struct inf_model_location *location, const char *label,
                                       struct inf_error *err)
{
    return find_version(location, label, &any_version, err);
}

// --- finding a model by name and by path ---

// Fails because the repository has no model called `name`. The error text names an entry with a
// similar name that is no model, if there is one.
static enum inf_code refuse_absent(int repository_fd, const char *name, struct inf_error *err)
{
    struct stat status;
    bool present = fstatat(repository_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    if (present && !S_ISDIR(status.st_mode))
        return inf_fail_reason(
            err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
            "model '%s' is not in the repository: '%s' is %s; wanted a "
            "directory",
            name, name, S_ISLNK(status.st_mode) ? "a link, which is not followed" : "a file");
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                           "model '%s' is not in the repository: wanted a directory '%s', or the "
                           "file %s.json, %s.onnx or %s.tflite",
                           name, name, name, name, name);
}

enum inf_code inf_model_locate(struct inf_model_location *location, const char *repository,
                               const char *name, struct inf_error *err)
{
    return inf_model_locate_version(location, repository, name, &any_version, err);
}

enum inf_code inf_model_locate_version(struct inf_model_location *location, const char *repository,
                                       const char *name, const struct inf_model_wanted *wanted,
                                       struct inf_error *err)
{
    *location = (struct inf_model_location)INF_MODEL_LOCATION_NONE;
    int repository_fd;
    INF_TRY(inf_directory_open(&repository_fd, repository, err));
    int fd = inf_model_directory_open(repository_fd, name);
    if (fd >= 0) {
        close(repository_fd);
        location->directory_fd = fd;
        return find_version(location, name, wanted, err);
    }
    location->directory_fd = repository_fd;
    if (!is_absent(errno))
        return inf_error_prefix(err, inf_model_refuse_unreadable(errno, err),
                                "directory '%s' in the repository", name);
    char files[KINDS][INF_LIMIT_MODEL_NAME + SUFFIX_CHARS_MAX + 1];
    for (size_t i = 0; i < KINDS; i++)
        snprintf(files[i], sizeof files[i], "%s%s", name, kinds[i].suffix);
    const char *named;
    const char *const names[KINDS] = {files[0], files[1], files[2]};
    enum inf_code code = find_named(repository_fd, names, &named, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "model '%s'", name);
    if (named == NULL)
        return refuse_absent(repository_fd, name, err);
    if (wanted->version[0] != '\0' && strcmp(wanted->version, "1") != 0)
        return refuse_version(name, wanted->version, err);
    INF_TRY(take_sibling_config(location, named, err));
    return take_file(location, named, "1", err);
}

// Finds the model at an absolute path that does not end with a slash. Modifies the path.
static enum inf_code locate_clean(struct inf_model_location *location, char *path,
                                  struct inf_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *slash = strrchr(path, '/');
    const char *name = slash + 1;
    if (fd >= 0) {
        location->directory_fd = fd;
        return find_in_directory(location, name, err);
    }
    if (errno == ENOENT)
        return inf_fail(err, INF_NOT_FOUND, "file '%.64s': does not exist", name);
    if (errno != ENOTDIR)
        return inf_error_prefix(err, inf_model_refuse_unreadable(errno, err), "file '%.64s'", name);
    *slash = '\0';
    INF_TRY(inf_directory_open(&location->directory_fd, path[0] != '\0' ? path : "/", err));
    INF_TRY(take_sibling_config(location, name, err));
    return take_file(location, name, "1", err);
}

enum inf_code inf_model_locate_path(struct inf_model_location *location, const char *path,
                                    struct inf_error *err)
{
    *location = (struct inf_model_location)INF_MODEL_LOCATION_NONE;
    char clean[4096];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    if (path[0] != '/' || length >= sizeof clean)
        return inf_fail(err, INF_INVALID,
                        "path of %zu characters: wanted an absolute one, of less than %zu", length,
                        sizeof clean);
    memcpy(clean, path, length);
    clean[length] = '\0';
    return locate_clean(location, clean, err);
}

enum inf_code inf_model_locate_at(struct inf_model_location *location, int directory_fd,
                                  const char *file, const char *name, struct inf_error *err)
{
    *location = (struct inf_model_location)INF_MODEL_LOCATION_NONE;
    // A directory that is listed must be readable; for a file in it, O_PATH is enough.
    int flags = O_DIRECTORY | O_CLOEXEC | (file[0] != '\0' ? O_PATH : O_RDONLY);
    location->directory_fd = openat(directory_fd, ".", flags);
    if (location->directory_fd < 0)
        return inf_error_prefix(err, inf_model_refuse_unreadable(errno, err),
                                "directory of model '%s'", name);
    if (file[0] == '\0')
        return find_in_directory(location, name, err);
    INF_TRY(take_sibling_config(location, file, err));
    return take_file(location, file, "1", err);
}

bool inf_model_location_config_changed(const struct inf_model_location *location)
{
    int fd =
        location->config_directory_fd >= 0 ? location->config_directory_fd : location->directory_fd;
    return location->config_stamp != inf_fingerprint_entry(fd, location->config_file);
}

uint64_t inf_model_location_bytes(const struct inf_model_location *location)
{
    struct stat status;
    uint64_t bytes = 0;
    if (!location->has_directory)
        return location->directory_fd >= 0 &&
                       fstatat(location->directory_fd, location->file, &status, 0) == 0 &&
                       S_ISREG(status.st_mode)
                   ? (uint64_t)status.st_size
                   : 0;
    int fd = openat(location->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode))
            bytes += (uint64_t)status.st_size;
    closedir(directory);
    return bytes;
}

void inf_model_location_fini(struct inf_model_location *location)
{
    if (location->directory_fd >= 0)
        close(location->directory_fd);
    if (location->config_directory_fd >= 0)
        close(location->config_directory_fd);
    if (location->config_fd >= 0)
        close(location->config_fd);
    location->directory_fd = location->config_directory_fd = location->config_fd = -1;
}

// --- listing the repository ---

// Adds the model name of an entry of the repository, if it is a model.
static enum inf_code visit_entry(void *context, int directory_fd, const char *entry,
                                 struct inf_error *err)
{
    struct inf_model_names *names = context;
    struct stat status;
    size_t length = strlen(entry);
    if (fstatat(directory_fd, entry, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return INF_OK;
    if (!S_ISDIR(status.st_mode)) {
        if (!is_model_file(directory_fd, entry))
            return INF_OK;
        length -= strlen(kinds[find_kind(entry)].suffix);
    }
    char name[INF_LIMIT_MODEL_NAME + 1];
    if (length >= sizeof name)
        return INF_OK;
    memcpy(name, entry, length);
    name[length] = '\0';
    if (!inf_model_name_valid(name))
        return INF_OK;
    if (names->count == INF_REPOSITORY_MODELS)
        return inf_fail(err, INF_EXHAUSTED, "the repository holds more than %d models",
                        INF_REPOSITORY_MODELS);
    snprintf(names->names[names->count++], sizeof names->names[0], "%s", name);
    return INF_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

// Sorts the names and removes duplicates: a directory and a file may have the same name.
static void sort_names(struct inf_model_names *names)
{
    qsort(names->names, names->count, sizeof names->names[0], compare_names);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->names[kept - 1], names->names[i]) == 0)
            continue;
        if (kept != i)
            memcpy(names->names[kept], names->names[i], sizeof names->names[0]);
        kept++;
    }
    names->count = kept;
}

enum inf_code inf_model_names_scan(struct inf_model_names **out_names, const char *repository,
                                   struct inf_error *err)
{
    int fd;
    INF_TRY(inf_directory_open(&fd, repository, err));
    struct inf_model_names *names = calloc(1, sizeof *names);
    enum inf_code code =
        names == NULL ? inf_fail(err, INF_EXHAUSTED, "no memory to list the repository")
                      : inf_model_directory_visit(fd, "of the repository", names, visit_entry, err);
    close(fd);
    if (code != INF_OK) {
        free(names);
        return code;
    }
    sort_names(names);
    *out_names = names;
    return INF_OK;
}
