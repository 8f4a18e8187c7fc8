// SPDX-License-Identifier: Apache-2.0
// The problem: a decoding step computes one row, but reads all weights of the model. Reading the
// weights takes most of its time. Steps of several sessions cannot be rows of one batch (batch.c),
// because the histories of the sessions have different lengths.
//
// The idea: sessions whose buffers have the same number of rows run the same graph, whatever the
// lengths of their histories. inf_history_join() makes a graph for several sessions, which reads
// the weights once. The device queue gives a worker steps that have the same key. The batch ladder
// of the model, in which a step counts as a row, determines their number (queue_batch.c).
//
// The executable is for as many sessions as a rung of the ladder has rows. If there are fewer
// steps, the remaining sessions of the executable repeat the first step in its memory: they write
// the same rows to the same place, and their outputs are dropped.
//
// Until the loader has compiled the executable, the steps run one by one.
//
// A step that cannot share the run, for example because its client cancelled it, runs alone; the
// other steps run without it. If the run fails, its steps run one by one, so that a step with bad
// values fails alone. The session of that step then stays out of joined runs for a while
// (daemon/policy/join_back_off.h). A client cannot cancel a run of several steps.
#include "daemon/schedule/history_joined.h"

#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/exec/model/model.h"
#include "backends/graph/history/join.h"
#include "daemon/load/loader.h"
#include "daemon/load/trial/join_compile.h"
#include "daemon/schedule/result_guard.h"

struct inf_history_joined {
    uint32_t count;  // steps of the run
    uint32_t copies; // number of sessions of the executable, at least `count`
    uint32_t members[INF_HISTORY_SESSIONS_MAX]; // the jobs of the steps, by number
    struct inf_history_resources resources[INF_HISTORY_SESSIONS_MAX];
    struct inf_batch_memory memory[INF_HISTORY_SESSIONS_MAX]; // one for each step
    struct inf_history_step steps[INF_HISTORY_SESSIONS_MAX];
    const void *inputs[INF_HISTORY_SESSIONS_MAX * (INF_LIMIT_TENSORS + 1)];
    void *outputs[INF_HISTORY_SESSIONS_MAX * INF_LIMIT_TENSORS];
};

// Prepares the plan of a step that appends rows to buffers. Returns false if the step must be run
// in another way.
static bool plan_step(struct inf_history_plan *plan, struct inf_job *job)
{
    int64_t rows;
    *plan = (struct inf_history_plan){.job = job, .history = inf_model_history(job->served->model)};
    // If the caches of the model may have a fixed size or grow, the tensors of the session decide
    // which; only caches that grow are joined.
    return plan->history != NULL && job->session != NULL &&
           !inf_history_plan_overwriting(plan, &rows) && inf_history_plan_appending(plan, &rows) &&
           rows == 1 && inf_history_plan_room(plan, rows);
}

uint64_t inf_history_find_join_key(struct inf_job *job)
{
    struct inf_history_plan plan;
    if (job->served->ladder.count == 0 || !inf_served_joins_steps(job->served) ||
        job->device != job->served->device || job->precision != INF_PRECISION_AUTO ||
        !inf_join_back_off_may_join(&job->session->join_back_off) ||
        inf_clock_ns() < atomic_load(&job->served->join_after_ns) || !plan_step(&plan, job))
        return 0;
    uint64_t key = inf_estimate_key(job->served, plan.shapes, job->input_count);
    return (key ^ (plan.room * UINT64_C(0x9e3779b97f4a7c15))) | 1;
}

// --- memory ---

struct inf_history_joined *inf_history_joined_create(void)
{
    return calloc(1, sizeof(struct inf_history_joined));
}

void inf_history_joined_destroy(struct inf_history_joined **joined)
{
    for (uint32_t i = 0; *joined != NULL && i < INF_HISTORY_SESSIONS_MAX; i++)
        inf_batch_memory_fini(&(*joined)->memory[i]);
    free(*joined);
    *joined = NULL;
}

void inf_history_joined_trim(struct inf_history_joined *joined, size_t kept_bytes)
{
    for (uint32_t i = 0; joined != NULL && i < INF_HISTORY_SESSIONS_MAX; i++)
        inf_batch_memory_trim(&joined->memory[i], kept_bytes);
}

// --- preparing a run ---

// Returns true if the steps have the same executable.
static bool are_alike(const struct inf_history_plan *a, const struct inf_history_plan *b)
{
    if (a->room != b->room || a->job->input_count != b->job->input_count)
        return false;
    for (uint32_t i = 0; i < a->job->input_count; i++)
        if (!inf_shape_equal(&a->shapes[i], &b->shapes[i]))
            return false;
    return true;
}

// Plans the steps that can share a run: the first step that can be planned, and the steps that need
// the same executable.
static void plan_steps(struct inf_history_joined *joined, struct inf_job *const *jobs,
                       uint32_t count)
{
    joined->count = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct inf_history_step *step = &joined->steps[joined->count];
        if (!plan_step(&step->plan, jobs[i]) || !are_alike(&step->plan, &joined->steps[0].plan) ||
            atomic_load_explicit(&jobs[i]->cancelled, memory_order_relaxed))
            continue;
        joined->members[joined->count++] = i;
    }
}

// Chooses the number of sessions of the executable. Returns false if the steps cannot share a run:
// there are fewer than two, or more than the ladder has.
static bool choose_copies(struct inf_history_joined *joined, const struct inf_batch_ladder *ladder)
{
    uint32_t rung = 0;
    while (rung < ladder->count && ladder->rungs[rung].rows < joined->count)
        rung++;
    if (joined->count < 2 || rung == ladder->count ||
        ladder->rungs[rung].rows > INF_HISTORY_SESSIONS_MAX)
        return false;
    joined->copies = ladder->rungs[rung].rows;
    return true;
}

// Finds the executable. If it is not compiled yet, submits a job that compiles it for later runs,
// and returns false.
static bool find_joined(struct inf_history_joined *joined, const struct inf_run_options *options,
                        struct inf_executable **executable)
{
    const struct inf_history_plan *plan = &joined->steps[0].plan;
    struct inf_served *served = plan->job->served;
    const struct inf_join_order order = {.device = plan->job->device,
                                         .options = options,
                                         .shapes = plan->shapes,
                                         .buffers = {plan->room, joined->copies}};
    enum inf_code code = inf_model_find_joined(served->model, order.device, options, order.shapes,
                                               order.buffers, executable);
    struct inf_load_job *job =
        code == INF_NOT_FOUND ? inf_join_compile_create(served, &order) : NULL;
    if (job != NULL)
        inf_loader_submit(served->loader, job);
    return code == INF_OK;
}

// Acquires the executable for the same buffers in fp32. Its run writes the same rows.
static enum inf_code acquire_in_fp32(void *context, struct inf_executable **out_executable,
                                     struct inf_error *err)
{
    struct inf_history_joined *joined = context;
    struct inf_run_options options = *joined->resources[0].options;
    const struct inf_history_plan *plan = &joined->steps[0].plan;
    const struct inf_history_buffers buffers = {plan->room, joined->copies};
    options.precision = INF_PRECISION_FP32;
    return inf_model_acquire_history(plan->job->served->model, plan->job->device, &options,
                                     plan->shapes, buffers, out_executable, err);
}

// Finds the memory of all steps. Returns false if the new rows of one do not fit its buffers, or if
// there is no memory.
static bool bind_steps(struct inf_history_joined *joined, const struct inf_executable *executable)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const uint32_t inputs = joined->steps[0].plan.job->input_count + 1;
    const uint32_t outputs = joined->steps[0].plan.job->output_count;
    for (uint32_t i = 0; i < joined->copies; i++) {
        bool own = i < joined->count;
        struct inf_history_step *step = &joined->steps[own ? i : 0];
        if (own) {
            step->plan.rows = inf_executable_new_rows(executable);
            step->resources = &joined->resources[i];
            if (step->plan.length + step->plan.rows > step->plan.room ||
                inf_history_step_bind(step, graph) != INF_OK)
                return false;
        }
        for (uint32_t k = 0; k < inputs; k++)
            joined->inputs[i * inputs + k] = step->inputs[k];
        for (uint32_t k = 0; k < outputs; k++)
            joined->outputs[i * outputs + k] = own ? step->outputs[k] : NULL;
    }
    return true;
}

// --- running ---

static void note_results(struct inf_history_joined *joined, const struct inf_executable *executable,
                         uint64_t begin_ns, enum inf_precision precision,
                         const struct inf_core_use *core_use)
{
    uint64_t end_ns = inf_clock_ns();
    for (uint32_t i = 0; i < joined->count; i++) {
        struct inf_job *job = joined->steps[i].plan.job;
        job->result.begin_ns = begin_ns;
        job->result.end_ns = end_ns;
        job->result.core_use = *core_use;
        job->result.helper_share_ns = core_use->helper_ns / joined->count;
        job->result.batch_rows = joined->count;
        job->result.join_outcome = INF_JOIN_SHARED;
        job->result.precision = precision;
        if (precision != inf_executable_precision(executable))
            job->result.flags |= INF_INFER_RECOMPUTED;
        if (joined->copies > joined->count) {
            job->result.flags |= INF_INFER_PADDED;
            job->result.padded_to = joined->copies;
        }
        inf_history_step_note(&joined->steps[i], inf_executable_graph(executable));
    }
}

static bool run_bound(struct inf_history_joined *joined, struct inf_executable *executable,
                      const atomic_bool *cancelled) INF_MAY_BLOCK
{
    const struct inf_job *job = joined->steps[0].plan.job;
    struct inf_core_use core_use = {0};
    const struct inf_execution execution = {.inputs = joined->inputs,
                                            .outputs = joined->outputs,
                                            .slot = joined->resources[0].slot,
                                            .cancelled = cancelled,
                                            .step = joined->resources[0].step,
                                            .core_use = &core_use};
    const struct inf_fp32_source fp32 = {acquire_in_fp32, joined};
    enum inf_precision precision;
    struct inf_error err;
    uint64_t begin_ns = inf_clock_ns();
    if (inf_result_guard_run(job->served, job->device, executable, &execution, &fp32, &precision,
                             &err) == INF_OK) {
        note_results(joined, executable, begin_ns, precision, &core_use);
        return true;
    }
    for (uint32_t i = 0; i < joined->count; i++)
        inf_history_step_undo(&joined->steps[i]);
    return false;
}

uint32_t inf_history_run_joined(struct inf_history_joined *joined, struct inf_job *const *jobs,
                                uint32_t count, const struct inf_history_resources *resources,
                                const atomic_bool *cancelled)
{
    struct inf_executable *executable = NULL;
    if (count < 2 || count > INF_HISTORY_SESSIONS_MAX)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        joined->resources[i] = *resources;
        joined->resources[i].memory = &joined->memory[i];
    }
    plan_steps(joined, jobs, count);
    if (!choose_copies(joined, &jobs[0]->served->ladder) ||
        !find_joined(joined, resources->options, &executable))
        return 0;
    bool bound = bind_steps(joined, executable);
    bool done = bound && run_bound(joined, executable, cancelled);
    inf_model_release(jobs[0]->served->model, &executable);
    uint32_t members = 0;
    for (uint32_t i = 0; i < joined->count; i++) {
        members |= 1u << joined->members[i];
        // Each member may have made the run fail; the caller runs each one alone to find out.
        if (!done && bound)
            jobs[joined->members[i]]->result.join_outcome = INF_JOIN_SPOILED;
    }
    return done ? members : 0;
}
