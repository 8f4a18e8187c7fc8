// SPDX-License-Identifier: Apache-2.0
// Takes the messages of the loader, and updates the table of models accordingly. If the table entry
// that a message is about was removed or replaced since the job was submitted, its generation
// differs; then only the count of pending jobs changes.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/load/load_order.h"
#include "daemon/model/devices.h"
#include "daemon/store/evict.h"
#include "daemon/store/idle.h"
#include "daemon/store/kernel_races.h"
#include "daemon/store/room.h"
#include "daemon/store/step_trials.h"
#include "daemon/store/store.h"
#include "daemon/store/submit.h"
#include "daemon/store/versions.h"

// How long an idle model is not loaded after its last load failed.
#define LOAD_PAUSE_NS (1000 * INF_NS_PER_MS)

// Returns the entry of a model of the repository. A new one has the use of earlier processes.
static struct inf_model_entry *obtain_entry(struct inf_model_store *store,
                                            const char *name) INF_ON_LOOP
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, name, "");
    if (entry == NULL && (entry = inf_model_table_obtain(&store->table, name, "")) != NULL)
        entry->past_uses = inf_model_use_counts_find(&store->use_counts, name);
    return entry;
}

static void refresh_model(struct inf_model_store *store, const char *name, bool settled) INF_ON_LOOP
{
    struct inf_model_entry *entry = obtain_entry(store, name);
    if (entry == NULL)
        return;
    entry->is_new = false;
    if (entry->pending == 0 || !inf_loader_has_first_load(store->loader, name, settled))
        inf_store_submit_refresh(store, entry);
}

void inf_model_store_refresh(struct inf_model_store *store, const char *name, bool only_known)
{
    if (!only_known || inf_model_table_find(&store->table, name, "") != NULL)
        refresh_model(store, name, true);
}

static int compare_ranks(const void *a, const void *b)
{
    return inf_load_rank_compare(a, b);
}

// Starts loading the models that a scan found, those first that the loader would choose: it begins
// with the first one before it knows the others.
static void load_found(struct inf_model_store *store,
                       const struct inf_load_scan_job *scan) INF_ON_LOOP
{
    uint32_t count = scan->ranks != NULL ? scan->names->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct inf_load_rank *rank = &scan->ranks[i];
        struct inf_model_entry *entry = obtain_entry(store, rank->name);
        if (entry == NULL)
            continue;
        entry->load_priority = rank->priority;
        rank->uses = inf_store_count_uses(entry);
    }
    if (count > 0)
        qsort(scan->ranks, count, sizeof *scan->ranks, compare_ranks);
    for (uint32_t i = 0; i < count; i++)
        refresh_model(store, scan->ranks[i].name, false);
}

static void log_report(const struct inf_model_store *store,
                       const struct inf_scan_report *report) INF_ON_LOOP
{
    uint32_t counts[INF_SCAN_OUTCOMES] = {0};
    for (uint32_t i = 0; i < report->count; i++)
        counts[report->rows[i].outcome]++;
    inf_log(store->log, INF_LOG_NOTICE,
            "repository read again loading=%u unchanged=%u removed=%u refused=%u",
            counts[INF_SCAN_LOADING], counts[INF_SCAN_UNCHANGED], counts[INF_SCAN_REMOVED],
            counts[INF_SCAN_REFUSED]);
}

static void finish_scan(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)entry;
    assert(store->pending > 0 && store->scans > 0);
    store->pending--;
    store->scans--;
    event->report = job->scan.report;
    job->scan.report = NULL;
    if (event->report != NULL)
        log_report(store, event->report);
    load_found(store, &job->scan);
}

static void finish_persisting(struct inf_model_store *store, struct inf_model_entry *entry,
                              struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)entry;
    (void)job;
    (void)event;
    assert(store->pending > 0);
    store->pending--;
}

// Handles the end of a race (a timing comparison) of devices. If the model already runs on the
// winner of the race, the result is only saved. Otherwise the model is placed again.
static void finish_device_race(struct inf_model_store *store, struct inf_model_entry *entry,
                               struct inf_load_job *job) INF_ON_LOOP
{
    struct inf_place_decision *decision = job->race.decision;
    if (decision == NULL)
        store->counts.races_failed++;
    if (entry == NULL || entry->served != job->base || decision == NULL)
        return;
    struct inf_served *served = entry->served;
    const struct inf_race *race = &decision->race;
    const struct inf_race_entry *chosen = &race->entries[race->chosen];
    if (chosen->device == served->device &&
        inf_run_options_equal(&chosen->options, &served->placement.options)) {
        store->counts.races_kept++;
        inf_placement_adopt(&served->placement, race);
        if (served->precision == INF_PRECISION_AUTO)
            inf_precision_explain(&served->placement, served->precision_reason);
        inf_store_submit_decision(store, decision);
        job->race.decision = NULL;
        return;
    }
    store->counts.races_moved++;
    const struct inf_store_load load = {.config = served->config, .decision = decision};
    struct inf_error ignored = {0};
    if (inf_store_submit_placing(store, entry, &load, &ignored) == INF_OK)
        job->race.decision = NULL;
}

// Starts a race of kernels or a trial of joined steps, if one is due and the thread that runs both
// has nothing to do.
static void start_measurements(struct inf_model_store *store) INF_ON_LOOP
{
    (void)inf_store_start_kernel_race(store, inf_clock_ns());
    (void)inf_store_start_step_trial(store, inf_clock_ns());
}

static void finish_race(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)event;
    assert(store->races > 0);
    store->races--;
    if (entry != NULL)
        entry->races--;
    if (job->race.kernels)
        inf_store_finish_kernel_race(store, entry, job);
    else
        finish_device_race(store, entry, job);
    start_measurements(store);
}

static void finish_steps(struct inf_model_store *store, struct inf_model_entry *entry,
                         struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    assert(store->races > 0);
    store->races--;
    inf_store_finish_step_trial(store, entry, job, event);
    start_measurements(store);
}

// Notes how a compilation for joined steps ended, for `inferctl explain`.
static void finish_join(struct inf_model_store *store, struct inf_model_entry *entry,
                        struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)store;
    (void)entry;
    const struct inf_history_buffers *buffers = &job->join.buffers;
    char *failure = job->base->join_failure;
    if (event->err.code == INF_OK)
        failure[0] = '\0';
    else if (event->err.code != INF_CANCELLED)
        snprintf(failure, INF_STEP_WHY, "%u steps with %u rows: %.120s", buffers->sessions,
                 buffers->room, event->err.text);
}

// Copies the outcome of a trial of joined steps to a model that was placed again with the same
// kernels, if its device, its run options and its limit of rows are the same too.
static void keep_steps(struct inf_served *served, const struct inf_served *before) INF_ON_LOOP
{
    const struct inf_run_options is = inf_model_default_options(served->model, served->device);
    const struct inf_run_options was = inf_model_default_options(before->model, before->device);
    if (!served->steps_due || before->steps_due || served->device != before->device ||
        served->rows_max != before->rows_max || !inf_run_options_equal(&is, &was))
        return;
    struct inf_step_findings findings = before->step_findings;
    findings.ladder = before->ladder;
    inf_served_take_steps(served, &findings);
}

// Lets the counters of a model that was placed again, and those of its signatures, continue.
static void continue_counters(struct inf_served *served, const struct inf_served *before,
                              bool same_kernels) INF_ON_LOOP
{
    if (same_kernels)
        keep_steps(served, before);
    atomic_store(&served->request_count, atomic_load(&before->request_count));
    for (uint32_t i = 0; i < served->signature_count; i++) {
        struct inf_served *old = NULL;
        for (uint32_t j = 0; j < before->signature_count && old == NULL; j++)
            if (strcmp(before->signatures[j].key, served->signatures[i].key) == 0)
                old = before->signatures[j].served;
        if (old != NULL && served->signatures[i].served != NULL)
            continue_counters(served->signatures[i].served, old, same_kernels);
    }
}

// Gives a model that will be served, and its signatures, the account of the model.
static void share_quota(const struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP
{
    const struct inf_model_entry *model = inf_model_table_find(&store->table, served->name, "");
    if (model == NULL)
        return;
    served->quota = inf_model_quota_ref(model->quota);
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            served->signatures[i].served->quota = inf_model_quota_ref(model->quota);
}

// Applies the settings of a model that take effect without a load: to its account, and to what is
// served of it in all versions.
static void apply_live_settings(struct inf_model_store *store, struct inf_model_entry *model,
                                const struct inf_model_config *settings) INF_ON_LOOP
{
    struct inf_model_quota *quota = model->quota;
    quota->most[INF_MODEL_QUOTA_REQUESTS] = settings->requests_max;
    quota->most[INF_MODEL_QUOTA_RATE] = settings->requests_per_second_max;
    quota->most[INF_MODEL_QUOTA_SESSION_BYTES] = settings->session_bytes_max;
    model->load_priority = (uint8_t)inf_model_priority_parse(settings->priority);
    quota->priority = (uint8_t)inf_model_priority_parse(settings->priority);
    quota->priority_max = (uint8_t)inf_model_priority_parse(settings->priority_max);
    for (struct inf_model_entry *entry = model; entry != NULL;
         entry = inf_model_table_next_pin(&store->table, model->name, entry->pin)) {
        struct inf_served *served = entry->served;
        if (served != NULL)
            inf_model_config_take_live(&served->config, settings);
        for (uint32_t i = 0; served != NULL && i < served->signature_count; i++)
            if (served->signatures[i].served != NULL)
                inf_model_config_take_live(&served->signatures[i].served->config, settings);
    }
}

// Notes who may use a model. If its settings could not be read, the lists stay that were read
// before; if there are none, only admins may use the model. The lists beside a file that an admin
// could not load do not replace those of the repository.
static void note_access(struct inf_model_entry *model, const struct inf_load_model_job *job,
                        bool loaded) INF_ON_LOOP
{
    bool outside = job->path[0] != '\0' || job->directory_fd >= 0;
    if (!job->has_access || (job->access_failed && model->access_known) || (outside && !loaded))
        return;
    model->access = job->access;
    model->access_known = !job->access_failed;
    model->access_unsure = !loaded;
}

// Has the plans of a model and of its further signatures kept, as far as they are not kept yet.
static void submit_plans(struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP
{
    if (served->plan_due)
        inf_store_submit_plan(store, served);
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL && served->signatures[i].served->plan_due)
            inf_store_submit_plan(store, served->signatures[i].served);
}

// Has a model on a GPU, and its further signatures, compiled for the device that takes over if the
// GPU is lost. Does nothing if the daemon exceeds its budget of memory already.
static void submit_standby(struct inf_model_store *store, struct inf_served *served) INF_ON_LOOP
{
    uint32_t other = inf_model_device_find_other(store->devices, served->device);
    if (!store->standby || inf_device_info(served->device)->host_memory ||
        other == INF_DEVICE_INDEX_NONE ||
        (store->budget != NULL && inf_memory_budget_excess(store->budget, 0) > 0))
        return;
    inf_store_submit_standby(store, served, store->devices->devices[other]);
    for (uint32_t i = 0; i < served->signature_count; i++)
        if (served->signatures[i].served != NULL)
            inf_store_submit_standby(store, served->signatures[i].served,
                                     store->devices->devices[other]);
}

// A model may be placed several times at once: after races, and for admins. Makes the latest
// placement the base of this one. Returns false if the files were loaded again meanwhile, or if the
// model was placed meanwhile and no admin asked for this placement: a race that ended before an
// admin's placement would undo it.
static bool follow_base(struct inf_load_job *job, const struct inf_model_entry *entry) INF_ON_LOOP
{
    if (entry->served == NULL || entry->served->load_number != job->base->load_number)
        return false;
    if (entry->served == job->base)
        return true;
    if (!job->model.by_admin)
        return false;
    inf_served_unref(&job->base);
    job->base = inf_served_ref(entry->served);
    return true;
}

// Returns true if a load that failed with this code may succeed later although nothing changes.
static bool may_pass(enum inf_code code)
{
    return code == INF_EXHAUSTED || code == INF_UNAVAILABLE;
}

// Puts a loaded model into the table of models, in place of the version that was served before.
static void replace_served(struct inf_model_store *store, struct inf_model_entry *entry,
                           struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    bool was_idle = entry->idle, is_wanted = job->model.wanted || entry->is_wanted;
    entry->idle = entry->is_wanted = false;
    if (job->model.room == INF_ROOM_DEFERRED && entry->served == NULL) {
        entry->asked = job->model.config;
        entry->idle = true;
        store->counts.loads_deferred++;
        return;
    }
    if (job->model.room == INF_ROOM_REFUSED)
        store->counts.loads_refused++;
    if (event->err.code != INF_OK) {
        // An idle model stays idle if the cause may pass, so that a later request tries again.
        entry->idle = was_idle && may_pass(event->err.code);
        entry->load_after_ns = inf_clock_ns() + LOAD_PAUSE_NS;
        snprintf(entry->reason, sizeof entry->reason, "%.255s", event->err.text);
        return;
    }
    entry->reason[0] = '\0';
    entry->is_new = false;
    // The job loaded no model, because the files are unchanged: the daemon goes on serving the
    // present version, or the model stays idle.
    if (job->model.served == NULL) {
        entry->idle = was_idle && entry->served == NULL;
        return;
    }
    if (job->base != NULL && !follow_base(job, entry)) {
        (void)inf_fail_reason(&event->err, INF_CANCELLED, INF_REASON_BY_ADMIN,
                              "model '%s' was loaded again or placed while it was being placed",
                              job->name);
        return;
    }
    // If the model was only placed again, clients see the same model, so its counters continue.
    if (job->base != NULL)
        continue_counters(job->model.served, job->base, !job->model.takes_kernels);
    share_quota(store, job->model.served);
    if (entry->pin[0] == '\0' && entry->served != NULL &&
        strcmp(entry->served->version, job->model.served->version) != 0)
        inf_store_keep_version(store, entry, &job->model.versions);
    if (job->base == NULL)
        entry->past_uses = inf_store_count_uses(entry);
    inf_served_unref(&entry->served);
    // A model that was loaded again may have other kernels, so its races start without a delay.
    if (!job->model.config_complete)
        entry->kernels_retry = (struct inf_retry_delay){0};
    entry->steps_retry = (struct inf_retry_delay){0};
    if (job->base == NULL)
        entry->outside = job->model.path[0] != '\0' || job->model.directory_fd >= 0;
    job->model.served->used_ns = inf_clock_ns();
    entry->served = job->model.served;
    job->model.served = NULL;
    if (is_wanted)
        entry->awaited_until_ns = inf_clock_ns() + INF_STORE_AWAITED_NS;
    submit_plans(store, entry->served);
    submit_standby(store, entry->served);
    // Submit a race of devices, unless the kernels race first. If there is no memory for it, the
    // model stays on the device that the prior chose.
    if (entry->served->placement.race_due && !entry->served->kernels_due)
        (void)!inf_store_submit_race(store, entry, &(struct inf_error){0});
    start_measurements(store);
}

// Returns true if the entry of a model whose load has failed is of no use: the model exists nowhere
// else than in the request of the admin, who gets the error.
static bool is_gone(const struct inf_model_store *store, const struct inf_model_entry *entry,
                    enum inf_reason reason)
{
    return entry->served == NULL && entry->pending == 0 && !entry->idle &&
           (entry->is_new || reason == INF_REASON_MODEL_NOT_FOUND) &&
           inf_model_table_next_pin(&store->table, entry->name, entry->pin) == NULL;
}

// Returns true if the settings of a job are out of date: a job has the settings of the model that
// was served when the job was submitted, and the model was placed with other settings since.
// Returns false if the files were loaded again since.
static bool has_old_settings(const struct inf_load_job *job, const struct inf_model_entry *entry)
{
    const struct inf_served *from = job->model.config_complete ? job->base : job->model.known;
    return from != NULL && entry->served != NULL && entry->served != from &&
           entry->served->load_number == from->load_number &&
           !inf_model_config_loads_same(&entry->served->config, &from->config);
}

// Submits a job again with the present settings, if its result would undo an admin's placement that
// ended after the job was submitted. The job is a placement, which gets the settings that its admin
// asked for in addition, or a load of changed files. Returns false if repeating the job is not
// necessary or not possible.
static bool repeat_job(struct inf_model_store *store, struct inf_model_entry *entry,
                       const struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    bool is_placement = job->model.config_complete;
    bool changes = is_placement ? job->model.by_admin : job->model.served != NULL;
    if (!changes || event->err.code == INF_CANCELLED || event->err.code == INF_DEADLINE ||
        !has_old_settings(job, entry))
        return false;
    struct inf_store_load load = {.token = job->token,
                                  .asked = job->model.asked,
                                  .if_changed = !is_placement,
                                  .precision_requested = job->model.precision_requested,
                                  .persists = job->model.persists};
    if (is_placement)
        load.config = entry->served->config;
    else
        inf_model_config_init(&load.config);
    inf_model_config_take_asked(&load.config, is_placement ? &load.asked : &entry->served->config);
    enum inf_code code = is_placement ? inf_store_submit_placing(store, entry, &load, NULL)
                                      : inf_store_submit_load(store, entry, &load, NULL);
    if (code != INF_OK)
        return false;
    event->err = (struct inf_error){0};
    event->final = false;
    event->stage = "optimise";
    event->percent = 0;
    return true;
}

// Handles the end of a job that a client may be waiting for: a load, a placement, a compilation or
// an inspection. If the job is repeated, *event becomes a report of its progress.
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
    if (repeat_job(store, entry, job, event))
        return;
    entry->was_loaded = true;
    struct inf_model_entry *model = inf_model_table_find(&store->table, job->name, "");
    if (model != NULL)
        note_access(model, &job->model, event->err.code == INF_OK);
    replace_served(store, entry, job, event);
    // A placement has the settings that its base had when the placement was submitted. Those of the
    // base may have changed since.
    const struct inf_model_config *settings =
        job->model.config_complete && job->base != NULL ? &job->base->config : &job->model.settings;
    if (model != NULL && job->model.has_settings && event->err.code == INF_OK)
        apply_live_settings(store, model, settings);
    if (event->err.code != INF_OK && is_gone(store, entry, event->err.reason)) {
        inf_model_table_remove(&store->table, job->name, job->pin);
        return;
    }
    if (entry == model)
        inf_store_sync_versions(store, entry, &job->model.versions);
    else if (model != NULL)
        inf_store_settle_versions(store, model);
}

// The memory of executables for new shapes may be that of idle models.
static void finish_shapes(struct inf_model_store *store, struct inf_model_entry *entry,
                          struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)entry;
    (void)job;
    (void)event;
    inf_store_keep_limit(store, inf_clock_ns());
}

// Unloads a version whose files were removed from the repository. If the repository has others, one
// of them takes its place.
static void finish_deletion(struct inf_model_store *store, struct inf_model_entry *entry,
                            struct inf_load_job *job, struct inf_load_event *event) INF_ON_LOOP
{
    (void)entry;
    const struct inf_saved_version_rest *rest = &job->deletion.rest;
    const struct inf_model_entry *model = inf_model_table_find(&store->table, job->name, "");
    assert(store->pending > 0);
    store->pending--;
    // A model that was loaded from a path meanwhile stays.
    if (event->err.code != INF_OK || model == NULL || model->outside)
        return;
    // The version may not be served, which is no failure.
    (void)!inf_model_store_unload(store, job->name, rest->version, NULL);
    if (rest->has_versions)
        inf_model_store_refresh(store, job->name, false);
}

static const struct {
    void (*finish)(struct inf_model_store *store, struct inf_model_entry *entry,
                   struct inf_load_job *job, struct inf_load_event *event);
    bool internal; // true: clients receive no event for jobs of this kind
} job_kinds[] = {
    [INF_LOAD_JOB_MODEL] = {.finish = finish_load},
    [INF_LOAD_JOB_SCAN] = {.finish = finish_scan}, // a scan changes only the number of pending jobs
    [INF_LOAD_JOB_RACE] = {.finish = finish_race, .internal = true},
    [INF_LOAD_JOB_STEPS] = {.finish = finish_steps, .internal = true},
    [INF_LOAD_JOB_JOIN] = {.finish = finish_join, .internal = true},
    [INF_LOAD_JOB_SAVE_DECISION] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_SAVE_SHAPES] = {.finish = finish_shapes, .internal = true},
    [INF_LOAD_JOB_SAVE_PLAN] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_SAVE_USES] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_SAVE_HANG] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_INSPECT] = {.finish = finish_load},
    [INF_LOAD_JOB_PRECOMPILE] = {.finish = finish_load},
    [INF_LOAD_JOB_STANDBY] = {.finish = NULL, .internal = true},
    [INF_LOAD_JOB_PERSIST] = {.finish = finish_persisting},
    [INF_LOAD_JOB_DELETE] = {.finish = finish_deletion},
};
_Static_assert(INF_ARRAY_LENGTH(job_kinds) == INF_LOAD_JOB_KINDS, "every kind of job is handled");

// Returns the table entry of the model that a message is about; NULL if the entry was removed or
// replaced.
static struct inf_model_entry *find_entry(const struct inf_model_store *store,
                                          const struct inf_load_event *event,
                                          const struct inf_load_job *job)
{
    struct inf_model_entry *entry = inf_model_table_find(&store->table, event->name, event->pin);
    return entry != NULL && (job == NULL || entry->generation == job->generation) ? entry : NULL;
}

bool inf_model_store_next_event(struct inf_model_store *store, struct inf_load_event *event)
{
    struct inf_load_message *message;
    while ((message = inf_loader_receive(store->loader)) != NULL) {
        struct inf_load_job *job = message->job;
        *event = message->event;
        message->event.rows = NULL; // *event owns the report about nodes from now on
        if (job != NULL && job->kind == INF_LOAD_JOB_MODEL)
            inf_store_release_room(store);
        bool internal = job != NULL && job_kinds[job->kind].internal;
        struct inf_model_entry *entry = find_entry(store, event, job);
        if (event->room.ticket != 0) {
            inf_store_answer_room(store, event);
            inf_load_message_destroy(&message);
            continue;
        }
        if (entry != NULL && event->stage != NULL)
            entry->warming =
                strcmp(event->stage, "compile") == 0 || strcmp(event->stage, "warm-up") == 0;
        bool is_load = job == NULL || job->kind != INF_LOAD_JOB_DELETE;
        if (!internal && is_load && entry != NULL && event->rows == NULL)
            snprintf(entry->pending_version, sizeof entry->pending_version, "%s", event->version);
        if (job != NULL && job_kinds[job->kind].finish != NULL)
            job_kinds[job->kind].finish(store, entry, job, event);
        inf_load_message_destroy(&message);
        if (!internal)
            return true;
    }
    return false;
}
