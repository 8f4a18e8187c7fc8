// SPDX-License-Identifier: Apache-2.0
// Computes one step of a recurrent network: the gates and states, as ONNX defines them.
#include <math.h>
#include <string.h>

#include "backends/cpu/native/rnn.h"
#include "backends/cpu/native/work.h"

// The part of a time step that one call computes: some hidden elements of one direction.
struct part {
    const struct inf_native_rnn_run *run;
    const struct inf_native_rnn *rnn;
    size_t direction;
    size_t panel, panel_end;
    size_t first, count; // first hidden element, and number of hidden elements
};

static struct part part_of(const struct inf_native_rnn_run *run, size_t tile)
{
    const struct inf_native_rnn *rnn = run->rnn;
    size_t number = tile % rnn->parts;
    struct part part = {.run = run, .rnn = rnn, .direction = tile / rnn->parts};
    part.panel = inf_native_strip_start(rnn->panel_count, rnn->parts, number, 1);
    part.panel_end = inf_native_strip_start(rnn->panel_count, rnn->parts, number + 1, 1);
    part.first = rnn->panels[part.panel].first;
    const struct inf_native_rnn_panel *last = &rnn->panels[part.panel_end - 1];
    part.count = last->first + last->columns - part.first;
    return part;
}

// Returns the address of this part's elements for batch item `batch` in `all`, a buffer
// [direction][batch][hidden].
static float *of_batch(const struct part *part, float *all, size_t batch)
{
    const struct inf_native_rnn *rnn = part->rnn;
    return all + (part->direction * rnn->batch + batch) * rnn->hidden + part->first;
}

// Returns the address of this part's sums of gate `gate` in the current time step.
static float *sums_of(const struct part *part, size_t batch, size_t gate)
{
    const struct inf_native_rnn *rnn = part->rnn;
    size_t row =
        (part->direction * rnn->chunk + part->run->step - part->run->first) * rnn->batch + batch;
    return part->run->sums + (row * rnn->gates + gate) * rnn->hidden + part->first;
}

// --- products of the state with the weights ---

// Adds the product of state `a` and the weights to the sums of gate `gate`. If `nothing` is true,
// the state is zero, so only the bias is added.
static void add_state(const struct part *part, size_t gate, const float *a, bool nothing)
{
    const struct inf_native_rnn *rnn = part->rnn;
    struct inf_native_rnn_product product = {
        .weights = rnn->r,
        .bias = rnn->state_bias,
        .direction = part->direction,
        .gate = gate,
        .a = a + part->direction * rnn->batch * rnn->hidden,
        .rows = rnn->batch,
        .depth = rnn->hidden,
        .used = nothing ? 0 : rnn->hidden,
        .y = sums_of(part, 0, gate) - part->first,
        .y_step = rnn->gates * rnn->hidden,
        .adds = true,
    };
    inf_native_rnn_multiply(rnn, &product, part->panel, part->panel_end);
}

// Sets `extra` to the product of the previous state with the weights of gate `gate`.
static void make_extra(const struct part *part, size_t gate)
{
    const struct inf_native_rnn *rnn = part->rnn;
    struct inf_native_rnn_product product = {
        .weights = rnn->r,
        .bias = rnn->state_bias,
        .direction = part->direction,
        .gate = gate,
        .a = part->run->before + part->direction * rnn->batch * rnn->hidden,
        .rows = rnn->batch,
        .depth = rnn->hidden,
        .used = part->run->from_nothing ? 0 : rnn->hidden,
        .y = of_batch(part, part->run->extra, 0) - part->first,
        .y_step = rnn->hidden,
    };
    inf_native_rnn_multiply(rnn, &product, part->panel, part->panel_end);
}

// --- converting sums to gate values, and gate values to the new state ---

static void activate_gate(const struct part *part, int which, float *values)
{
    const struct inf_native_rnn *rnn = part->rnn;
    inf_simd_map_fn *function = rnn->activations[part->direction][which];
    if (function != NULL)
        function(part->count, values, values);
    else if (rnn->hard[part->direction][which])
        rnn->loops->hard_sigmoid(part->count, values, rnn->attrs->activation_alpha,
                                 rnn->attrs->activation_beta);
    else
        rnn->simd->clamp(part->count, values, values, 0.0f, INFINITY);
}

// Converts sums to gate values: clips them and applies the activation.
static void finish_gate(const struct part *part, int which, float *sums)
{
    if (part->rnn->attrs->clip > 0)
        part->rnn->loops->cut(part->count, sums, part->rnn->attrs->clip);
    activate_gate(part, which, sums);
}

// Adds the peephole term (weight times cell state) to the sums of gate `number`: 0 for i, 1 for o,
// 2 for f.
static void add_peephole(const struct part *part, size_t number, const float *cell, float *sums)
{
    const struct inf_native_rnn *rnn = part->rnn;
    if (rnn->peepholes == NULL)
        return;
    size_t at = (part->direction * 3 + number) * rnn->hidden + part->first;
    rnn->loops->add_product(part->count, rnn->peepholes + at, cell, sums);
}

static void step_lstm(const struct part *part, size_t batch)
{
    const struct inf_native_rnn *rnn = part->rnn;
    float *in = sums_of(part, batch, 0);
    float *out = sums_of(part, batch, 1);
    float *forget = sums_of(part, batch, 2);
    float *made = sums_of(part, batch, 3);
    float *cell = of_batch(part, part->run->cell, batch);
    add_peephole(part, 0, cell, in);
    finish_gate(part, 0, in);
    if (rnn->attrs->input_forget) {
        rnn->loops->complement(part->count, in, forget);
    } else {
        add_peephole(part, 2, cell, forget);
        finish_gate(part, 0, forget);
    }
    finish_gate(part, 1, made);
    rnn->loops->keep(part->count, forget, in, made, cell);
    add_peephole(part, 1, cell, out);
    finish_gate(part, 0, out);
    // Copy the cell state without clipping it, because the clip limit applies to the sums of gates
    // only.
    memcpy(made, cell, part->count * sizeof(*made));
    activate_gate(part, 2, made);
    rnn->loops->multiply(part->count, out, made, of_batch(part, part->run->after, batch));
}

// Computes the new state of a GRU. With linear_before_reset, `extra` is the product of the state
// with the weights, which is multiplied by the reset gate here. Otherwise the state was multiplied
// by the reset gate before its product was computed.
static void step_gru(const struct part *part, size_t batch)
{
    const struct inf_native_rnn *rnn = part->rnn;
    float *update = sums_of(part, batch, 0);
    float *made = sums_of(part, batch, 2);
    finish_gate(part, 0, update);
    if (rnn->attrs->linear_before_reset) {
        float *reset = sums_of(part, batch, 1);
        finish_gate(part, 0, reset);
        rnn->loops->add_product(part->count, reset, of_batch(part, part->run->extra, batch), made);
    }
    finish_gate(part, 1, made);
    rnn->loops->blend(part->count, update, made, of_batch(part, part->run->before, batch),
                      of_batch(part, part->run->after, batch));
}

static void step_simple(const struct part *part, size_t batch)
{
    float *sums = sums_of(part, batch, 0);
    finish_gate(part, 0, sums);
    memcpy(of_batch(part, part->run->after, batch), sums, part->count * sizeof(*sums));
}

// --- one time step of one part ---

static bool is_inside(const struct part *part, size_t batch)
{
    return part->run->step < part->rnn->lengths[batch];
}

void inf_native_rnn_reset_tile(const void *run, size_t tile, size_t worker)
{
    (void)worker;
    struct part part = part_of(run, tile);
    add_state(&part, 1, part.run->before, part.run->from_nothing);
    for (size_t batch = 0; batch < part.rnn->batch; batch++) {
        float *reset = sums_of(&part, batch, 1);
        finish_gate(&part, 0, reset);
        part.rnn->loops->multiply(part.count, reset, of_batch(&part, part.run->before, batch),
                                  of_batch(&part, part.run->extra, batch));
    }
}

static void add_products(const struct part *part)
{
    const struct inf_native_rnn *rnn = part->rnn;
    const struct inf_native_rnn_run *run = part->run;
    if (rnn->attrs->kind != INF_RNN_GRU) {
        for (size_t number = 0; number < rnn->gates; number++)
            add_state(part, number, run->before, run->from_nothing);
        return;
    }
    add_state(part, 0, run->before, run->from_nothing);
    if (rnn->attrs->linear_before_reset) {
        add_state(part, 1, run->before, run->from_nothing);
        make_extra(part, 2);
    } else {
        add_state(part, 2, run->extra, false);
    }
}

static void store_result(const struct part *part, size_t batch)
{
    const struct inf_native_rnn *rnn = part->rnn;
    const struct inf_native_rnn_run *run = part->run;
    bool turned = inf_native_rnn_is_reversed(rnn, part->direction) && is_inside(part, batch);
    size_t time = turned ? rnn->lengths[batch] - 1 - run->step : run->step;
    size_t row = (time * rnn->directions + part->direction) * rnn->batch + batch;
    float *y = run->y + row * rnn->hidden + part->first;
    float *after = of_batch(part, run->after, batch);
    if (is_inside(part, batch)) {
        memcpy(y, after, part->count * sizeof(*y));
    } else {
        memset(y, 0, part->count * sizeof(*y));
        memcpy(after, of_batch(part, run->before, batch), part->count * sizeof(*y));
    }
}

void inf_native_rnn_step_tile(const void *run, size_t tile, size_t worker)
{
    static void (*const kinds[])(const struct part *part, size_t batch) = {
        [INF_RNN_LSTM] = step_lstm, [INF_RNN_GRU] = step_gru, [INF_RNN_SIMPLE] = step_simple};
    (void)worker;
    struct part part = part_of(run, tile);
    add_products(&part);
    for (size_t batch = 0; batch < part.rnn->batch; batch++) {
        if (is_inside(&part, batch))
            kinds[part.rnn->attrs->kind](&part, batch);
        store_result(&part, batch);
    }
}
