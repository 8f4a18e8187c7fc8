// SPDX-License-Identifier: Apache-2.0
// The second half of a load: the model has a graph, and gets a device, a precision and an
// executable.
//
// The shapes come from a warm plan: shapes that the settings name, shapes that the model served
// before, or a guess. The first set of shapes decides the placement. Then the model is compiled and
// run for all sets. Three kinds of failures are handled here. If a device is at fault, another
// device is chosen (unless the settings name the device). Shapes of earlier requests that no longer
// work are dropped. A guess that does not fit is ignored.
#include "daemon/load/warm_up.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "daemon/load/trial/batch_trial.h"

// A run of a load does not pause for longer, so that requests do not starve it.
#define PAUSE_MAX_NS (UINT64_C(2) * INF_NS_PER_S)

static bool has_known_sizes(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (!inf_shape_known(&graph->values[graph->outputs[i].value].shape))
            return false;
    return true;
}

// Runs the executable once on inputs of zeros, before any other thread uses it. Does nothing if the
// size of an output depends on input values, because zeros are then not a useful input. Unless a
// request waits for the model, the run pauses while requests of other models are served.
static enum inf_code run_on_zeros(const struct inf_warm_up *warm_up,
                                  struct inf_executable *executable,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_trial_run trial = {0};
    const struct inf_graph *graph = inf_executable_graph(executable);
    if (!has_known_sizes(graph))
        return INF_OK;
    struct inf_run_step step;
    enum inf_code code = inf_trial_run_init(&trial, graph, err);
    inf_run_step_init(&step);
    step.idle_gate = warm_up->job->model.wanted ? NULL : warm_up->options->idle_gate;
    step.pause_until_ns = inf_clock_ns() + PAUSE_MAX_NS;
    step.paused_ns = 0;
    trial.step = &step;
    if (code == INF_OK)
        code = inf_trial_run_execute_cancellable(&trial, executable, warm_up->cancelled, NULL, err);
    inf_run_step_fini(&step);
    inf_trial_run_fini(&trial);
    return code;
}

// Returns true if what was compiled must run once before it serves. An executable of a kept plan
// has answered in the load that kept it, with the same kernels and weights.
static bool needs_run(const struct inf_warm_up *warm_up)
{
    return warm_up->served->config.warmup && (warm_up->kept == NULL || warm_up->kept_elsewhere ||
                                              inf_model_outgrew_offers(warm_up->served->model));
}

static void report_stage(const struct inf_warm_up *warm_up, const char *stage, uint32_t percent)
{
    inf_load_report(warm_up->progress, warm_up->served->version, stage, percent);
}

// Returns the number of rows that one run may batch: the limit of the model or that of the daemon,
// the lower of the two.
static uint32_t batch_rows_max(const struct inf_warm_up *warm_up)
{
    uint32_t own = warm_up->served->config.batch_rows_max;
    return own == 0 ? warm_up->options->batch_rows_max
                    : INF_MIN(own, warm_up->options->batch_rows_max);
}

// Logs a warning if a noticeable part of the model runs on the reference device.
static void warn_if_slow(const struct inf_warm_up *warm_up)
{
    const struct inf_served *served = warm_up->served;
    const struct inf_model_profile *facts = &served->profile;
    char text[400];
    if (inf_model_profile_is_slow(facts, text, sizeof text))
        inf_log(warm_up->options->log, INF_LOG_WARNING,
                "model slow name=%s device=%s on_ref=%.0f%% reason=\"%s\"", served->name,
                inf_device_info(served->device)->name,
                100.0 * (double)facts->ref_macs / (double)facts->planned_macs, text);
}

// Builds the batch ladder of the model: takes the one that an earlier load measured, or measures
// it. A ladder of decoding steps is measured later, while the model is served.
static void build_ladder(struct inf_warm_up *warm_up) INF_MAY_BLOCK
{
    struct inf_served *served = warm_up->served;
    bool joins = inf_served_joins_steps(served);
    served->rows_max = batch_rows_max(warm_up);
    if (warm_up->kept != NULL && inf_kept_plan_take_ladder(warm_up->kept, served) &&
        (joins || inf_batch_trial_compile(served)))
        return;
    if (joins)
        served->steps_due = served->rows_max >= 2;
    else
        inf_batch_trial_run(served, served->rows_max, warm_up->cancelled, warm_up->options->log);
}

// Compiles the model for the first shape set of the warm plan, and runs it once unless the settings
// forbid that.
static enum inf_code warm_up_first_set(struct inf_warm_up *warm_up, const struct inf_shape *shapes,
                                       struct inf_error *err)
{
    struct inf_served *served = warm_up->served;
    struct inf_executable *executable;
    report_stage(warm_up, "compile", INF_LOAD_PERCENT_COMPILE);
    INF_TRY(inf_model_acquire(served->model, served->device, shapes, &executable, err));
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(warm_up->options->devices, hosts, INF_MODEL_HOSTS);
    // If no node computes in the reduced precision on this device, record the model as fp32.
    if (served->placement.options.precision > INF_PRECISION_FP32 &&
        inf_executable_precision(executable) == INF_PRECISION_FP32)
        snprintf(served->precision_reason, sizeof served->precision_reason,
                 "nothing of it is computed in %s on %s",
                 inf_precision_name(served->placement.options.precision),
                 inf_device_info(served->device)->name);
    served->warm_precision = inf_executable_precision(executable);
    inf_model_profile_read(&served->profile, executable, served->device, hosts, host_count);
    warn_if_slow(warm_up);
    report_stage(warm_up, "warm-up", INF_LOAD_PERCENT_WARM_UP);
    enum inf_code code = needs_run(warm_up) ? run_on_zeros(warm_up, executable, err) : INF_OK;
    inf_model_release(served->model, &executable);
    if (code == INF_OK && warm_up->served->config.warmup)
        build_ladder(warm_up);
    return code;
}

static enum inf_place_policy read_policy(const struct inf_model_config *config)
{
    enum inf_place_policy policy = INF_PLACE_LATENCY;
    // Parsing cannot fail here, because the settings were validated when they were read.
    (void)inf_place_policy_parse(config->policy, &policy);
    return policy;
}

// Places the model on the device that the settings name, or else on the best device except `avoid`.
// `avoid` and `shapes` may be NULL.
static void place_model(struct inf_warm_up *warm_up, const struct inf_shape *shapes,
                        const struct inf_device *avoid) INF_MAY_BLOCK
{
    struct inf_served *served = warm_up->served;
    const struct inf_place_subject subject = {.model = served->model,
                                              .content_hash = served->content_hash,
                                              .shapes = shapes,
                                              .policy = read_policy(&warm_up->served->config),
                                              .pinned = warm_up->pinned,
                                              .avoid = avoid,
                                              .allow = warm_up->allow,
                                              .precision = served->precision,
                                              .decision = warm_up->job->model.decision,
                                              .rules = warm_up->job->model.rules};
    struct inf_device *device =
        inf_placement_choose(&served->placement, &warm_up->options->place, &subject);
    served->device = inf_device_ref(device);
    inf_model_charge(served->model, device);
    inf_model_set_default_options(served->model, device, &served->placement.options);
    if (served->precision == INF_PRECISION_AUTO)
        inf_precision_explain(&served->placement, served->precision_reason);
    if (warm_up->pinned == NULL)
        inf_log(warm_up->options->log, INF_LOG_INFO,
                "model placed name=%s device=%s by=%s reason=\"%s\"", served->name,
                inf_device_info(device)->name, inf_place_source_name(served->placement.source),
                served->placement.reason);
}

// Removes the model from the device that it was placed on, before it is placed again.
static void unplace_model(struct inf_served *served)
{
    inf_model_charge(served->model, NULL);
    inf_device_unref(&served->device);
}

// Warms the model up. If the device causes a failure and the settings do not name it, tries once
// more on another device.
static enum inf_code warm_up_on_working_device(struct inf_warm_up *warm_up,
                                               const struct inf_shape *shapes,
                                               struct inf_error *err)
{
    struct inf_error why = {0};
    enum inf_code code = warm_up_first_set(warm_up, shapes, &why);
    if (code != INF_OK && warm_up->pinned == NULL &&
        (code == INF_UNAVAILABLE || inf_device_caused_error(&why))) {
        // Borrowed, not referenced, because the device list owns the device.
        const struct inf_device *failed = warm_up->served->device;
        inf_log(warm_up->options->log, INF_LOG_WARNING, "model moved name=%s from=%s reason=\"%s\"",
                warm_up->served->name, inf_device_info(failed)->name, why.text);
        unplace_model(warm_up->served);
        place_model(warm_up, shapes, failed);
        warm_up->served->placement.failed = failed;
        snprintf(warm_up->served->placement.failed_why,
                 sizeof warm_up->served->placement.failed_why, "%.159s", why.text);
        why = (struct inf_error){0};
        code = warm_up_first_set(warm_up, shapes, &why);
    }
    if (code != INF_OK && err != NULL)
        *err = why;
    return code;
}

// Decides in which precision the model computes, or keeps the decision of an earlier load.
static enum inf_code decide_precision(struct inf_warm_up *warm_up, const struct inf_shape *shapes,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_load_job *job = warm_up->job;
    struct inf_served *served = warm_up->served;
    // Parsing cannot fail, because the settings were validated when they were read.
    (void)inf_precision_parse(warm_up->served->config.precision, &served->precision);
    if (job->model.precision_requested ||
        (served->precision > INF_PRECISION_FP32 && job->model.decision == NULL))
        return inf_precision_decide(
            &(struct inf_precision_question){.wanted = served->precision,
                                             .model = served->model,
                                             .shapes = shapes,
                                             .input_count =
                                                 inf_model_graph(served->model)->input_count,
                                             .devices = warm_up->options->devices,
                                             .device = warm_up->pinned,
                                             .results = warm_up->options->precision_results,
                                             .content_hash = served->content_hash,
                                             .version = warm_up->options->place.version,
                                             .name = served->name,
                                             .log = warm_up->options->log,
                                             .cancelled = &job->cancelled},
            served->precision_reason, err);
    snprintf(served->precision_reason, sizeof served->precision_reason, "%s",
             job->base != NULL ? job->base->precision_reason : "less was not asked for");
    return INF_OK;
}

// Compiles the model for shape set `index` of the warm plan, and runs it once unless the settings
// forbid that.
static enum inf_code warm_up_set(struct inf_warm_up *warm_up, uint32_t index, struct inf_error *err)
{
    struct inf_served *served = warm_up->served;
    struct inf_executable *executable;
    INF_TRY(inf_model_acquire(served->model, served->device,
                              inf_warm_plan_set(&warm_up->plan, index), &executable, err));
    enum inf_code code = needs_run(warm_up) ? run_on_zeros(warm_up, executable, err) : INF_OK;
    inf_model_release(served->model, &executable);
    return code;
}

// Compiles and runs the model for the shape sets after the first. Sets that the settings name must
// work; a set of earlier requests that fails is only logged.
static enum inf_code warm_up_others(struct inf_warm_up *warm_up, struct inf_error *err)
{
    for (uint32_t i = 1; i < warm_up->plan.count; i++) {
        struct inf_error why = {0};
        enum inf_code code = warm_up_set(warm_up, i, &why);
        if (code == INF_OK)
            continue;
        if (i < warm_up->plan.given || code == INF_CANCELLED) {
            if (err != NULL)
                *err = why;
            return code;
        }
        inf_log(warm_up->options->log, INF_LOG_INFO,
                "model not warmed up for shapes it served name=%s reason=\"%s\"",
                warm_up->job->name, why.text);
    }
    return INF_OK;
}

// Copies the first set of shapes into served->first_shapes, so that later races run with these
// shapes.
static enum inf_code keep_first_shapes(struct inf_warm_up *warm_up, struct inf_error *err)
{
    size_t size = warm_up->plan.input_count * sizeof(struct inf_shape);
    free(warm_up->served->first_shapes);
    warm_up->served->first_shapes = NULL;
    if (warm_up->plan.count == 0)
        return INF_OK;
    warm_up->served->first_shapes = malloc(size + sizeof(struct inf_shape));
    if (warm_up->served->first_shapes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to warm up");
    memcpy(warm_up->served->first_shapes, inf_warm_plan_set(&warm_up->plan, 0), size);
    return INF_OK;
}

// Chooses the device with the first shape set of the plan, if there is one. The caller must not try
// another set after a failure, because a precision that is refused for one set is refused for all.
static enum inf_code place_by_first_set(struct inf_warm_up *warm_up, struct inf_error *err)
{
    const struct inf_shape *shapes =
        warm_up->plan.count > 0 ? inf_warm_plan_set(&warm_up->plan, 0) : NULL;
    INF_TRY(keep_first_shapes(warm_up, err));
    INF_TRY(decide_precision(warm_up, shapes, err));
    place_model(warm_up, shapes, NULL);
    return INF_OK;
}

// Chooses the device of the model, and compiles and runs the model for all shape sets of the plan.
static enum inf_code warm_up_planned(struct inf_warm_up *warm_up, struct inf_error *err)
{
    if (warm_up->plan.count == 0)
        return INF_OK;
    INF_TRY(warm_up_on_working_device(warm_up, inf_warm_plan_set(&warm_up->plan, 0), err));
    return warm_up_others(warm_up, err);
}

// Returns the shapes that the model served last; "" if none are known or the settings forbid using
// them.
static const char *find_served_shapes(const struct inf_warm_up *warm_up)
{
    const struct inf_load_job *job = warm_up->job;
    if (!warm_up->served->config.remember_shapes)
        return "";
    if (job->model.shapes[0] != '\0')
        return job->model.shapes;
    return warm_up->options->served_shapes != NULL
               ? inf_served_shapes_find(warm_up->options->served_shapes,
                                        warm_up->served->content_hash)
               : "";
}

enum inf_code inf_warm_up_run(struct inf_warm_up *warm_up, struct inf_error *err)
{
    assert(warm_up->job->kind == INF_LOAD_JOB_MODEL && warm_up->served != NULL);
    const struct inf_graph *graph = inf_model_graph(warm_up->served->model);
    const char *given = warm_up->served->config.warmup_shapes, *seen = find_served_shapes(warm_up);
    struct inf_error why = {0};
    inf_served_shapes_take(&warm_up->served->shapes, seen);
    INF_TRY(inf_warm_plan_make(&warm_up->plan, graph, given, seen, err));
    INF_TRY(place_by_first_set(warm_up, err));
    enum inf_code code = warm_up_planned(warm_up, &why);
    if (code != INF_OK && code != INF_CANCELLED && warm_up->plan.seen > 0 &&
        warm_up->plan.given == 0) {
        inf_log(warm_up->options->log, INF_LOG_WARNING,
                "model not warmed up for shapes it served name=%s reason=\"%s\"",
                warm_up->job->name, why.text);
        unplace_model(warm_up->served);
        why = (struct inf_error){0};
        inf_warm_plan_fini(&warm_up->plan);
        INF_TRY(inf_warm_plan_make(&warm_up->plan, graph, given, "", err));
        INF_TRY(place_by_first_set(warm_up, err));
        code = warm_up_planned(warm_up, &why);
    }
    if (code != INF_OK && warm_up->plan.guessed && code != INF_EXHAUSTED && code != INF_CANCELLED) {
        inf_log(warm_up->options->log, INF_LOG_INFO, "model not warmed up name=%s reason=\"%s\"",
                warm_up->job->name, why.text);
        code = INF_OK;
    }
    if (code != INF_OK && err != NULL)
        *err = why;
    return code;
}

void inf_warm_up_fini(struct inf_warm_up *warm_up)
{
    inf_warm_plan_fini(&warm_up->plan);
}
