// SPDX-License-Identifier: Apache-2.0
// Finds the memory of a decoding step: the buffers of its session, copied first if they are too
// small or shared, copies of inputs that must be as large as the buffers, and the memory for its
// outputs. After the run, notes what it wrote, or removes it. history_run.c explains the buffers.
#include "daemon/schedule/history_step.h"

#include <assert.h>
#include <string.h>

#include "daemon/schedule/cache_rows.h"
#include "daemon/schedule/job_output.h"
#include "proto/core/span.h"

#define ALIGNMENT 64

// --- memory ---

// Returns the bytes that a tensor of `bytes` bytes takes in the worker's memory.
static size_t pad_bytes(size_t bytes)
{
    return inf_size_align(bytes + INF_BLOB_SLACK_BYTES, ALIGNMENT);
}

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

static struct inf_cache_layout cache_layout(const struct inf_history_step *step,
                                            const struct inf_history_state *state)
{
    return (struct inf_cache_layout){.outer = state->outer,
                                     .row_bytes = state->row_bytes,
                                     .room = step->plan.room,
                                     .ring = step->plan.history->cache_rings[state->input]};
}

// Finds the buffer of a cache that the run writes over.
static enum inf_code bind_cache(struct inf_history_step *step, struct inf_history_state *state)
{
    const struct inf_cache_layout layout = cache_layout(step, state);
    struct inf_job_output *output = &step->plan.job->outputs[state->output];
    struct inf_error *err = &step->plan.job->result.fault.err;
    output->in_place = output->overwrites = true;
    INF_TRY(inf_session_reserve_bytes(step->plan.job->session, state->tensor,
                                      layout.outer * layout.room * layout.row_bytes, err));
    INF_TRY(inf_cache_rows_begin(state->tensor, &layout, err));
    state->memory = state->tensor->next.data;
    return INF_OK;
}

// Returns the shape of the positions at which a run has written rows over caches: its last output.
// There is one list of positions for all caches, or one for each.
static const struct inf_shape *find_positions_shape(const struct inf_history_step *step,
                                                    const struct inf_graph *graph)
{
    return &graph->values[graph->outputs[step->plan.job->output_count].value].shape;
}

// Notes the rows that a run has written over the caches. Returns false if the graph would have
// changed other rows too.
static bool note_cache_rows(struct inf_history_step *step, const struct inf_graph *graph)
{
    bool is_whole = true;
    const struct inf_shape *shape = find_positions_shape(step, graph);
    size_t count = (size_t)shape->dims[1];
    for (uint32_t i = 0; i < step->plan.state_count; i++) {
        struct inf_history_state *state = &step->plan.states[i];
        const struct inf_cache_layout layout = cache_layout(step, state);
        const int64_t *positions = step->positions + (shape->dims[0] == 1 ? 0 : i * count);
        struct inf_job_output *output = &step->plan.job->outputs[state->output];
        output->lags =
            inf_cache_rows_note(state->tensor, &layout, positions, count, step->plan.rows);
        if (step->plan.history->cache_zeros[state->input])
            is_whole =
                is_whole && output->lags && inf_cache_rows_check_zeros(state->tensor, &layout);
    }
    return is_whole;
}

// Finds the buffer of a state, and copies the rows to a larger one if that is needed.
static enum inf_code bind_state(struct inf_history_step *step, struct inf_history_state *state)
{
    struct inf_session_tensor *tensor = state->tensor;
    struct inf_job_output *output = &step->plan.job->outputs[state->output];
    struct inf_error *err = &step->plan.job->result.fault.err;
    size_t size;
    bool is_new;
    output->in_place = true;
    // A forked session shares its buffers until one of both writes.
    output->moved = tensor->room != step->plan.room || inf_session_buffer_is_shared(&tensor->now);
    state->memory = tensor->now.data;
    if (!output->moved) {
        if (tensor->is_stale)
            clear_rows(state, state->memory, step->plan.room, step->plan.length,
                       step->plan.room - step->plan.length);
        return INF_OK;
    }
    if (!inf_size_mul(state->outer * state->row_bytes, step->plan.room, &size))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "'%s' is too large for a session", tensor->name);
    INF_TRY(inf_session_reserve_bytes(step->plan.job->session, tensor, size, err));
    INF_TRY(inf_session_buffer_reserve(&tensor->next, size, &is_new, err));
    state->memory = tensor->next.data;
    copy_rows(state, tensor->now.data, tensor_room(state), state->memory, step->plan.room,
              step->plan.length);
    if (!is_new)
        clear_rows(state, state->memory, step->plan.room, step->plan.length,
                   step->plan.room - step->plan.length);
    return INF_OK;
}

// Copies an input such as a mask to memory of the size that the model was compiled for, with zeros
// behind each sequence of elements.
static void pad_input(const struct inf_history_step *step, uint32_t input,
                      const struct inf_shape *padded, enum inf_dtype dtype, uint8_t *to)
{
    struct inf_history_state given = {.axis = step->plan.history->axes[input]};
    const struct inf_shape *shape = &step->plan.job->shapes[input];
    if (!inf_history_state_init(&given, shape, dtype))
        return;
    size_t rows = (size_t)shape->dims[given.axis], room = (size_t)padded->dims[given.axis];
    copy_rows(&given, step->plan.job->inputs[input], rows, to, room, rows);
    clear_rows(&given, to, room, rows, room - rows);
}

// Returns the bytes of memory for the positions; 0 if the run writes over no caches.
static size_t measure_positions(const struct inf_history_step *step, const struct inf_graph *graph)
{
    if (!step->plan.overwrites)
        return 0;
    size_t count = inf_shape_elements(find_positions_shape(step, graph));
    return pad_bytes(count * sizeof *step->positions);
}

// Finds the inputs that the request gives. The worker's memory has the positions first, and then
// the inputs that are padded.
static enum inf_code bind_given(struct inf_history_step *step, const struct inf_graph *graph)
{
    const size_t positions_bytes = measure_positions(step, graph);
    size_t used = positions_bytes;
    // Two rounds: the first one adds up the sizes.
    for (int round = 0; round < 2; round++) {
        if (round == 1)
            INF_TRY(inf_batch_memory_reserve(step->resources->memory, used,
                                             &step->plan.job->result.fault.err));
        used = positions_bytes;
        for (uint32_t i = 0; i < step->plan.job->input_count; i++) {
            const struct inf_value *value = &graph->values[graph->inputs[i].value];
            if (step->plan.state_outputs[i] != INF_HISTORY_NONE)
                continue;
            step->inputs[i] = step->plan.job->inputs[i];
            if (step->plan.history->axes[i] == INF_HISTORY_NONE)
                continue;
            if (round == 1) {
                step->inputs[i] = step->resources->memory->data + used;
                pad_input(step, i, &value->shape, value->dtype,
                          step->resources->memory->data + used);
            }
            used += pad_bytes(inf_shape_elements(&value->shape) * inf_dtype_size(value->dtype));
        }
    }
    return INF_OK;
}

enum inf_code inf_history_step_bind(struct inf_history_step *step, const struct inf_graph *graph)
{
    struct inf_job *job = step->plan.job;
    bool late;
    for (uint32_t i = 0; i < step->plan.state_count; i++) {
        INF_TRY(step->plan.overwrites ? bind_cache(step, &step->plan.states[i])
                                      : bind_state(step, &step->plan.states[i]));
        step->inputs[step->plan.states[i].input] = step->plan.states[i].memory;
    }
    INF_TRY(bind_given(step, graph));
    step->used = (int32_t)step->plan.length;
    step->inputs[job->input_count] = &step->used;
    INF_TRY(inf_job_place_outputs(job, graph, 0, step->resources->pool, &late));
    assert(!late && "all sizes of a graph with a history are known");
    for (uint32_t i = 0; i < job->output_count; i++)
        step->outputs[i] = inf_job_output_memory(job, i);
    step->positions = (int64_t *)(void *)step->resources->memory->data;
    step->outputs[job->output_count] = step->positions;
    return INF_OK;
}

void inf_history_step_note(struct inf_history_step *step, const struct inf_graph *graph)
{
    struct inf_job *job = step->plan.job;
    job->history_room = step->plan.room;
    if (step->plan.overwrites)
        step->is_refused = !note_cache_rows(step, graph);
    for (uint32_t i = 0; i < step->plan.state_count; i++) {
        const struct inf_history_state *state = &step->plan.states[i];
        struct inf_job_output *output = &job->outputs[state->output];
        output->dtype = state->tensor->dtype;
        output->shape = job->shapes[state->input];
        if (!step->plan.overwrites)
            output->shape.dims[state->axis] = (int64_t)step->plan.length + step->plan.rows;
        output->size_bytes = 0;
    }
}

void inf_history_step_undo(const struct inf_history_step *step)
{
    for (uint32_t i = 0; i < step->plan.state_count && !step->plan.overwrites; i++)
        clear_rows(&step->plan.states[i], step->plan.states[i].memory, step->plan.room,
                   step->plan.length, step->plan.rows);
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
            used += pad_bytes(state.outer * rows * state.row_bytes);
        }
    }
    return INF_OK;
}
