// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. A layer with one cell becomes one RNN node for any number of steps. Layers with
// masks or stacked cells are unrolled, if there are not too many steps; one product then computes
// the contribution of the input for all steps.
#include <stdio.h>
#include <string.h>

#include "backends/import/layers/cell.h"
#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"
#include "backends/import/layers/sequence.h"

// The largest number of time steps that are unrolled.
#define TIME_MAX 1024
// The largest number of stacked cells.
#define CELLS_MAX 8

// A layer with its cells.
struct rnn {
    struct inf_layers_cell cells[CELLS_MAX];
    uint32_t cell_count;
    bool return_sequences, return_state, backwards;
    int64_t time;
    bool at_once;      // true: one RNN node computes all steps; false: the steps are unrolled
    uint32_t mask;     // bool [batch,time], or INF_VALUE_NONE
    uint32_t *outputs; // output [batch,1,units] of each unrolled step, in the order of time
    uint32_t whole;    // output [batch,time,units] of all steps, if at_once is set
};

// The direction of a Bidirectional layer, if any.
enum {
    ALONE,
    FORWARD,
    BACKWARD,
};

// Adds the cells of an RNN layer that wraps cells. Each cell has a name of its own; TensorFlow.js
// numbers them.
static enum inf_code add_wrapped_cells(struct inf_layers_scope *scope, struct rnn *rnn,
                                       struct inf_error *err)
{
    const struct inf_layers_layer *cells = scope->layer->parts;
    uint32_t count = scope->layer->part_count;
    if (strcmp(cells[0].class_name, "StackedRNNCells") == 0) {
        count = cells[0].part_count;
        cells = cells[0].parts;
    }
    if (count == 0 || count > CELLS_MAX)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "has %u cells, wanted 1 to %d", count,
                               CELLS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        char number[32];
        snprintf(number, sizeof number, "RNNCell_%u", i);
        struct inf_layers_scope cell = *scope;
        cell.layer = &cells[i];
        cell.prefixes[0] = inf_layers_join(scope, "%s/%s", scope->prefixes[0], number);
        cell.prefixes[1] = inf_layers_join(scope, "%s/%s", scope->prefixes[0], cells[i].name);
        cell.prefixes[2] = count == 1 ? scope->prefixes[0] : NULL;
        cell.prefixes[3] = cells[i].name;
        if (cell.prefixes[0] == NULL || cell.prefixes[1] == NULL)
            return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for the names of cells");
        INF_TRY(inf_layers_cell_read(&rnn->cells[rnn->cell_count++], &cell, err));
    }
    return INF_OK;
}

static enum inf_code read_flags(struct inf_layers_scope *scope, struct rnn *rnn,
                                struct inf_error *err)
{
    const struct inf_json *config = &scope->layer->config;
    bool stateful = false, time_major = false;
    INF_TRY(inf_layers_bool(config, "return_sequences", &rnn->return_sequences, err));
    INF_TRY(inf_layers_bool(config, "return_state", &rnn->return_state, err));
    INF_TRY(inf_layers_bool(config, "go_backwards", &rnn->backwards, err));
    INF_TRY(inf_layers_bool(config, "stateful", &stateful, err));
    INF_TRY(inf_layers_bool(config, "time_major", &time_major, err));
    if (stateful || time_major)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "is %s",
                               stateful ? "stateful" : "time_major");
    return INF_OK;
}

static bool can_unroll(const struct rnn *rnn)
{
    return rnn->time >= 1 && rnn->time <= TIME_MAX;
}

// Fails if the layer uses a feature that only unrolled layers have.
static enum inf_code fail_not_unrolled(const struct inf_layers_scope *scope, const struct rnn *rnn,
                                       const char *what, struct inf_error *err)
{
    return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                           "its input has %lld time steps (-1: not known), wanted 1 to %d with %s",
                           (long long)rnn->time, TIME_MAX, what);
}

static enum inf_code read_rnn(struct inf_layers_scope *scope, struct rnn *rnn,
                              struct inf_error *err)
{
    *rnn = (struct rnn){.mask = scope->inputs[0].mask, .whole = INF_VALUE_NONE};
    INF_TRY(inf_layers_require_rank(scope, 3, err));
    INF_TRY(read_flags(scope, rnn, err));
    rnn->time = inf_layers_shape_of(scope, inf_layers_x(scope))->dims[1];
    if (rnn->mask == INF_LAYERS_MASK_MIXED)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "its input is made of tensors with different masks");
    if (!can_unroll(rnn) && rnn->mask != INF_VALUE_NONE)
        return fail_not_unrolled(scope, rnn, "a mask", err);
    if (scope->layer->part_count > 0)
        INF_TRY(add_wrapped_cells(scope, rnn, err));
    else
        INF_TRY(inf_layers_cell_read(&rnn->cells[rnn->cell_count++], scope, err));
    if (!can_unroll(rnn) && rnn->cell_count > 1)
        return fail_not_unrolled(scope, rnn, "several cells", err);
    rnn->at_once = !can_unroll(rnn) || (rnn->mask == INF_VALUE_NONE && rnn->cell_count == 1 &&
                                        inf_layers_sequence_has(&rnn->cells[0], scope));
    return INF_OK;
}

// Uses the further inputs of the layer as initial states, [batch,units] each.
static enum inf_code set_states(struct inf_layers_scope *scope, struct rnn *rnn,
                                const struct inf_layers_tensor *states, uint32_t count,
                                struct inf_error *err)
{
    uint32_t wanted = 0, next = 0;
    for (uint32_t i = 0; i < rnn->cell_count; i++)
        wanted += rnn->cells[i].state_count;
    if (count == 0)
        return INF_OK;
    if (count != wanted)
        return inf_layers_fail(scope, err, INF_INVALID, "has %u first states, wanted %u", count,
                               wanted);
    for (uint32_t i = 0; i < rnn->cell_count; i++)
        for (uint32_t k = 0; k < rnn->cells[i].state_count; k++)
            INF_TRY(
                inf_layers_expand(scope, states[next++].value, 1, &rnn->cells[i].states[k], err));
    return INF_OK;
}

// Splits x [batch,time,...] into steps [batch,1,...].
static enum inf_code split_steps(struct inf_layers_scope *scope, const struct rnn *rnn, uint32_t x,
                                 uint32_t **out_steps, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_SPLIT, x, INF_VALUE_NONE, INF_VALUE_NONE);
    uint32_t count = (uint32_t)rnn->time;
    *out_steps = inf_arena_alloc(scope->context->arena, count * sizeof **out_steps);
    if (*out_steps == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for %u time steps", count);
    node.attrs.split.axis = 1;
    return inf_layers_emit_many(scope, &node, *out_steps, count, err);
}

// Adds a select: `value` where the mask is true, otherwise `old`. `old` may be INF_VALUE_NONE,
// which stands for zeros.
static enum inf_code emit_masked(struct inf_layers_scope *scope, uint32_t condition, uint32_t old,
                                 uint32_t *value, struct inf_error *err)
{
    if (old == INF_VALUE_NONE)
        INF_TRY(inf_layers_add_float(scope, 0.0f, &old, err));
    struct inf_build_node node = inf_build_describe(INF_OP_SELECT, condition, *value, old);
    return inf_layers_emit(scope, &node, value, err);
}

// Adds one time step of all cells. Where the mask is false, output and states keep their old
// values.
static enum inf_code add_step(struct inf_layers_scope *scope, struct rnn *rnn, uint32_t input,
                              uint32_t condition, uint32_t *out_value, struct inf_error *err)
{
    for (uint32_t i = 0; i < rnn->cell_count; i++) {
        struct inf_layers_cell *cell = &rnn->cells[i];
        uint32_t old[2] = {cell->states[0], cell->states[1]};
        if (i > 0)
            INF_TRY(inf_layers_cell_project(cell, scope, input, &input, err));
        INF_TRY(inf_layers_cell_step(cell, scope, input, err));
        for (uint32_t k = 0; k < cell->state_count && condition != INF_VALUE_NONE; k++)
            INF_TRY(emit_masked(scope, condition, old[k], &cell->states[k], err));
        input = cell->states[0];
    }
    *out_value = input;
    return INF_OK;
}

static enum inf_code add_all_steps(struct inf_layers_scope *scope, struct rnn *rnn,
                                   struct inf_error *err)
{
    uint32_t x, *inputs = NULL, *conditions = NULL;
    if (rnn->at_once)
        return inf_layers_sequence_run(&rnn->cells[0], scope, inf_layers_x(scope), rnn->backwards,
                                       &rnn->whole, err);
    INF_TRY(inf_layers_spend(scope, (uint64_t)rnn->time * rnn->cell_count, err));
    INF_TRY(inf_layers_cell_project(&rnn->cells[0], scope, inf_layers_x(scope), &x, err));
    INF_TRY(split_steps(scope, rnn, x, &inputs, err));
    if (rnn->mask != INF_VALUE_NONE) {
        uint32_t mask;
        INF_TRY(inf_layers_expand(scope, rnn->mask, 2, &mask, err));
        INF_TRY(split_steps(scope, rnn, mask, &conditions, err));
    }
    rnn->outputs = inf_arena_alloc(scope->context->arena, (size_t)rnn->time * sizeof *rnn->outputs);
    if (rnn->outputs == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for its outputs");
    for (int64_t i = 0; i < rnn->time; i++) {
        int64_t t = rnn->backwards ? rnn->time - 1 - i : i;
        INF_TRY(add_step(scope, rnn, inputs[t], conditions != NULL ? conditions[t] : INF_VALUE_NONE,
                         &rnn->outputs[i], err));
    }
    return INF_OK;
}

// Sets the layer's output: all steps in the order of computation or reversed, or the last step.
static enum inf_code finish_output(struct inf_layers_scope *scope, const struct rnn *rnn,
                                   bool turned, uint32_t *out_value, struct inf_error *err)
{
    uint32_t count = (uint32_t)rnn->time;
    // The output of the last cell is its first state.
    if (!rnn->return_sequences)
        return inf_layers_squeeze(scope, rnn->cells[rnn->cell_count - 1].states[0], 1, out_value,
                                  err);
    if (rnn->at_once && turned) {
        struct inf_build_node turn =
            inf_build_describe(INF_OP_REVERSE, rnn->whole, INF_VALUE_NONE, INF_VALUE_NONE);
        turn.attrs.reverse.axes = (struct inf_ints){.count = 1, .values = {1}};
        return inf_layers_emit(scope, &turn, out_value, err);
    }
    *out_value = rnn->whole;
    if (rnn->at_once)
        return INF_OK;
    struct inf_build_node node = {.op = INF_OP_CONCAT, .list = rnn->outputs, .input_count = count};
    inf_attrs_init(&node.attrs, node.op);
    node.attrs.concat.axis = 1;
    for (uint32_t i = 0; turned && i < count / 2; i++) {
        uint32_t other = rnn->outputs[count - 1 - i];
        rnn->outputs[count - 1 - i] = rnn->outputs[i];
        rnn->outputs[i] = other;
    }
    return inf_layers_emit(scope, &node, out_value, err);
}

// Appends the final states to the layer's outputs, from index `at` on.
static enum inf_code add_states(struct inf_layers_scope *scope, const struct rnn *rnn, uint32_t at,
                                struct inf_error *err)
{
    for (uint32_t i = 0; i < rnn->cell_count; i++)
        for (uint32_t k = 0; k < rnn->cells[i].state_count; k++)
            INF_TRY(inf_layers_squeeze(scope, rnn->cells[i].states[k], 1,
                                       &scope->result.items[at++].value, err));
    return INF_OK;
}

static uint32_t count_states(const struct rnn *rnn)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rnn->cell_count; i++)
        count += rnn->cells[i].state_count;
    return rnn->return_state ? count : 0;
}

static enum inf_code lower_rnn(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct rnn rnn;
    uint32_t value;
    INF_TRY(read_rnn(scope, &rnn, err));
    INF_TRY(set_states(scope, &rnn, scope->inputs + 1, scope->input_count - 1, err));
    INF_TRY(add_all_steps(scope, &rnn, err));
    INF_TRY(finish_output(scope, &rnn, false, &value, err));
    INF_TRY(inf_layers_outputs(scope, 1 + count_states(&rnn), err));
    scope->result.items[0] = (struct inf_layers_tensor){
        .value = value,
        .mask = rnn.return_sequences && !rnn.backwards ? rnn.mask : INF_VALUE_NONE,
    };
    return rnn.return_state ? add_states(scope, &rnn, 1, err) : INF_OK;
}

// Adds one direction of a Bidirectional layer, whose scope is `outer`. `part` is the inner layer.
static enum inf_code add_direction(struct inf_layers_scope *outer,
                                   const struct inf_layers_layer *part, int direction,
                                   struct rnn *rnn, uint32_t *out_value, struct inf_error *err)
{
    const char *name = part->name;
    const char *side = direction == FORWARD ? "forward" : "backward";
    struct inf_layers_scope scope = *outer;
    // The backward direction has an inner layer of its own, or uses the forward layer too.
    bool is_own = direction == BACKWARD && outer->layer->part_count > 1;
    scope.layer = part;
    scope.prefixes[1] = inf_layers_join(outer, "%s_%s", side, name);
    scope.prefixes[2] = is_own ? inf_layers_join(outer, "%s/%s", outer->prefixes[0], name) : NULL;
    scope.prefixes[3] = is_own ? name : NULL;
    if (scope.prefixes[1] == NULL)
        return inf_layers_fail(outer, err, INF_EXHAUSTED, "no memory for the names of its layers");
    scope.prefixes[0] = inf_layers_join(outer, "%s/%s", outer->prefixes[0], scope.prefixes[1]);
    if (scope.prefixes[0] == NULL)
        return inf_layers_fail(outer, err, INF_EXHAUSTED, "no memory for the names of its layers");
    INF_TRY(read_rnn(&scope, rnn, err));
    if (direction == BACKWARD && !is_own)
        rnn->backwards = !rnn->backwards;
    uint32_t half = (outer->input_count - 1) / 2;
    INF_TRY(
        set_states(&scope, rnn, outer->inputs + 1 + (direction == BACKWARD ? half : 0), half, err));
    INF_TRY(add_all_steps(&scope, rnn, err));
    return finish_output(&scope, rnn, direction == BACKWARD, out_value, err);
}

enum {
    MERGE_CONCAT,
    MERGE_SUM,
    MERGE_MUL,
    MERGE_AVE,
    MERGE_NONE,
};

static enum inf_code merge_directions(struct inf_layers_scope *scope, int32_t mode, uint32_t a,
                                      uint32_t b, uint32_t *out_value, struct inf_error *err)
{
    if (mode != MERGE_CONCAT) {
        INF_TRY(inf_layers_binary(scope, mode == MERGE_MUL ? INF_BINARY_MUL : INF_BINARY_ADD, a, b,
                                  out_value, err));
        if (mode == MERGE_AVE)
            INF_TRY(
                inf_layers_binary_number(scope, INF_BINARY_MUL, *out_value, 0.5f, out_value, err));
        return INF_OK;
    }
    struct inf_build_node node = inf_build_describe(INF_OP_CONCAT, a, b, INF_VALUE_NONE);
    node.attrs.concat.axis = -1;
    return inf_layers_emit(scope, &node, out_value, err);
}

static enum inf_code read_merge(struct inf_layers_scope *scope, int32_t *out_mode,
                                struct inf_error *err)
{
    static const char *const modes[] = {"concat", "sum", "mul", "ave", NULL};
    struct inf_json member;
    *out_mode = MERGE_CONCAT;
    // Search for the key here, because inf_layers_choice() ignores a null. Null means that the
    // layer has two outputs, one for each direction.
    for (void *iterator = NULL; inf_json_next(&scope->layer->config, &iterator, &member);)
        if (inf_layers_same_word(member.key, "merge_mode") && inf_json_is_null(&member))
            *out_mode = MERGE_NONE;
    return inf_layers_choice(&scope->layer->config, "merge_mode", modes, out_mode, err);
}

static enum inf_code lower_bidirectional(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct rnn forward, backward;
    uint32_t a, b, at = 0;
    int32_t mode;
    const struct inf_layers_layer *parts = scope->layer->parts;
    INF_TRY(read_merge(scope, &mode, err));
    for (uint32_t i = 0; i < scope->layer->part_count; i++)
        if (parts[i].class == NULL || parts[i].class->lower != lower_rnn)
            return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                                   "the layer inside is a '%.60s', wanted a recurrent one",
                                   parts[i].class_name);
    if (scope->input_count % 2 == 0)
        return inf_layers_fail(scope, err, INF_INVALID,
                               "has %u first states, wanted as many for both directions",
                               scope->input_count - 1);
    INF_TRY(add_direction(scope, &parts[0], FORWARD, &forward, &a, err));
    INF_TRY(
        add_direction(scope, &parts[scope->layer->part_count - 1], BACKWARD, &backward, &b, err));
    uint32_t states = count_states(&forward) + count_states(&backward);
    uint32_t mask = forward.return_sequences ? forward.mask : INF_VALUE_NONE;
    INF_TRY(inf_layers_outputs(scope, (mode == MERGE_NONE ? 2 : 1) + states, err));
    if (mode == MERGE_NONE)
        scope->result.items[at++] = (struct inf_layers_tensor){.value = a, .mask = mask};
    else
        INF_TRY(merge_directions(scope, mode, a, b, &b, err));
    scope->result.items[at++] = (struct inf_layers_tensor){.value = b, .mask = mask};
    if (forward.return_state)
        INF_TRY(add_states(scope, &forward, at, err));
    if (backward.return_state)
        INF_TRY(add_states(scope, &backward, at + count_states(&forward), err));
    return INF_OK;
}

// Fails, because a cell cannot be used as a layer. The cell of ConvLSTM2D exists only inside that
// layer.
static enum inf_code lower_cell(struct inf_layers_scope *scope, struct inf_error *err)
{
    return inf_layers_fail(scope, err, INF_INVALID, "is a cell, wanted a layer");
}

static const char *const named[] = {"initial_state", NULL};

static const struct inf_layers_class classes[] = {
    {"RNN", lower_rnn, 1, 1 + 2 * CELLS_MAX, 0, false, named},
    {"LSTM", lower_rnn, 1, 3, INF_LAYERS_CELL_LSTM, false, named},
    {"GRU", lower_rnn, 1, 2, INF_LAYERS_CELL_GRU, false, named},
    {"SimpleRNN", lower_rnn, 1, 2, INF_LAYERS_CELL_SIMPLE, false, named},
    {"LSTMCell", lower_cell, 0, 0, INF_LAYERS_CELL_LSTM, false},
    {"GRUCell", lower_cell, 0, 0, INF_LAYERS_CELL_GRU, false},
    {"SimpleRNNCell", lower_cell, 0, 0, INF_LAYERS_CELL_SIMPLE, false},
    {"ConvLSTM2DCell", lower_cell, 0, 0, 0, false},
    {"StackedRNNCells", lower_cell, 0, 0, 0, false},
    {"Bidirectional", lower_bidirectional, 1, 5, 0, false, named},
};

const struct inf_layers_class_table inf_layers_classes_rnn = {classes, INF_ARRAY_LENGTH(classes)};
