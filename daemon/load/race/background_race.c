// SPDX-License-Identifier: Apache-2.0
// Times the candidates of a served model against each other in the background ("race").
//
// The problem: timing runs on a busy daemon gives wrong results and delays requests, and running
// the candidates in the served model would use slots (one slot is one concurrent run) that workers
// are using.
//
// The idea: the race gets its own copy of the model. Its thread has low priority. inf_race_run()
// waits at the idle gate before each run, and repeats a run that a request interrupted. Before the
// race, the precision check decides which precisions may take part. The check runs on another
// thread with idle priority, because the reference kernels are slow. Excluded candidates stay in
// the list together with the reason, so that `explain` can show it.
//
// The result is only a decision. The store compares it with the present placement, and places the
// model again if another candidate won.
#include "daemon/load/race/background_race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/thread.h"
#include "daemon/load/precision.h"

struct runner {
    const struct inf_load_options *options;
    struct inf_model *model; // copy of the served model
    const atomic_bool *cancelled;
    struct inf_shape *shapes;
    struct inf_race_gate gate; // kernels race while no request is served
    struct inf_race race;
    // Results of the precision checks, indexed by precision; all 0: this precision was not checked.
    struct inf_precision_report reports[INF_PRECISIONS];
};

// --- choosing the precisions that may take part in the race ---

struct precision_job {
    struct runner *runner;
    enum inf_precision precision;
    enum inf_code code;
    struct inf_error why;
};

static void run_precision_check(void *context)
{
    struct precision_job *job = context;
    struct runner *runner = job->runner;
    inf_role_enter_worker();
    // No device computes products, because its threads would not have idle priority.
    job->code =
        inf_precision_evaluate(&runner->reports[job->precision], job->precision, runner->model,
                               runner->shapes, NULL, 0, runner->cancelled, &job->why);
    inf_role_leave();
}

static void bar_precision(struct inf_race *race, enum inf_precision precision, const char *why)
{
    for (uint32_t i = 0; i < race->count; i++) {
        struct inf_race_entry *entry = &race->entries[i];
        if (entry->options.precision != precision)
            continue;
        entry->barred = true;
        snprintf(entry->why, sizeof entry->why, "%.159s", why);
    }
}

static bool is_candidate(const struct inf_race *race, enum inf_precision precision)
{
    for (uint32_t i = 0; i < race->count; i++)
        if (race->entries[i].options.precision == precision)
            return true;
    return false;
}

// Returns the largest difference from fp32 that the outputs of a candidate in this precision may
// have.
static double find_tolerance(const struct inf_race *race, enum inf_precision precision)
{
    double tolerance = race->tolerance > 0 ? race->tolerance : INF_RACE_TOLERANCE;
    for (uint32_t i = 0; i < race->count; i++)
        if (race->entries[i].options.precision == precision && race->entries[i].tolerance > 0)
            tolerance = race->entries[i].tolerance;
    return tolerance;
}

// Checks a precision on a thread with idle priority, because the reference kernels are slow. If the
// model must not compute in this precision, its candidates are excluded from the race.
static enum inf_code check_precision(struct runner *runner, enum inf_precision precision,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    struct precision_job job = {.runner = runner, .precision = precision};
    struct inf_precision_report *report = &runner->reports[precision];
    INF_TRY(inf_thread_run_idle("inferd-check", run_precision_check, &job, err));
    if (job.code == INF_CANCELLED)
        return inf_fail(err, INF_CANCELLED, "%s", job.why.text);
    if (job.code != INF_OK) {
        bar_precision(&runner->race, precision, job.why.text);
        return INF_OK;
    }
    char text[INF_PRECISION_REASON];
    double tolerance = find_tolerance(&runner->race, precision);
    if (!report->admissible)
        inf_precision_print(report, text, sizeof text);
    else if (report->error > tolerance)
        snprintf(text, sizeof text, "output '%.100s' would move by %.2g, a race allows %g",
                 report->output, report->error, tolerance);
    else
        return inf_model_pin(runner->model, precision, report->pins, report->pinned_nodes, err);
    bar_precision(&runner->race, precision, text);
    return INF_OK;
}

// --- running the race ---

static enum inf_code copy_model(struct runner *runner, const struct inf_load_job *job,
                                struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_served *base = job->base;
    const struct inf_load_options *options = runner->options;
    struct inf_graph *graph = NULL;
    const struct inf_pass_options passes = {.evaluator = options->evaluator,
                                            .cancelled = &job->cancelled};
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(options->devices, hosts, INF_MODEL_HOSTS);
    INF_TRY(inf_model_copy_graph(base->model, &graph, err));
    INF_TRY(inf_model_create(&runner->model, &graph, hosts, host_count, &passes, err));
    inf_model_set_cancelled(runner->model, &job->cancelled);
    if (options->idle_gate != NULL)
        inf_model_set_race_gate(runner->model, &runner->gate);
    const struct inf_graph *copy = inf_model_graph(runner->model);
    runner->shapes = calloc((size_t)copy->input_count + 1, sizeof *runner->shapes);
    if (runner->shapes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    if (base->first_shapes == NULL)
        return inf_fail(err, INF_INVALID, "its shapes are not known");
    memcpy(runner->shapes, base->first_shapes, copy->input_count * sizeof *runner->shapes);
    return INF_OK;
}

static void reset_entries(struct inf_race *race)
{
    for (uint32_t i = 0; i < race->count; i++) {
        const struct inf_race_entry *entry = &race->entries[i];
        race->entries[i] = (struct inf_race_entry){.device = entry->device,
                                                   .options = entry->options,
                                                   .tolerance = entry->tolerance,
                                                   .judges = entry->judges,
                                                   .verdict = INF_RACE_LEFT_OUT};
    }
}

static enum inf_code run_race(struct runner *runner, const struct inf_load_job *job,
                              struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_race *race = &runner->race;
    INF_TRY(copy_model(runner, job, err));
    for (enum inf_precision p = INF_PRECISION_FP32 + 1; p < INF_PRECISIONS; p++)
        if (is_candidate(race, p))
            INF_TRY(check_precision(runner, p, err));
    INF_TRY(inf_race_run(race, runner->model, runner->shapes, INF_PLACE_RACE_NS, err));
    const struct inf_precision_report *report =
        &runner->reports[race->entries[race->chosen].options.precision];
    race->pin_count = report->admissible ? report->pinned_nodes : 0;
    memcpy(race->pins, report->pins, sizeof race->pins);
    return INF_OK;
}

enum inf_code inf_background_race_run(struct inf_load_job *job,
                                      const struct inf_load_options *options, struct inf_error *err)
{
    _Static_assert(INF_RACE_PINS == INF_PRECISION_PINS_MAX, "the pins of a report fit into a race");
    struct runner *runner = calloc(1, sizeof *runner);
    struct inf_place_decision *decision = calloc(1, sizeof *decision);
    if (runner == NULL || decision == NULL) {
        free(runner);
        free(decision);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    }
    runner->options = options;
    runner->cancelled = &job->cancelled;
    runner->gate = (struct inf_race_gate){.idle_gate = options->idle_gate, .stop = &job->cancelled};
    runner->race = job->race.placement.race;
    runner->race.idle_gate = options->idle_gate;
    runner->race.tolerance = job->race.tolerance;
    reset_entries(&runner->race);
    enum inf_code code = run_race(runner, job, err);
    if (code == INF_OK) {
        decision->key = job->race.placement.key;
        decision->race = runner->race;
        decision->race.idle_gate = NULL;
        job->race.decision = decision;
        decision = NULL;
    }
    free(decision);
    inf_model_unref(&runner->model);
    free(runner->shapes);
    free(runner);
    return code;
}
