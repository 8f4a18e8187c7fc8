// SPDX-License-Identifier: Apache-2.0
// Starts races of kernels and takes up their winners: the model is placed again, as after a race of
// devices, so that requests meet the old executables until the new ones are ready.
#include "daemon/store/kernel_races.h"

#include "backends/base/clock.h"
#include "daemon/store/store.h"
#include "daemon/store/submit.h"

// Returns the entry whose served model has races of kernels due and may begin them first; NULL:
// none has. Models whose races were not disturbed come first, and the others in the order of their
// next attempts, so that a model that is always disturbed delays no other one. A model that is
// being loaded or placed comes later.
static struct inf_model_entry *find_due(const struct inf_model_store *store)
{
    struct inf_model_entry *first = NULL;
    for (uint32_t i = 0; i < store->table.count; i++) {
        struct inf_model_entry *entry = store->table.entries[i];
        if (entry->served != NULL && entry->served->kernels_due && entry->pending == 0 &&
            (first == NULL || entry->kernels_retry.after_ns < first->kernels_retry.after_ns))
            first = entry;
    }
    return first;
}

uint64_t inf_store_start_kernel_race(struct inf_model_store *store, uint64_t now_ns)
{
    struct inf_model_entry *entry = find_due(store);
    if (entry == NULL)
        return store->kernels_race ? now_ns + INF_STORE_KERNELS_RETRY_NS : UINT64_MAX;
    if (now_ns < entry->kernels_retry.after_ns)
        return entry->kernels_retry.after_ns;
    // Without memory for the race, the rules' choices stay until the next call.
    if (store->races == 0 && inf_store_submit_kernel_race(store, entry, NULL) == INF_OK)
        entry->served->kernels_due = false;
    return now_ns + INF_STORE_KERNELS_RETRY_NS;
}

void inf_store_finish_kernel_race(struct inf_model_store *store, struct inf_model_entry *entry,
                                  const struct inf_load_job *job)
{
    bool is_served = entry != NULL && entry->served == job->base;
    bool places = is_served && job->race.kernels_changed && !job->race.disturbed;
    store->kernels_race = false;
    if (is_served && !job->race.disturbed) {
        entry->kernels_retry = (struct inf_retry_delay){0};
    } else if (is_served) {
        entry->served->kernels_due = true;
        inf_retry_delay_note(&entry->kernels_retry, INF_STORE_KERNELS_RETRY_NS, inf_clock_ns());
    }
    if (places && entry->pending == 0) {
        const struct inf_store_load load = {.config = entry->served->config, .takes_kernels = true};
        places = inf_store_submit_placing(store, entry, &load, NULL) == INF_OK;
    }
    // Start the race of devices if it is due. If the kernels changed, it begins after the model is
    // placed again or loaded. If requests disturbed the race of kernels, the race of devices does
    // not wait for the next attempt, because requests may disturb that attempt too.
    if (is_served && !places && entry->served->placement.race_due && entry->races == 0)
        (void)!inf_store_submit_race(store, entry, NULL);
}
