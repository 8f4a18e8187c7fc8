// SPDX-License-Identifier: Apache-2.0
// The problem: a decoding step has the keys and values of all earlier tokens as inputs and returns
// them with those of the new token behind. If they were outputs like others, each step would copy
// the whole history, and would have shapes of its own that must be compiled.
//
// The idea: the buffers of the session have room for more rows than are used. The model is compiled
// for the whole buffers (history.h of the graph); the number of used rows is one of its inputs. A
// run writes the new rows behind the used ones. They count only when the loop commits the run, so
// that a failed run leaves the session as it was. If the rows do not fit, they are copied once to a
// buffer of twice as many.
//
//   [1, heads, room, size]    head 0: k k k n . .   head 1: k k k n . .
//
// There is one executable for each size of the buffers. Sizes are powers of two, so that sessions
// of any length need few executables. With an executable for each length, sessions would evict
// those of each other (shape_class.h keeps INF_SHAPE_CLASSES_MAX) and compile at each step. All
// share the packed weights; each adds the memory of its intermediate results, which grows with the
// size. The buffers grow by smaller steps if twice the rows are too many for a session or for a
// table of positions in the model.
//
// If the session tensors are caches of a fixed size, the run writes its rows over them instead
// (cache_rows.c).
//
// Unused rows are finite: the pages of a new buffer are zeros, which take no memory until a row is
// written to them, and the rows of a run that failed or could not be kept are zeroed.
#include "daemon/schedule/history_run.h"

#include <assert.h>

#include "backends/base/clock.h"
#include "backends/exec/model/model.h"
#include "daemon/schedule/job_output.h"
#include "daemon/schedule/result_guard.h"

// Acquires the executable, with larger buffers if the new rows do not fit.
static enum inf_code acquire_executable(struct inf_history_step *step,
                                        const struct inf_run_options *options,
                                        struct inf_executable **executable, struct inf_error *err)
{
    struct inf_job *job = step->plan.job;
    for (;;) {
        INF_TRY(inf_model_acquire_history(
            job->served->model, job->device, options, step->plan.shapes,
            (struct inf_history_buffers){step->plan.room, 1}, executable, err));
        step->plan.rows = inf_executable_new_rows(*executable);
        if (step->plan.overwrites ||
            (uint64_t)step->plan.length + step->plan.rows <= step->plan.room)
            return INF_OK;
        inf_model_release(job->served->model, executable);
        step->plan.room =
            inf_history_round_room((uint64_t)step->plan.length + step->plan.rows, step->plan.step);
    }
}

// Acquires the executable for the same buffers in fp32. Its run writes the same rows.
static enum inf_code acquire_in_fp32(void *context, struct inf_executable **out_executable,
                                     struct inf_error *err)
{
    struct inf_history_step *step = context;
    struct inf_run_options options = *step->resources->options;
    uint32_t room = step->plan.room;
    options.precision = INF_PRECISION_FP32;
    INF_TRY(acquire_executable(step, &options, out_executable, err));
    assert(room == step->plan.room && "the same shapes");
    (void)room;
    return INF_OK;
}

static enum inf_code compute_step(struct inf_history_step *step,
                                  struct inf_executable *executable) INF_MAY_BLOCK
{
    struct inf_job *job = step->plan.job;
    const struct inf_execution execution = {.inputs = step->inputs,
                                            .outputs = step->outputs,
                                            .slot = step->resources->slot,
                                            .cancelled = &job->cancelled,
                                            .step = step->resources->step,
                                            .core_use = &job->result.core_use};
    const struct inf_fp32_source fp32 = {acquire_in_fp32, step};
    enum inf_code code =
        inf_result_guard_run(job->served, job->device, executable, &execution, &fp32,
                             &job->result.precision, &job->result.fault.err);
    if (job->result.precision != inf_executable_precision(executable))
        job->result.flags |= INF_INFER_RECOMPUTED;
    return code;
}

static enum inf_code run_bound(struct inf_history_step *step,
                               struct inf_executable *executable) INF_MAY_BLOCK
{
    struct inf_job *job = step->plan.job;
    const struct inf_graph *graph = inf_executable_graph(executable);
    INF_TRY(inf_history_step_bind(step, graph));
    job->result.begin_ns = inf_clock_ns();
    enum inf_code code = compute_step(step, executable);
    job->result.end_ns = inf_clock_ns();
    if (code == INF_OK)
        inf_history_step_note(step, graph);
    else
        inf_history_step_undo(step);
    return code;
}

// Returns false if an executable was refused, so that another way must be tried.
static bool is_decided(enum inf_code code)
{
    return code != INF_UNSUPPORTED && code != INF_RANGE && code != INF_INVALID;
}

// Acquires the executable with the largest buffers that are possible. *out_found is false if the
// job must be run in the usual way.
static enum inf_code find_appending(struct inf_history_step *step, int64_t rows,
                                    struct inf_executable **executable, bool *out_found,
                                    struct inf_error *err) INF_MAY_BLOCK
{
    static const uint32_t steps[] = {0, INF_HISTORY_ROOM_LEAST, INF_HISTORY_STEP_LEAST};
    const struct inf_job *job = step->plan.job;
    uint32_t refused_room = 0, count = INF_ARRAY_LENGTH(steps);
    *out_found = false;
    // The longest history that settings allow may be too long for the session, or for a table of
    // the model. The buffers then grow like those without a limit.
    if (inf_session_max_length(job->session, job->served->config.max_length) != 0)
        count *= 2;
    for (uint32_t i = 0; i < count; i++) {
        step->plan.step = steps[i % INF_ARRAY_LENGTH(steps)];
        step->plan.ignores_limit = i >= INF_ARRAY_LENGTH(steps);
        if (!inf_history_plan_room(&step->plan, rows) || step->plan.room == refused_room)
            continue;
        enum inf_code code = acquire_executable(step, step->resources->options, executable, err);
        *out_found = is_decided(code);
        if (*out_found)
            return code;
        refused_room = step->plan.room;
    }
    return INF_OK;
}

// Acquires the executable that writes over the caches. *out_found is false if there is none for so
// many new rows.
static enum inf_code find_overwriting(struct inf_history_step *step, int64_t rows,
                                      struct inf_executable **executable, bool *out_found,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    enum inf_code code = step->plan.room == 0
                             ? INF_RANGE
                             : acquire_executable(step, step->resources->options, executable, err);
    *out_found = is_decided(code);
    if (code == INF_OK && rows != (int64_t)step->plan.rows) {
        inf_model_release(step->plan.job->served->model, executable);
        *out_found = false;
    }
    return code;
}

// Finds the way in which the rows of the job are written, and acquires its executable. *out_found
// is false if the job must be run in the usual way.
static enum inf_code find_executable(struct inf_history_step *step,
                                     struct inf_executable **executable, bool *out_found,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    enum inf_code code = INF_OK;
    int64_t rows;
    *out_found = false;
    if (inf_history_plan_overwriting(&step->plan, &rows))
        code = find_overwriting(step, rows, executable, out_found, err);
    if (!*out_found && inf_history_plan_appending(&step->plan, &rows))
        code = find_appending(step, rows, executable, out_found, err);
    return code;
}

enum inf_code inf_history_run(struct inf_job *job, const struct inf_history_resources *resources,
                              bool *out_done)
{
    struct inf_history_step step = {
        .plan = {.job = job, .history = inf_model_history(job->served->model)},
        .resources = resources};
    struct inf_executable *executable = NULL;
    struct inf_error refused;
    *out_done = false;
    if (step.plan.history == NULL || job->session == NULL)
        return INF_OK;
    enum inf_code code = find_executable(&step, &executable, out_done, &refused);
    if (!*out_done)
        return INF_OK;
    if (code != INF_OK) {
        job->result.fault.err = refused;
        return code;
    }
    code = run_bound(&step, executable);
    inf_model_release(job->served->model, &executable);
    // The rows may have to be written elsewhere; if not, the usual way fails in the same way.
    if (code == INF_INVALID && step.plan.history->checks_positions && !step.plan.overwrites)
        step.is_refused = true;
    if (step.is_refused) {
        inf_job_forget_history(job);
        job->result.flags &= ~(uint32_t)INF_INFER_RECOMPUTED;
        inf_fault_init(&job->result.fault);
        *out_done = false;
        return INF_OK;
    }
    return code;
}
