// SPDX-License-Identifier: Apache-2.0
// Starts trials of joined decoding steps, and takes up their outcomes. The thread that runs races
// runs the trials too. A trial that was disturbed has no outcome, so it is repeated later.
#include "daemon/store/step_trials.h"

#include "backends/base/clock.h"
#include "daemon/store/store.h"
#include "daemon/store/submit.h"

// Returns the served model of the entry, or one of its signatures, if its trial is due; NULL: no
// trial of the entry is due.
static struct inf_served *find_due_part(const struct inf_model_entry *entry)
{
    struct inf_served *served = entry->served;
    if (served == NULL || served->steps_due)
        return served;
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL && served->signatures[i].served->steps_due)
            return served->signatures[i].served;
    return NULL;
}

// Returns true if the kernels of the entry's model have raced, or requests disturb their races.
static bool has_raced(const struct inf_model_entry *entry)
{
    return !entry->served->kernels_due || entry->kernels_retry.gave_up > 0;
}

// Returns the entry whose trial may begin first; NULL: no trial is due. Models whose trials were
// not disturbed come first, and the other models in the order of their next attempts.
static struct inf_model_entry *find_due(const struct inf_model_store *store)
{
    struct inf_model_entry *first = NULL;
    for (uint32_t i = 0; i < store->table.count; i++) {
        struct inf_model_entry *entry = store->table.entries[i];
        if (find_due_part(entry) != NULL && entry->pending == 0 && has_raced(entry) &&
            (first == NULL || entry->steps_retry.after_ns < first->steps_retry.after_ns))
            first = entry;
    }
    return first;
}

uint64_t inf_store_start_step_trial(struct inf_model_store *store, uint64_t now_ns)
{
    struct inf_model_entry *entry = find_due(store);
    if (entry == NULL)
        return UINT64_MAX;
    if (now_ns < entry->steps_retry.after_ns)
        return entry->steps_retry.after_ns;
    // When a race or another trial ends, the store calls this function again. Without memory for
    // the job, the model serves without joined steps until the next call.
    if (store->races == 0)
        (void)!inf_store_submit_steps(store, entry, find_due_part(entry), NULL);
    return now_ns + INF_STORE_STEPS_RETRY_NS;
}

// Returns true if `served` is the served model of the entry, or one of its signatures.
static bool is_part(const struct inf_model_entry *entry, const struct inf_served *served)
{
    if (entry == NULL || entry->served == NULL)
        return false;
    bool found = entry->served == served;
    for (uint32_t i = 0; i < entry->served->signature_count && !found; i++)
        found = entry->served->signatures[i].served == served;
    return found;
}

void inf_store_finish_step_trial(struct inf_model_store *store, struct inf_model_entry *entry,
                                 const struct inf_load_job *job, const struct inf_load_event *event)
{
    if (entry != NULL)
        entry->trials--;
    // A model that was loaded or placed meanwhile has a trial of its own.
    if (!is_part(entry, job->base) || event->err.code == INF_CANCELLED)
        return;
    if (event->err.code != INF_OK) {
        inf_retry_delay_note(&entry->steps_retry, INF_STORE_STEPS_RETRY_NS, inf_clock_ns());
        return;
    }
    entry->steps_retry = (struct inf_retry_delay){0};
    inf_served_take_steps(job->base, &job->steps.findings);
    if (job->base->cache_key != 0)
        inf_store_submit_plan(store, job->base);
}
