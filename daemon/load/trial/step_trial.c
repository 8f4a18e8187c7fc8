// SPDX-License-Identifier: Apache-2.0
// Builds the batch ladder of a model with a history, whose rows are decoding steps of different
// sessions (daemon/schedule/history_joined.h). How much time joined steps save depends on the size
// of the weights and on the kernels for few rows, so it is measured. All steps of a measured run
// have the same memory. Results are not compared, because the graph for several sessions mixes no
// rows, whatever the model computes (backends/graph/history/join.c).
//
// The trial runs the executables of the served model for several steps: no request uses them,
// because the model has no ladder yet. Requests use the executable for one step, in any slot, so
// the trial compiles one of its own, which shares the packed weights.
#include "daemon/load/trial/step_trial.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "backends/graph/history/join.h"
#include "backends/place/quiet_run.h"

// The model whose steps are measured, and the memory of one step.
struct measured {
    const struct inf_step_trial *trial;
    struct inf_step_findings *findings;
    const struct inf_history *history;
    struct inf_run_options options;
    struct inf_quiet_runs runs;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_executable *single;                         // for one step
    struct inf_executable *held[INF_HISTORY_SESSIONS_MAX]; // held[n - 1]: for n steps, from 2 on
    struct inf_trial_run memory;
    const void *inputs[INF_HISTORY_SESSIONS_MAX * (INF_LIMIT_TENSORS + 1)];
    void *outputs[INF_HISTORY_SESSIONS_MAX * INF_LIMIT_TENSORS];
};

// Sets the shapes of a step of one row for an empty history. Sizes that the model leaves to
// requests are 1.
static void set_shapes(struct measured *measured)
{
    const struct inf_graph *graph = inf_model_graph(measured->trial->served->model);
    const struct inf_history *history = measured->history;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        struct inf_shape *shape = &measured->shapes[i];
        *shape = graph->values[graph->inputs[i].value].shape;
        for (int32_t axis = 0; axis < shape->rank; axis++)
            if (shape->dims[axis] == INF_DIM_UNKNOWN)
                shape->dims[axis] = 1;
        if (history->outputs[i] != INF_HISTORY_NONE)
            shape->dims[history->axes[i]] = 0;
    }
}

static struct inf_history_buffers describe_buffers(uint32_t count)
{
    return (struct inf_history_buffers){INF_HISTORY_ROOM_LEAST, count};
}

// Compiles the executable for `count` steps.
static enum inf_code hold_steps(struct measured *measured, uint32_t count,
                                struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_served *served = measured->trial->served;
    INF_TRY(inf_quiet_runs_wait(&measured->runs, err));
    uint64_t begin_ns = inf_clock_ns();
    INF_TRY(inf_model_acquire_history(served->model, served->device, &measured->options,
                                      measured->shapes, describe_buffers(count),
                                      &measured->held[count - 1], err));
    return inf_quiet_runs_pause(&measured->runs, inf_clock_ns() - begin_ns, err);
}

// Frees the executable for `count` steps, which no run will use.
static void drop_steps(struct measured *measured, uint32_t count) INF_MAY_BLOCK
{
    const struct inf_served *served = measured->trial->served;
    inf_model_release(served->model, &measured->held[count - 1]);
    inf_model_drop_history(served->model, served->device, &measured->options, measured->shapes,
                           describe_buffers(count));
}

// Gives each step of a run the same memory. `graph` is that of one step.
static void bind_steps(struct measured *measured, const struct inf_graph *graph)
{
    for (uint32_t k = 0; k < INF_HISTORY_SESSIONS_MAX; k++) {
        for (uint32_t i = 0; i < graph->input_count; i++)
            measured->inputs[k * graph->input_count + i] = measured->memory.pointers[i];
        for (uint32_t i = 0; i < graph->output_count; i++)
            measured->outputs[k * graph->output_count + i] =
                k == 0 ? measured->memory.pointers[graph->input_count + i] : NULL;
    }
    // The run writes rows into the inputs, and these outputs are the same memory.
    for (uint32_t i = 0; i < graph->input_count - 1; i++)
        if (measured->history->outputs[i] != INF_HISTORY_NONE)
            measured->outputs[measured->history->outputs[i]] = NULL;
}

// Compiles the executable for one step, and makes its memory.
static enum inf_code prepare_single(struct measured *measured, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_served *served = measured->trial->served;
    const struct inf_history_buffers buffers = describe_buffers(1);
    const struct inf_private_request request = {.device = served->device,
                                                .options = &measured->options,
                                                .shapes = measured->shapes,
                                                .buffers = &buffers};
    INF_TRY(inf_quiet_runs_wait(&measured->runs, err));
    uint64_t begin_ns = inf_clock_ns();
    INF_TRY(inf_model_compile_private(served->model, &request, &measured->single, err));
    INF_TRY(inf_quiet_runs_pause(&measured->runs, inf_clock_ns() - begin_ns, err));
    const struct inf_graph *graph = inf_executable_graph(measured->single);
    INF_TRY(inf_trial_run_init(&measured->memory, graph, err));
    bind_steps(measured, graph);
    return INF_OK;
}

// Runs the steps once, while no request is served.
static enum inf_code time_steps(struct measured *measured, struct inf_executable *executable,
                                struct inf_step_time *time, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_execution execution = {.inputs = measured->inputs,
                                            .outputs = measured->outputs};
    struct inf_quiet_result result;
    INF_TRY(inf_quiet_runs_execute(&measured->runs, executable, &execution, &result, err));
    *time = (struct inf_step_time){result.took_ns, result.interrupted};
    if (result.code != INF_OK && err != NULL)
        *err = result.why;
    return result.code;
}

// Runs timing->fewer and timing->more steps by turns, until it is clear whether more steps pay.
static enum inf_code compare_steps(struct measured *measured, struct inf_executable *fewer,
                                   struct inf_step_timing *timing,
                                   struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_executable *more = measured->held[timing->more - 1];
    struct inf_step_time fewer_time, more_time;
    // The first run of an executable touches its memory.
    INF_TRY(time_steps(measured, fewer, &fewer_time, err));
    if (timing->fewer == 1 && fewer_time.run_ns > INF_STEP_TRIAL_MS_MAX * INF_NS_PER_MS)
        return inf_fail(err, INF_UNSUPPORTED, "a step takes %" PRIu64 " ms, wanted at most %u",
                        fewer_time.run_ns / INF_NS_PER_MS, INF_STEP_TRIAL_MS_MAX);
    INF_TRY(time_steps(measured, more, &more_time, err));
    while (inf_step_timing_decide(timing) == INF_STEP_UNDECIDED) {
        INF_TRY(time_steps(measured, fewer, &fewer_time, err));
        INF_TRY(time_steps(measured, more, &more_time, err));
        inf_step_timing_note(timing, fewer_time, more_time);
    }
    if (inf_step_timing_decide(timing) == INF_STEP_DISTURBED)
        return inf_fail(err, INF_UNAVAILABLE, "other programs disturbed the runs of %u steps",
                        timing->more);
    return INF_OK;
}

// Measures runs of `count` steps. Sets *pays to true if `count` became a rung.
static enum inf_code try_rung(struct measured *measured, uint32_t count, bool *pays,
                              struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_step_timing timing = {.fewer = count / 2, .more = count};
    *pays = false;
    INF_TRY(hold_steps(measured, count, err));
    if (count == 2)
        INF_TRY(prepare_single(measured, err));
    INF_TRY(compare_steps(measured, count == 2 ? measured->single : measured->held[count / 2 - 1],
                          &timing, err));
    *pays = inf_step_timing_decide(&timing) == INF_STEP_PAYS;
    if (*pays)
        inf_step_findings_add(measured->findings, &timing);
    else
        inf_step_findings_refuse(measured->findings, &timing);
    // While a private executable exists, all weights stay in memory in their original form.
    inf_model_discard_private(measured->trial->served->model, &measured->single);
    return INF_OK;
}

// Returns true if a later trial may succeed where this one failed.
static bool may_pass(enum inf_code code)
{
    return code == INF_CANCELLED || code == INF_UNAVAILABLE || code == INF_EXHAUSTED;
}

// Measures all numbers of steps. *out_top is the highest number that was compiled.
static enum inf_code build_ladder(struct measured *measured, uint32_t *out_top,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    uint32_t most = INF_MIN(measured->trial->served->rows_max, INF_HISTORY_SESSIONS_MAX);
    bool pays = true;
    for (uint32_t count = 2; count <= most && pays; count *= 2) {
        struct inf_error why = {0};
        *out_top = count;
        enum inf_code code = try_rung(measured, count, &pays, &why);
        if (may_pass(code)) {
            if (err != NULL)
                *err = why;
            return code;
        }
        if (code != INF_OK)
            snprintf(measured->findings->why, sizeof measured->findings->why, "%.*s",
                     (int)sizeof measured->findings->why - 1, why.text);
    }
    return INF_OK;
}

// Releases the executables and the memory of the trial. Frees the executables for more steps than
// the ladder has.
static void end_trial(struct measured *measured, uint32_t top) INF_MAY_BLOCK
{
    struct inf_model *model = measured->trial->served->model;
    const uint32_t used = inf_batch_rows_max(&measured->findings->ladder);
    inf_model_discard_private(model, &measured->single);
    inf_trial_run_fini(&measured->memory);
    for (uint32_t count = 2; count <= top; count *= 2)
        if (count <= used)
            inf_model_release(model, &measured->held[count - 1]);
        else
            drop_steps(measured, count);
    malloc_trim(0); // the allocator would keep the memory of the buffers
}

static void log_findings(const struct inf_step_trial *trial,
                         const struct inf_step_findings *findings)
{
    const struct inf_batch_ladder *ladder = &findings->ladder;
    if (ladder->count == 0) {
        inf_log(trial->log, INF_LOG_INFO,
                "model runs decoding steps one by one name=%s factor=%u.%03u reason=\"%s\"",
                trial->served->name, findings->refused_permille / 1000,
                findings->refused_permille % 1000, findings->why);
        return;
    }
    const struct inf_batch_rung *top = &ladder->rungs[ladder->count - 1];
    inf_log(trial->log, INF_LOG_INFO,
            "model runs decoding steps together name=%s steps=%u step_us=%" PRIu64
            " step_alone_us=%" PRIu64,
            trial->served->name, top->rows, top->run_ns / top->rows / 1000,
            ladder->rungs[0].run_ns / 1000);
}

enum inf_code inf_step_trial_run(const struct inf_step_trial *trial,
                                 struct inf_step_findings *findings, struct inf_error *err)
{
    const struct inf_served *served = trial->served;
    struct measured *measured = calloc(1, sizeof *measured);
    *findings = (struct inf_step_findings){.refused = 0};
    if (measured == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a trial");
    measured->trial = trial;
    measured->findings = findings;
    measured->history = inf_model_history(served->model);
    measured->options = inf_model_default_options(served->model, served->device);
    measured->options.cancelled = trial->stop;
    measured->runs = (struct inf_quiet_runs){.idle_gate = trial->idle_gate, .stop = trial->stop};
    set_shapes(measured);
    uint32_t top = 0;
    enum inf_code code = build_ladder(measured, &top, err);
    if (code != INF_OK)
        *findings = (struct inf_step_findings){.refused = 0};
    end_trial(measured, top);
    free(measured);
    if (code == INF_OK)
        log_findings(trial, findings);
    return code;
}
