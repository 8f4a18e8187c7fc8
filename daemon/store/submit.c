// SPDX-License-Identifier: Apache-2.0
// Creates loader jobs for clients or for the daemon itself, and increments the counts of pending
// jobs that events.c decrements. Loads that a scan starts may exceed the limit of queued jobs;
// loads that clients start may not.
#include "daemon/store/submit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "daemon/load/kept_plan.h"
#include "daemon/load/source/read_files.h"

// The most jobs started by clients that may be queued at a time.
#define LOADS_MAX 256u

enum inf_code inf_store_check_room(const struct inf_model_store *store,
                                   const struct inf_model_entry *entry, struct inf_error *err)
{
    if (store->pending >= LOADS_MAX)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s': %u loads wait already", entry->name, store->pending);
    return INF_OK;
}

// Creates a loader job about the model of one entry of the table of models. `base`, the served
// version of the model, may be NULL.
static enum inf_code create_job(struct inf_load_job **out_job, enum inf_load_job_kind kind,
                                const struct inf_model_entry *entry, struct inf_served *base,
                                uint64_t token, struct inf_error *err)
{
    struct inf_load_job *job = inf_load_job_create(kind);
    if (job == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to load model '%s'", entry->name);
    job->token = token;
    job->generation = entry->generation;
    if (base != NULL)
        job->base = inf_served_ref(base);
    snprintf(job->name, sizeof job->name, "%s", entry->name);
    snprintf(job->pin, sizeof job->pin, "%s", entry->pin);
    *out_job = job;
    return INF_OK;
}

static void submit_job(struct inf_model_store *store, struct inf_model_entry *entry,
                       struct inf_load_job *job)
{
    entry->warming = false;
    entry->pending++;
    store->pending++;
    inf_loader_submit(store->loader, job);
}

// Creates a loader job that is about no entry of the table of models.
static enum inf_code create_modelless_job(struct inf_load_job **out_job,
                                          const struct inf_model_store *store,
                                          enum inf_load_job_kind kind, uint64_t token,
                                          struct inf_error *err)
{
    if (store->pending >= LOADS_MAX)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING, "%u jobs wait already",
                               store->pending);
    *out_job = inf_load_job_create(kind);
    if (*out_job == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a job of the loader");
    (*out_job)->token = token;
    return INF_OK;
}

static void submit_modelless_job(struct inf_model_store *store, struct inf_load_job *job)
{
    store->pending++;
    inf_loader_submit(store->loader, job);
}

static void submit_racer_job(struct inf_model_store *store, struct inf_load_job *job)
{
    store->races++;
    inf_loader_submit(store->racer, job);
}

static void submit_race_job(struct inf_model_store *store, struct inf_model_entry *entry,
                            struct inf_load_job *job)
{
    entry->races++;
    submit_racer_job(store, job);
}

uint64_t inf_store_count_uses(const struct inf_model_entry *entry)
{
    return entry->past_uses +
           (entry->served != NULL ? atomic_load(&entry->served->request_count) : 0);
}

static void submit_model_job(struct inf_model_store *store, struct inf_model_entry *entry,
                             const struct inf_store_load *load,
                             struct inf_load_job *job) INF_ON_LOOP
{
    struct inf_load_model_job *model = &job->model;
    model->config = load->config;
    model->asked = load->asked;
    model->config_complete = job->base != NULL;
    model->default_device = store->default_device;
    model->rules = store->rules;
    model->precision_requested = load->precision_requested;
    model->decision = load->decision;
    // A load that neither a client nor an admin asked for unloads no other model.
    model->may_defer = !load->wanted && load->token == 0 && entry->served == NULL;
    model->saves = load->saves;
    model->persists = load->persists;
    model->forgets = load->forgets;
    model->wanted = load->wanted;
    model->by_admin = load->token != 0;
    model->takes_kernels = load->takes_kernels;
    const struct inf_model_entry *unpinned = inf_model_table_find(&store->table, entry->name, "");
    if (unpinned != NULL) {
        model->priority = unpinned->load_priority;
        model->uses = inf_store_count_uses(unpinned);
        model->rereads_settings = unpinned->access_unsure;
    }
    model->expected_bytes = entry->idle ? entry->idle_bytes : 0;
    if (load->path != NULL)
        snprintf(model->path, sizeof model->path, "%s", load->path);
    if (load->if_changed && entry->served != NULL) {
        model->known = inf_served_ref(entry->served);
        model->known_files = inf_read_files_ref(entry->served->files);
    } else if (load->if_changed && entry->idle && !load->wanted) {
        model->known_files = inf_read_files_ref(entry->idle_files);
        model->known_config_stamp = entry->idle_config_stamp;
    }
    if (entry->served != NULL && (job->base != NULL || load->if_changed))
        inf_served_shapes_print(&entry->served->shapes, model->shapes);
    entry->reason[0] = '\0';
    submit_job(store, entry, job);
}

enum inf_code inf_store_submit_load(struct inf_model_store *store, struct inf_model_entry *entry,
                                    const struct inf_store_load *load, struct inf_error *err)
{
    struct inf_load_job *job;
    INF_TRY(create_job(&job, INF_LOAD_JOB_MODEL, entry, NULL, load->token, err));
    if (load->directory_fd != NULL) {
        job->model.directory_fd = fcntl(*load->directory_fd, F_DUPFD_CLOEXEC, 0);
        if (job->model.directory_fd < 0) {
            inf_load_job_destroy(&job);
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no descriptor to load model '%s': %s", entry->name,
                                   strerror(errno));
        }
    }
    submit_model_job(store, entry, load, job);
    return INF_OK;
}

void inf_store_submit_refresh(struct inf_model_store *store, struct inf_model_entry *entry)
{
    struct inf_store_load load = {.if_changed = true};
    inf_model_config_init(&load.config);
    if (entry->served != NULL || entry->idle)
        inf_model_config_take_asked(&load.config,
                                    entry->served != NULL ? &entry->served->config : &entry->asked);
    struct inf_error err = {0};
    if (inf_store_submit_load(store, entry, &load, &err) != INF_OK)
        snprintf(entry->reason, sizeof entry->reason, "%.255s", err.text);
}

enum inf_code inf_store_submit_persisting(struct inf_model_store *store, const char *name,
                                          const char *value, uint64_t token, struct inf_error *err)
{
    struct inf_persisted_setting setting = {.model = ""};
    if (strlen(name) >= sizeof setting.name ||
        (value != NULL && strlen(value) >= sizeof setting.value))
        return inf_fail(err, INF_INVALID, "flag '%.48s': the text is too long", name);
    snprintf(setting.name, sizeof setting.name, "%s", name);
    snprintf(setting.value, sizeof setting.value, "%s", value != NULL ? value : "");
    struct inf_load_job *job;
    INF_TRY(create_modelless_job(&job, store, INF_LOAD_JOB_PERSIST, token, err));
    job->persist.setting = setting;
    job->persist.forgets = value == NULL;
    submit_modelless_job(store, job);
    return INF_OK;
}

enum inf_code inf_store_submit_deletion(struct inf_model_store *store, const char *name,
                                        const char *version, uint64_t token, struct inf_error *err)
{
    if (!inf_model_name_valid(name) || strlen(version) >= INF_VERSION_TEXT)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "model '%.64s', version '%.64s': wanted a name and a number", name,
                               version);
    struct inf_load_job *job;
    INF_TRY(create_modelless_job(&job, store, INF_LOAD_JOB_DELETE, token, err));
    snprintf(job->name, sizeof job->name, "%s", name);
    snprintf(job->deletion.version, sizeof job->deletion.version, "%s", version);
    submit_modelless_job(store, job);
    return INF_OK;
}

enum inf_code inf_store_submit_placing(struct inf_model_store *store, struct inf_model_entry *entry,
                                       const struct inf_store_load *load, struct inf_error *err)
{
    struct inf_load_job *job;
    assert(entry->served != NULL && load->path == NULL && !load->if_changed);
    INF_TRY(create_job(&job, INF_LOAD_JOB_MODEL, entry, entry->served, load->token, err));
    submit_model_job(store, entry, load, job);
    return INF_OK;
}

enum inf_code inf_store_submit_inspection(struct inf_model_store *store,
                                          struct inf_model_entry *entry, struct inf_served *served,
                                          uint64_t token, struct inf_inspect_request *request,
                                          struct inf_error *err)
{
    struct inf_load_job *job;
    assert(entry->served != NULL);
    INF_TRY(create_job(&job, INF_LOAD_JOB_INSPECT, entry, served, token, err));
    job->inspect.request = request;
    submit_job(store, entry, job);
    return INF_OK;
}

enum inf_code inf_store_submit_compilation(struct inf_model_store *store,
                                           struct inf_model_entry *entry, struct inf_served *served,
                                           uint64_t token, struct inf_device *device,
                                           const char *shapes, struct inf_error *err)
{
    struct inf_load_job *job;
    assert(entry->served != NULL);
    INF_TRY(create_job(&job, INF_LOAD_JOB_PRECOMPILE, entry, served, token, err));
    job->precompile.device = device;
    snprintf(job->precompile.shapes, sizeof job->precompile.shapes, "%s", shapes);
    submit_job(store, entry, job);
    return INF_OK;
}

enum inf_code inf_store_submit_race(struct inf_model_store *store, struct inf_model_entry *entry,
                                    struct inf_error *err)
{
    struct inf_load_job *job;
    assert(entry->served != NULL);
    INF_TRY(create_job(&job, INF_LOAD_JOB_RACE, entry, entry->served, 0, err));
    job->race.tolerance = store->rules.tolerance;
    job->race.placement = entry->served->placement;
    submit_race_job(store, entry, job);
    return INF_OK;
}

enum inf_code inf_store_submit_kernel_race(struct inf_model_store *store,
                                           struct inf_model_entry *entry, struct inf_error *err)
{
    struct inf_load_job *job;
    assert(entry->served != NULL);
    INF_TRY(create_job(&job, INF_LOAD_JOB_RACE, entry, entry->served, 0, err));
    job->race.kernels = true;
    store->kernels_race = true;
    submit_race_job(store, entry, job);
    return INF_OK;
}

enum inf_code inf_store_submit_steps(struct inf_model_store *store, struct inf_model_entry *entry,
                                     struct inf_served *served, struct inf_error *err)
{
    struct inf_load_job *job;
    INF_TRY(create_job(&job, INF_LOAD_JOB_STEPS, entry, served, 0, err));
    entry->trials++;
    submit_racer_job(store, job);
    return INF_OK;
}

enum inf_code inf_store_submit_scan(struct inf_model_store *store,
                                    struct inf_scan_known_models *known, uint64_t token,
                                    struct inf_error *err)
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_SCAN);
    if (job == NULL) {
        inf_scan_known_models_destroy(&known);
        return inf_fail(err, INF_EXHAUSTED, "no memory to read the repository");
    }
    job->token = token;
    job->scan.known = known;
    store->pending++;
    store->scans++;
    inf_loader_submit(store->loader, job);
    return INF_OK;
}

void inf_store_submit_uses(struct inf_model_store *store)
{
    struct inf_model_use_counts *counts = &store->use_counts;
    bool changed = false;
    for (uint32_t i = 0; i < store->table.count; i++) {
        const struct inf_model_entry *entry = store->table.entries[i];
        uint64_t uses = inf_store_count_uses(entry);
        if (entry->pin[0] != '\0' || entry->outside || uses == 0 ||
            uses == inf_model_use_counts_find(counts, entry->name))
            continue;
        inf_model_use_counts_set(counts, entry->name, uses);
        changed = true;
    }
    store->uses_kept_ns = inf_clock_ns();
    struct inf_load_job *job = changed ? inf_load_job_create(INF_LOAD_JOB_SAVE_USES) : NULL;
    if (job == NULL)
        return;
    job->save_uses.counts = malloc(sizeof *counts);
    if (job->save_uses.counts == NULL) {
        inf_load_job_destroy(&job);
        return;
    }
    *job->save_uses.counts = *counts;
    inf_loader_submit(store->loader, job);
}

void inf_store_submit_decision(struct inf_model_store *store, struct inf_place_decision *decision)
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_SAVE_DECISION);
    if (job == NULL) {
        free(decision);
        return;
    }
    job->save_decision.decision = decision;
    inf_loader_submit(store->loader, job);
}

void inf_store_submit_shapes(struct inf_model_store *store, struct inf_served *served)
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_SAVE_SHAPES);
    if (job == NULL)
        return;
    job->base = inf_served_ref(served);
    inf_served_shapes_print(&served->shapes, job->save_shapes.shapes);
    inf_loader_submit(store->loader, job);
}

void inf_store_submit_plan(struct inf_model_store *store, struct inf_served *served)
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_SAVE_PLAN);
    if (job == NULL)
        return;
    job->base = inf_served_ref(served);
    job->save_plan.facts = served->plan_facts;
    inf_kept_plan_note_ladder(&job->save_plan.facts, served);
    inf_loader_submit(store->loader, job);
}

void inf_store_submit_standby(struct inf_model_store *store, struct inf_served *served,
                              struct inf_device *device)
{
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_STANDBY);
    if (job == NULL)
        return;
    job->base = inf_served_ref(served);
    job->precompile.device = device;
    inf_served_shapes_print(&served->shapes, job->precompile.shapes);
    inf_loader_submit(store->loader, job);
}
