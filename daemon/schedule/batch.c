// SPDX-License-Identifier: Apache-2.0
// Runs several jobs of one model as one batch. The jobs form a sequence of rows. Each run takes the
// next rows, as many as the batch ladder (the list of measured row counts, called rungs)
// recommends, copies them together (gather), pads them to the row count of a rung, and copies the
// output rows back to their jobs (scatter). If one job fills the whole run, nothing is copied:
//
//   jobs   A: 3 rows   B: 6 rows
//   runs   [A A A B]   [B B B B]   [B]     ladder with rungs 1, 2 and 4
//
// If a run of several jobs fails, each job is run alone, so that only the job with bad values
// fails.
#include "daemon/schedule/batch.h"

#include <assert.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/base/clock.h"
#include "backends/base/pages.h"
#include "daemon/schedule/job_output.h"
#include "daemon/schedule/result_guard.h"
#include "proto/core/span.h"

// Alignment in bytes of the tensors that are copied together for a batch.
#define ALIGNMENT 64

enum inf_code inf_batch_memory_reserve(struct inf_batch_memory *memory, size_t size,
                                       struct inf_error *err)
{
    if (memory->capacity >= size)
        return INF_OK;
    inf_batch_memory_fini(memory);
    memory->data = inf_pages_map(size);
    if (memory->data == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a copy of %zu bytes", size);
    memory->capacity = size;
    return INF_OK;
}

void inf_batch_memory_trim(struct inf_batch_memory *memory, size_t kept_bytes)
{
    if (memory->capacity > kept_bytes)
        inf_batch_memory_fini(memory);
}

void inf_batch_memory_fini(struct inf_batch_memory *memory)
{
    inf_pages_unmap(memory->data, memory->capacity);
    *memory = (struct inf_batch_memory){0};
}

// The jobs that are run together, and how far they have been run.
struct batch {
    const struct inf_batch_resources *resources;
    struct inf_job *jobs[INF_BATCH_ROWS_MAX];
    uint32_t count;
    uint64_t rows_left;
    uint32_t job, row; // the next row to run: index of its job in `jobs`, and row in that job
    struct inf_error *err;
};

// The rows of one job that one run computes.
struct piece {
    struct inf_job *job;
    uint32_t row, count; // first row in the job, and number of rows
    uint32_t at;         // position of the job's first row in the run
};

// One run of the executable with a fixed number of rows (a rung of the batch ladder).
struct run {
    struct inf_executable *executable;
    const struct inf_graph *graph;
    // Number of rows of the run, including padding; and how many of these rows belong to jobs.
    uint32_t rung_rows, rows;
    uint32_t piece_count;
    struct piece pieces[INF_BATCH_ROWS_MAX];
    const void *inputs[INF_LIMIT_TENSORS];
    // Device mappings of the inputs that are not copied; NULL for copied inputs.
    struct inf_mapping *mappings[INF_LIMIT_TENSORS];
    void *outputs[INF_LIMIT_TENSORS];
};

// Returns the bytes of one row of an input or output.
static size_t row_bytes(const struct run *run, const struct inf_port *port)
{
    const struct inf_value *value = &run->graph->values[port->value];
    return inf_shape_elements(&value->shape) / run->rung_rows * inf_dtype_size(value->dtype);
}

static bool is_aligned(const void *memory)
{
    return (uintptr_t)memory % ALIGNMENT == 0;
}

// --- memory for tensors that are copied together ---

// Reserves memory for the largest batch of the model, so that no later batch allocates.
static enum inf_code reserve_memory(struct inf_batch_memory *memory,
                                    const struct inf_served *served, struct inf_error *err)
{
    const struct inf_graph *graph = inf_model_graph(served->model);
    size_t tensors = graph->input_count + graph->output_count;
    size_t size = inf_size_align(
        (size_t)served->ladder.bytes + tensors * (ALIGNMENT + INF_BLOB_SLACK_BYTES), ALIGNMENT);
    return inf_batch_memory_reserve(memory, size, err);
}

// Takes the next `size` bytes of the worker's memory for a gathered tensor.
static uint8_t *take_range(const struct inf_batch_memory *memory, size_t *used, size_t size)
{
    uint8_t *place = memory->data + *used;
    *used = inf_size_align(*used + size + INF_BLOB_SLACK_BYTES, ALIGNMENT);
    assert(*used <= memory->capacity);
    return place;
}

// --- one run of the executable ---

// Chooses the row count of the next run (a rung of the batch ladder), and the job rows that it
// runs.
static void plan_run(struct batch *batch, struct run *run)
{
    const struct inf_batch_ladder *ladder = &batch->jobs[0]->served->ladder;
    struct inf_batch_choice choice = inf_batch_choose(ladder, batch->rows_left);
    run->rung_rows = ladder->rungs[choice.rung].rows;
    run->rows = 0;
    run->piece_count = 0;
    while (run->rows < choice.rows) {
        struct inf_job *job = batch->jobs[batch->job];
        uint32_t count = INF_MIN(job->rows - batch->row, choice.rows - run->rows);
        run->pieces[run->piece_count++] =
            (struct piece){.job = job, .row = batch->row, .count = count, .at = run->rows};
        run->rows += count;
        batch->row += count;
        if (batch->row == job->rows) {
            batch->job++;
            batch->row = 0;
        }
    }
    batch->rows_left -= run->rows;
}

// Returns the flag that cancels the batch. A client may cancel only a run of its own job. If it
// could cancel a batch, the other jobs would have to run again.
static const atomic_bool *find_cancel_flag(const struct batch *batch)
{
    return batch->count == 1 ? &batch->jobs[0]->cancelled : batch->resources->cancelled;
}

static enum inf_code acquire_executable(const struct batch *batch, struct run *run)
    INF_ATTR(requires_capability(inf_role_worker))
{
    const struct inf_job *job = batch->jobs[0];
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    for (uint32_t i = 0; i < job->input_count; i++) {
        shapes[i] = job->shapes[i];
        shapes[i].dims[0] = run->rung_rows;
    }
    struct inf_run_options options = inf_model_default_options(job->served->model, job->device);
    options.cancelled = find_cancel_flag(batch);
    options.user = job->queue_entry.user + 1;
    INF_TRY(inf_model_acquire_with(job->served->model, job->device, &options, shapes,
                                   &run->executable, batch->err));
    run->graph = inf_executable_graph(run->executable);
    return INF_OK;
}

// Returns the memory of an input of the run: the memory of the job if it can be used directly,
// otherwise a copy of all rows.
static const void *gather_input(const struct batch *batch, struct run *run, uint32_t index,
                                size_t *used)
{
    size_t size = row_bytes(run, &run->graph->inputs[index]);
    const struct piece *first = &run->pieces[0];
    const uint8_t *own = (const uint8_t *)first->job->inputs[index] + first->row * size;
    bool is_own = first->count == run->rung_rows && is_aligned(own);
    run->mappings[index] = is_own ? first->job->mappings[index] : NULL;
    if (is_own)
        return own;
    uint8_t *copy = take_range(batch->resources->memory, used, size * run->rung_rows);
    for (uint32_t i = 0; i < run->piece_count; i++) {
        const struct piece *piece = &run->pieces[i];
        memcpy(copy + piece->at * size,
               (const uint8_t *)piece->job->inputs[index] + piece->row * size, piece->count * size);
    }
    // Pad with copies of the last row. Zeros could make some models slow or produce NaN, while a
    // copied row behaves like a row of the job.
    for (uint32_t row = run->rows; row < run->rung_rows; row++)
        memcpy(copy + row * size, copy + (row - 1) * size, size);
    return copy;
}

static bool is_output_wanted(const struct run *run, uint32_t index)
{
    for (uint32_t i = 0; i < run->piece_count; i++)
        if (inf_job_output_memory(run->pieces[i].job, index) != NULL)
            return true;
    return false;
}

// Returns the memory that the run writes an output to: the memory of the job if it can be used
// directly, otherwise memory from which scatter_outputs() copies.
static void *place_output(const struct batch *batch, const struct run *run, uint32_t index,
                          size_t *used)
{
    size_t size = row_bytes(run, &run->graph->outputs[index]);
    const struct piece *first = &run->pieces[0];
    uint8_t *own = inf_job_output_memory(first->job, index);
    if (!is_output_wanted(run, index))
        return NULL;
    if (first->count == run->rung_rows && is_aligned(own + first->row * size))
        return own + first->row * size;
    return take_range(batch->resources->memory, used, size * run->rung_rows);
}

static void scatter_outputs(const struct run *run)
{
    for (uint32_t index = 0; index < run->graph->output_count; index++) {
        size_t size = row_bytes(run, &run->graph->outputs[index]);
        for (uint32_t i = 0; run->outputs[index] != NULL && i < run->piece_count; i++) {
            const struct piece *piece = &run->pieces[i];
            uint8_t *own = inf_job_output_memory(piece->job, index);
            const uint8_t *from = (const uint8_t *)run->outputs[index] + piece->at * size;
            if (own != NULL && own + piece->row * size != from)
                memcpy(own + piece->row * size, from, piece->count * size);
        }
    }
}

static enum inf_code execute_run(const struct batch *batch, struct run *run)
    INF_ATTR(requires_capability(inf_role_worker))
{
    size_t used = 0;
    for (uint32_t i = 0; i < run->graph->input_count; i++)
        run->inputs[i] = gather_input(batch, run, i, &used);
    for (uint32_t i = 0; i < run->graph->output_count; i++)
        run->outputs[i] = place_output(batch, run, i, &used);
    struct inf_core_use core_use = {0};
    const struct inf_execution execution = {.inputs = run->inputs,
                                            .mappings = run->mappings,
                                            .outputs = run->outputs,
                                            .slot = batch->resources->slot,
                                            .cancelled = find_cancel_flag(batch),
                                            .step = batch->resources->step,
                                            .core_use = &core_use};
    for (uint32_t i = 0; i < run->piece_count; i++) {
        struct inf_job *job = run->pieces[i].job;
        if (job->result.begin_ns == 0)
            job->result.begin_ns = inf_clock_ns();
        else
            job->result.flags |= INF_INFER_SPLIT;
        if (run->rung_rows > run->rows) {
            job->result.flags |= INF_INFER_PADDED;
            job->result.padded_to = INF_MAX(job->result.padded_to, run->rung_rows);
        }
        job->result.batch_rows = INF_MAX(job->result.batch_rows, run->rows);
    }
    const struct inf_job *first = batch->jobs[0];
    enum inf_precision precision;
    enum inf_code code = inf_result_guard_run(first->served, first->device, run->executable,
                                              &execution, NULL, &precision, batch->err);
    // A run that failed has used its cores as well.
    for (uint32_t i = 0; i < run->piece_count; i++)
        run->pieces[i].job->result.helper_share_ns +=
            core_use.helper_ns / run->rows * run->pieces[i].count;
    INF_TRY(code);
    uint64_t end_ns = inf_clock_ns();
    for (uint32_t i = 0; i < run->piece_count; i++) {
        struct inf_core_use *whole = &run->pieces[i].job->result.core_use;
        whole->helper_ns += core_use.helper_ns;
        whole->threads = INF_MAX(whole->threads, core_use.threads);
        run->pieces[i].job->result.end_ns = end_ns;
        run->pieces[i].job->result.precision = precision;
        if (precision != inf_executable_precision(run->executable))
            run->pieces[i].job->result.flags |= INF_INFER_RECOMPUTED;
    }
    scatter_outputs(run);
    return INF_OK;
}

// --- running all jobs of a batch ---

// Finds memory for the outputs of every job. Cancelled jobs, and jobs for whose outputs there is no
// memory, are left out of the batch.
static void place_outputs(struct batch *batch, const struct inf_graph *graph)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        struct inf_job *job = batch->jobs[i];
        bool late;
        if (atomic_load_explicit(&job->cancelled, memory_order_relaxed)) {
            inf_fail(&job->result.fault.err, INF_CANCELLED, "cancelled before it began");
        } else if (inf_job_place_outputs(job, graph, job->rows, batch->resources->pool, &late) ==
                   INF_OK) {
            assert(!late && "a model with a ladder knows the shapes of its outputs");
            batch->jobs[kept++] = job;
            continue;
        }
        batch->rows_left -= job->rows;
    }
    batch->count = kept;
}

static enum inf_code run_batch(struct batch *batch) INF_ATTR(requires_capability(inf_role_worker))
{
    struct inf_model *model = batch->jobs[0]->served->model;
    INF_TRY(reserve_memory(batch->resources->memory, batch->jobs[0]->served, batch->err));
    while (batch->rows_left > 0) {
        struct run run = {.executable = NULL};
        plan_run(batch, &run);
        INF_TRY(acquire_executable(batch, &run));
        enum inf_code code = execute_run(batch, &run);
        inf_model_release(model, &run.executable);
        if (code != INF_OK)
            return code;
    }
    return INF_OK;
}

void inf_batch_run(struct inf_job *const *jobs, uint32_t count,
                   const struct inf_batch_resources *resources)
{
    assert(count > 0 && count <= INF_BATCH_ROWS_MAX);
    struct inf_error err = {.code = INF_OK};
    struct batch batch = {.resources = resources, .count = count, .err = &err};
    for (uint32_t i = 0; i < count; i++) {
        batch.jobs[i] = jobs[i];
        batch.rows_left += jobs[i]->rows;
        inf_fault_init(&jobs[i]->result.fault);
        jobs[i]->result.begin_ns = jobs[i]->result.end_ns = 0;
        jobs[i]->result.core_use = (struct inf_core_use){0};
        jobs[i]->result.batch_rows = jobs[i]->result.padded_to = 0;
        jobs[i]->result.flags &= INF_INFER_MOVED;
        inf_job_forget_history(jobs[i]);
    }
    place_outputs(&batch, inf_model_graph(jobs[0]->served->model));
    enum inf_code code = batch.count > 0 ? run_batch(&batch) : INF_OK;
    if (code == INF_OK)
        return;
    bool cancelled = atomic_load_explicit(resources->cancelled, memory_order_relaxed);
    // The values of one job may have made the run of all jobs fail, so run each job alone.
    for (uint32_t i = 0; batch.count > 1 && !cancelled && i < batch.count; i++)
        inf_batch_run(&batch.jobs[i], 1, resources);
    // Make sure that a failure without an error text is not mistaken for a success.
    if (err.code == INF_OK)
        inf_fail_reason(&err, INF_INTERNAL, INF_REASON_BUG, "the run failed without saying why");
    for (uint32_t i = 0; (batch.count == 1 || cancelled) && i < batch.count; i++)
        batch.jobs[i]->result.fault.err = err;
}
