// SPDX-License-Identifier: Apache-2.0
// Keys of plans, and plans beside models.
//
// The key of a plan beside a model is a hash of contents. If the importer read the model's file
// only, the hash covers this file without its name, so that the model may be renamed and may get
// neighbours. Otherwise it covers all files of the directory with their names, except the settings,
// plans, hidden files and the folder of the check beside the model's file, and empty files. A
// reader does not know which of the two a plan has; it tries both.
#include "daemon/load/load_plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/checksum.h"
#include "backends/storage/file.h"
#include "backends/storage/record.h"
#include "daemon/model/directory.h"
#include "proto/core/span.h"

#define PIECE_BYTES   ((size_t)1 << 20)
#define FOLDERS_DEPTH 4u
// The most entries that are hashed, so that a huge directory cannot occupy the loader.
#define ENTRIES_MAX 4096u

// --- the key of a plan in the cache ---

uint64_t inf_load_plan_key(const struct inf_load_plan_question *question)
{
    const struct inf_load_options *options = question->options;
    const struct inf_model_config *config = question->config;
    if (options->plans == NULL || !inf_plan_cache_is_open(options->plans))
        return 0;
    uint64_t hash = inf_record_hash(INF_RECORD_HASH_INIT, &question->location->stamp,
                                    sizeof question->location->stamp);
    hash = inf_record_hash_text(hash, question->location->file);
    hash = inf_record_hash_text(hash, config->signature);
    hash = inf_record_hash_text(hash, config->sequence_lengths);
    // Executables of a plan were run if the load that kept it warmed up.
    hash = inf_record_hash(hash, &config->warmup, sizeof config->warmup);
    for (uint32_t i = 0; i < options->devices->count; i++)
        hash = inf_record_hash_text(hash, inf_device_info(options->devices->devices[i])->name);
    return hash | 1;
}

// --- the key of a plan beside a model ---

// What a hash of contents covers.
struct contents {
    uint64_t sum; // of the hashes of files, because the order of entries is not fixed
    uint32_t entries;
    uint8_t *piece; // PIECE_BYTES
    struct inf_error *err;
};

// Adds the contents of a file. `label` is hashed too.
static enum inf_code add_file(struct contents *contents, int directory_fd, const char *name,
                              const char *label) INF_MAY_BLOCK
{
    uint64_t size, hash = inf_record_hash_text(INF_RECORD_HASH_INIT, label);
    int fd;
    enum inf_code code = inf_file_open_beneath(&fd, &size, directory_fd, name, contents->err);
    if (code != INF_OK)
        return code;
    if (size == 0) {
        close(fd);
        return INF_OK;
    }
    hash = inf_record_hash(hash, &size, sizeof size);
    for (uint64_t at = 0; at < size && code == INF_OK; at += PIECE_BYTES) {
        size_t piece = (size_t)INF_MIN(size - at, PIECE_BYTES);
        code = inf_file_read(fd, name, at, contents->piece, piece, contents->err);
        uint64_t sum = inf_checksum(contents->piece, piece);
        hash = inf_record_hash(hash, &sum, sizeof sum);
    }
    close(fd);
    contents->sum += hash;
    return code;
}

static bool is_import_file(const char *name, bool is_top)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !(is_top && (inf_model_is_plan(name) || strcmp(name, INF_MODEL_CONFIG_FILE) == 0 ||
                        strcmp(name, INF_MODEL_CHECK_FOLDER) == 0));
}

static enum inf_code add_directory(struct contents *contents, int fd, const char *label,
                                   uint32_t depth) INF_MAY_BLOCK;

static enum inf_code add_entry(struct contents *contents, int directory_fd, const char *name,
                               const char *label, uint32_t depth) INF_MAY_BLOCK
{
    struct stat status;
    if (++contents->entries > ENTRIES_MAX)
        return inf_fail(contents->err, INF_EXHAUSTED, "more than %u files beside the model",
                        ENTRIES_MAX);
    if (fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return INF_OK;
    if (S_ISREG(status.st_mode) && name[0] == '.' && depth == 0)
        return INF_OK;
    if (S_ISREG(status.st_mode))
        return add_file(contents, directory_fd, name, label);
    if (!S_ISDIR(status.st_mode))
        return INF_OK;
    if (depth == FOLDERS_DEPTH)
        return inf_fail(contents->err, INF_EXHAUSTED,
                        "directories beside the model are more than %u deep", FOLDERS_DEPTH);
    int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 ? add_directory(contents, fd, label, depth + 1) : INF_OK;
}

// Adds the files of a directory, and closes it. `label` is its path from the model's directory.
static enum inf_code add_directory(struct contents *contents, int fd, const char *label,
                                   uint32_t depth)
{
    enum inf_code code = INF_OK;
    const struct dirent *entry;
    DIR *directory = fdopendir(fd);
    if (directory == NULL) {
        close(fd);
        return inf_fail(contents->err, INF_EXHAUSTED, "no memory to list a directory");
    }
    while (code == INF_OK && (entry = readdir(directory)) != NULL) {
        char path[1024];
        snprintf(path, sizeof path, "%.700s/%s", label, entry->d_name);
        if (is_import_file(entry->d_name, depth == 0))
            code = add_entry(contents, fd, entry->d_name, path, depth);
    }
    closedir(directory);
    return code;
}

// Sets *out_key to the key of a plan of the model's file, or of its whole directory.
static enum inf_code hash_contents(uint64_t *out_key, const struct inf_model_location *location,
                                   const struct inf_model_config *config, bool whole_directory,
                                   struct inf_error *err) INF_MAY_BLOCK
{
    struct contents contents = {.piece = malloc(PIECE_BYTES), .err = err};
    enum inf_code code;
    if (contents.piece == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a plan");
    if (whole_directory) {
        int fd = openat(location->directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        code = fd >= 0 ? add_directory(&contents, fd, "", 0)
                       : inf_fail(err, INF_DENIED, "the model's directory cannot be read");
    } else {
        code = add_file(&contents, location->directory_fd, location->file, "");
    }
    free(contents.piece);
    uint64_t hash = inf_record_hash(INF_RECORD_HASH_INIT, &whole_directory, sizeof whole_directory);
    hash = inf_record_hash(hash, &contents.sum, sizeof contents.sum);
    hash = inf_record_hash_text(hash, config->signature);
    *out_key = inf_record_hash_text(hash, config->sequence_lengths) | 1;
    return code;
}

static enum inf_code check_contents(uint64_t key, const struct inf_load_plan_question *question,
                                    struct inf_error *err) INF_MAY_BLOCK
{
    for (int whole = 0; whole <= question->location->has_directory; whole++) {
        uint64_t present;
        INF_TRY(hash_contents(&present, question->location, question->config, whole, err));
        if (present == key)
            return INF_OK;
    }
    return inf_fail(err, INF_INVALID, "it was made from other files or settings");
}

// --- finding and writing ---

void inf_load_plan_name(char name[INF_LOAD_PLAN_NAME], const char *file)
{
    const char *dot = strrchr(file, '.');
    size_t length = dot != NULL && dot != file ? (size_t)(dot - file) : strlen(file);
    snprintf(name, INF_LOAD_PLAN_NAME, "%.*s" INF_MODEL_PLAN_SUFFIX,
             (int)INF_MIN(length, (size_t)250), file);
}

static bool find_ahead(struct inf_kept_plan *kept,
                       const struct inf_load_plan_question *question) INF_MAY_BLOCK
{
    const struct inf_load_options *options = question->options;
    const struct inf_plan_id id = {.key = 0, .build = options->build};
    char name[INF_LOAD_PLAN_NAME];
    struct inf_error err = {0};
    struct stat status;
    inf_load_plan_name(name, question->location->file);
    if (fstatat(question->location->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    enum inf_code code = inf_kept_plan_read(kept, question->location->directory_fd, name, &id,
                                            options->devices, &err);
    if (code == INF_OK) {
        code = check_contents(kept->saved.key, question, &err);
        // The contents of the files are those on the machine that made the plan, but their
        // identities and times differ, so the fingerprints are not compared.
        if (code == INF_OK)
            code =
                inf_read_files_decode(question->files, kept->files, kept->files_bytes, false, &err);
        if (code != INF_OK)
            inf_kept_plan_fini(kept);
    }
    if (code == INF_OK)
        inf_log(options->log, INF_LOG_INFO, "plan beside the model used name=%s file=%s",
                question->name, name);
    else
        inf_log(options->log, INF_LOG_NOTICE,
                "plan beside the model not used, the model is read instead name=%s file=%s "
                "reason=\"%s\"",
                question->name, name, err.text);
    return code == INF_OK;
}

static bool find_kept(struct inf_kept_plan *kept, uint64_t key,
                      const struct inf_load_plan_question *question) INF_MAY_BLOCK
{
    const struct inf_load_options *options = question->options;
    struct inf_error err = {0};
    if (key == 0 || !inf_kept_plan_find(kept, options->plans, key, options->devices, options->log))
        return false;
    if (inf_read_files_decode(question->files, kept->files, kept->files_bytes, true, &err) ==
        INF_OK)
        return true;
    inf_log(options->log, INF_LOG_INFO,
            "plan is of other files, the model is read instead name=%s reason=\"%s\"",
            question->name, err.text);
    inf_kept_plan_fini(kept);
    return false;
}

bool inf_load_plan_find(struct inf_kept_plan *kept, bool *ahead, uint64_t key,
                        const struct inf_load_plan_question *question)
{
    *ahead = false;
    if (find_kept(kept, key, question))
        return true;
    *ahead = question->in_repository && find_ahead(kept, question);
    return *ahead;
}

enum inf_code inf_load_plan_write(struct inf_served *served,
                                  const struct inf_model_location *location, const char *build,
                                  int directory_fd, const char *name, struct inf_error *err)
{
    struct inf_plan_id id = {.build = build};
    if (!served->reads_one_file && !location->has_directory)
        return inf_fail(err, INF_UNSUPPORTED,
                        "'%s' reads other files too; wanted the directory with all of them",
                        location->file);
    INF_TRY(hash_contents(&id.key, location, &served->config, !served->reads_one_file, err));
    return inf_kept_plan_write(served, directory_fd, name, &id, err);
}
