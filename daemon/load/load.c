// SPDX-License-Identifier: Apache-2.0
#include "daemon/load/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/trial_run.h"
#include "backends/import/import.h"
#include "backends/registry.h"
#include "daemon/load/batch_trial.h"
#include "daemon/load/warm_up.h"
#include "daemon/model/devices.h"

// Where each stage begins, in percent of a typical load.
#define PERCENT_READ     0u
#define PERCENT_OPTIMISE 40u
#define PERCENT_COMPILE  60u
#define PERCENT_WARM_UP  90u

// --- warm-up ---

static bool sizes_known(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!inf_shape_known(&graph->values[graph->outputs[i].value].shape))
            return false;
    return true;
}

// Runs once on zeros: a new executable is nobody else's yet. Where sizes hang on values, zeros say
// nothing of them, and it is left at being compiled.
static enum inf_code run_once(struct inf_executable *executable,
                              struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_trial_run trial = {0};
    const struct inf_graph *graph = inf_executable_graph(executable);
    if (!sizes_known(graph))
        return INF_OK;
    enum inf_code code = inf_trial_run_init(&trial, graph, err);
    if (code == INF_OK)
        code = inf_trial_run_run(&trial, executable, NULL, err);
    inf_trial_run_fini(&trial);
    return code;
}

// --- one load ---

struct load {
    struct inf_load_job *job;
    const struct inf_loader_options *options;
    const struct inf_load_progress_sink *progress;
    struct inf_model_location location;
    struct inf_model_config config;
    struct inf_allow_rules allow; // its texts are the config's
    struct inf_device *pinned;    // no reference; NULL: the best is to be found
    struct inf_graph *graph;
    struct inf_model_info info;
    char platform[40]; // as in struct inf_served
    struct inf_served *served;
    struct inf_warm_plan plan;
};

static void report(const struct load *load, const char *stage, uint32_t percent)
{
    load->progress->report(load->progress->context, load->location.version, stage, percent);
}

// Rows of different requests that may run at once: the model may have less than the daemon allows.
static uint32_t batch_rows_max(const struct load *load)
{
    uint32_t own = load->config.batch_rows_max;
    return own == 0 ? load->options->batch_rows_max : INF_MIN(own, load->options->batch_rows_max);
}

// Compiles for the first shapes, and runs once unless it is told not to.
static enum inf_code warm_up(struct load *load, const struct inf_shape *shapes,
                             struct inf_error *err)
{
    struct inf_served *served = load->served;
    struct inf_executable *executable;
    report(load, "compile", PERCENT_COMPILE);
    INF_TRY(inf_model_acquire(served->model, served->device, shapes, &executable, err));
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(load->options->devices, hosts, INF_MODEL_HOSTS);
    // A mode that lowers nothing is fp32: its name is for what is done.
    if (served->placement.options.precision > INF_PRECISION_FP32 &&
        inf_executable_precision(executable) == INF_PRECISION_FP32)
        snprintf(served->precision_reason, sizeof served->precision_reason,
                 "nothing of it is computed in %s on %s",
                 inf_precision_name(served->placement.options.precision),
                 inf_device_info(served->device)->name);
    served->warm_precision = inf_executable_precision(executable);
    inf_model_profile_read(&served->facts, executable, served->device, hosts, host_count);
    report(load, "warm-up", PERCENT_WARM_UP);
    enum inf_code code = load->config.warmup ? run_once(executable, err) : INF_OK;
    inf_model_release(served->model, &executable);
    if (code == INF_OK && load->config.warmup)
        inf_model_batch_measure(served, batch_rows_max(load), load->options->log);
    return code;
}

static enum inf_place_policy policy_of(const struct inf_model_config *config)
{
    enum inf_place_policy policy = INF_PLACE_LATENCY;
    (void)inf_place_policy_parse(config->policy, &policy); // it was checked
    return policy;
}

// Puts the model on the device that is named, or on the best but `avoid`, which may be NULL.
// `shapes` may be NULL.
static void place(struct load *load, const struct inf_shape *shapes,
                  const struct inf_device *avoid) INF_MAY_BLOCK
{
    struct inf_served *served = load->served;
    const struct inf_place_subject subject = {.model = served->model,
                                              .content_hash = served->content_hash,
                                              .shapes = shapes,
                                              .policy = policy_of(&load->config),
                                              .pinned = load->pinned,
                                              .avoid = avoid,
                                              .allow = load->allow,
                                              .precision = served->precision,
                                              .decision = load->job->decision,
                                              .rules = load->job->rules};
    struct inf_device *device =
        inf_placement_choose(&served->placement, &load->options->place, &subject);
    served->device = inf_device_ref(device);
    inf_model_charge(served->model, device);
    inf_model_prefer(served->model, device, &served->placement.options);
    if (served->precision == INF_PRECISION_AUTO)
        inf_precision_explain(&served->placement, served->precision_reason);
    if (load->pinned == NULL)
        inf_log(load->options->log, INF_LOG_INFO,
                "model placed name=%s device=%s by=%s reason=\"%s\"", served->name,
                inf_device_info(device)->name, inf_place_source_name(served->placement.source),
                served->placement.reason);
}

// Takes the model off its device.
static void displace(struct inf_served *served)
{
    inf_model_charge(served->model, NULL);
    inf_device_unref(&served->device);
}

// Warms up; where it is the device's fault that this fails, once more on another, unless it was named.
static enum inf_code warm_up_somewhere(struct load *load, const struct inf_shape *shapes,
                                       struct inf_error *err)
{
    struct inf_error why = {0};
    enum inf_code code = warm_up(load, shapes, &why);
    if (code != INF_OK && load->pinned == NULL &&
        (code == INF_UNAVAILABLE || inf_device_is_to_blame(&why))) {
        const struct inf_device *failed = load->served->device; // the list has it
        inf_log(load->options->log, INF_LOG_WARNING, "model moved name=%s from=%s reason=\"%s\"",
                load->served->name, inf_device_info(failed)->name, why.text);
        displace(load->served);
        place(load, shapes, failed);
        load->served->placement.failed = failed;
        snprintf(load->served->placement.failed_why, sizeof load->served->placement.failed_why,
                 "%.159s", why.text);
        why = (struct inf_error){0};
        code = warm_up(load, shapes, &why);
    }
    if (code != INF_OK && err != NULL)
        *err = why;
    return code;
}

// Decides about the precision, or keeps what was decided.
static enum inf_code settle_precision(struct load *load, const struct inf_shape *shapes,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_load_job *job = load->job;
    struct inf_served *served = load->served;
    (void)inf_precision_parse(load->config.precision, &served->precision); // it was checked
    if (job->precision_asked || (served->precision > INF_PRECISION_FP32 && job->decision == NULL))
        return inf_precision_settle(served->precision, served->model, shapes,
                                    load->options->devices, load->pinned, served->precision_reason,
                                    err);
    snprintf(served->precision_reason, sizeof served->precision_reason, "%s",
             job->base != NULL ? job->base->precision_reason : "less was not asked for");
    return INF_OK;
}

// Compiles for one further set of shapes, and runs once unless it is told not to.
static enum inf_code warm_up_set(struct load *load, uint32_t index, struct inf_error *err)
{
    struct inf_served *served = load->served;
    struct inf_executable *executable;
    INF_TRY(inf_model_acquire(served->model, served->device, inf_warm_plan_set(&load->plan, index),
                              &executable, err));
    enum inf_code code = load->config.warmup ? run_once(executable, err) : INF_OK;
    inf_model_release(served->model, &executable);
    return code;
}

// Warms up for the other sets. Those that somebody has asked for have to work.
static enum inf_code warm_up_others(struct load *load, struct inf_error *err)
{
    for (uint32_t i = 1; i < load->plan.count; i++) {
        struct inf_error why = {0};
        enum inf_code code = warm_up_set(load, i, &why);
        if (code == INF_OK)
            continue;
        if (i < load->plan.given) {
            if (err != NULL)
                *err = why;
            return code;
        }
        inf_log(load->options->log, INF_LOG_INFO,
                "model not warmed up for shapes it served name=%s reason=\"%s\"", load->job->name,
                why.text);
    }
    return INF_OK;
}

// Keeps the first set for races to come.
static enum inf_code keep_first_set(struct load *load, struct inf_error *err)
{
    size_t size = load->plan.input_count * sizeof(struct inf_shape);
    free(load->served->first_shapes);
    load->served->first_shapes = NULL;
    if (load->plan.count == 0)
        return INF_OK;
    load->served->first_shapes = malloc(size + sizeof(struct inf_shape));
    if (load->served->first_shapes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to warm up");
    memcpy(load->served->first_shapes, inf_warm_plan_set(&load->plan, 0), size);
    return INF_OK;
}

// Places the model by the first set of the plan, where there is one. Where that cannot be, nothing else is
// tried: a precision that is refused is refused for all shapes.
static enum inf_code settle_device(struct load *load, struct inf_error *err)
{
    const struct inf_shape *shapes =
        load->plan.count > 0 ? inf_warm_plan_set(&load->plan, 0) : NULL;
    INF_TRY(keep_first_set(load, err));
    INF_TRY(settle_precision(load, shapes, err));
    place(load, shapes, NULL);
    return INF_OK;
}

// Warms the model up for the sets of the plan.
static enum inf_code warm_up_planned(struct load *load, struct inf_error *err)
{
    if (load->plan.count == 0)
        return INF_OK;
    INF_TRY(warm_up_somewhere(load, inf_warm_plan_set(&load->plan, 0), err));
    return warm_up_others(load, err);
}

// What the model served last; "" where nothing is known, or wanted.
static const char *recall_shapes(const struct load *load)
{
    const struct inf_load_job *job = load->job;
    if (!load->config.remember_shapes)
        return "";
    if (job->shapes[0] != '\0')
        return job->shapes;
    return load->options->seen != NULL
               ? inf_served_shapes_find(load->options->seen, load->info.content_hash)
               : "";
}

// Places the model, and warms it up if that can be done with shapes of our choice.
static enum inf_code settle(struct load *load, struct inf_error *err)
{
    const struct inf_graph *graph = inf_model_graph(load->served->model);
    const char *given = load->config.warmup_shapes, *seen = recall_shapes(load);
    struct inf_error why = {0};
    inf_served_shapes_take(&load->served->seen, seen);
    INF_TRY(inf_warm_plan_make(&load->plan, graph, given, seen, err));
    INF_TRY(settle_device(load, err));
    enum inf_code code = warm_up_planned(load, &why);
    if (code != INF_OK && load->plan.seen > 0 && load->plan.given == 0) {
        inf_log(load->options->log, INF_LOG_WARNING,
                "model not warmed up for shapes it served name=%s reason=\"%s\"", load->job->name,
                why.text);
        displace(load->served);
        why = (struct inf_error){0};
        inf_warm_plan_fini(&load->plan);
        INF_TRY(inf_warm_plan_make(&load->plan, graph, given, "", err));
        INF_TRY(settle_device(load, err));
        code = warm_up_planned(load, &why);
    }
    if (code != INF_OK && load->plan.guessed && code != INF_EXHAUSTED) {
        inf_log(load->options->log, INF_LOG_INFO, "model not warmed up name=%s reason=\"%s\"",
                load->job->name, why.text);
        code = INF_OK;
    }
    if (code != INF_OK && err != NULL)
        *err = why;
    return code;
}

// Has the model run on the further devices that its settings name.
static enum inf_code spread(struct load *load, struct inf_error *err)
{
    struct inf_served *served = load->served;
    const struct inf_replicas_subject subject = {.name = served->name,
                                                 .key = served,
                                                 .model = served->model,
                                                 .own = served->device,
                                                 .names = load->config.replica_devices,
                                                 .devices = load->options->devices,
                                                 .plan = &load->plan,
                                                 .log = load->options->log};
    return inf_replicas_warm(&served->spread, &subject, err);
}

static enum inf_code fill_served(struct load *load, struct inf_error *err)
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
    report(load, "optimise", PERCENT_OPTIMISE);
    const struct inf_pass_options passes = {.evaluator = load->options->evaluator};
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(load->options->devices, hosts, INF_MODEL_HOSTS);
    INF_TRY(inf_model_create(&served->model, &load->graph, hosts, host_count, &passes, err));
    INF_TRY(settle(load, err));
    INF_TRY(spread(load, err));
    inf_model_settle(served->model);
    return INF_OK;
}

static enum inf_code locate(struct load *load, struct inf_error *err)
{
    const struct inf_load_job *job = load->job;
    if (job->path[0] != '\0')
        return inf_model_locate_path(&load->location, job->path, err);
    if (load->options->repository == NULL)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "model '%s': there is no repository", job->name);
    return inf_model_locate(&load->location, load->options->repository, job->name, err);
}

// Takes a copy of the graph of a model that is served. Its executables are not shared: a race uses slots that
// workers may be at.
static enum inf_code take_base(struct load *load, struct inf_error *err)
{
    const struct inf_served *base = load->job->base;
    load->location.stamp = base->stamp;
    if (load->job->config_whole)
        load->location.config_stamp = base->config_stamp;
    load->info.content_hash = base->content_hash;
    snprintf(load->location.version, sizeof load->location.version, "%s", base->version);
    snprintf(load->platform, sizeof load->platform, "%s", base->platform);
    return inf_model_copy_graph(base->model, &load->graph, err);
}

static enum inf_code read_model(struct load *load, struct inf_error *err)
{
    const struct inf_import_options import = {.evaluator = inf_registry_evaluator()};
    report(load, "read", PERCENT_READ);
    INF_TRY(inf_model_import_with(&load->graph, &load->info, load->location.directory_fd,
                                  load->location.file, &import, err));
    snprintf(load->platform, sizeof load->platform, "inferd_%s", load->info.format);
    return INF_OK;
}

// What the model is told: by its file, and by admins.
static enum inf_code read_config(struct load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    struct inf_model_location *location = &load->location;
    int fd = location->config_fd;
    location->config_fd = -1;
    if (job->config_whole) {
        load->config = job->config;
    } else {
        inf_model_config_init(&load->config);
        if (fd >= 0)
            INF_TRY(inf_model_config_read(&load->config, fd, location->config_file, err));
        inf_model_config_take_asked(&load->config, &job->config);
        job->precision_asked = inf_model_config_origin(&load->config, INF_MODEL_FLAG_ID_precision) >
                               INF_ORIGIN_DEFAULT;
    }
    return inf_model_device_choose(&load->config, load->options->devices, job->default_device,
                                   job->rules.power, &load->allow, &load->pinned, err);
}

// Looks whether what is served already is what was found: the model, and its settings.
static void compare_known(struct load *load)
{
    struct inf_load_job *job = load->job;
    struct inf_served *known = job->known;
    if (known == NULL || known->stamp != load->location.stamp ||
        strcmp(known->version, load->location.version) != 0)
        return;
    job->unchanged = known->config_stamp == load->location.config_stamp;
    if (!job->unchanged)
        job->base = inf_served_ref(known);
}

static enum inf_code run_load(struct load *load, struct inf_error *err)
{
    struct inf_load_job *job = load->job;
    if (job->base == NULL) {
        INF_TRY(locate(load, err));
        compare_known(load);
    }
    snprintf(job->version, sizeof job->version, "%s", load->location.version);
    if (job->unchanged)
        return INF_OK;
    INF_TRY(read_config(load, err));
    if (job->base != NULL)
        INF_TRY(take_base(load, err));
    else
        INF_TRY(read_model(load, err));
    snprintf(job->version, sizeof job->version, "%s", load->location.version);
    INF_TRY(fill_served(load, err));
    job->served = load->served;
    load->served = NULL;
    return INF_OK;
}

enum inf_code inf_model_load(struct inf_load_job *job, const struct inf_loader_options *options,
                             const struct inf_load_progress_sink *progress, struct inf_error *err)
{
    struct load load = {
        .job = job,
        .options = options,
        .progress = progress,
        .location = {.directory_fd = -1, .config_fd = -1},
    };
    enum inf_code code = run_load(&load, err);
    inf_model_location_fini(&load.location);
    inf_graph_destroy(&load.graph);
    inf_served_destroy(&load.served);
    inf_warm_plan_fini(&load.plan);
    return code;
}

enum inf_code inf_model_precompile(const struct inf_load_job *job,
                                   const struct inf_load_progress_sink *progress,
                                   struct inf_error *err)
{
    struct inf_model *model = job->base->model;
    INF_CLEANUP(inf_warm_plan_fini) struct inf_warm_plan plan = {0};
    INF_TRY(inf_warm_plan_make(&plan, inf_model_graph(model), job->shapes, "", err));
    if (plan.count == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                               "the model leaves even ranks open: wanted shapes");
    for (uint32_t i = 0; i < plan.count; i++) {
        struct inf_executable *executable;
        progress->report(progress->context, job->base->version, "compile", i * 100 / plan.count);
        INF_TRY(inf_model_acquire(model, job->precompile_on, inf_warm_plan_set(&plan, i),
                                  &executable, err));
        inf_model_release(model, &executable);
    }
    return INF_OK;
}

void inf_served_destroy(struct inf_served **served)
{
    struct inf_served *self = *served;
    if (self == NULL)
        return;
    inf_model_unref(&self->model);
    inf_device_unref(&self->device);
    free(self->first_shapes);
    free(self);
    *served = NULL;
}
