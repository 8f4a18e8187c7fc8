// SPDX-License-Identifier: Apache-2.0
// One load, from top to bottom: finds the file, reads the settings, compares them with the served
// model, imports the graph, and warms the model up (daemon/load/warm_up.h). If a model is only
// placed again, the file is not read and the graph of the served model is copied.
//
// If the file has several signatures, each further one becomes a model of its own, which the model
// of the default signature owns: all are replaced and unloaded together. A signature that cannot be
// loaded does not fail the load.
#include "daemon/load/load.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/common/described_settings.h"
#include "backends/registry.h"
#include "daemon/load/model_check.h"
#include "daemon/load/race/background_kernels.h"
#include "daemon/load/source/load_graph.h"
#include "daemon/load/source/load_source.h"
#include "daemon/load/source/quarantine.h"
#include "daemon/load/warm_up.h"
#include "proto/wire/message.h"

// Compiles the model for its replicas, the additional devices that its settings name.
static enum inf_code warm_up_replicas(struct inf_load *load, const struct inf_warm_plan *plan,
                                      struct inf_error *err)
{
    struct inf_served *served = load->served;
    const struct inf_replicas_subject subject = {.name = served->name,
                                                 .key = served,
                                                 .model = served->model,
                                                 .main_device = served->device,
                                                 .names = load->config.replica_devices,
                                                 .devices = load->options->devices,
                                                 .plan = plan,
                                                 .log = load->options->log};
    return inf_replicas_warm_up(&served->replicas, &subject, err);
}

static enum inf_code warm_up_model(struct inf_load *load, struct inf_error *err)
{
    struct inf_warm_up warm_up = {.job = load->job,
                                  .cancelled = &load->order->cancelled,
                                  .options = load->options,
                                  .progress = load->progress,
                                  .allow = load->allow,
                                  .pinned = load->pinned,
                                  .kept = load->from_plan ? &load->kept : NULL,
                                  .kept_elsewhere = load->plan_was_ahead,
                                  .served = load->served};
    enum inf_code code = inf_warm_up_run(&warm_up, err);
    if (code == INF_OK)
        code = warm_up_replicas(load, &warm_up.plan, err);
    inf_warm_up_fini(&warm_up);
    return code;
}

// Notes what the settings say about the model. If the model is placed again without its directory,
// that stays. A further signature has other inputs and outputs, which the settings do not describe.
static enum inf_code describe_by_settings(struct inf_load *load,
                                          struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_served *base = load->job->base;
    if (load->order != load->job)
        return INF_OK;
    if (load->location.directory_fd < 0) {
        load->served->described = base != NULL ? inf_model_description_ref(base->described) : NULL;
        return INF_OK;
    }
    const struct inf_described_settings settings = {.description = load->config.description,
                                                    .license = load->config.license,
                                                    .labels_file = load->config.labels_file,
                                                    .input_mean = load->config.input_mean,
                                                    .input_deviation =
                                                        load->config.input_deviation};
    return inf_described_settings_create(&load->served->described, &settings, load->graph,
                                         load->location.directory_fd, err);
}

static enum inf_code create_served(struct inf_load *load, struct inf_error *err)
{
    struct inf_served *served = calloc(1, sizeof *served);
    if (served == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a model");
    load->served = served;
    atomic_init(&served->references, 1);
    served->stamp = load->location.stamp;
    served->files = inf_read_files_ref(load->files != NULL ? load->files : load->job->base->files);
    served->config = load->config;
    atomic_init(&served->config_stamp, load->location.config_stamp);
    snprintf(served->name, sizeof served->name, "%s", load->job->name);
    snprintf(served->version, sizeof served->version, "%s", load->location.version);
    snprintf(served->platform, sizeof served->platform, "%s", load->platform);
    served->content_hash = load->info.content_hash;
    served->file_hash = load->file_hash;
    served->hang_key = load->hang_key;
    served->description = load->description;
    load->description = NULL;
    INF_TRY(describe_by_settings(load, err));
    inf_load_report(load->progress, load->location.version, "optimise", INF_LOAD_PERCENT_OPTIMISE);
    const struct inf_pass_options passes = {.evaluator = load->options->evaluator,
                                            .already_run = load->from_plan,
                                            .cancelled = &load->order->cancelled};
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(load->options->devices, hosts, INF_MODEL_HOSTS);
    INF_TRY(inf_model_create(&served->model, &load->graph, hosts, host_count, &passes, err));
    inf_model_set_arena_budget(served->model, load->options->arena_budget);
    inf_model_defer_races(served->model);
    INF_TRY(inf_kept_plan_offer(&load->kept, served->model, load->options->devices, err));
    // While the model is not served, only this job compiles it.
    inf_model_set_cancelled(served->model, &load->order->cancelled);
    enum inf_code code = warm_up_model(load, err);
    // The check is in the directory of the model, and is one of the default signature. It is not
    // run if the model is a single file, or if the model is only placed again and its directory is
    // not open.
    if (code == INF_OK && load->location.has_directory && load->order == load->job)
        code = inf_model_check_run(served, load->location.directory_fd, &load->job->cancelled,
                                   load->options->log, err);
    inf_model_set_cancelled(served->model, NULL);
    INF_TRY(code);
    // A compilation that failed may be no failure of the load, but a cancellation is one.
    INF_TRY(inf_load_job_check(load->order, err));
    served->compilations = inf_compilations_list(served->model);
    inf_model_allow_eviction(served->model);
    return INF_OK;
}

// Compares the present files with the files that the served or idle model was loaded from. If the
// files and the settings are unchanged, sets job->model.unchanged. If only the settings changed,
// the load takes the graph of the served model.
static void compare_known(struct inf_load *load) INF_MAY_BLOCK
{
    struct inf_load_job *job = load->job;
    struct inf_served *known = job->model.known;
    char name[INF_READ_FILES_NAME];
    if (job->model.known_files == NULL)
        return;
    if (inf_read_files_find_changed(job->model.known_files, &load->location, name)) {
        inf_log(load->options->log, INF_LOG_INFO, "model files changed name=%s file=%s", job->name,
                name[0] != '\0' ? name : load->location.file);
        return;
    }
    uint64_t config_stamp =
        known != NULL ? atomic_load(&known->config_stamp) : job->model.known_config_stamp;
    job->model.unchanged =
        config_stamp == load->location.config_stamp && !job->model.rereads_settings;
    if (!job->model.unchanged && known != NULL)
        job->base = inf_served_ref(known);
}

// Waits until the budget of memory has room for the model. If the model was loaded before, its
// memory is known; otherwise the estimate is the size of its files, which have the weights.
static enum inf_code reserve_room(struct inf_load *load, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_load_model_job *model = &load->job->model;
    uint64_t bytes = model->expected_bytes;
    if (!load->options->asks_for_room)
        return INF_OK;
    if (load->job->base != NULL) {
        struct inf_model_memory memory = inf_model_memory(load->job->base->model);
        bytes = memory.const_bytes + memory.weight_bytes + memory.arena_bytes;
    }
    if (bytes == 0)
        bytes = inf_model_location_bytes(&load->location);
    return load->progress->reserve(load->progress->context, bytes,
                                   model->may_defer && !load->config.pinned, &model->room, err);
}

// Notes in the journal that the load begins, so that the next start knows if the daemon did not
// survive it. Refuses a model that the daemon did not survive several times, unless an admin asked
// for the load.
static enum inf_code begin_journal(struct inf_load *load, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_load_options *options = load->options;
    if (options->journal == NULL || load->location.stamp == 0)
        return INF_OK;
    const struct inf_quarantine_keys keys =
        inf_quarantine_make_keys(load->location.stamp, load->job->name, options->build);
    if (!load->job->model.by_admin)
        INF_TRY(inf_quarantine_check(options->journal, &keys, load->job->name, err));
    else if (inf_load_journal_crashes(options->journal, keys.run) > 0)
        inf_load_journal_end(options->journal, keys.run);
    load->hang_key = keys.run;
    load->journal_key = keys.load;
    inf_load_journal_begin(options->journal, keys.load);
    return INF_OK;
}

// --- further signatures of the file ---

// Returns the model that served `key` of the file before it was placed again; NULL: none did.
static struct inf_served *find_base(const struct inf_served *base, const char *key)
{
    for (uint32_t i = 0; base != NULL && i < base->signature_count; i++)
        if (strcmp(base->signatures[i].key, key) == 0)
            return base->signatures[i].served;
    return NULL;
}

// Loads the graph of one signature like a model of its own, and compiles it.
static enum inf_code run_signature_load(struct inf_load *part, const struct inf_load *whole,
                                        struct inf_error *err)
{
    struct inf_served *base = find_base(whole->job->base, part->config.signature);
    if (base != NULL) {
        part->job->base = inf_served_ref(base);
        INF_TRY(inf_load_graph_copy(part, err));
    } else if (whole->job->base != NULL) {
        return inf_fail(err, INF_UNAVAILABLE, "it was not served when the model was placed again");
    } else {
        INF_TRY(inf_load_graph_read(part, err));
    }
    if (part->file_hash != whole->file_hash)
        return inf_fail(err, INF_UNAVAILABLE, "the file changed while it was being loaded");
    INF_TRY(create_served(part, err));
    inf_load_graph_offer_plan(part, part->served);
    return INF_OK;
}

// Loads signature->key of the file that `whole` has loaded. Failures are kept in the signature,
// because a file may have signatures for training, which are not supported.
//
// INF_CANCELLED, INF_DEADLINE  the load was cancelled.
static enum inf_code load_signature(const struct inf_load *whole,
                                    struct inf_served_signature *signature, struct inf_error *err)
{
    static const struct inf_load_progress_sink silent = {.report = NULL};
    struct inf_error why = {0};
    struct inf_load part = {.job = inf_load_job_create(INF_LOAD_JOB_MODEL),
                            .order = whole->order,
                            .options = whole->options,
                            .progress = &silent,
                            .location = whole->location, // borrowed
                            .files = whole->files,       // borrowed
                            .config = whole->config,
                            .allow = whole->allow,
                            .pinned = whole->pinned,
                            .hang_key = whole->hang_key};
    if (part.job == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a load");
    snprintf(part.config.signature, sizeof part.config.signature, "%s", signature->key);
    inf_served_signature_name(part.job->name, whole->job->name, signature->key);
    part.job->model.rules = whole->job->model.rules;
    part.job->model.precision_requested = whole->job->model.precision_requested;
    part.job->model.takes_kernels = whole->job->model.takes_kernels;
    enum inf_code code = run_signature_load(&part, whole, &why);
    if (code == INF_OK) {
        signature->served = part.served;
        part.served = NULL;
        inf_log(whole->options->log, INF_LOG_INFO, "signature loaded name=%s device=%s",
                part.job->name, inf_device_info(signature->served->device)->name);
    } else {
        snprintf(signature->reason, sizeof signature->reason, "%.255s", why.text);
        inf_log(whole->options->log, INF_LOG_WARNING, "signature not loaded name=%s reason=\"%s\"",
                part.job->name, why.text);
    }
    inf_graph_destroy(&part.graph);
    inf_model_description_unref(&part.description);
    inf_served_destroy(&part.served);
    inf_kept_plan_fini(&part.kept);
    inf_load_job_destroy(&part.job);
    return inf_load_job_check(whole->order, err);
}

// Returns true if clients can name `key` of this model and `key` is not the default signature.
static bool is_further_signature(const struct inf_served *served, const char *key)
{
    return strcmp(key, served->default_signature) != 0 && inf_model_name_valid(key) &&
           strlen(served->name) + 1 + strlen(key) <= INF_LIMIT_MODEL_NAME;
}

// Loads the other signatures of the file, unless the settings choose one.
static enum inf_code load_signatures(struct inf_load *load, struct inf_error *err)
{
    struct inf_served *served = load->served;
    const struct inf_model_description *description = served->description;
    if (load->config.signature[0] != '\0')
        snprintf(served->default_signature, sizeof served->default_signature, "%.*s",
                 (int)INF_LIMIT_MODEL_NAME, load->config.signature);
    if (load->config.signature[0] != '\0' || description == NULL ||
        description->signature_count == 0)
        return INF_OK;
    if (description->default_signature != NULL &&
        inf_model_name_valid(description->default_signature))
        snprintf(served->default_signature, sizeof served->default_signature, "%s",
                 description->default_signature);
    uint32_t capacity = INF_MIN(description->signature_count, INF_SERVED_SIGNATURES);
    served->signatures = calloc(capacity, sizeof *served->signatures);
    if (served->signatures == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for signatures");
    for (uint32_t i = 0; i < description->signature_count; i++) {
        const char *key = description->signatures[i];
        if (!is_further_signature(served, key))
            continue;
        if (served->signature_count == capacity) {
            inf_log(load->options->log, INF_LOG_WARNING,
                    "signatures not loaded name=%s most=%u first=%s", served->name,
                    INF_SERVED_SIGNATURES, key);
            break;
        }
        struct inf_served_signature *signature = &served->signatures[served->signature_count++];
        snprintf(signature->key, sizeof signature->key, "%s", key);
        INF_TRY(load_signature(load, signature, err));
    }
    return INF_OK;
}

static enum inf_code run_load(struct inf_load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->base == NULL) {
        INF_TRY(inf_load_source_find(load, err));
        if (job->model.saves)
            INF_TRY(inf_load_source_save(load, err));
        compare_known(load);
    }
    snprintf(job->version, sizeof job->version, "%s", load->location.version);
    if (job->model.unchanged)
        return INF_OK;
    INF_TRY(inf_load_source_list_files(load, err));
    INF_TRY(inf_load_source_read_config(load, err));
    // If only the settings `versions` or `labels` changed, the loaded version stays as it is.
    job->model.unchanged = job->base != NULL && job->base == job->model.known &&
                           inf_model_config_loads_same(&load->config, &job->base->config);
    // The next load compares the file with the settings that are in effect.
    if (job->model.unchanged) {
        atomic_store(&job->base->config_stamp, load->location.config_stamp);
        return INF_OK;
    }
    INF_TRY(reserve_room(load, err));
    if (job->model.room != INF_ROOM_GRANTED)
        return INF_OK;
    INF_TRY(begin_journal(load, err));
    // Another signature of the same file is another graph.
    if (job->base != NULL && strcmp(job->base->config.signature, load->config.signature) != 0)
        inf_served_unref(&job->base);
    if (job->base != NULL)
        INF_TRY(inf_load_graph_copy(load, err));
    else
        INF_TRY(inf_load_graph_read(load, err));
    snprintf(job->version, sizeof job->version, "%s", load->location.version);
    uint64_t races_due = inf_background_kernels_count_due(load->options->devices);
    uint64_t overturned = inf_background_kernels_count_overturned(load->options->devices);
    INF_TRY(create_served(load, err));
    load->served->kernels_overturned = overturned;
    inf_load_graph_offer_plan(load, load->served);
    INF_TRY(load_signatures(load, err));
    // Compilations for requests may count meanwhile: the race then finds nothing to do.
    load->served->kernels_due =
        !job->model.takes_kernels &&
        inf_background_kernels_count_due(load->options->devices) != races_due;
    if (job->base == NULL)
        INF_TRY(inf_load_source_check_unchanged(load, err));
    INF_TRY(inf_load_source_persist(load, err));
    job->model.served = load->served;
    load->served = NULL;
    return INF_OK;
}

enum inf_code inf_load_model(struct inf_load_job *job, const struct inf_load_options *options,
                             const struct inf_load_progress_sink *progress, struct inf_error *err)
{
    assert(job->kind == INF_LOAD_JOB_MODEL && job->model.served == NULL);
    struct inf_load load = {
        .job = job,
        .order = job,
        .options = options,
        .progress = progress,
        .location = INF_MODEL_LOCATION_NONE,
    };
    enum inf_code code = run_load(&load, err);
    inf_load_source_end_save(&load, code, err);
    if (load.journal_key != 0)
        inf_load_journal_end(options->journal, load.journal_key);
    inf_read_files_close(load.files);
    inf_read_files_unref(&load.files);
    inf_model_location_fini(&load.location);
    inf_graph_destroy(&load.graph);
    inf_model_description_unref(&load.description);
    inf_served_destroy(&load.served);
    inf_kept_plan_fini(&load.kept);
    return code;
}
