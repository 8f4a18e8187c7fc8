// SPDX-License-Identifier: Apache-2.0
// Takes the messages of the loader, and updates the table of models accordingly. If the entry of a
// message was removed or replaced meanwhile, its generation differs; then the message is only
// counted.
#include <assert.h>
#include <stdio.h>

#include "daemon/store/store.h"
#include "daemon/store/submit.h"

// Starts loading the models that a scan found. Settings that an admin gave for a served model are
// kept.
static void load_found(struct inf_model_store *store,
                       const struct inf_model_names *names) INF_ON_LOOP
{
    for (uint32_t i = 0; names != NULL && i < names->count; i++) {
        struct inf_model_entry *entry = inf_model_table_obtain(&store->table, names->names[i]);
        if (entry == NULL)
            return;
        struct inf_store_load load = {.if_changed = true};
        inf_model_config_init(&load.config);
        if (entry->served != NULL)
            inf_model_config_take_asked(&load.config, &entry->served->config);
        struct inf_error err = {0};
        if (inf_store_submit_load(store, entry, &load, &err) != INF_OK)
            snprintf(entry->reason, sizeof entry->reason, "%.255s", err.text);
    }
}

static void finish_scan(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)entry;
    (void)event;
    assert(store->pending > 0 && store->scans > 0);
    store->pending--;
    store->scans--;
    load_found(store, job->scan.names);
}

// Handles the end of a race (a timing comparison of devices). If the model already runs as the
// winner of the race, the result is only saved. Otherwise the model is placed again.
static void finish_race(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)event;
    struct inf_place_decision *decision = job->race.decision;
    assert(store->races > 0);
    store->races--;
    if (entry != NULL)
        entry->races--;
    if (entry == NULL || entry->served != job->base || decision == NULL)
        return;
    struct inf_served *served = entry->served;
    const struct inf_race *race = &decision->race;
    const struct inf_race_entry *chosen = &race->entries[race->chosen];
    if (chosen->device == served->device &&
        inf_run_options_equal(&chosen->options, &served->placement.options)) {
        inf_placement_adopt(&served->placement, race);
        if (served->precision == INF_PRECISION_AUTO)
            inf_precision_explain(&served->placement, served->precision_reason);
        inf_store_submit_decision(store, decision);
        job->race.decision = NULL;
        return;
    }
    const struct inf_store_load load = {.config = served->config, .decision = decision};
    struct inf_error ignored = {0};
    if (inf_store_submit_placing(store, entry, &load, &ignored) == INF_OK)
        job->race.decision = NULL;
}

// Puts a loaded model into the table of models, in place of the version that was served before.
static void replace_served(struct inf_model_store *store, struct inf_model_entry *entry,
                           struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    if (event->err.code != INF_OK) {
        snprintf(entry->reason, sizeof entry->reason, "%.255s", event->err.text);
        return;
    }
    entry->reason[0] = '\0';
    // The job loaded no model, because the file is unchanged: the daemon goes on serving the old
    // one.
    if (job->model.served == NULL)
        return;
    if (job->base != NULL && job->base != entry->served) {
        (void)inf_fail_reason(&event->err, INF_CANCELLED, INF_REASON_BY_ADMIN,
                              "model '%s' was loaded again while it was being placed", job->name);
        return;
    }
    // If the model was only placed again, clients see the same model, so its counters continue.
    if (job->base != NULL)
        atomic_store(&job->model.served->request_count, atomic_load(&job->base->request_count));
    inf_served_unref(&entry->served);
    entry->served = job->model.served;
    job->model.served = NULL;
    // Submit a race. If there is no memory for it, the model stays on the device that the prior
    // chose.
    if (entry->served->placement.race_due)
        (void)!inf_store_submit_race(store, entry, &(struct inf_error){0});
}

// Handles the end of a job that a client may be waiting for: a load, a placement, a compilation or
// an inspection.
static void finish_load(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    assert(store->pending > 0);
    store->pending--;
    if (entry == NULL) {
        event->err = (struct inf_error){0};
        (void)inf_fail_reason(&event->err, INF_CANCELLED, INF_REASON_BY_ADMIN,
                              "model '%s' was unloaded while it was loading", job->name);
        return;
    }
    entry->pending--;
    if (job->kind != INF_LOAD_JOB_MODEL)
        return;
    replace_served(store, entry, job, event);
    // Remove the row now. The admin who named the file has already received the error, and no later
    // scan would remove the row, because the repository has no such model.
    if (job->model.path[0] != '\0' && event->err.code != INF_OK && entry->served == NULL &&
        entry->pending == 0)
        inf_model_table_remove(&store->table, job->name);
}

static const struct {
    void (*finish)(struct inf_model_store *store, struct inf_model_entry *entry,
                   struct inf_load_job *job, struct inf_load_event *event);
    bool internal; // true: clients receive no event for jobs of this kind
} job_kinds[] = {
    [INF_LOAD_JOB_MODEL] = {.finish = finish_load},
    [INF_LOAD_JOB_SCAN] = {.finish = finish_scan}, // a scan changes only the number of pending jobs
    [INF_LOAD_JOB_RACE] = {.finish = finish_race, .internal = true},
    [INF_LOAD_JOB_SAVE_DECISION] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_SAVE_SHAPES] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_INSPECT] = {.finish = finish_load},
    [INF_LOAD_JOB_PRECOMPILE] = {.finish = finish_load},
};
_Static_assert(INF_ARRAY_LENGTH(job_kinds) == INF_LOAD_JOB_KINDS, "every kind of job is handled");

// Returns the table entry of the model that a message is about; NULL if the entry was removed or
// replaced.
static struct inf_model_entry *find_entry(const struct inf_model_store *store, const char *name,
                                          const struct inf_load_job *job)
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, name);
    return entry != NULL && (job == NULL || entry->generation == job->generation) ? entry : NULL;
}

bool inf_model_store_next_event(struct inf_model_store *store, struct inf_load_event *event)
{
    struct inf_load_message *message;
    while ((message = inf_loader_receive(store->loader)) != NULL) {
        struct inf_load_job *job = message->job;
        *event = message->event;
        message->event.rows = NULL; // *event owns the rows now
        bool internal = job != NULL && job_kinds[job->kind].internal;
        struct inf_model_entry *entry = find_entry(store, event->name, job);
        if (!internal && entry != NULL && event->rows == NULL)
            snprintf(entry->pending_version, sizeof entry->pending_version, "%s", event->version);
        if (job != NULL && job_kinds[job->kind].finish != NULL)
            job_kinds[job->kind].finish(store, entry, job, event);
        inf_load_message_destroy(&message);
        if (!internal)
            return true;
    }
    return false;
}
