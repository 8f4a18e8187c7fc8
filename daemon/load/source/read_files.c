// SPDX-License-Identifier: Apache-2.0
// A list of the files of a model with their fingerprints. The list has all entries of the model's
// directory before the load reads one of them, so that a change before a file is opened is found
// too. The importer reports the files that it opens. A model that is a single file shares its
// directory with other models, so a file of it is added to the list just before it is opened.
//
// The served model keeps the list. If the repository changes, the model is loaded again only if an
// entry of the list has changed. A plan contains the list too, because a load from a plan opens
// none of the files.
//
// If there are more files than one fingerprint covers, or no memory for an entry, the list is
// incomplete. Then any change in the model's directory counts.
#include "daemon/load/source/read_files.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/saved/saved_graph.h"
#include "daemon/model/directory.h"
#include "daemon/model/fingerprint.h"

struct entry {
    char *name;
    uint64_t fingerprint; // 0: did not exist
    bool is_read;
};

struct inf_read_files {
    _Atomic uint32_t references;
    const struct inf_model_location *location; // borrowed; NULL: the list is closed
    // Copies of the members of the location.
    char file[INF_READ_FILES_NAME];
    char version[INF_VERSION_TEXT];
    bool has_directory;
    uint64_t all; // fingerprint of all files that the load can read, for an incomplete list
    struct entry *entries;
    uint32_t count, capacity;
    uint32_t last;      // index of the entry noted last: many weights may be in one file
    uint32_t left;      // files that the fingerprints can still cover
    bool is_incomplete; // an entry is missing in the list
};

// Returns NULL if there is no memory.
static struct entry *add_entry(struct inf_read_files *files, const char *name, uint64_t fingerprint)
{
    if (files->count == files->capacity) {
        uint32_t capacity = files->capacity * 2 + 16;
        struct entry *grown = realloc(files->entries, capacity * sizeof *grown);
        if (grown == NULL)
            return NULL;
        files->entries = grown;
        files->capacity = capacity;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return NULL;
    struct entry *entry = &files->entries[files->count++];
    *entry = (struct entry){.name = copy, .fingerprint = fingerprint};
    return entry;
}

// Adds an entry of a directory with its present fingerprint. Returns false if there is no memory.
static bool list_entry(struct inf_read_files *files, int directory_fd,
                       const char *name) INF_MAY_BLOCK
{
    uint64_t fingerprint = inf_fingerprint_entry_within(directory_fd, name, &files->left);
    files->is_incomplete = files->is_incomplete || files->left == 0;
    return add_entry(files, name, fingerprint) != NULL;
}

// Returns files->count if no entry is called `name`.
static uint32_t find_entry(const struct inf_read_files *files, const char *name)
{
    uint32_t i = 0;
    if (files->last < files->count && strcmp(files->entries[files->last].name, name) == 0)
        return files->last;
    while (i < files->count && strcmp(files->entries[i].name, name) != 0)
        i++;
    return i;
}

static enum inf_code visit_entry(void *context, int directory_fd, const char *name,
                                 struct inf_error *err)
{
    struct inf_read_files *files = context;
    if (files->left == 0 || list_entry(files, directory_fd, name))
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for a list of files");
}

// Returns the fingerprint of the model's directory without the settings file, which has a stamp of
// its own. If the model has no directory, returns the fingerprint of its file.
static uint64_t sum_all(const struct inf_model_location *location) INF_MAY_BLOCK
{
    return location->has_directory
               ? inf_fingerprint_directory(location->directory_fd, INF_MODEL_CONFIG_FILE)
               : inf_fingerprint_entry(location->directory_fd, location->file);
}

static enum inf_code list_entries(struct inf_read_files *files, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_model_location *location = files->location;
    files->all = sum_all(location);
    if (location->has_directory)
        INF_TRY(inf_model_directory_visit(location->directory_fd, "of the model", files,
                                          visit_entry, err));
    inf_read_files_note(files, location->file);
    return INF_OK;
}

enum inf_code inf_read_files_create(struct inf_read_files **out_files,
                                    const struct inf_model_location *location,
                                    struct inf_error *err)
{
    struct inf_read_files *files = calloc(1, sizeof *files);
    if (files == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a list of files");
    atomic_init(&files->references, 1);
    files->location = location;
    files->has_directory = location->has_directory;
    snprintf(files->file, sizeof files->file, "%s", location->file);
    snprintf(files->version, sizeof files->version, "%s", location->version);
    files->left = INF_FINGERPRINT_ENTRIES_MAX;
    enum inf_code code = list_entries(files, err);
    if (code != INF_OK) {
        inf_read_files_unref(&files);
        return code;
    }
    *out_files = files;
    return INF_OK;
}

void inf_read_files_note(struct inf_read_files *files, const char *path)
{
    char name[INF_READ_FILES_NAME];
    assert(files->location != NULL);
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "/"), path);
    uint32_t index = find_entry(files, name);
    if (index < files->count ||
        (files->left > 0 && list_entry(files, files->location->directory_fd, name)))
        files->entries[index].is_read = true;
    else
        files->is_incomplete = true;
    files->last = index;
}

void inf_read_files_adopt(struct inf_read_files *files, const struct inf_read_files *from)
{
    if (from->is_incomplete) {
        files->is_incomplete = true;
        files->all = from->all;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        const struct entry *entry = &from->entries[i];
        uint32_t index = find_entry(files, entry->name);
        if (!entry->is_read)
            continue;
        if (index == files->count && add_entry(files, entry->name, 0) == NULL) {
            files->is_incomplete = true;
            continue;
        }
        files->entries[index].fingerprint = entry->fingerprint;
        files->entries[index].is_read = true;
    }
}

void inf_read_files_close(struct inf_read_files *files)
{
    uint32_t kept = 0;
    if (files == NULL)
        return;
    for (uint32_t i = 0; i < files->count; i++)
        if (files->entries[i].is_read)
            files->entries[kept++] = files->entries[i];
        else
            free(files->entries[i].name);
    files->count = kept;
    files->last = 0;
    files->location = NULL;
}

bool inf_read_files_find_changed(const struct inf_read_files *files,
                                 const struct inf_model_location *location,
                                 char name[INF_READ_FILES_NAME])
{
    name[0] = '\0';
    if (strcmp(files->file, location->file) != 0 ||
        files->has_directory != location->has_directory ||
        strcmp(files->version, location->version) != 0) {
        snprintf(name, INF_READ_FILES_NAME, "%s", location->file);
        return true;
    }
    if (files->is_incomplete)
        return sum_all(location) != files->all;
    for (uint32_t i = 0; i < files->count; i++) {
        const struct entry *entry = &files->entries[i];
        if (entry->is_read &&
            inf_fingerprint_entry(location->directory_fd, entry->name) != entry->fingerprint) {
            snprintf(name, INF_READ_FILES_NAME, "%s", entry->name);
            return true;
        }
    }
    return false;
}

// --- lists as bytes, for plans: the fingerprint of each entry, and its name with NUL ---

void *inf_read_files_encode(const struct inf_read_files *files, size_t *out_size)
{
    struct inf_saved_bytes bytes = {.data = NULL};
    for (uint32_t i = 0; i < files->count && !files->is_incomplete; i++) {
        const struct entry *entry = &files->entries[i];
        if (!entry->is_read)
            continue;
        inf_saved_append(&bytes, &entry->fingerprint, sizeof entry->fingerprint);
        inf_saved_append(&bytes, entry->name, strlen(entry->name) + 1);
    }
    if (bytes.failed) {
        free(bytes.data);
        return NULL;
    }
    *out_size = bytes.size;
    return bytes.data;
}

// Takes a name with its NUL from the bytes. Returns false if there is none that fits.
static bool take_name(struct inf_saved_rest *rest, char name[INF_READ_FILES_NAME])
{
    const uint8_t *end = memchr(rest->at, '\0', INF_MIN(rest->left, INF_READ_FILES_NAME));
    return end != NULL && inf_saved_take(rest, name, (size_t)(end - rest->at) + 1);
}

enum inf_code inf_read_files_decode(struct inf_read_files *files, const void *data, size_t size,
                                    bool unchanged, struct inf_error *err)
{
    struct inf_saved_rest rest = {data, size};
    do {
        uint64_t fingerprint;
        char name[INF_READ_FILES_NAME];
        if (!inf_saved_take(&rest, &fingerprint, sizeof fingerprint) || !take_name(&rest, name) ||
            strchr(name, '/') != NULL)
            return inf_fail(err, INF_INVALID, "its list of files is damaged");
        inf_read_files_note(files, name);
        if (unchanged &&
            (files->is_incomplete || files->entries[files->last].fingerprint != fingerprint))
            return inf_fail(err, INF_INVALID, "'%.64s' has changed since", name);
    } while (rest.left > 0);
    return INF_OK;
}

// --- references ---

struct inf_read_files *inf_read_files_ref(struct inf_read_files *files)
{
    if (files != NULL)
        atomic_fetch_add_explicit(&files->references, 1, memory_order_relaxed);
    return files;
}

void inf_read_files_unref(struct inf_read_files **files)
{
    struct inf_read_files *self = *files;
    *files = NULL;
    if (self == NULL || atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < self->count; i++)
        free(self->entries[i].name);
    free(self->entries);
    free(self);
}
