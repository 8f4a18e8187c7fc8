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
#include <sys/stat.h>
#include <unistd.h>

#include "backends/import/common/described_settings.h"
#include "backends/import/import.h"
#include "backends/registry.h"
#include "backends/storage/record.h"
#include "daemon/load/load_plan.h"
#include "daemon/load/model_check.h"
#include "daemon/load/race/background_kernels.h"
#include "daemon/load/warm_up.h"
#include "daemon/model/devices.h"
#include "daemon/model/directory.h"
#include "daemon/model/repository_save.h"
#include "daemon/model/sequence_lengths.h"
#include "proto/wire/message.h"

struct load {
    struct inf_load_job *job;
    uint64_t plan_key;   // key of the plan of the model; 0: plans are not kept
    bool from_plan;      // the graph is that of a plan, `kept`
    bool plan_was_ahead; // the plan was made ahead, and is not in the cache
    struct inf_kept_plan kept;
    uint32_t rows_max; // the most rows of a batch that the warm-up tried
    // Key of the model's files and of this build in the journal of loads; 0: nothing was noted.
    uint64_t journal_key;
    uint64_t hang_key; // likewise for runs of the model; 0: none
    // The job whose cancellation ends the load: `job`, or, if this is the load of a further
    // signature, the job of the whole file.
    const struct inf_load_job *order;
    const struct inf_load_options *options;
    const struct inf_load_progress_sink *progress;
    struct inf_model_location location;
    struct inf_model_config config;
    struct inf_allow_rules allow; // rules for allowed devices; the texts in them belong to `config`
    struct inf_device *pinned; // the device that the settings name, borrowed; NULL: choose the best
    struct inf_graph *graph;
    struct inf_model_info info;
    uint64_t file_hash;                        // hash of the model file, without its signature
    struct inf_model_description *description; // of the model file; one reference; NULL: none
    // Format of the model file, such as "inferd_tfjs_graph_model".
    char platform[40];
    struct inf_served *served;
    bool is_saved; // the load has put the model into the repository
    struct inf_repository_save saved;
};

static void report_stage(const struct load *load, const char *stage, uint32_t percent)
{
    inf_load_report(load->progress, load->location.version, stage, percent);
}

// Compiles the model for its replicas, the additional devices that its settings name.
static enum inf_code warm_up_replicas(struct load *load, const struct inf_warm_plan *plan,
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

static enum inf_code warm_up_model(struct load *load, struct inf_error *err)
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
    load->rows_max = warm_up.rows_max;
    if (code == INF_OK)
        code = warm_up_replicas(load, &warm_up.plan, err);
    inf_warm_up_fini(&warm_up);
    return code;
}

// Notes what the settings say about the model. If the model is placed again without its directory,
// that stays. A further signature has other inputs and outputs, which the settings do not describe.
static enum inf_code describe_by_settings(struct load *load, struct inf_error *err) INF_MAY_BLOCK
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

static enum inf_code create_served(struct load *load, struct inf_error *err)
{
    struct inf_served *served = calloc(1, sizeof *served);
    if (served == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a model");
    load->served = served;
    atomic_init(&served->references, 1);
    served->stamp = load->location.stamp;
    served->config = load->config;
    served->config_stamp = load->location.config_stamp;
    snprintf(served->name, sizeof served->name, "%s", load->job->name);
    snprintf(served->version, sizeof served->version, "%s", load->location.version);
    snprintf(served->platform, sizeof served->platform, "%s", load->platform);
    served->content_hash = load->info.content_hash;
    served->file_hash = load->file_hash;
    served->hang_key = load->hang_key;
    served->description = load->description;
    load->description = NULL;
    INF_TRY(describe_by_settings(load, err));
    report_stage(load, "optimise", INF_LOAD_PERCENT_OPTIMISE);
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

// Sets job->model.versions to the versions of the model that are to be served. If the settings file
// cannot be read, chooses the highest version; its load then fails and reports the reason. Fails if
// the settings name only versions that do not exist, because the settings exclude every other
// version.
static enum inf_code find_versions(struct load *load, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_load_options *options = load->options;
    struct inf_version_list present;
    struct inf_model_config config;
    int config_fd;
    if (inf_version_list_read(&present, &config_fd, options->repository, load->job->name,
                              options->ready_file, NULL) != INF_OK)
        return INF_OK; // locate_model() reports what is wrong
    inf_model_config_init(&config);
    if (config_fd >= 0 &&
        inf_model_config_read(&config, config_fd, INF_MODEL_CONFIG_FILE, NULL) != INF_OK)
        inf_model_config_init(&config);
    inf_versions_choose(&load->job->model.versions, config.versions, config.labels, &present);
    if (present.count == 0 || load->job->model.versions.count > 0)
        return INF_OK;
    load->job->model.versions.known = false;
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_VERSION_NOT_FOUND,
                           "model '%s': the setting versions = %.64s names no version that is in "
                           "the repository; the highest one there is %s",
                           load->job->name, config.versions, present.versions[0].name);
}

static enum inf_code locate_model(struct load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->model.directory_fd >= 0)
        return inf_model_locate_at(&load->location, job->model.directory_fd, job->model.path,
                                   job->name, err);
    if (job->model.path[0] != '\0')
        return inf_model_locate_path(&load->location, job->model.path, err);
    if (load->options->repository == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%s': there is no repository", job->name);
    const char *version = job->pin;
    const struct inf_model_versions *versions = &job->model.versions;
    if (version[0] == '\0') {
        INF_TRY(find_versions(load, err));
        version = versions->count > 0 ? versions->versions[0] : "";
    }
    const struct inf_model_wanted wanted = {.version = version,
                                            .ready_file = load->options->ready_file};
    return inf_model_locate_version(&load->location, load->options->repository, job->name, &wanted,
                                    err);
}

// Copies the model that was found into the repository, and finds it again there.
static enum inf_code save_model(struct load *load, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_load_model_job *model = &load->job->model;
    const struct inf_repository_save_options options = {.repository = load->options->repository,
                                                        .name = load->job->name,
                                                        .ready_file = load->options->ready_file,
                                                        .cancelled = &load->order->cancelled};
    report_stage(load, "save", INF_LOAD_PERCENT_READ);
    INF_TRY(inf_repository_save(&load->saved, &options, &load->location, err));
    load->is_saved = true;
    inf_model_location_fini(&load->location);
    model->path[0] = '\0';
    if (model->directory_fd >= 0)
        close(model->directory_fd);
    model->directory_fd = -1;
    INF_TRY(locate_model(load, err));
    if (strcmp(load->location.version, load->saved.version) != 0)
        return inf_fail(err, INF_PRECONDITION,
                        "model '%s': not saved: its settings serve version %s, not the new one, %s",
                        load->job->name, load->location.version, load->saved.version);
    return INF_OK;
}

// Ends a save: keeps the copy if the load succeeded, and removes it otherwise.
static void end_save(struct load *load, enum inf_code code, struct inf_error *err) INF_MAY_BLOCK
{
    if (!load->is_saved)
        return;
    if (code == INF_OK) {
        inf_log(load->options->log, INF_LOG_INFO, "model saved name=%s version=%s", load->job->name,
                load->saved.version);
        inf_repository_save_fini(&load->saved);
        return;
    }
    inf_repository_save_undo(&load->saved);
    // The weights of a model file may be beside it.
    if (code == INF_NOT_FOUND)
        (void)inf_error_prefix(err, code,
                               "not saved; if the model has several files, save their "
                               "directory");
}

// Copies the graph of the served model and compiles it separately. The copy cannot share
// executables with the served model, because the race would use slots (concurrent runs) that
// workers may be using.
static enum inf_code copy_base(struct load *load, struct inf_error *err)
{
    const struct inf_served *base = load->job->base;
    load->location.stamp = base->stamp;
    if (load->job->model.config_complete)
        load->location.config_stamp = base->config_stamp;
    load->info.content_hash = base->content_hash;
    load->file_hash = base->file_hash;
    load->hang_key = base->hang_key;
    snprintf(load->location.version, sizeof load->location.version, "%s", base->version);
    snprintf(load->platform, sizeof load->platform, "%s", base->platform);
    load->description = inf_model_description_ref(base->description);
    return inf_model_copy_graph(base->model, &load->graph, err);
}

// Takes the graph from the plan of an earlier load, or from one that was made ahead. Returns false
// if there is none.
static bool take_plan(struct load *load) INF_MAY_BLOCK
{
    const struct inf_load_model_job *model = &load->job->model;
    const struct inf_load_plan_question question = {
        .name = load->job->name,
        .location = &load->location,
        .config = &load->config,
        .options = load->options,
        // A plan beside the model is that of its default signature.
        .in_repository =
            load->order == load->job && model->path[0] == '\0' && model->directory_fd < 0};
    load->plan_key = inf_load_plan_key(&question);
    if (!inf_load_plan_find(&load->kept, &load->plan_was_ahead, load->plan_key, &question))
        return false;
    const struct inf_plan_facts *facts = &load->kept.saved.facts;
    load->from_plan = true;
    load->graph = load->kept.saved.graph;
    load->kept.saved.graph = NULL;
    load->description = load->kept.description;
    load->kept.description = NULL;
    load->info.content_hash = facts->content_hash;
    snprintf(load->info.format, sizeof load->info.format, "%s", facts->format);
    return true;
}

// Returns true if the model was read from its file only. The shards or weights of a model whose
// graph is from a plan are not known, but its plan has what it is valid for.
static bool reads_one_file(const struct load *load) INF_MAY_BLOCK
{
    struct stat status;
    return load->from_plan ||
           (fstatat(load->location.directory_fd, load->location.file, &status, 0) == 0 &&
            (uint64_t)status.st_size == load->info.file_bytes);
}

// Decides whether the plan of a model that was read from its file is kept. The stamp covers all
// files of a directory. For a single file it covers this file only, so the model must have read no
// other one. A plan of the cache that was used is kept again if the model was compiled in another
// way.
//
// A model that was placed again because its kernels have raced has other packed weights than its
// plan. No other model that was placed again is kept, because its settings are not those of its
// files.
static void offer_plan(const struct load *load, struct inf_served *served) INF_MAY_BLOCK
{
    const struct inf_served *base = load->job->base;
    if (base != NULL && !load->job->model.takes_kernels)
        return;
    served->plan_facts.content_hash = load->file_hash;
    if (base != NULL)
        served->plan_facts = base->plan_facts;
    inf_kept_plan_note_ladder(&served->plan_facts, served, load->rows_max);
    if (base != NULL) {
        served->reads_one_file = base->reads_one_file;
        served->plan_key = served->cache_key = base->cache_key;
        return;
    }
    snprintf(served->plan_facts.format, sizeof served->plan_facts.format, "%s", load->info.format);
    served->reads_one_file = reads_one_file(load);
    bool is_kept =
        load->from_plan && !load->plan_was_ahead && !inf_model_outgrew_offers(served->model);
    if (load->location.has_directory || served->reads_one_file)
        served->cache_key = load->plan_key;
    if (!is_kept)
        served->plan_key = served->cache_key;
}

static enum inf_code read_model(struct load *load, struct inf_error *err)
{
    struct inf_sequence_lengths parsed;
    struct inf_sequence_length lengths[INF_LIMIT_TENSORS];
    if (!inf_sequence_lengths_parse(load->config.sequence_lengths, &parsed))
        return inf_fail(err, INF_INVALID, "sequence_lengths = %s: wanted INPUT=COUNT",
                        load->config.sequence_lengths);
    for (uint32_t i = 0; i < parsed.count; i++)
        lengths[i] = (struct inf_sequence_length){parsed.names[i], parsed.counts[i]};
    const struct inf_import_options import = {.evaluator = inf_registry_evaluator(),
                                              .signature = load->config.signature,
                                              .lengths = lengths,
                                              .length_count = parsed.count,
                                              .description = &load->description,
                                              .cancelled = &load->order->cancelled};
    report_stage(load, "read", INF_LOAD_PERCENT_READ);
    if (!take_plan(load))
        INF_TRY(inf_model_import_with(&load->graph, &load->info, load->location.directory_fd,
                                      load->location.file, &import, err));
    // Saved shapes, races and precision checks are found by the content hash. Two signatures of one
    // file are two graphs, so the hash covers the signature too.
    load->file_hash = load->info.content_hash;
    if (load->config.signature[0] != '\0')
        load->info.content_hash =
            inf_record_hash_text(load->info.content_hash, load->config.signature);
    if (load->config.sequence_lengths[0] != '\0')
        load->info.content_hash =
            inf_record_hash_text(load->info.content_hash, load->config.sequence_lengths);
    snprintf(load->platform, sizeof load->platform, "inferd_%s", load->info.format);
    if (load->description != NULL && load->description->problem[0] != '\0')
        inf_log(load->options->log, INF_LOG_WARNING,
                "model metadata damaged name=%s problem=\"%s\"", load->job->name,
                load->description->problem);
    return INF_OK;
}

// Reads the settings file of the model, and finds out who may use the model. If the settings are
// wrong, that is admins only; the store uses it if it does not know better.
static enum inf_code read_config_file(struct load *load, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_model_location *location = &load->location;
    struct inf_load_model_job *model = &load->job->model;
    int fd = location->config_fd;
    enum inf_code code = INF_OK;
    location->config_fd = -1;
    inf_model_config_init(&load->config);
    if (fd >= 0)
        code = inf_model_config_read(&load->config, fd, location->config_file, err);
    model->access = (struct inf_access){.is_restricted = true};
    if (code == INF_OK)
        code = inf_access_resolve(&model->access, load->config.allow_users,
                                  load->config.allow_groups, err);
    model->has_access = true;
    model->access_failed = code != INF_OK;
    return code;
}

// Reads the settings of the model: first those from its settings file, then those that admins set.
static enum inf_code read_config(struct load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->model.config_complete) {
        load->config = job->model.config;
    } else {
        INF_TRY(read_config_file(load, err));
        if (load->options->persisted != NULL && !job->model.forgets)
            inf_model_config_take_persisted(&load->config, load->options->persisted, job->name);
        inf_model_config_take_asked(&load->config, &job->model.config);
        job->model.precision_requested =
            inf_model_config_origin(&load->config, INF_MODEL_FLAG_ID_precision) >
            INF_ORIGIN_DEFAULT;
    }
    job->model.has_settings = true;
    job->model.settings = load->config;
    return inf_model_device_choose(&load->config, load->options->devices, job->model.default_device,
                                   job->model.rules.power, &load->allow, &load->pinned, err);
}

// Compares the file that was found with the served model. If file and settings are unchanged, sets
// job->model.unchanged. If only the settings changed, the load takes the graph of the served model.
static void compare_known(struct load *load)
{
    struct inf_load_job *job = load->job;
    struct inf_served *known = job->model.known;
    if (known == NULL || known->stamp != load->location.stamp ||
        strcmp(known->version, load->location.version) != 0)
        return;
    job->model.unchanged =
        known->config_stamp == load->location.config_stamp && !job->model.rereads_settings;
    if (!job->model.unchanged)
        job->base = inf_served_ref(known);
}

// Waits until the budget of memory has room for the model. If the model was loaded before, its
// memory is known; otherwise the estimate is the size of its files, which have the weights.
static enum inf_code reserve_room(struct load *load, struct inf_error *err) INF_MAY_BLOCK
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
static enum inf_code begin_journal(struct load *load, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_load_options *options = load->options;
    if (options->journal == NULL || load->location.stamp == 0)
        return INF_OK;
    uint64_t key =
        inf_record_hash(INF_RECORD_HASH_INIT, &load->location.stamp, sizeof load->location.stamp);
    key = inf_record_hash_text(inf_record_hash_text(key, load->job->name), options->build);
    // A load that ends clears its own entry, but not that of runs that did not end.
    load->hang_key = inf_record_hash_text(key, "run");
    uint32_t crashes = inf_load_journal_crashes(options->journal, key);
    uint32_t hangs = inf_load_journal_crashes(options->journal, load->hang_key);
    if (INF_MAX(crashes, hangs) >= INF_LOAD_CRASHES_MAX && !load->job->model.by_admin)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "model '%s' is quarantined: the daemon ended %u times while it was "
                               "%s; inferctl load tries it again",
                               load->job->name, INF_MAX(crashes, hangs),
                               crashes >= hangs ? "loaded" : "run and did not end");
    if (hangs > 0 && load->job->model.by_admin)
        inf_load_journal_end(options->journal, load->hang_key);
    load->journal_key = key;
    inf_load_journal_begin(options->journal, key);
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
static enum inf_code run_signature_load(struct load *part, const struct load *whole,
                                        struct inf_error *err)
{
    struct inf_served *base = find_base(whole->job->base, part->config.signature);
    if (base != NULL) {
        part->job->base = inf_served_ref(base);
        INF_TRY(copy_base(part, err));
    } else if (whole->job->base != NULL) {
        return inf_fail(err, INF_UNAVAILABLE, "it was not served when the model was placed again");
    } else {
        INF_TRY(read_model(part, err));
    }
    if (part->file_hash != whole->file_hash)
        return inf_fail(err, INF_UNAVAILABLE, "the file changed while it was being loaded");
    INF_TRY(create_served(part, err));
    offer_plan(part, part->served);
    return INF_OK;
}

// Loads signature->key of the file that `whole` has loaded. Failures are kept in the signature,
// because a file may have signatures for training, which are not supported.
//
// INF_CANCELLED, INF_DEADLINE  the load was cancelled.
static enum inf_code load_signature(const struct load *whole,
                                    struct inf_served_signature *signature, struct inf_error *err)
{
    static const struct inf_load_progress_sink silent = {.report = NULL};
    struct inf_error why = {0};
    struct load part = {.job = inf_load_job_create(INF_LOAD_JOB_MODEL),
                        .order = whole->order,
                        .options = whole->options,
                        .progress = &silent,
                        .location = whole->location, // borrowed
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
static enum inf_code load_signatures(struct load *load, struct inf_error *err)
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

// Makes the settings of the model persistent, or forgets them, if the admin asked for it. If that
// fails, so does the load, and the model stays as it was.
static enum inf_code persist_settings(struct load *load, struct inf_error *err) INF_MAY_BLOCK
{
    if (load->job->model.forgets && load->options->persisted != NULL)
        INF_TRY(inf_persisted_remove(load->options->persisted, load->job->name, "", err));
    if (!load->job->model.persists)
        return INF_OK;
    if (load->options->persisted == NULL)
        return inf_fail(err, INF_PRECONDITION, "not persistent: there is no place for settings");
    return inf_model_config_persist(&load->served->config, load->options->persisted,
                                    load->job->name, err);
}

static enum inf_code run_load(struct load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->base == NULL) {
        INF_TRY(locate_model(load, err));
        if (job->model.saves)
            INF_TRY(save_model(load, err));
        compare_known(load);
    }
    snprintf(job->version, sizeof job->version, "%s", load->location.version);
    if (job->model.unchanged)
        return INF_OK;
    INF_TRY(read_config(load, err));
    // If only the settings `versions` or `labels` changed, the loaded version stays as it is.
    job->model.unchanged = job->base != NULL && job->base == job->model.known &&
                           inf_model_config_loads_same(&load->config, &job->base->config);
    // The next load compares the file with the settings that are in effect. Only the thread of the
    // loader uses the stamp of a served model.
    if (job->model.unchanged) {
        job->base->config_stamp = load->location.config_stamp;
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
        INF_TRY(copy_base(load, err));
    else
        INF_TRY(read_model(load, err));
    snprintf(job->version, sizeof job->version, "%s", load->location.version);
    uint64_t races_due = inf_background_kernels_count_due(load->options->devices);
    uint64_t overturned = inf_background_kernels_count_overturned(load->options->devices);
    INF_TRY(create_served(load, err));
    load->served->kernels_overturned = overturned;
    offer_plan(load, load->served);
    INF_TRY(load_signatures(load, err));
    // Compilations for requests may count meanwhile: the race then finds nothing to do.
    load->served->kernels_due =
        !job->model.takes_kernels &&
        inf_background_kernels_count_due(load->options->devices) != races_due;
    // A directory that was being written or deleted may have been read in part, for example without
    // its check.
    if (job->base == NULL && inf_model_location_changed(&load->location))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_LOADING,
                               "model '%s': its files changed while they were read; wanted files "
                               "that stay as they are during a load",
                               job->name);
    INF_TRY(persist_settings(load, err));
    job->model.served = load->served;
    load->served = NULL;
    return INF_OK;
}

enum inf_code inf_load_model(struct inf_load_job *job, const struct inf_load_options *options,
                             const struct inf_load_progress_sink *progress, struct inf_error *err)
{
    assert(job->kind == INF_LOAD_JOB_MODEL && job->model.served == NULL);
    struct load load = {
        .job = job,
        .order = job,
        .options = options,
        .progress = progress,
        .location = {.directory_fd = -1, .config_fd = -1},
    };
    enum inf_code code = run_load(&load, err);
    end_save(&load, code, err);
    if (load.journal_key != 0)
        inf_load_journal_end(options->journal, load.journal_key);
    inf_model_location_fini(&load.location);
    inf_graph_destroy(&load.graph);
    inf_model_description_unref(&load.description);
    inf_served_destroy(&load.served);
    inf_kept_plan_fini(&load.kept);
    return code;
}
