// SPDX-License-Identifier: Apache-2.0
// A model with the setting idle_unload_ms is unloaded after no request has used it for that time.
// If all models together need more than model_bytes_max, models without requests are unloaded too,
// the one with the largest rate_unload() first. The entry of an unloaded model stays in the table
// as idle. The first request for an idle model starts a load and fails with LOADING; the client
// libraries send the request again until its deadline.
#include "daemon/store/idle.h"

#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/store/store.h"
#include "daemon/store/submit.h"

// Returns true if the model of an entry is loaded and its settings allow unloading it. A model that
// was loaded by path stays loaded, because the daemon could not load it again.
static bool may_unload(const struct inf_model_entry *entry)
{
    return entry->served != NULL && !entry->served->config.pinned && !entry->outside;
}

static uint64_t count_own_bytes(const struct inf_served *served)
{
    struct inf_model_memory memory = inf_model_memory(served->model);
    return memory.const_bytes + memory.weight_bytes + memory.arena_bytes;
}

// Returns the memory of a model with all its signatures.
static uint64_t count_bytes(const struct inf_served *served)
{
    uint64_t bytes = count_own_bytes(served);
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            bytes += count_own_bytes(served->signatures[i].served);
    return bytes;
}

// Returns the time of the last use of a model in any of its signatures.
static uint64_t last_use_ns(const struct inf_served *served)
{
    uint64_t used_ns = served->used_ns;
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            used_ns = INF_MAX(used_ns, served->signatures[i].served->used_ns);
    return used_ns;
}

// Returns true if a request or a job uses the model of an entry, in any of its signatures.
static bool is_busy(const struct inf_model_entry *entry)
{
    const struct inf_served *served = entry->served;
    bool busy = entry->pending > 0 || entry->races > 0 || atomic_load(&served->references) > 1;
    for (uint32_t i = 0; i < served->signature_count; i++)
        busy = busy || (served->signatures[i].served != NULL &&
                        atomic_load(&served->signatures[i].served->references) > 1);
    return busy;
}

static void unload_entry(struct inf_model_store *store, struct inf_model_entry *entry,
                         const char *why)
{
    const struct inf_served *served = entry->served;
    inf_log(store->log, INF_LOG_INFO,
            "model unloaded while idle name=%s version=%s memory_bytes=%llu reason=%s", entry->name,
            served->version, (unsigned long long)count_bytes(served), why);
    snprintf(entry->pending_version, sizeof entry->pending_version, "%s", served->version);
    entry->asked = served->config;
    entry->idle = true;
    inf_served_unref(&entry->served);
}

// Returns the benefit of unloading a model: its bytes, times the time since its last use, divided
// by the time that loading it took, for which the next request would wait.
static double rate_unload(const struct inf_served *served, uint64_t now_ns)
{
    // The quotient grows if load_ns is small. The lower bound of 1 ms prevents that a model which
    // loads in an instant is unloaded however recently it was used.
    double load_ns = (double)INF_MAX(served->load_ns, INF_NS_PER_MS);
    return (double)count_bytes(served) * (double)(now_ns - INF_MIN(now_ns, last_use_ns(served))) /
           load_ns;
}

// Unloads models that nothing uses until the loaded models fit into model_bytes_max, or until no
// more model can be unloaded.
static void keep_limit(struct inf_model_store *store, uint64_t now_ns) INF_ON_LOOP
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < store->table.count; i++)
        if (store->table.entries[i]->served != NULL)
            bytes += count_bytes(store->table.entries[i]->served);
    while (store->model_bytes_max > 0 && bytes > store->model_bytes_max) {
        struct inf_model_entry *best = NULL;
        for (uint32_t i = 0; i < store->table.count; i++) {
            struct inf_model_entry *entry = store->table.entries[i];
            if (may_unload(entry) && !is_busy(entry) &&
                (best == NULL ||
                 rate_unload(entry->served, now_ns) > rate_unload(best->served, now_ns)))
                best = entry;
        }
        if (best == NULL) {
            inf_log(store->log, INF_LOG_WARNING,
                    "models exceed their limit of memory, and none is idle bytes=%llu limit=%llu",
                    (unsigned long long)bytes, (unsigned long long)store->model_bytes_max);
            return;
        }
        bytes -= count_bytes(best->served);
        unload_entry(store, best, "model_bytes_max");
        store->counts.unloaded_memory++;
    }
}

uint64_t inf_model_store_unload_idle(struct inf_model_store *store, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    keep_limit(store, now_ns);
    for (uint32_t i = 0; i < store->table.count; i++) {
        struct inf_model_entry *entry = store->table.entries[i];
        if (!may_unload(entry) || entry->served->config.idle_unload_ms == 0)
            continue;
        uint64_t limit_ns = entry->served->config.idle_unload_ms * INF_NS_PER_MS;
        uint64_t due_ns = last_use_ns(entry->served) + limit_ns;
        if (is_busy(entry))
            due_ns = now_ns + limit_ns;
        if (due_ns > now_ns) {
            next_ns = INF_MIN(next_ns, due_ns);
            continue;
        }
        unload_entry(store, entry, "idle_unload_ms");
        store->counts.unloaded_idle++;
    }
    return next_ns;
}

bool inf_store_wake(struct inf_model_store *store, const char *name, const char *version)
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, name, "");
    if (entry == NULL)
        return false;
    if (version[0] != '\0' &&
        inf_model_table_find_version(&store->table, entry, version, &entry, NULL) != INF_OK)
        return false;
    if (!entry->idle || entry->pending > 0)
        return false;
    struct inf_store_load load = {.if_changed = true};
    inf_model_config_init(&load.config);
    inf_model_config_take_asked(&load.config, &entry->asked);
    inf_log(store->log, INF_LOG_DEBUG, "model loaded again after it was idle name=%s", name);
    return inf_store_submit_load(store, entry, &load, NULL) == INF_OK;
}
