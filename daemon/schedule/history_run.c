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
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/model/model.h"
#include "daemon/schedule/cache_rows.h"
#include "daemon/schedule/history_plan.h"
#include "daemon/schedule/job_output.h"
#include "daemon/schedule/result_guard.h"
#include "proto/core/span.h"

#define ALIGNMENT 64

struct history_run {
    struct inf_history_plan plan;
    const struct inf_history_resources *resources;
    const void *inputs[INF_LIMIT_TENSORS + 1];
    void *outputs[INF_LIMIT_TENSORS + 1];
    int64_t *positions; // where the run wrote rows over caches; in the worker's memory
    int32_t used;       // `length` as the run reads it
    bool is_refused;    // the results must not be used; the job must be run in the usual way
};

// --- memory ---

// Copies the first `rows` rows of each sequence between buffers of different numbers of rows.
static void copy_rows(const struct inf_history_state *state, const uint8_t *from, size_t from_room,
                      uint8_t *to, size_t to_room, size_t rows)
{
    size_t used = rows * state->row_bytes;
    for (size_t i = 0; used > 0 && i < state->outer; i++)
        memcpy(to + i * to_room * state->row_bytes, from + i * from_room * state->row_bytes, used);
}

// Zeroes `count` rows of each sequence of a buffer of `room` rows, from row `first` on.
static void clear_rows(const struct inf_history_state *state, uint8_t *memory, size_t room,
                       size_t first, size_t count)
{
    for (size_t i = 0; i < state->outer; i++)
        memset(memory + (i * room + first) * state->row_bytes, 0, count * state->row_bytes);
}

// Returns the number of rows of the buffer that has the tensor's value.
static size_t tensor_room(const struct inf_history_state *state)
{
    return state->tensor->room != 0 ? state->tensor->room
                                    : (size_t)state->tensor->shape.dims[state->axis];
}

static struct inf_cache_layout cache_layout(const struct history_run *run,
                                            const struct inf_history_state *state)
{
    return (struct inf_cache_layout){.outer = state->outer,
                                     .row_bytes = state->row_bytes,
                                     .room = run->plan.room,
                                     .ring = run->plan.history->cache_rings[state->input]};
}

// Finds the buffer of a cache that the run writes over.
static enum inf_code bind_cache(struct history_run *run, struct inf_history_state *state)
{
    const struct inf_cache_layout layout = cache_layout(run, state);
    struct inf_job_output *output = &run->plan.job->outputs[state->output];
    output->in_place = output->overwrites = true;
    INF_TRY(inf_cache_rows_begin(state->tensor, &layout, &run->plan.job->result.fault.err));
    state->memory = state->tensor->next.data;
    return INF_OK;
}

// Returns the shape of the positions at which a run has written rows over caches: its last output.
// There is one list of positions for all caches, or one for each.
static const struct inf_shape *find_positions_shape(const struct history_run *run,
                                                    const struct inf_graph *graph)
{
    return &graph->values[graph->outputs[run->plan.job->output_count].value].shape;
}

// Notes the rows that a run has written over the caches. Returns false if the graph would have
// changed other rows too.
static bool note_cache_rows(struct history_run *run, const struct inf_graph *graph)
{
    bool is_whole = true;
    const struct inf_shape *shape = find_positions_shape(run, graph);
    size_t count = (size_t)shape->dims[1];
    for (uint32_t i = 0; i < run->plan.state_count; i++) {
        struct inf_history_state *state = &run->plan.states[i];
        const struct inf_cache_layout layout = cache_layout(run, state);
        const int64_t *positions = run->positions + (shape->dims[0] == 1 ? 0 : i * count);
        struct inf_job_output *output = &run->plan.job->outputs[state->output];
        output->lags =
            inf_cache_rows_note(state->tensor, &layout, positions, count, run->plan.rows);
        if (run->plan.history->cache_zeros[state->input])
            is_whole =
                is_whole && output->lags && inf_cache_rows_check_zeros(state->tensor, &layout);
    }
    return is_whole;
}

// Finds the buffer of a state, and copies the rows to a larger one if that is needed.
static enum inf_code bind_state(struct history_run *run, struct inf_history_state *state)
{
    struct inf_session_tensor *tensor = state->tensor;
    struct inf_job_output *output = &run->plan.job->outputs[state->output];
    struct inf_error *err = &run->plan.job->result.fault.err;
    size_t size;
    bool is_new;
    output->in_place = true;
    // A forked session shares its buffers until one of both writes.
    output->moved = tensor->room != run->plan.room || inf_session_buffer_is_shared(&tensor->now);
    state->memory = tensor->now.data;
    if (!output->moved) {
        if (tensor->is_stale)
            clear_rows(state, state->memory, run->plan.room, run->plan.length,
                       run->plan.room - run->plan.length);
        return INF_OK;
    }
    if (!inf_size_mul(state->outer * state->row_bytes, run->plan.room, &size))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "'%s' is too large for a session", tensor->name);
    INF_TRY(inf_session_buffer_reserve(&tensor->next, size, &is_new, err));
    state->memory = tensor->next.data;
    copy_rows(state, tensor->now.data, tensor_room(state), state->memory, run->plan.room,
              run->plan.length);
    if (!is_new)
        clear_rows(state, state->memory, run->plan.room, run->plan.length,
                   run->plan.room - run->plan.length);
    return INF_OK;
}

// Copies an input such as a mask to memory of the size that the model was compiled for, with zeros
// behind each sequence of elements.
static void pad_input(const struct history_run *run, uint32_t input, const struct inf_shape *padded,
                      enum inf_dtype dtype, uint8_t *to)
{
    struct inf_history_state given = {.axis = run->plan.history->axes[input]};
    const struct inf_shape *shape = &run->plan.job->shapes[input];
    if (!inf_history_state_init(&given, shape, dtype))
        return;
    size_t rows = (size_t)shape->dims[given.axis], room = (size_t)padded->dims[given.axis];
    copy_rows(&given, run->plan.job->inputs[input], rows, to, room, rows);
    clear_rows(&given, to, room, rows, room - rows);
}

// Returns the bytes of memory for the positions; 0 if the run writes over no caches.
static size_t measure_positions(const struct history_run *run, const struct inf_graph *graph)
{
    if (!run->plan.overwrites)
        return 0;
    size_t count = inf_shape_elements(find_positions_shape(run, graph));
    return inf_size_align(count * sizeof *run->positions + INF_BLOB_SLACK_BYTES, ALIGNMENT);
}

// Finds the inputs that the request gives. The worker's memory has the positions first, and then
// the inputs that are padded.
static enum inf_code bind_given(struct history_run *run, const struct inf_graph *graph)
{
    const size_t positions_bytes = measure_positions(run, graph);
    size_t used = positions_bytes;
    // Two rounds: the first one adds up the sizes.
    for (int round = 0; round < 2; round++) {
        if (round == 1)
            INF_TRY(inf_batch_memory_reserve(run->resources->memory, used,
                                             &run->plan.job->result.fault.err));
        used = positions_bytes;
        for (uint32_t i = 0; i < run->plan.job->input_count; i++) {
            const struct inf_value *value = &graph->values[graph->inputs[i].value];
            if (run->plan.state_outputs[i] != INF_HISTORY_NONE)
                continue;
            run->inputs[i] = run->plan.job->inputs[i];
            if (run->plan.history->axes[i] == INF_HISTORY_NONE)
                continue;
            if (round == 1) {
                run->inputs[i] = run->resources->memory->data + used;
                pad_input(run, i, &value->shape, value->dtype, run->resources->memory->data + used);
            }
            used +=
                inf_size_align(inf_shape_elements(&value->shape) * inf_dtype_size(value->dtype) +
                                   INF_BLOB_SLACK_BYTES,
                               ALIGNMENT);
        }
    }
    return INF_OK;
}

static enum inf_code bind_tensors(struct history_run *run, const struct inf_graph *graph)
{
    struct inf_job *job = run->plan.job;
    bool late;
    for (uint32_t i = 0; i < run->plan.state_count; i++) {
        INF_TRY(run->plan.overwrites ? bind_cache(run, &run->plan.states[i])
                                     : bind_state(run, &run->plan.states[i]));
        run->inputs[run->plan.states[i].input] = run->plan.states[i].memory;
    }
    INF_TRY(bind_given(run, graph));
    run->used = (int32_t)run->plan.length;
    run->inputs[job->input_count] = &run->used;
    INF_TRY(inf_job_place_outputs(job, graph, 0, run->resources->pool, &late));
    assert(!late && "all sizes of a graph with a history are known");
    for (uint32_t i = 0; i < job->output_count; i++)
        run->outputs[i] = inf_job_output_memory(job, i);
    run->positions = (int64_t *)(void *)run->resources->memory->data;
    run->outputs[job->output_count] = run->positions;
    return INF_OK;
}

// --- running ---

// Acquires the executable, with larger buffers if the new rows do not fit.
static enum inf_code acquire_executable(struct history_run *run,
                                        const struct inf_run_options *options,
                                        struct inf_executable **executable, struct inf_error *err)
{
    struct inf_job *job = run->plan.job;
    for (;;) {
        INF_TRY(inf_model_acquire_history(job->served->model, job->device, options,
                                          run->plan.shapes,
                                          (struct inf_history_buffers){run->plan.room, 1},
                                          executable, err));
        run->plan.rows = inf_executable_new_rows(*executable);
        if (run->plan.overwrites || (uint64_t)run->plan.length + run->plan.rows <= run->plan.room)
            return INF_OK;
        inf_model_release(job->served->model, executable);
        run->plan.room =
            inf_history_round_room((uint64_t)run->plan.length + run->plan.rows, run->plan.step);
    }
}

// Acquires the executable for the same buffers in fp32. Its run writes the same rows.
static enum inf_code acquire_in_fp32(void *context, struct inf_executable **out_executable,
                                     struct inf_error *err)
{
    struct history_run *run = context;
    struct inf_run_options options = *run->resources->options;
    uint32_t room = run->plan.room;
    options.precision = INF_PRECISION_FP32;
    INF_TRY(acquire_executable(run, &options, out_executable, err));
    assert(room == run->plan.room && "the same shapes");
    (void)room;
    return INF_OK;
}

static enum inf_code compute_step(struct history_run *run,
                                  struct inf_executable *executable) INF_MAY_BLOCK
{
    struct inf_job *job = run->plan.job;
    const struct inf_execution execution = {.inputs = run->inputs,
                                            .outputs = run->outputs,
                                            .slot = run->resources->slot,
                                            .cancelled = &job->cancelled,
                                            .step = run->resources->step,
                                            .core_use = &job->result.core_use};
    const struct inf_fp32_source fp32 = {acquire_in_fp32, run};
    enum inf_code code =
        inf_result_guard_run(job->served, job->device, executable, &execution, &fp32,
                             &job->result.precision, &job->result.fault.err);
    if (job->result.precision != inf_executable_precision(executable))
        job->result.flags |= INF_INFER_RECOMPUTED;
    return code;
}

static enum inf_code run_bound(struct history_run *run,
                               struct inf_executable *executable) INF_MAY_BLOCK
{
    struct inf_job *job = run->plan.job;
    INF_TRY(bind_tensors(run, inf_executable_graph(executable)));
    job->result.begin_ns = inf_clock_ns();
    enum inf_code code = compute_step(run, executable);
    job->result.end_ns = inf_clock_ns();
    if (code != INF_OK) {
        // The run may have written some of its rows.
        for (uint32_t i = 0; i < run->plan.state_count && !run->plan.overwrites; i++)
            clear_rows(&run->plan.states[i], run->plan.states[i].memory, run->plan.room,
                       run->plan.length, run->plan.rows);
        return code;
    }
    job->history_room = run->plan.room;
    if (run->plan.overwrites)
        run->is_refused = !note_cache_rows(run, inf_executable_graph(executable));
    for (uint32_t i = 0; i < run->plan.state_count; i++) {
        const struct inf_history_state *state = &run->plan.states[i];
        struct inf_job_output *output = &job->outputs[state->output];
        output->dtype = state->tensor->dtype;
        output->shape = job->shapes[state->input];
        if (!run->plan.overwrites)
            output->shape.dims[state->axis] = (int64_t)run->plan.length + run->plan.rows;
        output->size_bytes = 0;
    }
    return INF_OK;
}

// Returns false if an executable was refused, so that another way must be tried.
static bool is_decided(enum inf_code code)
{
    return code != INF_UNSUPPORTED && code != INF_RANGE && code != INF_INVALID;
}

// Acquires the executable with the largest buffers that are possible. *out_found is false if the
// job must be run in the usual way.
static enum inf_code find_appending(struct history_run *run, int64_t rows,
                                    struct inf_executable **executable, bool *out_found,
                                    struct inf_error *err) INF_MAY_BLOCK
{
    static const uint32_t steps[] = {0, INF_HISTORY_ROOM_LEAST, INF_HISTORY_STEP_LEAST};
    const struct inf_job *job = run->plan.job;
    uint32_t refused_room = 0, count = INF_ARRAY_LENGTH(steps);
    *out_found = false;
    // The longest history that settings allow may be too long for the session, or for a table of
    // the model. The buffers then grow like those without a limit.
    if (inf_session_max_length(job->session, job->served->config.max_length) != 0)
        count *= 2;
    for (uint32_t i = 0; i < count; i++) {
        run->plan.step = steps[i % INF_ARRAY_LENGTH(steps)];
        run->plan.ignores_limit = i >= INF_ARRAY_LENGTH(steps);
        if (!inf_history_plan_room(&run->plan, rows) || run->plan.room == refused_room)
            continue;
        enum inf_code code = acquire_executable(run, run->resources->options, executable, err);
        *out_found = is_decided(code);
        if (*out_found)
            return code;
        refused_room = run->plan.room;
    }
    return INF_OK;
}

// Acquires the executable that writes over the caches. *out_found is false if there is none for so
// many new rows.
static enum inf_code find_overwriting(struct history_run *run, int64_t rows,
                                      struct inf_executable **executable, bool *out_found,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    enum inf_code code = run->plan.room == 0
                             ? INF_RANGE
                             : acquire_executable(run, run->resources->options, executable, err);
    *out_found = is_decided(code);
    if (code == INF_OK && rows != (int64_t)run->plan.rows) {
        inf_model_release(run->plan.job->served->model, executable);
        *out_found = false;
    }
    return code;
}

// Finds the way in which the rows of the job are written, and acquires its executable. *out_found
// is false if the job must be run in the usual way.
static enum inf_code find_executable(struct history_run *run, struct inf_executable **executable,
                                     bool *out_found, struct inf_error *err) INF_MAY_BLOCK
{
    enum inf_code code = INF_OK;
    int64_t rows;
    *out_found = false;
    if (inf_history_plan_overwriting(&run->plan, &rows))
        code = find_overwriting(run, rows, executable, out_found, err);
    if (!*out_found && inf_history_plan_appending(&run->plan, &rows))
        code = find_appending(run, rows, executable, out_found, err);
    return code;
}

enum inf_code inf_history_run(struct inf_job *job, const struct inf_history_resources *resources,
                              bool *out_done)
{
    struct history_run run = {
        .plan = {.job = job, .history = inf_model_history(job->served->model)},
        .resources = resources};
    struct inf_executable *executable = NULL;
    struct inf_error refused;
    *out_done = false;
    if (run.plan.history == NULL || job->session == NULL)
        return INF_OK;
    enum inf_code code = find_executable(&run, &executable, out_done, &refused);
    if (!*out_done)
        return INF_OK;
    if (code != INF_OK) {
        job->result.fault.err = refused;
        return code;
    }
    code = run_bound(&run, executable);
    inf_model_release(job->served->model, &executable);
    // The rows may have to be written elsewhere; if not, the usual way fails in the same way.
    if (code == INF_INVALID && run.plan.history->checks_positions && !run.plan.overwrites)
        run.is_refused = true;
    if (run.is_refused) {
        inf_job_forget_history(job);
        job->result.flags &= ~(uint32_t)INF_INFER_RECOMPUTED;
        inf_fault_init(&job->result.fault);
        *out_done = false;
        return INF_OK;
    }
    return code;
}

// --- running in the usual way ---

enum inf_code inf_history_pack_inputs(struct inf_job *job, struct inf_batch_memory *memory)
{
    size_t used = 0;
    for (int round = 0; round < 2; round++) {
        if (round == 1 && used > 0)
            INF_TRY(inf_batch_memory_reserve(memory, used, &job->result.fault.err));
        used = 0;
        for (uint32_t i = 0; i < job->kept_input_count; i++) {
            const struct inf_session_port *port = &job->kept_inputs[i];
            struct inf_session_tensor *tensor = job->session->tensors[port->tensor];
            struct inf_history_state state = {.axis = tensor->axis, .tensor = tensor};
            if (tensor->room == 0 || !inf_history_state_init(&state, &tensor->shape, tensor->dtype))
                continue;
            size_t rows = (size_t)tensor->shape.dims[tensor->axis];
            if (round == 1) {
                copy_rows(&state, tensor->now.data, tensor->room, memory->data + used, rows, rows);
                job->inputs[port->port] = memory->data + used;
            }
            used += inf_size_align(state.outer * rows * state.row_bytes + INF_BLOB_SLACK_BYTES,
                                   ALIGNMENT);
        }
    }
    return INF_OK;
}
