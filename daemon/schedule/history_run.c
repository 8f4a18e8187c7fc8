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
// Unused rows are finite: the pages of a new buffer are zeros, which take no memory until a row is
// written to them, and the rows of a run that failed or could not be kept are zeroed.
#include "daemon/schedule/history_run.h"

#include <assert.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/model/model.h"
#include "daemon/schedule/cache_rows.h"
#include "daemon/schedule/job_output.h"
#include "daemon/schedule/result_guard.h"
#include "proto/core/span.h"

// The fewest rows of a buffer. A larger number wastes time for unused rows of short histories; a
// smaller one needs more compilations and copies.
#define ROOM_LEAST      256u
#define ROOM_STEP_LEAST 64u
#define ALIGNMENT       64

// One input that stays in the session.
struct state {
    uint8_t input, output, axis;
    struct inf_session_tensor *tensor;
    size_t outer, row_bytes; // number of sequences of rows (batch times heads), and bytes of a row
    uint8_t *memory;         // the buffer that the run reads and extends
};

struct history_run {
    struct inf_job *job;
    const struct inf_history_resources *resources;
    const struct inf_history *history;
    bool overwrites;              // rows are written over caches of a fixed size
    const uint8_t *state_outputs; // of struct inf_history: its `caches` if overwrites is set
    uint32_t length, room, rows;  // rows in use, of a buffer, and new ones
    uint32_t step;                // see round_room()
    uint32_t state_count;
    struct state states[INF_LIMIT_TENSORS];
    struct inf_shape shapes[INF_LIMIT_TENSORS]; // of the inputs, for an empty history
    const void *inputs[INF_LIMIT_TENSORS + 1];
    void *outputs[INF_LIMIT_TENSORS + 1];
    int64_t *positions; // where the run wrote rows over caches; in the worker's memory
    int32_t used;       // `length` as the run reads it
};

// --- finding the state of a job ---

// Returns the session tensor that provides input `input` and receives output `output`; NULL if
// there is none.
static struct inf_session_tensor *find_tensor(const struct inf_job *job, uint32_t input,
                                              uint32_t output)
{
    for (uint32_t i = 0; i < job->kept_input_count; i++) {
        if (job->kept_inputs[i].port != input)
            continue;
        for (uint32_t k = 0; k < job->kept_output_count; k++)
            if (job->kept_outputs[k].port == output &&
                job->kept_outputs[k].tensor == job->kept_inputs[i].tensor)
                return job->session->tensors[job->kept_inputs[i].tensor];
    }
    return NULL;
}

// Fills a state from the shape of its input.
static bool init_state(struct state *state, const struct inf_shape *shape, enum inf_dtype dtype)
{
    state->outer = 1;
    state->row_bytes = inf_dtype_size(dtype);
    for (int32_t i = 0; i < shape->rank; i++) {
        if (i < state->axis)
            state->outer *= (size_t)shape->dims[i];
        else if (i > state->axis)
            state->row_bytes *= (size_t)shape->dims[i];
    }
    return state->outer > 0 && state->row_bytes > 0;
}

// Returns true if an input that is not extended reads a tensor with unused rows, which lie between
// the rows in use. inf_history_pack_inputs() makes a copy without them, for the usual way.
static bool reads_unused_rows(const struct history_run *run)
{
    const struct inf_job *job = run->job;
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        if (run->state_outputs[job->kept_inputs[i].port] == INF_HISTORY_NONE &&
            job->session->tensors[job->kept_inputs[i].tensor]->room != 0)
            return true;
    return false;
}

// Fills a state for an input that is extended. Returns false if the session does not keep it in a
// way that allows that.
static bool find_state(struct history_run *run, uint32_t input)
{
    const struct inf_job *job = run->job;
    const uint8_t *axes = run->overwrites ? run->history->cache_axes : run->history->axes;
    struct state *state = &run->states[run->state_count];
    *state = (struct state){
        .input = (uint8_t)input, .output = run->state_outputs[input], .axis = axes[input]};
    state->tensor = find_tensor(job, input, state->output);
    int64_t rows = job->shapes[input].dims[state->axis];
    if (state->tensor == NULL || job->outputs[state->output].returned ||
        (state->tensor->room != 0 && (run->overwrites || state->tensor->axis != state->axis)) ||
        !init_state(state, &job->shapes[input], state->tensor->dtype))
        return false;
    uint32_t *common = run->overwrites ? &run->room : &run->length;
    if (run->state_count > 0 && rows != *common)
        return false;
    *common = (uint32_t)rows;
    if (!run->overwrites)
        run->shapes[input].dims[state->axis] = 0;
    run->state_count++;
    return true;
}

static bool find_states(struct history_run *run)
{
    const struct inf_job *job = run->job;
    run->state_count = run->length = run->room = 0;
    run->state_outputs = run->overwrites ? run->history->caches : run->history->outputs;
    for (uint32_t i = 0; i < job->input_count; i++) {
        run->shapes[i] = job->shapes[i];
        if (run->state_outputs[i] != INF_HISTORY_NONE && !find_state(run, i))
            return false;
    }
    return !reads_unused_rows(run);
}

// Returns the least open size of the inputs that each request gives, without the first axis, which
// is the batch, and without sizes that contain the length. It is the number of new rows in most
// models. Returns 1 if there is no such size.
static int64_t find_least_open_size(const struct history_run *run)
{
    const struct inf_graph *graph = inf_model_graph(run->job->served->model);
    int64_t least = INF_LIMIT_DIM;
    for (uint32_t i = 0; i < run->job->input_count; i++) {
        const struct inf_shape *declared = &graph->values[graph->inputs[i].value].shape;
        if (run->state_outputs[i] != INF_HISTORY_NONE || run->history->axes[i] != INF_HISTORY_NONE)
            continue;
        for (int32_t k = 1; k < declared->rank; k++)
            if (declared->dims[k] == INF_DIM_UNKNOWN)
                least = INF_MIN(least, run->shapes[i].dims[k]);
    }
    return least < INF_LIMIT_DIM ? least : 1;
}

// Sets the shapes of inputs such as masks to those for an empty history, and *rows to the number of
// new rows as far as it can be told from the shapes. Returns false if an input is too short.
static bool reduce_given(struct history_run *run, int64_t *rows)
{
    *rows = 0;
    for (uint32_t i = 0; i < run->job->input_count; i++) {
        uint8_t axis = run->history->axes[i];
        if (run->state_outputs[i] != INF_HISTORY_NONE || axis == INF_HISTORY_NONE)
            continue;
        run->shapes[i].dims[axis] -= run->length;
        *rows = INF_MAX(*rows, run->shapes[i].dims[axis]);
        if (run->shapes[i].dims[axis] < 1)
            return false;
    }
    if (*rows == 0)
        *rows = find_least_open_size(run);
    return true;
}

// Prepares a run that writes rows over caches. Sets the length of the history from inputs such as
// masks, whose size is that of all rows. Returns false if there is no such run.
static bool plan_overwriting(struct history_run *run, int64_t *rows)
{
    int64_t total = 0;
    run->overwrites = true;
    if (!run->history->has_caches || !find_states(run))
        return false;
    *rows = find_least_open_size(run);
    for (uint32_t i = 0; i < run->job->input_count; i++)
        if (run->history->axes[i] != INF_HISTORY_NONE && run->state_outputs[i] == INF_HISTORY_NONE)
            total = INF_MAX(total, run->shapes[i].dims[run->history->axes[i]]);
    run->length = total > *rows ? (uint32_t)(total - *rows) : 0;
    // Without such an input, a history that can grow does.
    return total <= run->room && (total > 0 || !run->history->grows) && reduce_given(run, &total) &&
           total == *rows;
}

// Prepares a run that appends rows to buffers. Returns false if there is no such run.
static bool plan_appending(struct history_run *run, int64_t *rows)
{
    run->overwrites = false;
    return run->history->grows && find_states(run) && reduce_given(run, rows);
}

// Returns the number of rows of a buffer that has `rows` at least: a multiple of `step`, or a power
// of two if `step` is 0.
static uint32_t round_room(uint64_t rows, uint32_t step)
{
    uint32_t room = ROOM_LEAST;
    if (step != 0)
        return (uint32_t)inf_size_align((size_t)rows, step);
    while (room < rows)
        room *= 2;
    return room;
}

// Returns true if a session may have buffers of `room` rows beside those from which rows move.
static bool fits_session(const struct history_run *run, uint32_t room)
{
    size_t sum = 0, bytes = 0;
    for (uint32_t i = 0; i < run->state_count; i++) {
        const struct state *state = &run->states[i];
        if (!inf_size_mul(state->outer * state->row_bytes, room, &bytes) ||
            !inf_range_ok(sum, bytes, INF_LIMIT_SESSION_BYTES))
            return false;
        sum += bytes;
        if (!inf_range_ok(sum, state->tensor->now.capacity, INF_LIMIT_SESSION_BYTES))
            return false;
        sum += state->tensor->now.capacity;
    }
    return true;
}

// Sets the number of rows of the buffers: that of the buffers in use, if `rows` new rows fit. New
// buffers have room for the longest history that the session or the model's settings allow. Returns false if there
// is no such number.
static bool choose_room(struct history_run *run, int64_t rows)
{
    uint64_t wanted = INF_MAX((uint64_t)run->length, 4) + (uint64_t)rows;
    uint64_t longest = INF_MAX(
        wanted, inf_session_max_length(run->job->session, run->job->served->config.max_length));
    run->room = run->states[0].tensor->room;
    for (uint32_t i = 0; i < run->state_count; i++)
        if (run->states[i].tensor->room != run->room || run->states[i].tensor->shrinks)
            run->room = 0;
    if (wanted >= INF_LIMIT_DIM / 4)
        return false;
    if (run->room >= wanted)
        return true;
    // A table of the model may have just as many rows as the settings allow.
    run->room = run->step == ROOM_STEP_LEAST && longest > wanted ? (uint32_t)longest
                                                                 : round_room(longest, run->step);
    // The last step is tried in any case, so that the failure says what is too large.
    return run->step == ROOM_STEP_LEAST || fits_session(run, run->room);
}

// --- memory ---

// Copies the first `rows` rows of each sequence between buffers of different numbers of rows.
static void copy_rows(const struct state *state, const uint8_t *from, size_t from_room, uint8_t *to,
                      size_t to_room, size_t rows)
{
    size_t used = rows * state->row_bytes;
    for (size_t i = 0; used > 0 && i < state->outer; i++)
        memcpy(to + i * to_room * state->row_bytes, from + i * from_room * state->row_bytes, used);
}

// Zeroes `count` rows of each sequence of a buffer of `room` rows, from row `first` on.
static void clear_rows(const struct state *state, uint8_t *memory, size_t room, size_t first,
                       size_t count)
{
    for (size_t i = 0; i < state->outer; i++)
        memset(memory + (i * room + first) * state->row_bytes, 0, count * state->row_bytes);
}

// Returns the number of rows of the buffer that has the tensor's value.
static size_t tensor_room(const struct state *state)
{
    return state->tensor->room != 0 ? state->tensor->room
                                    : (size_t)state->tensor->shape.dims[state->axis];
}

static struct inf_cache_layout cache_layout(const struct history_run *run,
                                            const struct state *state)
{
    return (struct inf_cache_layout){.outer = state->outer,
                                     .row_bytes = state->row_bytes,
                                     .room = run->room,
                                     .ring = run->history->cache_rings[state->input]};
}

// Finds the buffer of a cache that the run writes over.
static enum inf_code bind_cache(struct history_run *run, struct state *state)
{
    const struct inf_cache_layout layout = cache_layout(run, state);
    struct inf_job_output *output = &run->job->outputs[state->output];
    output->in_place = output->overwrites = true;
    INF_TRY(inf_cache_rows_begin(state->tensor, &layout, &run->job->result.fault.err));
    state->memory = state->tensor->next.data;
    return INF_OK;
}

// Notes the rows that a run has written over the caches.
static void note_cache_rows(struct history_run *run, const struct inf_graph *graph)
{
    uint32_t port = run->job->output_count;
    // One list of positions for all caches, or one for each.
    const struct inf_shape *shape = &graph->values[graph->outputs[port].value].shape;
    size_t count = (size_t)shape->dims[1];
    for (uint32_t i = 0; i < run->state_count; i++) {
        struct state *state = &run->states[i];
        const struct inf_cache_layout layout = cache_layout(run, state);
        const int64_t *positions = run->positions + (shape->dims[0] == 1 ? 0 : i * count);
        run->job->outputs[state->output].lags =
            inf_cache_rows_note(state->tensor, &layout, positions, count, run->rows);
    }
}

// Finds the buffer of a state, and copies the rows to a larger one if that is needed.
static enum inf_code bind_state(struct history_run *run, struct state *state)
{
    struct inf_session_tensor *tensor = state->tensor;
    struct inf_job_output *output = &run->job->outputs[state->output];
    struct inf_error *err = &run->job->result.fault.err;
    size_t size;
    bool is_new;
    output->in_place = true;
    // A forked session shares its buffers until one of both writes.
    output->moved = tensor->room != run->room || inf_session_buffer_is_shared(&tensor->now);
    state->memory = tensor->now.data;
    if (!output->moved) {
        if (tensor->is_stale)
            clear_rows(state, state->memory, run->room, run->length, run->room - run->length);
        return INF_OK;
    }
    if (!inf_size_mul(state->outer * state->row_bytes, run->room, &size))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "'%s' is too large for a session", tensor->name);
    INF_TRY(inf_session_buffer_reserve(&tensor->next, size, &is_new, err));
    state->memory = tensor->next.data;
    copy_rows(state, tensor->now.data, tensor_room(state), state->memory, run->room, run->length);
    if (!is_new)
        clear_rows(state, state->memory, run->room, run->length, run->room - run->length);
    return INF_OK;
}

// Copies an input such as a mask to memory of the size that the model was compiled for, with zeros
// behind each sequence of elements.
static void pad_input(const struct history_run *run, uint32_t input, const struct inf_shape *padded,
                      enum inf_dtype dtype, uint8_t *to)
{
    struct state given = {.axis = run->history->axes[input]};
    const struct inf_shape *shape = &run->job->shapes[input];
    if (!init_state(&given, shape, dtype))
        return;
    size_t rows = (size_t)shape->dims[given.axis], room = (size_t)padded->dims[given.axis];
    copy_rows(&given, run->job->inputs[input], rows, to, room, rows);
    clear_rows(&given, to, room, rows, room - rows);
}

// Returns the bytes of the positions that a run over caches gives.
static size_t measure_positions(const struct history_run *run, const struct inf_graph *graph)
{
    if (!run->overwrites)
        return 0;
    const struct inf_value *value = &graph->values[graph->outputs[run->job->output_count].value];
    return inf_size_align(inf_shape_elements(&value->shape) * sizeof *run->positions +
                              INF_BLOB_SLACK_BYTES,
                          ALIGNMENT);
}

static enum inf_code bind_given(struct history_run *run, const struct inf_graph *graph)
{
    size_t used = measure_positions(run, graph);
    // Two rounds: the first one adds up the sizes.
    for (int round = 0; round < 2; round++) {
        if (round == 1)
            INF_TRY(inf_batch_memory_reserve(run->resources->memory, used,
                                             &run->job->result.fault.err));
        used = measure_positions(run, graph);
        for (uint32_t i = 0; i < run->job->input_count; i++) {
            const struct inf_value *value = &graph->values[graph->inputs[i].value];
            if (run->state_outputs[i] != INF_HISTORY_NONE)
                continue;
            run->inputs[i] = run->job->inputs[i];
            if (run->history->axes[i] == INF_HISTORY_NONE)
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
    struct inf_job *job = run->job;
    bool late;
    for (uint32_t i = 0; i < run->state_count; i++) {
        INF_TRY(run->overwrites ? bind_cache(run, &run->states[i])
                                : bind_state(run, &run->states[i]));
        run->inputs[run->states[i].input] = run->states[i].memory;
    }
    INF_TRY(bind_given(run, graph));
    run->used = (int32_t)run->length;
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
    struct inf_job *job = run->job;
    for (;;) {
        INF_TRY(inf_model_acquire_history(job->served->model, job->device, options, run->shapes,
                                          run->room, executable, err));
        run->rows = inf_executable_new_rows(*executable);
        if (run->overwrites || (uint64_t)run->length + run->rows <= run->room)
            return INF_OK;
        inf_model_release(job->served->model, executable);
        run->room = round_room((uint64_t)run->length + run->rows, run->step);
    }
}

// Acquires the executable for the same buffers in fp32. Its run writes the same rows.
static enum inf_code acquire_in_fp32(void *context, struct inf_executable **out_executable,
                                     struct inf_error *err)
{
    struct history_run *run = context;
    struct inf_run_options options = *run->resources->options;
    uint32_t room = run->room;
    options.precision = INF_PRECISION_FP32;
    INF_TRY(acquire_executable(run, &options, out_executable, err));
    assert(room == run->room && "the same shapes");
    (void)room;
    return INF_OK;
}

static enum inf_code compute_step(struct history_run *run,
                                  struct inf_executable *executable) INF_MAY_BLOCK
{
    struct inf_job *job = run->job;
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
    struct inf_job *job = run->job;
    INF_TRY(bind_tensors(run, inf_executable_graph(executable)));
    job->result.begin_ns = inf_clock_ns();
    enum inf_code code = compute_step(run, executable);
    job->result.end_ns = inf_clock_ns();
    if (code != INF_OK) {
        // The run may have written some of its rows.
        for (uint32_t i = 0; i < run->state_count && !run->overwrites; i++)
            clear_rows(&run->states[i], run->states[i].memory, run->room, run->length, run->rows);
        return code;
    }
    job->history_room = run->room;
    if (run->overwrites)
        note_cache_rows(run, inf_executable_graph(executable));
    for (uint32_t i = 0; i < run->state_count; i++) {
        const struct state *state = &run->states[i];
        struct inf_job_output *output = &job->outputs[state->output];
        output->dtype = state->tensor->dtype;
        output->shape = job->shapes[state->input];
        if (!run->overwrites)
            output->shape.dims[state->axis] = (int64_t)run->length + run->rows;
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
    static const uint32_t steps[] = {0, ROOM_LEAST, ROOM_STEP_LEAST};
    uint32_t refused_room = 0;
    *out_found = false;
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(steps); i++) {
        run->step = steps[i];
        if (!choose_room(run, rows) || run->room == refused_room)
            continue;
        enum inf_code code = acquire_executable(run, run->resources->options, executable, err);
        *out_found = is_decided(code);
        if (*out_found)
            return code;
        refused_room = run->room;
    }
    return INF_OK;
}

// Acquires the executable that writes over the caches. *out_found is false if there is none for so
// many new rows.
static enum inf_code find_overwriting(struct history_run *run, int64_t rows,
                                      struct inf_executable **executable, bool *out_found,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    enum inf_code code = run->room == 0
                             ? INF_RANGE
                             : acquire_executable(run, run->resources->options, executable, err);
    *out_found = is_decided(code);
    if (code == INF_OK && rows != (int64_t)run->rows) {
        inf_model_release(run->job->served->model, executable);
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
    if (plan_overwriting(run, &rows))
        code = find_overwriting(run, rows, executable, out_found, err);
    if (!*out_found && plan_appending(run, &rows))
        code = find_appending(run, rows, executable, out_found, err);
    return code;
}

enum inf_code inf_history_run(struct inf_job *job, const struct inf_history_resources *resources,
                              bool *out_done)
{
    struct history_run run = {
        .job = job, .resources = resources, .history = inf_model_history(job->served->model)};
    struct inf_executable *executable = NULL;
    struct inf_error refused;
    *out_done = false;
    if (run.history == NULL || job->session == NULL)
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
    if (code == INF_INVALID && run.history->checks_positions && !run.overwrites) {
        // The rows may have to be written elsewhere; if not, the usual way fails in the same way.
        inf_job_forget_history(job);
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
            struct state state = {.axis = tensor->axis, .tensor = tensor};
            if (tensor->room == 0 || !init_state(&state, &tensor->shape, tensor->dtype))
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
