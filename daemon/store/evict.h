// SPDX-License-Identifier: Apache-2.0
// Unloads models that nothing uses, to free their memory. Only for the files of this folder.
#ifndef INF_DAEMON_STORE_EVICT_H
#define INF_DAEMON_STORE_EVICT_H

#include "backends/base/clock.h"
#include "backends/base/role.h"
#include "daemon/store/state.h"

// Returns the memory of a served model with all its signatures: constants, packed weights, arenas.
uint64_t inf_store_count_bytes(const struct inf_served *served);

// Returns the time of the last use of a model in any of its signatures.
uint64_t inf_store_last_use_ns(const struct inf_served *served);

// Returns the memory of all served models, and notes it in the budget.
uint64_t inf_store_count_models(struct inf_model_store *store) INF_ON_LOOP;

// Returns true if the model of an entry is loaded and its settings allow unloading it. A model that
// was loaded by path stays loaded, because the daemon could not load it again.
bool inf_store_may_unload(const struct inf_model_entry *entry);

// How long a model is kept for the request that had it loaded: the client sends the request again.
#define INF_STORE_AWAITED_NS (1000 * INF_NS_PER_MS)

// Returns true if a request had the model of an entry loaded, and did not come yet.
bool inf_store_is_awaited(const struct inf_model_entry *entry);

// Returns true if a request or a job uses the model of an entry, which must be loaded, or if a
// request for it is awaited.
bool inf_store_is_busy(const struct inf_model_entry *entry);

// Unloads the model of an entry. The entry stays as idle; the next request loads the model. `why`
// is the setting or event that asked for it.
void inf_store_unload_entry(struct inf_model_store *store, struct inf_model_entry *entry,
                            const char *why) INF_ON_LOOP;

// Why models are unloaded, and how often that happened: a member of struct inf_model_store_counts.
struct inf_store_cause {
    const char *name;
    uint64_t *count;
};

// Unloads models that nothing uses until they had at least `bytes` or no more can be unloaded;
// first those whose memory is gained at the least cost. Returns the bytes of the unloaded models.
uint64_t inf_store_evict(struct inf_model_store *store, uint64_t bytes, uint64_t now_ns,
                         const struct inf_store_cause *cause) INF_ON_LOOP;

#endif
