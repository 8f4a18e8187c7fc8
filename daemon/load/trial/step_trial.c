// SPDX-License-Identifier: Apache-2.0
// Builds the batch ladder of a model with a history, whose rows are decoding steps of different
// sessions (daemon/schedule/history_joined.h). How much time joined steps save depends on the size
// of the weights and on the kernels for few rows, so it is measured. All steps of a measured run
// have the same memory. Results are not compared, because the graph for several sessions mixes no
// rows, whatever the model computes (backends/graph/history/join.c).
#include "daemon/load/trial/step_trial.h"

#include <inttypes.h>
#include <malloc.h>

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "backends/graph/history/join.h"

// The time of a number of steps is that of the fastest of up to RUNS_MAX runs. No run starts later
// than RUNS_MS milliseconds after the first one.
#define RUNS_MAX 5
#define RUNS_MS  50u
// How often a number of steps that does not pay is measured before it is given up. Other programs
// may have disturbed its runs.
#define ROUNDS_MAX 3
// If one step takes longer than this, nothing is measured, because the runs would delay the load.
#define SINGLE_MS_MAX 150u

// The model whose steps are measured, and the memory of one step.
struct measured {
    struct inf_served *served;
    const struct inf_history *history;
    const atomic_bool *cancelled; // ends the trial
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_trial_run memory;
    const void *inputs[INF_HISTORY_SESSIONS_MAX * (INF_LIMIT_TENSORS + 1)];
    void *outputs[INF_HISTORY_SESSIONS_MAX * INF_LIMIT_TENSORS];
};

// Sets the shapes of a step of one row for an empty history. Sizes that the model leaves to
// requests are 1.
static void set_shapes(struct measured *measured)
{
    const struct inf_graph *graph = inf_model_graph(measured->served->model);
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

static enum inf_code acquire_steps(const struct measured *measured, uint32_t count,
                                   struct inf_executable **executable) INF_MAY_BLOCK
{
    const struct inf_served *served = measured->served;
    struct inf_run_options options = inf_model_default_options(served->model, served->device);
    options.cancelled = measured->cancelled;
    return inf_model_acquire_history(served->model, served->device, &options, measured->shapes,
                                     (struct inf_history_buffers){INF_HISTORY_ROOM_LEAST, count},
                                     executable, NULL);
}

// Frees the executable, which no run will use.
static void drop_steps(const struct measured *measured, uint32_t count) INF_MAY_BLOCK
{
    const struct inf_served *served = measured->served;
    const struct inf_run_options options = inf_model_default_options(served->model, served->device);
    inf_model_drop_history(served->model, served->device, &options, measured->shapes,
                           (struct inf_history_buffers){INF_HISTORY_ROOM_LEAST, count});
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

// Runs the steps a few times and stores the shortest time in *best_ns. Returns false if a run
// fails.
static bool time_steps(const struct measured *measured, struct inf_executable *executable,
                       uint64_t *best_ns) INF_MAY_BLOCK
{
    const struct inf_execution execution = {
        .inputs = measured->inputs, .outputs = measured->outputs, .cancelled = measured->cancelled};
    uint64_t begin_ns = inf_clock_ns(), now_ns = begin_ns;
    *best_ns = UINT64_MAX;
    for (int i = 0; i < RUNS_MAX && now_ns - begin_ns < RUNS_MS * INF_NS_PER_MS; i++) {
        uint64_t run_ns = now_ns;
        if (inf_executable_run(executable, &execution, NULL) != INF_OK)
            return false;
        now_ns = inf_clock_ns();
        *best_ns = INF_MIN(*best_ns, INF_MAX(now_ns - run_ns, 1u));
    }
    return true;
}

// Measures runs of `count` steps, and adds the number to the ladder if a step costs enough less.
// Returns false if it is not added.
static bool try_rung(const struct measured *measured, uint32_t count) INF_MAY_BLOCK
{
    struct inf_batch_ladder *ladder = &measured->served->ladder;
    struct inf_executable *executable = NULL;
    uint64_t run_ns;
    if (acquire_steps(measured, count, &executable) != INF_OK)
        return false;
    bool pays = false;
    for (int round = 0; round < ROUNDS_MAX && !pays; round++) {
        if (!time_steps(measured, executable, &run_ns))
            break;
        pays = inf_batch_ladder_pays(ladder, count, run_ns);
    }
    if (pays)
        ladder->rungs[ladder->count++] = (struct inf_batch_rung){count, run_ns};
    inf_model_release(measured->served->model, &executable);
    if (!pays)
        drop_steps(measured, count);
    return pays;
}

// Measures all numbers of steps, from 1 on.
static void build_ladder(struct measured *measured, struct inf_executable *single,
                         uint32_t steps_max) INF_MAY_BLOCK
{
    struct inf_batch_ladder *ladder = &measured->served->ladder;
    const uint64_t end_ns = inf_clock_ns() + INF_STEP_TRIAL_MS * INF_NS_PER_MS;
    uint64_t run_ns, rung_ns = 0;
    if (inf_trial_run_init(&measured->memory, inf_executable_graph(single), NULL) != INF_OK)
        return;
    bind_steps(measured, inf_executable_graph(single));
    if (!time_steps(measured, single, &run_ns) || run_ns > SINGLE_MS_MAX * INF_NS_PER_MS)
        return;
    ladder->rungs[ladder->count++] = (struct inf_batch_rung){1, run_ns};
    for (uint32_t count = 2; count <= INF_MIN(steps_max, INF_HISTORY_SESSIONS_MAX); count *= 2) {
        uint64_t begin_ns = inf_clock_ns();
        // Twice as many steps take about twice as long to compile and to run.
        if (begin_ns + 2 * rung_ns > end_ns || !try_rung(measured, count))
            return;
        rung_ns = inf_clock_ns() - begin_ns;
    }
}

void inf_step_trial_run(struct inf_served *served, uint32_t steps_max, const atomic_bool *cancelled,
                        const struct inf_log *log)
{
    struct measured measured = {
        .served = served, .history = inf_model_history(served->model), .cancelled = cancelled};
    struct inf_batch_ladder *ladder = &served->ladder;
    struct inf_executable *single = NULL;
    ladder->count = 0;
    set_shapes(&measured);
    if (steps_max < 2 || acquire_steps(&measured, 1, &single) != INF_OK)
        return;
    build_ladder(&measured, single, steps_max);
    inf_trial_run_fini(&measured.memory);
    inf_model_release(served->model, &single);
    malloc_trim(0); // the allocator would keep the memory of the buffers
    if (ladder->count < 2)
        ladder->count = 0;
    else
        inf_log(log, INF_LOG_INFO,
                "model runs decoding steps together name=%s steps=%u step_us=%" PRIu64
                " step_alone_us=%" PRIu64,
                served->name, ladder->rungs[ladder->count - 1].rows,
                ladder->rungs[ladder->count - 1].run_ns / ladder->rungs[ladder->count - 1].rows /
                    1000,
                ladder->rungs[0].run_ns / 1000);
}
