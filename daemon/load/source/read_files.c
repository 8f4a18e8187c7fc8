// SPDX-License-Identifier: Apache-2.0
// A list of the files of a model with their fingerprints. The list has all entries of the model's
// directory before the load reads one of them, so that a change before a file is opened is found
// too. The importer reports the files that it opens. A model that is a single file shares its
// directory with other models, so a file of it is added to the list just before it is opened.
//
// If there are more files than one fingerprint covers, or no memory for an entry, the list is
// incomplete. Then any change of the model's stamp (repository.h) counts.
#include "daemon/load/source/read_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/directory.h"
#include "daemon/model/fingerprint.h"

struct entry {
    char *name;
    uint64_t fingerprint; // 0: did not exist
    bool is_read;
};

struct inf_read_files {
    const struct inf_model_location *location; // borrowed
    struct entry *entries;
    uint32_t count, capacity;
    uint32_t last;      // index of the entry noted last: many weights may be in one file
    uint32_t left;      // files that the fingerprints can still cover
    bool is_incomplete; // an entry is missing in the list
};

// Returns NULL if there is no memory.
static struct entry *add_entry(struct inf_read_files *files, int directory_fd,
                               const char *name) INF_MAY_BLOCK
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
    *entry = (struct entry){.name = copy,
                            .fingerprint =
                                inf_fingerprint_entry_within(directory_fd, name, &files->left)};
    files->is_incomplete = files->is_incomplete || files->left == 0;
    return entry;
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
    if (files->left == 0 || add_entry(files, directory_fd, name) != NULL)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for a list of files");
}

static enum inf_code list_entries(struct inf_read_files *files, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_model_location *location = files->location;
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
    files->location = location;
    files->left = INF_FINGERPRINT_ENTRIES_MAX;
    enum inf_code code = list_entries(files, err);
    if (code != INF_OK) {
        inf_read_files_destroy(&files);
        return code;
    }
    *out_files = files;
    return INF_OK;
}

void inf_read_files_note(struct inf_read_files *files, const char *path)
{
    char name[INF_READ_FILES_NAME];
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(path, "/"), path);
    uint32_t index = find_entry(files, name);
    if (index < files->count)
        files->entries[index].is_read = true;
    else if (files->left > 0 && add_entry(files, files->location->directory_fd, name) != NULL)
        files->entries[index].is_read = true;
    else
        files->is_incomplete = true;
    files->last = index;
}

bool inf_read_files_find_changed(const struct inf_read_files *files, char name[INF_READ_FILES_NAME])
{
    name[0] = '\0';
    if (files->is_incomplete)
        return inf_model_location_changed(files->location);
    for (uint32_t i = 0; i < files->count; i++) {
        const struct entry *entry = &files->entries[i];
        uint32_t left = INF_FINGERPRINT_ENTRIES_MAX;
        if (entry->is_read &&
            inf_fingerprint_entry_within(files->location->directory_fd, entry->name, &left) !=
                entry->fingerprint) {
            snprintf(name, INF_READ_FILES_NAME, "%s", entry->name);
            return true;
        }
    }
    return false;
}

void inf_read_files_destroy(struct inf_read_files **files)
{
    struct inf_read_files *self = *files;
    if (self == NULL)
        return;
    for (uint32_t i = 0; i < self->count; i++)
        free(self->entries[i].name);
    free(self->entries);
    free(self);
    *files = NULL;
}
