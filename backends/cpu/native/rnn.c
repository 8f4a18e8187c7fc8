// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: checks which nodes this kernel accepts, packs the weights, and runs the time
// steps in chunks.
#include "backends/cpu/native/rnn.h"

#include <math.h>
#include <string.h>

#include "backends/cpu/core/panel.h"
#include "backends/cpu/native/eltwise.h"
#include "backends/cpu/native/work.h"
#include "proto/core/span.h"

// The approximate number of rows of x that are multiplied with the weights in one pass. The number
// is large enough that the weights are read seldom, and small enough that the sums stay in the
// cache.
#define CHUNK_ROWS 96

static size_t gates_of(const struct inf_attrs_rnn *attrs)
{
    static const size_t gates[] = {[INF_RNN_LSTM] = 4, [INF_RNN_GRU] = 3, [INF_RNN_SIMPLE] = 1};
    return gates[attrs->kind];
}

// --- checking which nodes this kernel accepts ---

static size_t activation_count(const struct inf_attrs_rnn *attrs)
{
    static const size_t counts[] = {[INF_RNN_LSTM] = 3, [INF_RNN_GRU] = 2, [INF_RNN_SIMPLE] = 1};
    return counts[attrs->kind];
}

static enum inf_unary_kind activation_of(const struct inf_attrs_rnn *attrs, size_t direction,
                                         size_t which)
{
    bool is_gate = which == 0 && attrs->kind != INF_RNN_SIMPLE;
    if (attrs->activations.count != 0)
        return (enum inf_unary_kind)
            attrs->activations.values[direction * activation_count(attrs) + which];
    return is_gate ? INF_UNARY_SIGMOID : INF_UNARY_TANH;
}

static enum inf_code check_activations(const struct inf_attrs_rnn *attrs, size_t directions,
                                       struct inf_error *err)
{
    for (size_t i = 0; i < directions * activation_count(attrs); i++) {
        enum inf_unary_kind kind =
            activation_of(attrs, i / activation_count(attrs), i % activation_count(attrs));
        if (kind != INF_UNARY_RELU && kind != INF_UNARY_HARD_SIGMOID &&
            inf_native_map_find(inf_isa_best()->simd, kind) == NULL)
            return inf_fail(err, INF_UNSUPPORTED, "cpu: rnn: activation %s is not built",
                            inf_unary_name(kind));
    }
    return INF_OK;
}

static enum inf_code rnn_supports(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    static const uint32_t constants[] = {INF_NATIVE_RNN_W, INF_NATIVE_RNN_R, INF_NATIVE_RNN_BIAS,
                                         INF_NATIVE_RNN_PEEPHOLES};
    INF_TRY(inf_cpu_need_f32(graph, node, INF_NATIVE_RNN_X, err));
    for (size_t i = 0; i < INF_ARRAY_LENGTH(constants); i++)
        if (inf_cpu_has_input(node, constants[i]))
            INF_TRY(inf_cpu_need_const(
                graph, node, constants[i],
                inf_shape_elements(inf_cpu_input_shape(graph, node, constants[i])), err));
    size_t directions = (size_t)inf_cpu_input_shape(graph, node, INF_NATIVE_RNN_R)->dims[0];
    return check_activations(&node->attrs.rnn, directions, err);
}

// --- products of the input of all time steps of a chunk with the weights ---

// Multiplies the input of all time steps of the present chunk (a group of successive time steps) by
// one panel of a gate's weights.
static void input_tile(const void *context, size_t tile, size_t worker)
{
    (void)worker;
    const struct inf_native_rnn_run *run = context;
    const struct inf_native_rnn *rnn = run->rnn;
    size_t panel = tile % rnn->panel_count;
    size_t gate = tile / rnn->panel_count % rnn->gates;
    size_t direction = tile / rnn->panel_count / rnn->gates;
    const float *x = run->x + run->first * rnn->batch * rnn->inputs;
    if (inf_native_rnn_is_reversed(rnn, direction))
        x = run->turned + direction * rnn->chunk * rnn->batch * rnn->inputs;
    size_t rows = direction * rnn->chunk * rnn->batch;
    struct inf_native_rnn_product product = {
        .weights = rnn->w,
        .bias = rnn->bias,
        .direction = direction,
        .gate = gate,
        .a = x,
        .rows = run->count * rnn->batch,
        .depth = rnn->inputs,
        .used = rnn->inputs,
        .y = run->sums + (rows * rnn->gates + gate) * rnn->hidden,
        .y_step = rnn->gates * rnn->hidden,
    };
    inf_native_rnn_multiply(rnn, &product, panel, panel + 1);
}

// --- running all time steps of a sequence ---

// Copies x in reverse order, for a direction that reads x backwards.
static void reverse_input(const struct inf_native_rnn_run *run, size_t direction)
{
    const struct inf_native_rnn *rnn = run->rnn;
    float *to = run->turned + direction * rnn->chunk * rnn->batch * rnn->inputs;
    for (size_t i = run->first; i < run->first + run->count; i++) {
        for (size_t batch = 0; batch < rnn->batch; batch++, to += rnn->inputs) {
            size_t length = rnn->lengths[batch];
            size_t time = i < length ? length - 1 - i : i;
            memcpy(to, run->x + (time * rnn->batch + batch) * rnn->inputs,
                   rnn->inputs * sizeof(*to));
        }
    }
}

static void run_chunk(const struct inf_cpu_step *step, struct inf_native_rnn_run *run)
{
    const struct inf_native_rnn *rnn = run->rnn;
    bool resets = rnn->attrs->kind == INF_RNN_GRU && !rnn->attrs->linear_before_reset;
    size_t tiles = rnn->directions * rnn->parts;
    for (size_t direction = 0; direction < rnn->directions; direction++)
        if (inf_native_rnn_is_reversed(rnn, direction))
            reverse_input(run, direction);
    struct inf_cpu_tiles input = {input_tile, run, rnn->directions * rnn->gates * rnn->panel_count};
    struct inf_cpu_tiles reset = {inf_native_rnn_reset_tile, run, tiles};
    struct inf_cpu_tiles rest = {inf_native_rnn_step_tile, run, tiles};
    inf_cpu_team_run_tiles(step->team, &input, rnn->workers);
    for (run->step = run->first; run->step < run->first + run->count; run->step++) {
        if (resets)
            inf_cpu_team_run_tiles(step->team, &reset, rnn->step_workers);
        inf_cpu_team_run_tiles(step->team, &rest, rnn->step_workers);
        float *before = run->before;
        run->before = run->after;
        run->after = before;
        run->from_nothing = false;
    }
}

// Copies the length of each sequence from the operand, and returns the longest. Each length is read
// only once, because a client may be changing that memory during the run.
static size_t read_lengths(const struct inf_native_rnn *rnn, const volatile int32_t *lengths)
{
    size_t longest = 0;
    for (size_t batch = 0; batch < rnn->batch; batch++) {
        int64_t length = lengths != NULL ? lengths[batch] : INT64_MAX;
        rnn->lengths[batch] = length < 0 ? 0 : INF_MIN((size_t)length, rnn->steps);
        longest = INF_MAX(longest, rnn->lengths[batch]);
    }
    return longest;
}

static const void *operand_data(const struct inf_cpu_step *step, uint32_t input)
{
    return inf_cpu_has_input(step->node, input) ? step->inputs[input] : NULL;
}

// Initialises a state with the `count` elements of `given`, or with zeros if `given` is NULL.
static void start_state(float *state, const float *given, size_t count)
{
    if (given != NULL)
        memcpy(state, given, count * sizeof(*state));
    else
        memset(state, 0, count * sizeof(*state));
}

// Places the buffers of a run in scratch memory, and returns the number of floats that the buffers
// need.
static size_t lay_out(const struct inf_native_rnn *rnn, float *scratch,
                      struct inf_native_rnn_run *run)
{
    size_t states = inf_size_align(rnn->directions * rnn->batch * rnn->hidden, 16);
    size_t rows = rnn->directions * rnn->chunk * rnn->batch;
    size_t turned = rnn->attrs->direction == INF_DIRECTION_FORWARD ? 0 : rows * rnn->inputs;
    size_t at = 0;
    float **const places[] = {&run->before, &run->after, &run->extra, &run->turned, &run->sums};
    const size_t counts[] = {states, states, states, inf_size_align(turned, 16),
                             rows * rnn->gates * rnn->hidden};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(places); i++) {
        *places[i] = scratch != NULL ? scratch + at : NULL;
        at += counts[i];
    }
    return at;
}

static void rnn_run(const struct inf_cpu_step *step)
{
    const struct inf_native_rnn *rnn = step->state;
    size_t states = rnn->directions * rnn->batch * rnn->hidden;
    struct inf_native_rnn_run run = {
        .rnn = rnn, .x = step->inputs[INF_NATIVE_RNN_X], .y = step->outputs[0]};
    const float *hidden = operand_data(step, INF_NATIVE_RNN_HIDDEN);
    lay_out(rnn, step->scratch, &run);
    run.from_nothing = hidden == NULL;
    start_state(run.before, hidden, states);
    if (rnn->attrs->kind == INF_RNN_LSTM) {
        run.cell = step->outputs[2];
        start_state(run.cell, operand_data(step, INF_NATIVE_RNN_CELL), states);
    }
    size_t longest = read_lengths(rnn, operand_data(step, INF_NATIVE_RNN_LENGTHS));
    for (; run.first < longest; run.first += run.count) {
        run.count = INF_MIN(rnn->chunk, longest - run.first);
        run_chunk(step, &run);
    }
    memset(run.y + longest * states, 0, (rnn->steps - longest) * states * sizeof(*run.y));
    memcpy(step->outputs[1], run.before, states * sizeof(*run.before));
}

// --- creating a step ---

static enum inf_code out_of_memory(const struct inf_cpu_step *step, struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "node '%s': no memory for its gates", step->node->name);
}

static enum inf_code make_panels(struct inf_native_rnn *rnn, struct inf_cpu_step *step,
                                 struct inf_error *err)
{
    const struct inf_nn *nn = step->isa->nn;
    size_t count = inf_cpu_panel_count(nn, rnn->hidden, &rnn->width);
    rnn->rows_max = nn->gemm->rows_max;
    rnn->panels = inf_arena_alloc(step->arena, count * sizeof(*rnn->panels));
    rnn->lengths = inf_arena_alloc(step->arena, rnn->batch * sizeof(*rnn->lengths));
    if (rnn->panels == NULL || rnn->lengths == NULL)
        return out_of_memory(step, err);
    size_t before = 0;
    for (size_t first = 0; first < rnn->hidden;) {
        struct inf_cpu_panel panel_columns = inf_cpu_panel_at(nn, first, rnn->hidden);
        rnn->panels[rnn->panel_count++] = (struct inf_native_rnn_panel){
            panel_columns.gemm->gemm[panel_columns.vectors - 1], first, panel_columns.columns,
            panel_columns.width, before};
        before += panel_columns.width;
        first += panel_columns.columns;
    }
    struct inf_cpu_matrix matrix = {.rows = rnn->inputs,
                                    .columns = rnn->directions * rnn->gates * rnn->hidden,
                                    .transposed = true,
                                    .group = rnn->hidden};
    const void *w;
    const void *r;
    INF_TRY(inf_cpu_step_pack(step, step->node, INF_NATIVE_RNN_W, matrix, &w, err));
    matrix.rows = rnn->hidden;
    INF_TRY(inf_cpu_step_pack(step, step->node, INF_NATIVE_RNN_R, matrix, &r, err));
    rnn->w = w;
    rnn->r = r;
    return INF_OK;
}

// Writes the sums of both biases of one gate, with padding. `given` holds the W biases (for the
// input) of all gates, followed by their R biases (for the state).
static void spread_bias(const struct inf_native_rnn *rnn, size_t gate, const float *given,
                        float *bias, float *state_bias)
{
    size_t rows = rnn->gates * rnn->hidden;
    // A GRU with linear_before_reset multiplies the R bias of its candidate gate with the reset
    // gate, so this bias is kept separate. For all other gates the two biases are added here.
    bool apart = rnn->attrs->kind == INF_RNN_GRU && gate == 2 && rnn->attrs->linear_before_reset;
    for (size_t p = 0; p < rnn->panel_count; p++) {
        const struct inf_native_rnn_panel *panel = &rnn->panels[p];
        for (size_t i = 0; i < panel->width; i++) {
            const float *from = given + gate * rnn->hidden + panel->first + i;
            bool filled = i >= panel->columns || given == NULL;
            bias[panel->before + i] = filled ? 0 : apart ? from[0] : from[0] + from[rows];
            state_bias[panel->before + i] = filled || !apart ? 0 : from[rows];
        }
    }
}

static enum inf_code make_biases(struct inf_native_rnn *rnn, struct inf_cpu_step *step,
                                 struct inf_error *err)
{
    const float *given = inf_cpu_const_f32(step->graph, step->node, INF_NATIVE_RNN_BIAS);
    size_t all = rnn->directions * rnn->gates;
    float *bias;
    INF_TRY(inf_native_alloc_floats(&bias, step, 2 * all * rnn->width, err));
    rnn->bias = bias;
    rnn->state_bias = bias + all * rnn->width;
    for (size_t i = 0; i < all; i++) {
        size_t direction = i / rnn->gates;
        const float *from = given != NULL ? given + direction * 2 * rnn->gates * rnn->hidden : NULL;
        spread_bias(rnn, i % rnn->gates, from, bias + i * rnn->width,
                    bias + (all + i) * rnn->width);
    }
    return INF_OK;
}

static void choose_activations(struct inf_native_rnn *rnn)
{
    for (size_t direction = 0; direction < rnn->directions; direction++) {
        for (size_t which = 0; which < activation_count(rnn->attrs); which++) {
            enum inf_unary_kind kind = activation_of(rnn->attrs, direction, which);
            rnn->hard[direction][which] = kind == INF_UNARY_HARD_SIGMOID;
            rnn->activations[direction][which] = inf_native_map_find(rnn->simd, kind);
        }
    }
}

// Chooses the number of threads. All threads synchronise after each time step, so the multiply-adds
// of one time step decide. The products with the input are computed for a whole chunk in one pass.
static void share_work(struct inf_native_rnn *rnn, struct inf_cpu_step *step)
{
    size_t places = rnn->directions * rnn->batch * rnn->gates * rnn->hidden;
    rnn->step_workers = inf_native_choose_workers(step, places * rnn->hidden);
    rnn->workers = inf_native_choose_workers(step, places * rnn->inputs * rnn->chunk);
    step->macs += places * rnn->hidden * (rnn->steps - 1);
    step->macs += places * rnn->inputs * (rnn->steps - rnn->chunk);
    // Cut the gates into at most one part per thread. Each thread then takes mostly the same part
    // in every time step, and finds the weights of that part in its cache.
    rnn->parts = (rnn->step_workers + rnn->directions - 1) / rnn->directions;
    rnn->parts = INF_MIN(rnn->panel_count, rnn->parts);
}

static enum inf_code rnn_create(struct inf_cpu_step *step, struct inf_error *err)
{
    static const char *const names[] = {
        [INF_RNN_LSTM] = "lstm", [INF_RNN_GRU] = "gru", [INF_RNN_SIMPLE] = "rnn"};
    const struct inf_shape *x = inf_cpu_input_shape(step->graph, step->node, INF_NATIVE_RNN_X);
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, step->node);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct inf_native_rnn), err));
    struct inf_native_rnn *rnn = step->state;
    *rnn = (struct inf_native_rnn){
        .loops = step->isa->rnn,
        .simd = step->isa->simd,
        .attrs = &step->node->attrs.rnn,
        .steps = (size_t)y->dims[0],
        .directions = (size_t)y->dims[1],
        .batch = (size_t)y->dims[2],
        .inputs = (size_t)x->dims[2],
        .hidden = (size_t)y->dims[3],
        .gates = gates_of(&step->node->attrs.rnn),
        .peepholes = inf_cpu_const_f32(step->graph, step->node, INF_NATIVE_RNN_PEEPHOLES),
    };
    rnn->chunk = INF_MIN(rnn->steps, (CHUNK_ROWS + rnn->batch - 1) / rnn->batch);
    INF_TRY(make_panels(rnn, step, err));
    INF_TRY(make_biases(rnn, step, err));
    choose_activations(rnn);
    share_work(rnn, step);
    struct inf_native_rnn_run run;
    inf_native_need_scratch(step, lay_out(rnn, NULL, &run));
    step->run = rnn_run;
    step->kernel = names[rnn->attrs->kind];
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_rnn_kernels[] = {
    {INF_OP_RNN, rnn_supports, rnn_create,
     .packs = INF_CPU_PACKS(INF_NATIVE_RNN_W) | INF_CPU_PACKS(INF_NATIVE_RNN_R)},
    {0},
};
