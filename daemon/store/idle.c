// SPDX-License-Identifier: Apache-2.0
// A model with the setting idle_unload_ms is unloaded after no request has used it for that time.
// If all models together need more than model_bytes_max, or the daemon more than its budget, models
// without requests are unloaded too (evict.c). The entry of an unloaded model stays in the table as
// idle. The first request for an idle model starts a load and fails with LOADING here; the service
// lets it wait for the end of the load.
#include "daemon/store/idle.h"

#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/store/evict.h"
#include "daemon/store/kernel_races.h"
#include "daemon/store/step_trials.h"
#include "daemon/store/store.h"
#include "daemon/store/submit.h"

// Under pressure, one of so many parts of the models' memory is freed each time.
#define RELIEF_PARTS 4

// How often the use of models is kept for the next start.
#define USES_PERIOD_NS (300000 * INF_NS_PER_MS)

void inf_store_keep_limit(struct inf_model_store *store, uint64_t now_ns)
{
    uint64_t bytes = inf_store_count_models(store), excess = 0;
    const struct inf_store_cause own = {"model_bytes_max", &store->counts.unloaded_memory};
    const struct inf_store_cause all = {"memory_max", &store->counts.unloaded_memory};
    const struct inf_store_cause *cause = &own;
    if (store->model_bytes_max > 0 && bytes > store->model_bytes_max)
        excess = bytes - store->model_bytes_max;
    if (store->budget != NULL && inf_memory_budget_excess(store->budget, 0) > excess) {
        excess = inf_memory_budget_excess(store->budget, 0);
        cause = &all;
    }
    if (excess == 0 || inf_store_evict(store, excess, now_ns, cause) >= excess)
        return;
    inf_log(
        store->log, INF_LOG_WARNING,
        "models exceed their limit of memory, and none is idle bytes=%llu limit=%llu setting=%s",
        (unsigned long long)inf_store_count_models(store),
        (unsigned long long)(cause == &own ? store->model_bytes_max : store->budget->limit_bytes),
        cause->name);
}

uint64_t inf_model_store_relieve(struct inf_model_store *store, uint64_t now_ns)
{
    const struct inf_store_cause cause = {"pressure", &store->counts.unloaded_pressure};
    uint64_t part = inf_store_count_models(store) / RELIEF_PARTS;
    return inf_store_evict(store, INF_MAX(part, 1u), now_ns, &cause);
}

uint64_t inf_model_store_unload_idle(struct inf_model_store *store, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    inf_store_keep_limit(store, now_ns);
    for (uint32_t i = 0; i < store->table.count; i++) {
        struct inf_model_entry *entry = store->table.entries[i];
        if (!inf_store_may_unload(entry) || entry->served->config.idle_unload_ms == 0)
            continue;
        uint64_t limit_ns = entry->served->config.idle_unload_ms * INF_NS_PER_MS;
        uint64_t due_ns = inf_store_last_use_ns(entry->served) + limit_ns;
        if (inf_store_is_busy(entry))
            due_ns = now_ns + limit_ns;
        if (due_ns > now_ns) {
            next_ns = INF_MIN(next_ns, due_ns);
            continue;
        }
        inf_store_unload_entry(store, entry, "idle_unload_ms");
        store->counts.unloaded_idle++;
    }
    if (now_ns - store->uses_kept_ns >= USES_PERIOD_NS)
        inf_store_submit_uses(store);
    if (store->table.count > 0)
        next_ns = INF_MIN(next_ns, store->uses_kept_ns + USES_PERIOD_NS);
    next_ns = INF_MIN(next_ns, inf_store_start_kernel_race(store, now_ns));
    return INF_MIN(next_ns, inf_store_start_step_trial(store, now_ns));
}

// Returns the entry of an idle model that is not being loaded; NULL: there is none.
static struct inf_model_entry *find_idle(const struct inf_model_store *store, const char *name,
                                         const char *version)
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, name, "");
    if (entry == NULL)
        return NULL;
    if (version[0] != '\0' &&
        inf_model_table_find_version(&store->table, entry, version, &entry, NULL) != INF_OK)
        return NULL;
    return entry->idle && entry->pending == 0 ? entry : NULL;
}

bool inf_store_is_idle(const struct inf_model_store *store, const char *name, const char *version)
{
    return find_idle(store, name, version) != NULL;
}

bool inf_store_wake(struct inf_model_store *store, const char *name, const char *version)
{
    struct inf_model_entry *entry = find_idle(store, name, version);
    if (entry == NULL || inf_clock_ns() < entry->load_after_ns)
        return false;
    struct inf_store_load load = {.if_changed = true, .wanted = true};
    inf_model_config_init(&load.config);
    inf_model_config_take_asked(&load.config, &entry->asked);
    inf_log(store->log, INF_LOG_DEBUG, "model loaded again after it was idle name=%s", name);
    return inf_store_submit_load(store, entry, &load, NULL) == INF_OK;
}
