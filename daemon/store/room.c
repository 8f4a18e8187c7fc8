// SPDX-License-Identifier: Apache-2.0
// Room for loads. The loader asks before it reads a model:
//
//   fits                              -> granted; the estimate counts as used until the load ends
//   fits after unloading idle models  -> they are unloaded, granted
//   not asked for by a client         -> deferred: the model is listed as idle, nothing is unloaded
//   would fit without models in use   -> no answer yet, the loader asks again
//   never fits                        -> refused, with the numbers
//
// For a moment a load has the weights twice: those of the file, and packed ones. A part of this may
// exceed the limit, which is a tenth below that of the control group. For the rest, idle models are
// unloaded, but no load is refused.
//
// A model that is always in use would make a load wait for ever. So after LEAVE_AFTER_NS, models in
// use are marked as leaving: their requests in flight end as always, new ones are told that the
// model is loading, and the client libraries send them again.
#include "daemon/store/room.h"

#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/store/evict.h"

// A load waits this long before models in use are marked as leaving.
#define LEAVE_AFTER_NS (50 * INF_NS_PER_MS)
// A load waits this long for models in use; then it is refused.
#define WAIT_MAX_NS (10000 * INF_NS_PER_MS)
// The share of the limit by which the moment of a load may exceed the limit.
#define PEAK_SHARE 16
#define MIB        (1024.0 * 1024.0)
// After a claim that failed, models are not counted for this time.
#define CLAIM_PAUSE_NS (20 * INF_NS_PER_MS)

static void stop_leaving(struct inf_model_store *store)
{
    for (uint32_t i = 0; i < store->table.count; i++)
        store->table.entries[i]->leaving = false;
}

// Returns the memory of models that are in use but may be unloaded when they are idle. If `leave`
// is true, marks such models as leaving until they have `bytes`.
static uint64_t count_busy(struct inf_model_store *store, uint64_t bytes, bool leave) INF_ON_LOOP
{
    uint64_t busy = 0;
    for (uint32_t i = 0; i < store->table.count; i++) {
        struct inf_model_entry *entry = store->table.entries[i];
        if (!inf_store_may_unload(entry) || !inf_store_is_busy(entry))
            continue;
        entry->leaving = leave && busy < bytes && !inf_store_is_awaited(entry);
        busy += inf_store_count_bytes(entry->served);
    }
    return busy;
}

// Lists the loaded models that cannot be unloaded: those in use, or those that never are. Returns
// their memory.
static uint64_t list_models(const struct inf_model_store *store, bool in_use, char *text,
                            size_t capacity)
{
    uint64_t bytes = 0;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < store->table.count; i++) {
        const struct inf_model_entry *entry = store->table.entries[i];
        if (entry->served == NULL || inf_store_may_unload(entry) != in_use)
            continue;
        bytes += inf_store_count_bytes(entry->served);
        if (length + strlen(entry->name) + sizeof ", ..." < capacity)
            length += (size_t)snprintf(text + length, capacity - length, "%s%s",
                                       length > 0 ? ", " : "", entry->name);
        else if (length + sizeof ", ..." <= capacity)
            length += (size_t)snprintf(text + length, capacity - length, ", ...");
    }
    return bytes;
}

// Refuses a load that waited for models in use, or that does not fit at all.
static void refuse_load(struct inf_model_store *store, const struct inf_load_event *event,
                        bool in_use) INF_ON_LOOP
{
    char names[72];
    const struct inf_memory_budget *budget = store->budget;
    double wanted = (double)event->room.bytes / MIB, limit = (double)budget->limit_bytes / MIB;
    uint64_t bytes = list_models(store, in_use, names, sizeof names);
    uint64_t other = inf_memory_budget_used(budget) - budget->used[INF_MEMORY_MODELS];
    struct inf_error err = {0};
    (void)inf_fail_reason(
        &err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
        "model '%.64s' wants %.1f MiB, memory_max is %.1f MiB: %.1f MiB are in use besides models, "
        "%s %.1f MiB%s%s",
        event->name, wanted, limit, (double)other / MIB,
        in_use ? "models in use have" : "models that are pinned or loaded by path have",
        (double)bytes / MIB, names[0] != '\0' ? ": " : "", names);
    stop_leaving(store);
    inf_loader_answer_room(store->loader, event->room.ticket, INF_ROOM_REFUSED, &err);
}

static void grant_room(struct inf_model_store *store, const struct inf_load_event *event)
{
    stop_leaving(store);
    store->budget->used[INF_MEMORY_LOADING] = event->room.bytes;
    inf_loader_answer_room(store->loader, event->room.ticket, INF_ROOM_GRANTED, NULL);
}

// Unloads idle models that have `bytes`, and grants the room.
static void evict_and_grant(struct inf_model_store *store, const struct inf_load_event *event,
                            uint64_t bytes, uint64_t now_ns) INF_ON_LOOP
{
    const struct inf_store_cause cause = {"memory_max", &store->counts.unloaded_memory};
    (void)inf_store_evict(store, bytes, now_ns, &cause);
    (void)inf_store_count_models(store);
    grant_room(store, event);
}

// Returns what a load needs at its peak beyond the bytes of the model, as far as it counts.
static uint64_t find_peak_bytes(const struct inf_model_store *store, uint64_t model_bytes)
{
    uint64_t allowed = store->budget->limit_bytes / PEAK_SHARE;
    return model_bytes > allowed ? model_bytes - allowed : 0;
}

static uint64_t count_idle(const struct inf_model_store *store) INF_ON_LOOP
{
    uint64_t idle = 0;
    for (uint32_t i = 0; i < store->table.count; i++) {
        const struct inf_model_entry *entry = store->table.entries[i];
        if (inf_store_may_unload(entry) && !inf_store_is_busy(entry))
            idle += inf_store_count_bytes(entry->served);
    }
    return idle;
}

void inf_store_answer_room(struct inf_model_store *store, const struct inf_load_event *event)
{
    uint64_t now_ns = inf_clock_ns();
    (void)inf_store_count_models(store);
    // One model is loaded at a time. The loader may have asked again before it saw the answer to an
    // earlier question, whose room would then count twice.
    inf_store_release_room(store);
    const uint64_t bytes = event->room.bytes;
    uint64_t excess =
        inf_memory_budget_excess(store->budget, bytes + find_peak_bytes(store, bytes));
    if (excess == 0) {
        grant_room(store, event);
        return;
    }
    if (event->room.may_defer) {
        // The first model may use all memory that there is.
        bool fits = inf_memory_budget_excess(store->budget, bytes) == 0;
        if (fits && store->budget->used[INF_MEMORY_MODELS] == 0)
            grant_room(store, event);
        else
            inf_loader_answer_room(store->loader, event->room.ticket, INF_ROOM_DEFERRED, NULL);
        return;
    }
    uint64_t idle = count_idle(store);
    if (idle >= excess) {
        evict_and_grant(store, event, excess, now_ns);
        return;
    }
    excess = inf_memory_budget_excess(store->budget, bytes);
    if (idle >= excess) {
        evict_and_grant(store, event, idle, now_ns);
        return;
    }
    bool leave = event->room.waited_ns >= LEAVE_AFTER_NS;
    bool later = count_busy(store, excess - idle, leave) >= excess - idle;
    if (!later || event->room.waited_ns >= WAIT_MAX_NS)
        refuse_load(store, event, later);
}

void inf_store_release_room(struct inf_model_store *store)
{
    if (store->budget != NULL)
        store->budget->used[INF_MEMORY_LOADING] = 0;
}

// Says what was wanted, what is free, and what holds the memory.
static enum inf_code refuse_claim(const struct inf_memory_budget *budget, uint64_t bytes,
                                  const char *what, struct inf_error *err)
{
    char held[256];
    size_t length = 0;
    uint64_t used = inf_memory_budget_used(budget);
    held[0] = '\0';
    for (enum inf_memory_use use = 0; use < INF_MEMORY_USES; use++)
        if (budget->used[use] > 0 && length < sizeof held)
            length += (size_t)snprintf(held + length, sizeof held - length, "%s%s %.1f MiB",
                                       length > 0 ? ", " : "", inf_memory_use_name(use),
                                       (double)budget->used[use] / MIB);
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "%s wants %.1f MiB, %.1f MiB of memory_max = %.1f MiB are free: %s",
                           what, (double)bytes / MIB,
                           (double)(budget->limit_bytes - INF_MIN(used, budget->limit_bytes)) / MIB,
                           (double)budget->limit_bytes / MIB, held);
}

enum inf_code inf_model_store_claim_memory(struct inf_model_store *store, uint64_t bytes,
                                           const char *what, struct inf_error *err)
{
    const struct inf_store_cause cause = {"memory_max", &store->counts.unloaded_memory};
    if (store->budget == NULL || inf_memory_budget_excess(store->budget, bytes) == 0)
        return INF_OK;
    uint64_t now_ns = inf_clock_ns();
    // Models are not counted again soon after a refusal, so that a client that asks again and again
    // costs little.
    if (now_ns - store->claim_failed_ns >= CLAIM_PAUSE_NS) {
        (void)inf_store_count_models(store);
        uint64_t excess = inf_memory_budget_excess(store->budget, bytes);
        // If even unloading all idle models would not make enough room, none is unloaded.
        if (excess > 0 && count_idle(store) >= excess) {
            (void)inf_store_evict(store, excess, now_ns, &cause);
            (void)inf_store_count_models(store);
        }
    }
    if (inf_memory_budget_excess(store->budget, bytes) == 0)
        return INF_OK;
    if (now_ns - store->claim_failed_ns >= CLAIM_PAUSE_NS)
        store->claim_failed_ns = now_ns;
    return refuse_claim(store->budget, bytes, what, err);
}
