// SPDX-License-Identifier: Apache-2.0
// Recurrent networks as ONNX defines them. The kernels store the states in the outputs, so that
// nothing is allocated: the hidden state of a step is its part of y, and the cell state is the last
// output.
#include <math.h>

#include "backends/ref/kernels.h"

enum input {
    X,
    W,
    R,
    B,
    LENGTHS,
    HIDDEN,
    CELL,
    PEEPHOLES
};

// One sequence of the batch in one direction (forward or backward): its sizes, its activations and
// the tensors that hold its states.
struct sequence {
    const struct inf_ref_call *call;
    const struct inf_attrs_rnn *attrs;
    size_t steps, directions, batches, inputs, hidden;
    size_t direction, batch;
    size_t length; // number of steps of this sequence that have input
    enum inf_unary_kind activations[3];
    const struct inf_ref_tensor *y, *last, *cell; // outputs; `cell` only for lstm
    // index of this sequence's first element in `last`, `cell` and the tensors of initial states
    size_t state_at;
};

// Positions of elements for one time step: x_at of its input, y_at of its hidden state, and
// before_at of the hidden state of the previous step in the tensor `before`.
struct step {
    size_t x_at, y_at;
    // tensor with the hidden state of the previous step; NULL if that state is all zeros
    const struct inf_ref_tensor *before;
    size_t before_at;
};

static double before_value(const struct step *step, size_t j)
{
    return step->before == NULL ? 0 : inf_ref_get(step->before, step->before_at + j);
}

static double activate_gate(const struct sequence *sequence, int which, double value)
{
    const struct inf_attrs_rnn *attrs = sequence->attrs;
    if (attrs->clip > 0)
        value = fmin(fmax(value, -attrs->clip), attrs->clip);
    return inf_ref_unary_value(sequence->activations[which], value, attrs->activation_alpha,
                               attrs->activation_beta);
}

static size_t gates_of(const struct sequence *sequence)
{
    static const size_t gates[] = {4, 3, 1};
    return gates[sequence->attrs->kind];
}

// Returns element `row` of W x + bias, where W are the input weights, x is the input of the step,
// and row = gate * hidden + j.
static double input_sum(const struct sequence *sequence, const struct step *step, size_t row)
{
    const struct inf_ref_tensor *inputs = sequence->call->inputs;
    size_t rows = gates_of(sequence) * sequence->hidden;
    size_t at = (sequence->direction * rows + row) * sequence->inputs;
    double sum = 0;
    for (size_t i = 0; i < sequence->inputs; i++)
        sum += inf_ref_get(&inputs[W], at + i) * inf_ref_get(&inputs[X], step->x_at + i);
    if (inf_ref_has_input(sequence->call, B))
        sum += inf_ref_get(&inputs[B], sequence->direction * 2 * rows + row);
    return sum;
}

static double hidden_bias(const struct sequence *sequence, size_t row)
{
    size_t rows = gates_of(sequence) * sequence->hidden;
    if (!inf_ref_has_input(sequence->call, B))
        return 0;
    return inf_ref_get(&sequence->call->inputs[B], (sequence->direction * 2 + 1) * rows + row);
}

// Returns element `row` of R h + bias, where R are the recurrent weights and h is the hidden state
// of the previous step.
static double hidden_sum(const struct sequence *sequence, const struct step *step, size_t row)
{
    const struct inf_ref_tensor *r = &sequence->call->inputs[R];
    size_t rows = gates_of(sequence) * sequence->hidden;
    size_t at = (sequence->direction * rows + row) * sequence->hidden;
    double sum = 0;
    for (size_t i = 0; step->before != NULL && i < sequence->hidden; i++)
        sum += inf_ref_get(r, at + i) * before_value(step, i);
    return sum + hidden_bias(sequence, row);
}

static double gate_sum(const struct sequence *sequence, const struct step *step, size_t gate,
                       size_t j)
{
    size_t row = gate * sequence->hidden + j;
    return input_sum(sequence, step, row) + hidden_sum(sequence, step, row);
}

// Returns the product of the cell state and its peephole weight, which an lstm adds to gate `gate`
// (i, o or f). Returns 0 if the node has no peepholes.
static double add_peephole(const struct sequence *sequence, size_t gate, size_t j, double cell)
{
    if (!inf_ref_has_input(sequence->call, PEEPHOLES))
        return 0;
    size_t at = (sequence->direction * 3 + gate) * sequence->hidden + j;
    return inf_ref_get(&sequence->call->inputs[PEEPHOLES], at) * cell;
}

static void lstm_step(const struct sequence *sequence, const struct step *step)
{
    for (size_t j = 0; j < sequence->hidden; j++) {
        double cell = inf_ref_get(sequence->cell, sequence->state_at + j);
        double in = activate_gate(
            sequence, 0, gate_sum(sequence, step, 0, j) + add_peephole(sequence, 0, j, cell));
        double forget = sequence->attrs->input_forget
                            ? 1 - in
                            : activate_gate(sequence, 0,
                                            gate_sum(sequence, step, 2, j) +
                                                add_peephole(sequence, 2, j, cell));
        cell = forget * cell + in * activate_gate(sequence, 1, gate_sum(sequence, step, 3, j));
        double out = activate_gate(
            sequence, 0, gate_sum(sequence, step, 1, j) + add_peephole(sequence, 1, j, cell));
        inf_ref_put(sequence->cell, sequence->state_at + j, cell);
        // The attribute `clip` limits the sums that go into the gates, but not the cell state. So
        // do not clip here.
        inf_ref_put(sequence->y, step->y_at + j,
                    out * inf_ref_unary_value(sequence->activations[2], cell,
                                              sequence->attrs->activation_alpha,
                                              sequence->attrs->activation_beta));
    }
}

// Returns element `j` of a gru's candidate state. Without linear_before_reset, the product with R
// needs the reset gate times the hidden state for every element; gru_step() has stored these
// numbers in `last`.
static double compute_candidate(const struct sequence *sequence, const struct step *step, size_t j)
{
    size_t row = 2 * sequence->hidden + j, rows = 3 * sequence->hidden;
    double sum = input_sum(sequence, step, row);
    if (sequence->attrs->linear_before_reset) {
        double reset = activate_gate(sequence, 0, gate_sum(sequence, step, 1, j));
        return activate_gate(sequence, 1, sum + reset * hidden_sum(sequence, step, row));
    }
    size_t at = (sequence->direction * rows + row) * sequence->hidden;
    for (size_t i = 0; i < sequence->hidden; i++)
        sum += inf_ref_get(&sequence->call->inputs[R], at + i) *
               inf_ref_get(sequence->last, sequence->state_at + i);
    return activate_gate(sequence, 1, sum + hidden_bias(sequence, row));
}

static void gru_step(const struct sequence *sequence, const struct step *step)
{
    for (size_t j = 0; !sequence->attrs->linear_before_reset && j < sequence->hidden; j++)
        inf_ref_put(sequence->last, sequence->state_at + j,
                    activate_gate(sequence, 0, gate_sum(sequence, step, 1, j)) *
                        before_value(step, j));
    for (size_t j = 0; j < sequence->hidden; j++) {
        double update = activate_gate(sequence, 0, gate_sum(sequence, step, 0, j));
        inf_ref_put(sequence->y, step->y_at + j,
                    (1 - update) * compute_candidate(sequence, step, j) +
                        update * before_value(step, j));
    }
}

static void simple_step(const struct sequence *sequence, const struct step *step)
{
    for (size_t j = 0; j < sequence->hidden; j++)
        inf_ref_put(sequence->y, step->y_at + j,
                    activate_gate(sequence, 0, gate_sum(sequence, step, 0, j)));
}

// Copies the initial state of the sequence from `input` to `into`. The state is all zeros if the
// input is absent.
static void start_state(const struct sequence *sequence, enum input input,
                        const struct inf_ref_tensor *into)
{
    for (size_t j = 0; j < sequence->hidden; j++)
        inf_ref_put(into, sequence->state_at + j,
                    inf_ref_has_input(sequence->call, input)
                        ? inf_ref_get(&sequence->call->inputs[input], sequence->state_at + j)
                        : 0);
}

static enum inf_code run_sequence(const struct sequence *sequence, struct inf_error *err)
{
    bool reverse = sequence->attrs->direction == INF_DIRECTION_REVERSE || sequence->direction == 1;
    struct step step = {0};
    if (inf_ref_has_input(sequence->call, HIDDEN))
        step = (struct step){.before = &sequence->call->inputs[HIDDEN],
                             .before_at = sequence->state_at};
    if (sequence->cell != NULL)
        start_state(sequence, CELL, sequence->cell);
    for (size_t i = 0; i < sequence->steps; i++) {
        bool counts = i < sequence->length;
        INF_TRY(inf_ref_check_cancelled(sequence->call, err));
        size_t t = reverse && counts ? sequence->length - 1 - i : i;
        step.x_at = (t * sequence->batches + sequence->batch) * sequence->inputs;
        step.y_at = ((t * sequence->directions + sequence->direction) * sequence->batches +
                     sequence->batch) *
                    sequence->hidden;
        if (!counts) {
            for (size_t j = 0; j < sequence->hidden; j++)
                inf_ref_put(sequence->y, step.y_at + j, 0);
            continue;
        }
        if (sequence->attrs->kind == INF_RNN_LSTM)
            lstm_step(sequence, &step);
        else if (sequence->attrs->kind == INF_RNN_GRU)
            gru_step(sequence, &step);
        else
            simple_step(sequence, &step);
        step.before = sequence->y;
        step.before_at = step.y_at;
    }
    for (size_t j = 0; j < sequence->hidden; j++)
        inf_ref_put(sequence->last, sequence->state_at + j, before_value(&step, j));
    return INF_OK;
}

static void choose_activations(struct sequence *sequence)
{
    static const int counts[] = {3, 2, 1};
    const struct inf_ints *given = &sequence->attrs->activations;
    int count = counts[sequence->attrs->kind];
    for (int i = 0; i < count; i++) {
        bool gate = i == 0 && sequence->attrs->kind != INF_RNN_SIMPLE;
        sequence->activations[i] = gate ? INF_UNARY_SIGMOID : INF_UNARY_TANH;
        if (given->count != 0)
            sequence->activations[i] =
                (enum inf_unary_kind)given->values[(int)sequence->direction * count + i];
    }
}

enum inf_code inf_ref_rnn(const struct inf_ref_call *call, struct inf_error *err)
{
    const int64_t *x = call->inputs[X].shape->dims, *y = call->outputs[0].shape->dims;
    struct sequence sequence = {
        .call = call,
        .attrs = &call->node->attrs.rnn,
        .steps = (size_t)y[0],
        .directions = (size_t)y[1],
        .batches = (size_t)y[2],
        .hidden = (size_t)y[3],
        .inputs = (size_t)x[2],
        .y = &call->outputs[0],
        .last = &call->outputs[1],
        .cell = call->node->output_count > 2 ? &call->outputs[2] : NULL,
    };
    for (sequence.direction = 0; sequence.direction < sequence.directions; sequence.direction++) {
        choose_activations(&sequence);
        for (sequence.batch = 0; sequence.batch < sequence.batches; sequence.batch++) {
            sequence.state_at =
                (sequence.direction * sequence.batches + sequence.batch) * sequence.hidden;
            sequence.length = sequence.steps;
            if (inf_ref_has_input(call, LENGTHS)) {
                int64_t length = inf_ref_index(&call->inputs[LENGTHS], sequence.batch);
                sequence.length = length < 0 ? 0 : INF_MIN((size_t)length, sequence.steps);
            }
            INF_TRY(run_sequence(&sequence, err));
        }
    }
    return INF_OK;
}
