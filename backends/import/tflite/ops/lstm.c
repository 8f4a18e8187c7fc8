// SPDX-License-Identifier: Apache-2.0
// Long short-term memory with everything that TFLite's cells may have: peepholes, a projection,
// layer normalisation, coupled input and forget gates, clipping, and quantised states.
//
//     i, f, o = sigmoid(norm(x Wx + h Wh + c * Wc) + b)      g = activation(norm(x Wx + h Wh) + b)
//     c = f * c + i * g                                      h = o * activation(c), projected
//
// Without a normalisation, norm() returns its argument. If the weights of the input gate are
// absent, i = 1 - f. The output gate uses the new c.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/quantize.h"
#include "backends/import/tflite/recurrent.h"
#include "backends/import/tflite/tensor.h"
#include "backends/import/tflite/variable.h"

// Added to the variance of a normalisation.
#define NORM_EPSILON 1e-8f

// The order of the gates among the inputs.
enum gate {
    GATE_INPUT,
    GATE_FORGET,
    GATE_CELL,
    GATE_OUTPUT,
    GATES
};

// The numbers of a cell's inputs. Four gates follow each number, but three for `peephole`.
struct places {
    uint32_t x, recurrent, peephole, bias, projection, hidden, cell, norm;
};

struct cell {
    uint32_t x[GATES], recurrent[GATES], bias[GATES], norm[GATES], peephole[GATES];
    uint32_t projection, projection_bias;
    uint32_t auxiliary[GATES]; // weights of a second input
    const struct inf_tflite_tensor *hidden_type, *cell_type;
    // Of a quantised cell: the sums before a normalisation are rounded to the numbers of these
    // tensors, and the result before a projection as add_result() says; otherwise NULL.
    const struct inf_tflite_tensor *sum_types[GATES], *result_type;
    uint32_t hidden_state, cell_state;
    uint32_t hidden_index, cell_index; // numbers of the inputs that have the states
    int64_t activation;
    float cell_clip, projection_clip;
};

// Returns intermediate tensor `index` of the operator; NULL if there is none.
static const struct inf_tflite_tensor *find_intermediate(const struct inf_tflite_scope *s,
                                                         uint32_t index)
{
    const struct inf_tflite_indices *list = &s->op->intermediates;
    return index < list->count ? &s->frame->subgraph->tensors[list->items[index]] : NULL;
}

// Returns true if the tensor is quantised with one scale.
static bool has_scale(const struct inf_tflite_tensor *tensor)
{
    return tensor != NULL && inf_tflite_tensor_is_quantized(tensor) &&
           tensor->quantization.count == 1 && tensor->quantization.scales[0] > 0;
}

static struct cell read_cell(struct inf_tflite_scope *s, const struct places *places)
{
    struct cell cell = {0};
    for (uint32_t i = 0; i < GATES; i++) {
        cell.x[i] = inf_tflite_weight(s, places->x + i);
        cell.recurrent[i] = inf_tflite_weight(s, places->recurrent + i);
        cell.bias[i] = inf_tflite_weight(s, places->bias + i);
        cell.norm[i] = places->norm != 0 ? inf_tflite_weight(s, places->norm + i) : INF_VALUE_NONE;
        cell.auxiliary[i] = INF_VALUE_NONE;
        bool must = i != GATE_INPUT || cell.x[i] != INF_VALUE_NONE;
        if (must && (cell.x[i] == INF_VALUE_NONE || cell.recurrent[i] == INF_VALUE_NONE ||
                     cell.bias[i] == INF_VALUE_NONE))
            inf_build_fail(&s->b, INF_INVALID, "lacks weights of gate %u", i);
    }
    cell.peephole[GATE_INPUT] = inf_tflite_weight(s, places->peephole);
    cell.peephole[GATE_FORGET] = inf_tflite_weight(s, places->peephole + 1);
    cell.peephole[GATE_CELL] = INF_VALUE_NONE;
    cell.peephole[GATE_OUTPUT] = inf_tflite_weight(s, places->peephole + 2);
    cell.projection = inf_tflite_weight(s, places->projection);
    cell.projection_bias = inf_tflite_weight(s, places->projection + 1);
    cell.hidden_index = places->hidden;
    cell.cell_index = places->cell;
    cell.hidden_state = inf_tflite_state(s, places->hidden);
    cell.cell_state = inf_tflite_state(s, places->cell);
    cell.hidden_type = inf_tflite_input_tensor(s, places->hidden);
    cell.cell_type = inf_tflite_input_tensor(s, places->cell);
    if (has_scale(cell.hidden_type) && s->op->intermediates.count > GATES + 1)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has %u intermediate tensors, wanted %u",
                       s->op->intermediates.count, GATES + 1);
    for (uint32_t i = 0; i < GATES; i++)
        cell.sum_types[i] = find_intermediate(s, i);
    cell.result_type = find_intermediate(s, GATES);
    cell.activation = inf_tflite_option(s, INF_FB_I8, 0, "fused_activation_function", 0);
    cell.cell_clip = inf_tflite_option_float(s, 1, "cell_clip");
    cell.projection_clip = inf_tflite_option_float(s, 2, "proj_clip");
    return cell;
}

// Adds the result of a cell, before its projection. TFLite's kernels of quantised cells subtract
// the zero point of the intermediate tensor from the rounded result, where an affine quantisation
// adds it. A projection adds it again, so that only the bounds of the result differ. Without a
// projection, the bytes are read with the zero point of the output.
static uint32_t add_result(struct inf_builder *b, const struct cell *cell, uint32_t h)
{
    if (!has_scale(cell->result_type) || !has_scale(cell->hidden_type))
        return h;
    const struct inf_tflite_quantization *result = &cell->result_type->quantization;
    const struct inf_tflite_quantization *hidden = &cell->hidden_type->quantization;
    double zero = (double)result->zeros[0];
    int32_t low, high;
    inf_tflite_stored_range(cell->result_type, &low, &high);
    h = inf_build_binary_number(b, INF_BINARY_MUL, h, 1 / (double)result->scales[0]);
    h = inf_build_clip(b, inf_build_unary(b, INF_UNARY_ROUND, h), low + zero, high + zero);
    if (cell->projection != INF_VALUE_NONE)
        return inf_build_binary_number(b, INF_BINARY_MUL, h, (double)result->scales[0]);
    h = inf_build_binary_number(b, INF_BINARY_SUB, h, zero + (double)hidden->zeros[0]);
    return inf_build_binary_number(b, INF_BINARY_MUL, h, (double)hidden->scales[0]);
}

static uint32_t add_clip(struct inf_builder *b, uint32_t x, float clip)
{
    return clip > 0 ? inf_build_clip(b, x, -clip, clip) : x;
}

// Adds what goes into the activation of a gate. `c` is the cell state that its peephole sees.
static uint32_t add_gate(struct inf_tflite_scope *s, const struct cell *cell, enum gate gate,
                         uint32_t x, uint32_t auxiliary, uint32_t c)
{
    struct inf_builder *b = &s->b;
    uint32_t sum = inf_tflite_project(s, x, cell->x[gate], INF_VALUE_NONE);
    sum = inf_tflite_project(s, cell->hidden_state, cell->recurrent[gate], sum);
    if (auxiliary != INF_VALUE_NONE && cell->auxiliary[gate] != INF_VALUE_NONE)
        sum = inf_tflite_project(s, auxiliary, cell->auxiliary[gate], sum);
    if (cell->peephole[gate] != INF_VALUE_NONE)
        sum = inf_build_add(b, sum, inf_build_mul(b, c, cell->peephole[gate]));
    if (cell->norm[gate] == INF_VALUE_NONE)
        return inf_build_add(b, sum, cell->bias[gate]);
    sum = inf_tflite_round_to(s, sum, cell->sum_types[gate]);
    struct inf_build_node node =
        inf_build_describe(INF_OP_NORMALIZE, sum, cell->norm[gate], cell->bias[gate]);
    node.attrs.normalize.axes = (struct inf_ints){.count = 1, .values = {-1}};
    node.attrs.normalize.epsilon = NORM_EPSILON;
    return inf_build_value(b, &node);
}

// Adds one time step: changes the states of the cell, and returns the output.
static uint32_t add_step(struct inf_tflite_scope *s, struct cell *cell, uint32_t x,
                         uint32_t auxiliary)
{
    struct inf_builder *b = &s->b;
    uint32_t c = cell->cell_state, i;
    uint32_t f =
        inf_build_unary(b, INF_UNARY_SIGMOID, add_gate(s, cell, GATE_FORGET, x, auxiliary, c));
    if (cell->x[GATE_INPUT] != INF_VALUE_NONE)
        i = inf_build_unary(b, INF_UNARY_SIGMOID, add_gate(s, cell, GATE_INPUT, x, auxiliary, c));
    else
        i = inf_build_sub(b, inf_build_scalar(b, INF_DTYPE_F32, 1), f);
    uint32_t g = inf_tflite_activate_real(s, add_gate(s, cell, GATE_CELL, x, auxiliary, c),
                                          cell->activation);
    c = inf_build_add(b, inf_build_mul(b, f, c), inf_build_mul(b, i, g));
    c = inf_tflite_round_to(s, add_clip(b, c, cell->cell_clip), cell->cell_type);
    uint32_t o =
        inf_build_unary(b, INF_UNARY_SIGMOID, add_gate(s, cell, GATE_OUTPUT, x, auxiliary, c));
    uint32_t h = inf_build_mul(b, o, inf_tflite_activate_real(s, c, cell->activation));
    h = add_result(b, cell, h);
    if (cell->projection != INF_VALUE_NONE)
        h = add_clip(b, inf_tflite_project(s, h, cell->projection, cell->projection_bias),
                     cell->projection_clip);
    cell->cell_state = c;
    cell->hidden_state = inf_tflite_round_to(s, h, cell->hidden_type);
    return cell->hidden_state;
}

// Keeps the states of a cell for the next run.
static void keep_states(struct inf_tflite_scope *s, const struct cell *cell)
{
    inf_tflite_variable_set(s, cell->hidden_index, cell->hidden_state);
    inf_tflite_variable_set(s, cell->cell_index, cell->cell_state);
}

// Runs a cell over a sequence, and returns the outputs as a sequence of its own.
static struct inf_tflite_sequence run_cell(struct inf_tflite_scope *s, struct cell *cell,
                                           const struct inf_tflite_sequence *x,
                                           const struct inf_tflite_sequence *auxiliary,
                                           bool backwards)
{
    struct inf_tflite_sequence y = {
        .steps = inf_arena_alloc(s->import->arena, ((size_t)x->count + 1) * sizeof *y.steps),
        .count = x->count};
    if (y.steps == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for %u time steps", x->count);
    for (uint32_t n = 0; inf_build_ok(&s->b) && n < x->count; n++) {
        uint32_t at = backwards ? x->count - 1 - n : n;
        y.steps[at] = add_step(s, cell, x->steps[at],
                               auxiliary != NULL ? auxiliary->steps[at] : INF_VALUE_NONE);
    }
    keep_states(s, cell);
    return y;
}

static const struct places forward_places = {.x = 1,
                                             .recurrent = 5,
                                             .peephole = 9,
                                             .bias = 12,
                                             .projection = 16,
                                             .hidden = 18,
                                             .cell = 19,
                                             .norm = 20};

// The old cell of kernel type BASIC, whose states are inputs and outputs: x and h are joined, and
// one product gives the gates i, g, f and o. Its outputs are h, c and two intermediate results.
static void lower_basic(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t gates[GATES];
    for (uint32_t i = 0; i < 5; i++)
        if (!inf_tflite_has_input(s, i))
            inf_build_fail(b, INF_INVALID, "lacks input %u", i);
    uint32_t joined =
        inf_build_concat(b, (uint32_t[]){inf_tflite_real(s, 0), inf_tflite_real(s, 1)}, 2, 1);
    uint32_t sums = inf_tflite_project(s, joined, inf_tflite_weight(s, 2), inf_tflite_weight(s, 3));
    struct inf_build_node node =
        inf_build_describe(INF_OP_SPLIT, sums, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.split.axis = 1;
    node.output_count = GATES;
    inf_build_emit(b, &node, gates);
    for (uint32_t i = 0; i < GATES; i++)
        gates[i] = inf_build_unary(b, i == 1 ? INF_UNARY_TANH : INF_UNARY_SIGMOID, gates[i]);
    uint32_t c = inf_build_add(b, inf_build_mul(b, gates[0], gates[1]),
                               inf_build_mul(b, gates[2], inf_tflite_real(s, 4)));
    s->outputs[0] = inf_build_mul(b, gates[3], inf_build_unary(b, INF_UNARY_TANH, c));
    s->outputs[1] = c;
    s->outputs[2] = joined;
    s->outputs[3] = sums;
}

static void lower_lstm(struct inf_tflite_scope *s)
{
    if (inf_tflite_option(s, INF_FB_I8, 3, "kernel_type", 0) != 0) {
        lower_basic(s);
        return;
    }
    if (s->op->outputs.count > 1)
        inf_build_fail(&s->b, INF_INVALID, "has %u outputs, wanted 1", s->op->outputs.count);
    struct cell cell = read_cell(s, &forward_places);
    s->outputs[0] = add_step(s, &cell, inf_tflite_real(s, 0), INF_VALUE_NONE);
    keep_states(s, &cell);
}

static void lower_sequence(struct inf_tflite_scope *s)
{
    bool time_major = inf_tflite_option_bool(s, 3, "time_major");
    if (inf_tflite_option_bool(s, 5, "diagonal_recurrent_tensors"))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has diagonal recurrent weights");
    struct cell cell = read_cell(s, &forward_places);
    struct inf_tflite_sequence x = inf_tflite_sequence_cut(s, 0, time_major);
    struct inf_tflite_sequence y = run_cell(s, &cell, &x, NULL, false);
    s->outputs[0] = inf_tflite_sequence_join(s, &y, time_major);
}

// The second input, if there is one, has weights in each direction; without them, it is the input
// of the backward cell.
static void lower_bidirectional(struct inf_tflite_scope *s)
{
    static const struct places forward = {.x = 1,
                                          .recurrent = 5,
                                          .peephole = 9,
                                          .bias = 12,
                                          .projection = 16,
                                          .hidden = 35,
                                          .cell = 36};
    static const struct places backward = {.x = 18,
                                           .recurrent = 22,
                                           .peephole = 26,
                                           .bias = 29,
                                           .projection = 33,
                                           .hidden = 37,
                                           .cell = 38};
    bool merge = inf_tflite_option_bool(s, 3, "merge_outputs");
    bool time_major = inf_tflite_option(s, INF_FB_BOOL, 4, "time_major", 1) != 0;
    bool has_auxiliary = inf_tflite_has_input(s, 39), has_weights = inf_tflite_has_input(s, 41);
    struct cell cells[2] = {read_cell(s, &forward), read_cell(s, &backward)};
    struct inf_tflite_sequence x = inf_tflite_sequence_cut(s, 0, time_major), auxiliary = {0}, y[2];
    if (has_auxiliary)
        auxiliary = inf_tflite_sequence_cut(s, 39, time_major);
    if (has_auxiliary && inf_build_ok(&s->b) && auxiliary.count != x.count)
        inf_build_fail(&s->b, INF_INVALID, "its inputs have %u and %u time steps", x.count,
                       auxiliary.count);
    for (uint32_t i = 0; has_weights && i < GATES; i++) {
        cells[0].auxiliary[i] = inf_tflite_weight(s, 40 + i);
        cells[1].auxiliary[i] = inf_tflite_weight(s, 44 + i);
    }
    const struct inf_tflite_sequence *second = has_auxiliary && has_weights ? &auxiliary : NULL;
    y[0] = run_cell(s, &cells[0], &x, second, false);
    y[1] = run_cell(s, &cells[1], has_auxiliary && !has_weights ? &auxiliary : &x, second, true);
    uint32_t results[2];
    for (int i = 0; i < 2; i++)
        results[i] = inf_tflite_sequence_join(s, &y[i], time_major);
    s->outputs[0] = merge ? inf_build_concat(&s->b, results, 2, 2) : results[0];
    s->outputs[1] = merge ? INF_VALUE_NONE : results[1];
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_LSTM, NULL, lower_lstm, 5, 24, 4, INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_LSTM, 0,
     true},
    {INF_TFLITE_UNIDIRECTIONAL_SEQUENCE_LSTM, NULL, lower_sequence, 20, 24, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_UNIDIRECTIONAL_SEQUENCE_LSTM, 0, true},
    {INF_TFLITE_BIDIRECTIONAL_SEQUENCE_LSTM, NULL, lower_bidirectional, 39, 48, 2,
     INF_TFLITE_MODE_REAL, INF_TFLITE_OPTIONS_BIDIRECTIONAL_SEQUENCE_LSTM, 0, true},
};

const struct inf_tflite_op_table inf_tflite_ops_lstm = {ops, INF_ARRAY_LENGTH(ops)};
