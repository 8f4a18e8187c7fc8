// SPDX-License-Identifier: Apache-2.0
// The table of models: an array of entries sorted by name, searched by bisection.
#include "daemon/store/table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/load/source/read_files.h"

// Compares the name and then `pin` of an entry with `name` and `pin`; the result is like strcmp().
static int compare_entry(const struct inf_model_entry *entry, const char *name, const char *pin)
{
    int order = strcmp(entry->name, name);
    return order != 0 ? order : strcmp(entry->pin, pin);
}

// Returns the index of the entry with this `name` and `pin`. If there is none, returns the index at
// which to insert it.
static uint32_t entry_index(const struct inf_model_table *table, const char *name, const char *pin)
{
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_entry(table->entries[middle], name, pin) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct inf_model_entry *inf_model_table_find(const struct inf_model_table *table, const char *name,
                                             const char *pin)
{
    uint32_t index = entry_index(table, name, pin);
    if (index == table->count || compare_entry(table->entries[index], name, pin) != 0)
        return NULL;
    return table->entries[index];
}

struct inf_model_entry *inf_model_table_next_pin(const struct inf_model_table *table,
                                                 const char *name, const char *pin)
{
    uint32_t index = entry_index(table, name, pin);
    if (index < table->count && compare_entry(table->entries[index], name, pin) == 0)
        index++;
    if (index == table->count || strcmp(table->entries[index]->name, name) != 0)
        return NULL;
    return table->entries[index];
}

static bool reserve_entry(struct inf_model_table *table)
{
    if (table->count < table->capacity)
        return true;
    uint32_t capacity = INF_MAX(table->capacity * 2, 16u);
    struct inf_model_entry **entries =
        realloc(table->entries, capacity * sizeof(struct inf_model_entry *));
    if (entries == NULL)
        return false;
    table->entries = entries;
    table->capacity = capacity;
    return true;
}

struct inf_model_entry *inf_model_table_obtain(struct inf_model_table *table, const char *name,
                                               const char *pin)
{
    struct inf_model_entry *entry = inf_model_table_find(table, name, pin);
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof *entry);
    if (entry != NULL && pin[0] == '\0')
        entry->quota = inf_model_quota_create();
    if (entry == NULL || (pin[0] == '\0' && entry->quota == NULL) || !reserve_entry(table)) {
        if (entry != NULL)
            inf_model_quota_unref(&entry->quota);
        free(entry);
        return NULL;
    }
    snprintf(entry->name, sizeof entry->name, "%s", name);
    snprintf(entry->pin, sizeof entry->pin, "%s", pin);
    entry->load_priority = INF_MODEL_PRIORITY_NORMAL;
    entry->generation = ++table->generation;
    uint32_t index = entry_index(table, name, pin);
    memmove(&table->entries[index + 1], &table->entries[index],
            (table->count - index) * sizeof(struct inf_model_entry *));
    table->entries[index] = entry;
    table->count++;
    return entry;
}

static void free_entry(struct inf_model_entry *entry)
{
    inf_served_unref(&entry->served);
    inf_read_files_unref(&entry->idle_files);
    inf_model_quota_unref(&entry->quota);
    free(entry);
}

void inf_model_table_remove(struct inf_model_table *table, const char *name, const char *pin)
{
    uint32_t index = entry_index(table, name, pin);
    assert(index < table->count && compare_entry(table->entries[index], name, pin) == 0);
    free_entry(table->entries[index]);
    table->count--;
    memmove(&table->entries[index], &table->entries[index + 1],
            (table->count - index) * sizeof(struct inf_model_entry *));
}

void inf_model_table_fini(struct inf_model_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        free_entry(table->entries[i]);
    free(table->entries);
    *table = (struct inf_model_table){0};
}

enum inf_code inf_model_table_find_version(const struct inf_model_table *table,
                                           struct inf_model_entry *model, const char *version,
                                           struct inf_model_entry **out_entry,
                                           struct inf_error *err)
{
    char number[INF_VERSION_TEXT];
    *out_entry = model;
    if (inf_version_is_label(version)) {
        if (!inf_version_labels_find(model->labels, version, number))
            return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                                   "model '%s' has no label '%.64s'; its labels: %s", model->name,
                                   version, model->labels[0] != '\0' ? model->labels : "none");
        version = number;
    }
    if (model->served != NULL && strcmp(model->served->version, version) == 0)
        return INF_OK;
    struct inf_model_entry *entry = inf_model_table_find(table, model->name, version);
    if (entry != NULL) {
        *out_entry = entry;
        return INF_OK;
    }
    // While no default version is served, its number is not known: any requested `version` may
    // become the default version, so the entry of the default version is the result.
    if (model->served == NULL)
        return INF_OK;
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                           "model '%s' has no version '%.24s'; it has '%s'", model->name, version,
                           model->served->version);
}

enum inf_code inf_model_table_find_served(const struct inf_model_table *table, const char *name,
                                          const char *version, struct inf_caller *caller,
                                          bool reading, struct inf_model_entry **out_entry,
                                          struct inf_error *err)
{
    struct inf_model_entry *entry = inf_model_table_find(table, name, "");
    if (entry == NULL && reading)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%.64s' is not known yet: the repository is being read",
                               name);
    if (entry == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%.64s' is not loaded", name);
    if (!inf_access_allows(&entry->access, caller))
        return inf_fail_reason(err, INF_DENIED, INF_REASON_MODEL_ACL,
                               "model '%s': user %u may not use it; wanted a user of its setting "
                               "allow_users, a member of its allow_groups, or an admin",
                               name, (unsigned)caller->uid);
    if (version[0] != '\0')
        INF_TRY(inf_model_table_find_version(table, entry, version, &entry, err));
    if (entry->served == NULL && entry->pending > 0)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s' is still being loaded", name);
    if (entry->served == NULL)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "model '%s' did not load: %s", name, entry->reason);
    *out_entry = entry;
    return INF_OK;
}

// Fills the columns that only a model that is served has.
static void fill_served(struct inf_model_row *row, const struct inf_served *served)
{
    struct inf_model_memory memory = inf_model_memory(served->model);
    row->state = INF_MODEL_READY;
    snprintf(row->version, sizeof row->version, "%s", served->version);
    row->device = inf_device_info(served->device)->name;
    row->platform = served->platform;
    row->memory_bytes = memory.const_bytes + memory.weight_bytes + memory.arena_bytes;
    row->requests = atomic_load(&served->request_count);
    row->macs = served->profile.macs;
}

static void fill_row(struct inf_model_row *row, const struct inf_model_table *table,
                     const struct inf_model_entry *entry)
{
    *row = (struct inf_model_row){.device = "", .platform = ""};
    snprintf(row->name, sizeof row->name, "%s", entry->name);
    snprintf(row->reason, sizeof row->reason, "%s", entry->reason);
    row->quota = entry->quota;
    const struct inf_served *served = entry->served;
    const struct inf_model_entry *model = inf_model_table_find(table, entry->name, "");
    row->is_restricted = model != NULL && model->access.is_restricted;
    if (model != NULL)
        inf_version_labels_of(
            model->labels, served != NULL ? served->version : entry->pending_version, row->labels);
    if (served == NULL) {
        row->state = entry->pending == 0 ? (entry->idle ? INF_MODEL_IDLE : INF_MODEL_FAILED)
                     : entry->warming    ? INF_MODEL_WARMING
                                         : INF_MODEL_LOADING;
        snprintf(row->version, sizeof row->version, "%s", entry->pending_version);
        return;
    }
    fill_served(row, served);
    if (entry->leaving)
        row->state = INF_MODEL_UNLOADING;
}

// Fills the row of a signature of a model, whose own row is `model`.
static void fill_signature(struct inf_model_row *row, const struct inf_model_row *model,
                           const struct inf_served_signature *signature)
{
    *row = *model;
    row->quota = NULL;
    inf_served_signature_name(row->name, model->name, signature->key);
    snprintf(row->reason, sizeof row->reason, "%s", signature->reason);
    if (signature->served != NULL) {
        fill_served(row, signature->served);
        return;
    }
    row->state = INF_MODEL_FAILED;
    row->device = "";
    row->memory_bytes = row->requests = row->macs = 0;
}

uint32_t inf_model_table_list(const struct inf_model_table *table, struct inf_caller *caller,
                              struct inf_model_row *rows, uint32_t capacity)
{
    uint32_t count = 0;
    bool is_visible = true; // the entries of further versions follow that of the default version
    for (uint32_t i = 0; i < table->count; i++) {
        const struct inf_model_entry *entry = table->entries[i];
        struct inf_model_row own;
        if (entry->pin[0] == '\0')
            is_visible = inf_access_allows(&entry->access, caller);
        if (!is_visible)
            continue;
        uint32_t signatures = entry->served != NULL ? entry->served->signature_count : 0;
        if (count < capacity) {
            fill_row(&own, table, entry);
            rows[count] = own;
        }
        for (uint32_t j = 0; j < signatures && count + 1 + j < capacity; j++)
            fill_signature(&rows[count + 1 + j], &own, &entry->served->signatures[j]);
        count += 1 + signatures;
    }
    return count;
}

struct inf_model_summary inf_model_table_summarize(const struct inf_model_table *table)
{
    struct inf_model_summary summary = {0};
    for (uint32_t i = 0; i < table->count; i++) {
        const struct inf_model_entry *entry = table->entries[i];
        summary.is_starting |= entry->pending > 0 && !entry->was_loaded;
        if (entry->pin[0] != '\0')
            continue;
        bool failed = entry->served == NULL && entry->pending == 0 && !entry->idle;
        summary.models++;
        summary.served += entry->served != NULL;
        summary.idle += entry->served == NULL && entry->idle;
        summary.failed += failed;
        if (failed && summary.failed_name == NULL) {
            summary.failed_name = entry->name;
            summary.failed_reason = entry->reason;
        }
    }
    return summary;
}
