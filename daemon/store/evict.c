// SPDX-License-Identifier: Apache-2.0
// Chooses the models to unload. The benefit of unloading a model is its bytes, times the time since
// its last use, divided by the time that loading it took, for which the next request would wait.
// The model with the largest benefit goes first.
#include "daemon/store/evict.h"

#include <stdio.h>

#include "backends/base/clock.h"
#include "daemon/load/source/read_files.h"
#include "daemon/store/submit.h"

static uint64_t count_own_bytes(const struct inf_served *served)
{
    struct inf_model_memory memory = inf_model_memory(served->model);
    return memory.const_bytes + memory.weight_bytes + memory.arena_bytes;
}

uint64_t inf_store_count_bytes(const struct inf_served *served)
{
    uint64_t bytes = count_own_bytes(served);
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            bytes += count_own_bytes(served->signatures[i].served);
    return bytes;
}

uint64_t inf_store_last_use_ns(const struct inf_served *served)
{
    uint64_t used_ns = served->used_ns;
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            used_ns = INF_MAX(used_ns, served->signatures[i].served->used_ns);
    return used_ns;
}

// Tells the workers how much memory a request may add: what is free, and what idle models have.
static void publish_room(struct inf_model_store *store, uint64_t idle_bytes)
{
    const struct inf_memory_budget *budget = store->budget;
    uint64_t used = inf_memory_budget_used(budget), limit = budget->limit_bytes;
    uint64_t room = idle_bytes + (used < limit ? limit - used : 0);
    atomic_store(&store->arena_budget.room_bytes, limit == 0 ? 0 : INF_MAX(room, UINT64_C(1)));
}

uint64_t inf_store_count_models(struct inf_model_store *store)
{
    uint64_t bytes = 0, idle = 0;
    for (uint32_t i = 0; i < store->table.count; i++) {
        const struct inf_model_entry *entry = store->table.entries[i];
        if (entry->served == NULL)
            continue;
        uint64_t own = inf_store_count_bytes(entry->served);
        bytes += own;
        idle += inf_store_may_unload(entry) && !inf_store_is_busy(entry) ? own : 0;
    }
    if (store->budget != NULL) {
        store->budget->used[INF_MEMORY_MODELS] = bytes;
        publish_room(store, idle);
    }
    return bytes;
}

bool inf_store_may_unload(const struct inf_model_entry *entry)
{
    return entry->served != NULL && !entry->served->config.pinned && !entry->outside;
}

bool inf_store_is_awaited(const struct inf_model_entry *entry)
{
    return entry->awaited_until_ns != 0 && inf_clock_ns() < entry->awaited_until_ns;
}

bool inf_store_is_busy(const struct inf_model_entry *entry)
{
    const struct inf_served *served = entry->served;
    bool busy = inf_store_is_awaited(entry) || entry->pending > 0 || entry->races > 0 ||
                entry->trials > 0 || atomic_load(&served->references) > 1;
    for (uint32_t i = 0; i < served->signature_count; i++)
        busy = busy || (served->signatures[i].served != NULL &&
                        atomic_load(&served->signatures[i].served->references) > 1);
    return busy;
}

void inf_store_unload_entry(struct inf_model_store *store, struct inf_model_entry *entry,
                            const char *why)
{
    const struct inf_served *served = entry->served;
    entry->idle_bytes = inf_store_count_bytes(served);
    inf_log(store->log, INF_LOG_INFO,
            "model unloaded while idle name=%s version=%s memory_bytes=%llu reason=%s", entry->name,
            served->version, (unsigned long long)entry->idle_bytes, why);
    snprintf(entry->pending_version, sizeof entry->pending_version, "%s", served->version);
    entry->asked = served->config;
    inf_read_files_unref(&entry->idle_files);
    entry->idle_files = inf_read_files_ref(served->files);
    entry->idle_config_stamp = atomic_load(&served->config_stamp);
    entry->past_uses = inf_store_count_uses(entry);
    entry->idle = true;
    entry->leaving = false;
    inf_served_unref(&entry->served);
}

static double rate_unload(const struct inf_served *served, uint64_t now_ns)
{
    // The quotient grows if load_ns is small. The lower bound of 1 ms prevents that a model which
    // loads in an instant is unloaded however recently it was used.
    double load_ns = (double)INF_MAX(served->load_ns, INF_NS_PER_MS);
    return (double)inf_store_count_bytes(served) *
           (double)(now_ns - INF_MIN(now_ns, inf_store_last_use_ns(served))) / load_ns;
}

uint64_t inf_store_evict(struct inf_model_store *store, uint64_t bytes, uint64_t now_ns,
                         const struct inf_store_cause *cause)
{
    uint64_t freed = 0;
    while (freed < bytes) {
        struct inf_model_entry *best = NULL;
        for (uint32_t i = 0; i < store->table.count; i++) {
            struct inf_model_entry *entry = store->table.entries[i];
            if (inf_store_may_unload(entry) && !inf_store_is_busy(entry) &&
                (best == NULL ||
                 rate_unload(entry->served, now_ns) > rate_unload(best->served, now_ns)))
                best = entry;
        }
        if (best == NULL)
            break;
        freed += inf_store_count_bytes(best->served);
        inf_store_unload_entry(store, best, cause->name);
        ++*cause->count;
    }
    return freed;
}
