// SPDX-License-Identifier: Apache-2.0
// Recurrent layers, written out step by step: the number of steps must be known.
#include <string.h>

#include "backends/import/onnx_lower.h"

#define STEPS_MAX 1024

enum {
    LAYER_RNN = 1,
    LAYER_GRU = 3,
    LAYER_LSTM = 4
}; // by the number of gates

// What a layer is, and one direction of it.
struct layer {
    int32_t gates;
    int64_t steps, hidden;
    enum inf_dtype dtype;
    uint32_t x;        // [steps, batch, input]
    float clip;        // 0: none
    bool reset_after;  // GRU: linear_before_reset
    bool input_forget; // LSTM: the input gate is what the forget gate leaves
    const char *activations[6];
};

struct direction {
    uint32_t from_x[STEPS_MAX]; // what each step adds to the gates: [batch, gates * hidden]
    uint32_t r;                 // [gates * hidden, hidden]
    uint32_t r_bias;            // [gates * hidden], GRU only; else NONE
    uint32_t peepholes;         // [3 * hidden], LSTM only; else NONE
    const char *const *activations;
    uint32_t h, c;
    uint32_t outputs[STEPS_MAX];
};

static uint32_t activate(struct inf_onnx_scope *s, const struct layer *layer, const char *name,
                         uint32_t x)
{
    static const struct {
        const char *name;
        enum inf_unary_kind kind;
    } known[] = {{"Sigmoid", INF_UNARY_SIGMOID},
                 {"Tanh", INF_UNARY_TANH},
                 {"Relu", INF_UNARY_RELU},
                 {"Softplus", INF_UNARY_SOFTPLUS}};
    if (layer->clip > 0) {
        x = inf_ox_binary_number(s, INF_BINARY_MAX, x, -(double)layer->clip);
        x = inf_ox_binary_number(s, INF_BINARY_MIN, x, (double)layer->clip);
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(known); i++)
        if (strcasecmp(known[i].name, name) == 0)
            return inf_ox_unary(s, known[i].kind, x);
    inf_ox_fail(s, INF_UNSUPPORTED, "activation '%.40s'", name);
    return INF_VALUE_NONE;
}

static uint32_t product(struct inf_onnx_scope *s, uint32_t a, uint32_t b)
{
    const uint32_t inputs[] = {a, b};
    struct inf_ox_call call = inf_ox_call(INF_OP_MATMUL, inputs, 2);
    call.attrs.matmul.transpose_b = true;
    return inf_ox_value(s, &call);
}

// Gate `index` of a row of them.
static uint32_t gate(struct inf_onnx_scope *s, const struct layer *layer, uint32_t row,
                     int32_t index)
{
    return inf_ox_slice(s, row, inf_ox_rank(s, row) - 1, index * layer->hidden,
                        (index + 1) * layer->hidden, 1);
}

static void step_rnn(struct inf_onnx_scope *s, const struct layer *layer, struct direction *d,
                     uint32_t from_x)
{
    uint32_t sum = inf_ox_add(s, from_x, product(s, d->h, d->r));
    d->h = activate(s, layer, d->activations[0], sum);
}

// Gates in ONNX's order: update, reset, hidden.
static void step_gru(struct inf_onnx_scope *s, const struct layer *layer, struct direction *d,
                     uint32_t from_x)
{
    uint32_t own = product(s, d->h, d->r);
    if (d->r_bias != INF_VALUE_NONE)
        own = inf_ox_add(s, own, d->r_bias);
    uint32_t z = inf_ox_add(s, gate(s, layer, from_x, 0), gate(s, layer, own, 0));
    uint32_t r = inf_ox_add(s, gate(s, layer, from_x, 1), gate(s, layer, own, 1));
    z = activate(s, layer, d->activations[0], z);
    r = activate(s, layer, d->activations[0], r);
    uint32_t inner;
    if (layer->reset_after) {
        inner = inf_ox_mul(s, r, gate(s, layer, own, 2));
    } else {
        uint32_t weights = inf_ox_slice(s, d->r, 0, 2 * layer->hidden, 3 * layer->hidden, 1);
        inner = product(s, inf_ox_mul(s, r, d->h), weights);
        if (d->r_bias != INF_VALUE_NONE)
            inner = inf_ox_add(s, inner, gate(s, layer, d->r_bias, 2));
    }
    inner = inf_ox_add(s, gate(s, layer, from_x, 2), inner);
    inner = activate(s, layer, d->activations[1], inner);
    // (1 - z) * inner + z * h
    uint32_t keep = inf_ox_sub(s, inf_ox_scalar(s, layer->dtype, 1), z);
    d->h = inf_ox_add(s, inf_ox_mul(s, keep, inner), inf_ox_mul(s, z, d->h));
}

static uint32_t peep(struct inf_onnx_scope *s, const struct layer *layer, const struct direction *d,
                     int32_t index, uint32_t sum, uint32_t c)
{
    if (d->peepholes == INF_VALUE_NONE)
        return sum;
    return inf_ox_add(s, sum, inf_ox_mul(s, gate(s, layer, d->peepholes, index), c));
}

// Gates in ONNX's order: input, output, forget, cell; peepholes input, output, forget.
static void step_lstm(struct inf_onnx_scope *s, const struct layer *layer, struct direction *d,
                      uint32_t from_x)
{
    uint32_t sum = inf_ox_add(s, from_x, product(s, d->h, d->r));
    uint32_t i = peep(s, layer, d, 0, gate(s, layer, sum, 0), d->c);
    uint32_t f = peep(s, layer, d, 2, gate(s, layer, sum, 2), d->c);
    uint32_t c = activate(s, layer, d->activations[1], gate(s, layer, sum, 3));
    i = activate(s, layer, d->activations[0], i);
    if (layer->input_forget)
        f = inf_ox_sub(s, inf_ox_scalar(s, layer->dtype, 1), i);
    else
        f = activate(s, layer, d->activations[0], f);
    d->c = inf_ox_add(s, inf_ox_mul(s, f, d->c), inf_ox_mul(s, i, c));
    uint32_t o = peep(s, layer, d, 1, gate(s, layer, sum, 1), d->c);
    o = activate(s, layer, d->activations[0], o);
    d->h = inf_ox_mul(s, o, activate(s, layer, d->activations[2], d->c));
}

// Direction `index` of an input that has one part for each; NONE stays NONE.
static uint32_t part_of(struct inf_onnx_scope *s, uint32_t value, int32_t index)
{
    if (value == INF_VALUE_NONE)
        return value;
    value = inf_ox_slice(s, value, 0, index, index + 1, 1);
    return inf_ox_squeeze(s, value, (int64_t[]){0}, 1);
}

// The state to begin with: given, or zeros.
static uint32_t first_state(struct inf_onnx_scope *s, const struct layer *layer, uint32_t given,
                            int32_t index)
{
    if (given != INF_VALUE_NONE)
        return part_of(s, given, index);
    const uint32_t dims[] = {inf_ox_dim_value(s, layer->x, 1), inf_ox_list(s, &layer->hidden, 1)};
    return inf_ox_fill(s, inf_ox_concat(s, dims, 2, 0), inf_ox_scalar(s, layer->dtype, 0));
}

static void run_direction(struct inf_onnx_scope *s, const struct layer *layer, struct direction *d,
                          int32_t index, bool backwards)
{
    uint32_t sums = product(s, layer->x, part_of(s, s->inputs[1], index));
    uint32_t bias = part_of(s, inf_ox_in(s, 3), index);
    int64_t width = layer->gates * layer->hidden;
    d->r = part_of(s, s->inputs[2], index);
    d->r_bias = INF_VALUE_NONE;
    if (bias != INF_VALUE_NONE) {
        sums = inf_ox_add(s, sums, inf_ox_slice(s, bias, 0, 0, width, 1));
        d->r_bias = inf_ox_slice(s, bias, 0, width, 2 * width, 1);
        // Only the GRU's reset gate tells the two biases apart.
        if (layer->gates != LAYER_GRU)
            sums = inf_ox_add(s, sums, d->r_bias);
    }
    d->h = first_state(s, layer, inf_ox_in(s, 5), index);
    if (layer->gates == LAYER_LSTM) {
        d->c = first_state(s, layer, inf_ox_in(s, 6), index);
        d->peepholes = part_of(s, inf_ox_in(s, 7), index);
    }
    for (int64_t step = 0; inf_ox_ok(s) && step < layer->steps; step++) {
        int64_t at = backwards ? layer->steps - 1 - step : step;
        uint32_t from_x =
            inf_ox_squeeze(s, inf_ox_slice(s, sums, 0, at, at + 1, 1), (int64_t[]){0}, 1);
        if (layer->gates == LAYER_RNN)
            step_rnn(s, layer, d, from_x);
        else if (layer->gates == LAYER_GRU)
            step_gru(s, layer, d, from_x);
        else
            step_lstm(s, layer, d, from_x);
        // [1, 1, batch, hidden]
        d->outputs[at] = inf_ox_expand_dims(s, d->h, (int64_t[]){0, 1}, 2);
    }
}

// The names of the activations: those given, or the layer's own, for each direction.
static void read_activations(struct inf_onnx_scope *s, struct layer *layer, int32_t directions)
{
    static const char *const own[][3] = {[LAYER_RNN] = {"Tanh"},
                                         [LAYER_GRU] = {"Sigmoid", "Tanh"},
                                         [LAYER_LSTM] = {"Sigmoid", "Tanh", "Tanh"}};
    const struct inf_onnx_attr *attr = inf_ox_attr(s, "activations");
    int32_t each = layer->gates == LAYER_RNN ? 1 : layer->gates == LAYER_GRU ? 2 : 3;
    for (int32_t i = 0; i < each * directions; i++)
        layer->activations[i] = own[layer->gates][i % each];
    if (attr == NULL)
        return;
    struct inf_pb pb = {attr->body};
    struct inf_pb_field field;
    bool more;
    int32_t count = 0;
    while (inf_ox_ok(s) && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        if (field.number != 9)
            continue;
        if (count < each * directions)
            s->code =
                inf_onnx_text(&layer->activations[count], s->import->arena, field.bytes, s->err);
        count++;
    }
    if (inf_ox_ok(s) && count != each * directions)
        inf_ox_fail(s, INF_INVALID, "has %d activations, wanted %d", count, each * directions);
}

// Sequences of different length are not built; lengths that say nothing new are.
static void check_lengths(struct inf_onnx_scope *s, const struct layer *layer)
{
    uint32_t lengths = inf_ox_in(s, 4);
    if (lengths == INF_VALUE_NONE)
        return;
    struct inf_ox_ints ints = inf_ox_const_ints(s, lengths, "sequence_lens");
    for (uint32_t i = 0; i < ints.count; i++)
        if (ints.values[i] != layer->steps)
            inf_ox_fail(s, INF_UNSUPPORTED, "sequence_lens[%u] is %lld of %lld steps", i,
                        (long long)ints.values[i], (long long)layer->steps);
}

static void swap_layout(struct inf_onnx_scope *s, uint32_t *value, int32_t rank)
{
    if (*value == INF_VALUE_NONE)
        return;
    // Batch first: Y is [batch, steps, directions, hidden], states [batch, directions, hidden].
    *value = rank == 4 ? inf_ox_transpose(s, *value, (int64_t[]){2, 0, 1, 3}, 4)
                       : inf_ox_transpose(s, *value, (int64_t[]){1, 0, 2}, 3);
}

static void make_outputs(struct inf_onnx_scope *s, const struct layer *layer,
                         struct direction *directions, int32_t count)
{
    uint32_t h[2], c[2], y[2];
    for (int32_t i = 0; inf_ox_ok(s) && i < count; i++) {
        h[i] = inf_ox_expand_dims(s, directions[i].h, (int64_t[]){0}, 1);
        if (layer->gates == LAYER_LSTM)
            c[i] = inf_ox_expand_dims(s, directions[i].c, (int64_t[]){0}, 1);
        y[i] = inf_ox_concat(s, directions[i].outputs, (uint32_t)layer->steps, 0);
    }
    if (!inf_ox_ok(s))
        return;
    s->outputs[0] = inf_ox_concat(s, y, (uint32_t)count, 1);
    if (s->output_count > 1)
        s->outputs[1] = inf_ox_concat(s, h, (uint32_t)count, 0);
    if (s->output_count > 2 && layer->gates == LAYER_LSTM)
        s->outputs[2] = inf_ox_concat(s, c, (uint32_t)count, 0);
}

static void lower_layer(struct inf_onnx_scope *s)
{
    struct layer layer = {.gates = s->op->kind, .x = s->inputs[0]};
    const char *way = inf_ox_attr_text(s, "direction", "forward");
    bool both = strcmp(way, "bidirectional") == 0, batch_first = inf_ox_attr_int(s, "layout", 0);
    layer.clip = inf_ox_attr_float(s, "clip", 0);
    layer.reset_after = layer.gates == LAYER_GRU && inf_ox_attr_int(s, "linear_before_reset", 0);
    layer.input_forget = layer.gates == LAYER_LSTM && inf_ox_attr_int(s, "input_forget", 0);
    (void)inf_ox_attr(s, "output_sequence");
    (void)inf_ox_attr(s, "hidden_size"); // R says the same
    layer.dtype = inf_ox_dtype(s, layer.x);
    if (batch_first) {
        layer.x = inf_ox_transpose(s, layer.x, (int64_t[]){1, 0, 2}, 3);
        // The states' part of the inputs; the array is the scope's to change.
        for (uint32_t i = 5; i < 7 && i < s->input_count; i++)
            swap_layout(s, &s->inputs[i], 3);
    }
    if (inf_ox_rank(s, layer.x) != 3 || inf_ox_rank(s, s->inputs[2]) != 3)
        inf_ox_fail(s, INF_INVALID, "x or R is not of rank 3");
    layer.steps = inf_ox_ok(s) ? inf_ox_known_dim(s, layer.x, 0) : 0;
    layer.hidden = inf_ox_ok(s) ? inf_ox_known_dim(s, s->inputs[2], 2) : 0;
    if (layer.steps < 1 || layer.steps > STEPS_MAX)
        inf_ox_fail(s, INF_UNSUPPORTED, "has %lld steps, wanted 1 to %d", (long long)layer.steps,
                    STEPS_MAX);
    check_lengths(s, &layer);
    read_activations(s, &layer, both ? 2 : 1);
    struct direction *directions = inf_arena_alloc(s->import->arena, 2 * sizeof *directions);
    if (directions == NULL)
        inf_ox_fail(s, INF_EXHAUSTED, "no memory");
    for (int32_t i = 0; inf_ox_ok(s) && i < (both ? 2 : 1); i++) {
        int32_t each = layer.gates == LAYER_RNN ? 1 : layer.gates == LAYER_GRU ? 2 : 3;
        directions[i].activations = layer.activations + i * each;
        directions[i].peepholes = INF_VALUE_NONE;
        run_direction(s, &layer, &directions[i], i, i == 1 || strcmp(way, "reverse") == 0);
    }
    if (inf_ox_ok(s))
        make_outputs(s, &layer, directions, both ? 2 : 1);
    for (uint32_t i = 0; batch_first && inf_ox_ok(s) && i < s->output_count; i++)
        swap_layout(s, &s->outputs[i], i == 0 ? 4 : 3);
}

static const struct inf_onnx_op ops[] = {
    {"RNN", lower_layer, 3, 6, 2, LAYER_RNN},
    {"GRU", lower_layer, 3, 6, 2, LAYER_GRU},
    {"LSTM", lower_layer, 3, 8, 3, LAYER_LSTM},
};

const struct inf_onnx_op_table inf_onnx_ops_rnn = {ops, INF_ARRAY_LENGTH(ops)};
