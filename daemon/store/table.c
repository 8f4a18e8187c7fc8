// SPDX-License-Identifier: Apache-2.0
// A sorted array of models by name, searched by bisection.
#include "daemon/store/table.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Returns the index of the entry called `name`. If there is none, returns the index at which to
// insert it.
static uint32_t entry_index(const struct inf_model_table *table, const char *name)
{
    uint32_t low = 0, high = table->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(table->entries[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct inf_model_entry *inf_model_table_find(const struct inf_model_table *table, const char *name)
{
    uint32_t index = entry_index(table, name);
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

struct inf_model_entry *inf_model_table_obtain(struct inf_model_table *table, const char *name)
{
    struct inf_model_entry *entry = inf_model_table_find(table, name);
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof *entry);
    if (entry == NULL || !reserve_entry(table)) {
        free(entry);
        return NULL;
    }
    snprintf(entry->name, sizeof entry->name, "%s", name);
    entry->generation = ++table->generation;
    uint32_t index = entry_index(table, name);
    memmove(&table->entries[index + 1], &table->entries[index],
            (table->count - index) * sizeof(struct inf_model_entry *));
    table->entries[index] = entry;
    table->count++;
    return entry;
}

static void free_entry(struct inf_model_entry *entry)
{
    inf_served_unref(&entry->served);
    free(entry);
}

void inf_model_table_remove(struct inf_model_table *table, const char *name)
{
    uint32_t index = entry_index(table, name);
    assert(index < table->count && strcmp(table->entries[index]->name, name) == 0);
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

enum inf_code inf_model_table_find_served(const struct inf_model_table *table, const char *name,
                                          const char *version, bool reading,
                                          struct inf_model_entry **out_entry, struct inf_error *err)
{
    struct inf_model_entry *entry = inf_model_table_find(table, name);
    if (entry == NULL && reading)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%.64s' is not known yet: the repository is being read",
                               name);
    if (entry == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%.64s' is not loaded", name);
    if (entry->served == NULL && entry->pending > 0)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s' is still being loaded", name);
    if (entry->served == NULL)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "model '%s' did not load: %s", name, entry->reason);
    if (version[0] != '\0' && strcmp(version, entry->served->version) != 0)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                               "model '%s' has no version '%.24s'; it has '%s'", name, version,
                               entry->served->version);
    *out_entry = entry;
    return INF_OK;
}

static void fill_row(struct inf_model_row *row, const struct inf_model_entry *entry)
{
    *row = (struct inf_model_row){.device = "", .platform = ""};
    snprintf(row->name, sizeof row->name, "%s", entry->name);
    snprintf(row->reason, sizeof row->reason, "%s", entry->reason);
    const struct inf_served *served = entry->served;
    if (served == NULL) {
        row->state = entry->pending > 0 ? INF_MODEL_LOADING : INF_MODEL_FAILED;
        snprintf(row->version, sizeof row->version, "%s", entry->pending_version);
        return;
    }
    struct inf_model_memory memory = inf_model_memory(served->model);
    row->state = INF_MODEL_READY;
    snprintf(row->version, sizeof row->version, "%s", served->version);
    row->device = inf_device_info(served->device)->name;
    row->platform = served->platform;
    row->memory_bytes = memory.const_bytes + memory.weight_bytes + memory.arena_bytes;
    row->requests = atomic_load(&served->request_count);
    row->macs = served->profile.macs;
}

uint32_t inf_model_table_list(const struct inf_model_table *table, struct inf_model_row *rows,
                              uint32_t capacity)
{
    for (uint32_t i = 0; i < INF_MIN(table->count, capacity); i++)
        fill_row(&rows[i], table->entries[i]);
    return table->count;
}
