// SPDX-License-Identifier: Apache-2.0
// Finds the session tensors that a request extends or writes over, from the pairs of its session
// and from the history of the model (struct inf_history). If the request extends them, the plan has
// the shapes for an empty history: one executable for these shapes serves histories of all lengths.
// The buffers keep their size while new rows fit; history_run.c explains how they grow.
#include "daemon/schedule/history_plan.h"

#include "proto/core/span.h"

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

bool inf_history_state_init(struct inf_history_state *state, const struct inf_shape *shape,
                            enum inf_dtype dtype)
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
static bool reads_unused_rows(const struct inf_history_plan *plan)
{
    const struct inf_job *job = plan->job;
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        if (plan->state_outputs[job->kept_inputs[i].port] == INF_HISTORY_NONE &&
            job->session->tensors[job->kept_inputs[i].tensor]->room != 0)
            return true;
    return false;
}

// Fills a state for an input that is extended. Returns false if the session does not keep it in a
// way that allows that.
static bool find_state(struct inf_history_plan *plan, uint32_t input)
{
    const struct inf_job *job = plan->job;
    const uint8_t *axes = plan->overwrites ? plan->history->cache_axes : plan->history->axes;
    struct inf_history_state *state = &plan->states[plan->state_count];
    *state = (struct inf_history_state){
        .input = (uint8_t)input, .output = plan->state_outputs[input], .axis = axes[input]};
    state->tensor = find_tensor(job, input, state->output);
    int64_t rows = job->shapes[input].dims[state->axis];
    if (state->tensor == NULL || job->outputs[state->output].returned ||
        (state->tensor->room != 0 && (plan->overwrites || state->tensor->axis != state->axis)) ||
        !inf_history_state_init(state, &job->shapes[input], state->tensor->dtype))
        return false;
    uint32_t *common = plan->overwrites ? &plan->room : &plan->length;
    if (plan->state_count > 0 && rows != *common)
        return false;
    *common = (uint32_t)rows;
    if (!plan->overwrites)
        plan->shapes[input].dims[state->axis] = 0;
    plan->state_count++;
    return true;
}

static bool find_states(struct inf_history_plan *plan)
{
    const struct inf_job *job = plan->job;
    plan->state_count = plan->length = plan->room = 0;
    plan->state_outputs = plan->overwrites ? plan->history->caches : plan->history->outputs;
    for (uint32_t i = 0; i < job->input_count; i++) {
        plan->shapes[i] = job->shapes[i];
        if (plan->state_outputs[i] != INF_HISTORY_NONE && !find_state(plan, i))
            return false;
    }
    return !reads_unused_rows(plan);
}

// Returns true if the request gives this input and its size contains the length of the history, as
// that of a mask over all tokens does.
static bool covers_history(const struct inf_history_plan *plan, uint32_t input)
{
    return plan->state_outputs[input] == INF_HISTORY_NONE &&
           plan->history->axes[input] != INF_HISTORY_NONE;
}

// Returns the least open size of the inputs that each request gives, without the first axis, which
// is the batch, and without sizes that contain the length. It is the number of new rows in most
// models. Returns 1 if there is no such size.
static int64_t find_least_open_size(const struct inf_history_plan *plan)
{
    const struct inf_graph *graph = inf_model_graph(plan->job->served->model);
    int64_t least = INF_LIMIT_DIM;
    for (uint32_t i = 0; i < plan->job->input_count; i++) {
        const struct inf_shape *declared = &graph->values[graph->inputs[i].value].shape;
        if (plan->state_outputs[i] != INF_HISTORY_NONE ||
            plan->history->axes[i] != INF_HISTORY_NONE)
            continue;
        for (int32_t k = 1; k < declared->rank; k++)
            if (declared->dims[k] == INF_DIM_UNKNOWN)
                least = INF_MIN(least, plan->shapes[i].dims[k]);
    }
    return least < INF_LIMIT_DIM ? least : 1;
}

// Sets the shapes of inputs such as masks to those for an empty history, and *rows to the number of
// new rows as far as it can be told from the shapes. Returns false if an input is too short.
static bool reduce_given(struct inf_history_plan *plan, int64_t *rows)
{
    *rows = 0;
    for (uint32_t i = 0; i < plan->job->input_count; i++) {
        uint8_t axis = plan->history->axes[i];
        if (!covers_history(plan, i))
            continue;
        plan->shapes[i].dims[axis] -= plan->length;
        *rows = INF_MAX(*rows, plan->shapes[i].dims[axis]);
        if (plan->shapes[i].dims[axis] < 1)
            return false;
    }
    if (*rows == 0)
        *rows = find_least_open_size(plan);
    return true;
}

bool inf_history_plan_overwriting(struct inf_history_plan *plan, int64_t *rows)
{
    int64_t total = 0, written;
    plan->overwrites = true;
    if (!plan->history->has_caches || !find_states(plan))
        return false;
    *rows = find_least_open_size(plan);
    for (uint32_t i = 0; i < plan->job->input_count; i++)
        if (covers_history(plan, i))
            total = INF_MAX(total, plan->shapes[i].dims[plan->history->axes[i]]);
    plan->length = total > *rows ? (uint32_t)(total - *rows) : 0;
    // If there is no such input, the rows are appended to a history that can grow.
    return total <= plan->room && (total > 0 || !plan->history->grows) &&
           reduce_given(plan, &written) && written == *rows;
}

bool inf_history_plan_appending(struct inf_history_plan *plan, int64_t *rows)
{
    plan->overwrites = false;
    return plan->history->grows && find_states(plan) && reduce_given(plan, rows);
}

uint32_t inf_history_round_room(uint64_t rows, uint32_t step)
{
    uint32_t room = INF_HISTORY_ROOM_LEAST;
    if (step != 0)
        return (uint32_t)inf_size_align((size_t)rows, step);
    while (room < rows)
        room *= 2;
    return room;
}

// Returns true if a session may have buffers of `room` rows beside those from which rows move.
static bool fits_session(const struct inf_history_plan *plan, uint32_t room)
{
    size_t sum = 0, bytes = 0;
    for (uint32_t i = 0; i < plan->state_count; i++) {
        const struct inf_history_state *state = &plan->states[i];
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

bool inf_history_plan_room(struct inf_history_plan *plan, int64_t rows)
{
    uint64_t wanted = INF_MAX((uint64_t)plan->length, 4) + (uint64_t)rows;
    uint64_t longest = wanted;
    if (!plan->ignores_limit)
        longest = INF_MAX(wanted, inf_session_max_length(plan->job->session,
                                                         plan->job->served->config.max_length));
    plan->room = plan->states[0].tensor->room;
    for (uint32_t i = 0; i < plan->state_count; i++)
        if (plan->states[i].tensor->room != plan->room || plan->states[i].tensor->shrinks)
            plan->room = 0;
    if (wanted >= INF_LIMIT_DIM / 4)
        return false;
    if (plan->room >= wanted)
        return true;
    // A table of the model may have just as many rows as the settings allow.
    plan->room = plan->step == INF_HISTORY_STEP_LEAST && longest > wanted
                     ? (uint32_t)longest
                     : inf_history_round_room(longest, plan->step);
    // The last attempt is made in any case, so that the failure says what is too large.
    return (plan->step == INF_HISTORY_STEP_LEAST && longest == wanted) ||
           fits_session(plan, plan->room);
}
