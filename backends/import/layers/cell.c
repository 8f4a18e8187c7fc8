// SPDX-License-Identifier: Apache-2.0
// The cells of recurrent layers (LSTM, GRU, simple): reads their weights and adds one time step. A
// state that is still zero is INF_VALUE_NONE, and its products are omitted.
#include "backends/import/layers/cell.h"

#include <string.h>

uint32_t inf_layers_cell_gates(const struct inf_layers_cell *cell)
{
    return cell->kind == INF_LAYERS_CELL_LSTM ? 4 : cell->kind == INF_LAYERS_CELL_GRU ? 3 : 1;
}

static enum inf_code read_config(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                 struct inf_error *err)
{
    const struct inf_layers_layer *layer = scope->layer;
    *cell = (struct inf_layers_cell){
        .kind = layer->class != NULL ? (enum inf_layers_cell_kind)layer->class->kind : 0,
        .use_bias = true,
        .state_count = 1,
        .states = {INF_VALUE_NONE, INF_VALUE_NONE},
        .bias = INF_VALUE_NONE,
        .recurrent_bias = INF_VALUE_NONE,
    };
    if (cell->kind < INF_LAYERS_CELL_LSTM || cell->kind > INF_LAYERS_CELL_SIMPLE)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "is no cell that is known: LSTMCell, GRUCell, SimpleRNNCell");
    if (cell->kind == INF_LAYERS_CELL_LSTM)
        cell->state_count = 2;
    INF_TRY(inf_layers_int(&layer->config, "units", 1, 1 << 20, &cell->units, err));
    INF_TRY(inf_layers_bool(&layer->config, "use_bias", &cell->use_bias, err));
    INF_TRY(inf_layers_bool(&layer->config, "reset_after", &cell->reset_after, err));
    INF_TRY(inf_layers_activation_read(scope, "activation", "tanh", &cell->activation, err));
    INF_TRY(inf_layers_activation_read(scope, "recurrent_activation", "hard_sigmoid",
                                       &cell->recurrent_activation, err));
    if (cell->units == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its units");
    return INF_OK;
}

// Adds columns from..to-1 of a matrix as a constant.
static enum inf_code add_columns(struct inf_layers_scope *scope, const struct inf_weight *weight,
                                 int64_t from, int64_t to, uint32_t *out_value,
                                 struct inf_error *err)
{
    int64_t rows = weight->shape.dims[0], columns = weight->shape.dims[1], count = to - from;
    struct inf_blob *data = inf_blob_create((size_t)(rows * count) * sizeof(float));
    if (data == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for part of '%.180s'",
                               weight->name);
    for (int64_t i = 0; i < rows; i++)
        memcpy((float *)data->data + i * count,
               (const float *)weight->data->data + i * columns + from,
               (size_t)count * sizeof(float));
    return inf_graph_add_const(scope->context->graph, weight->name, INF_DTYPE_F32,
                               &INF_SHAPE(rows, count), data, out_value, err);
}

// Adds row `row` of a matrix as a constant [columns].
static enum inf_code add_row(struct inf_layers_scope *scope, const struct inf_weight *weight,
                             int64_t row, uint32_t *out_value, struct inf_error *err)
{
    int64_t columns = weight->shape.dims[1];
    return inf_layers_add_floats(scope, (const float *)weight->data->data + row * columns,
                                 (uint32_t)columns, out_value, err);
}

// Reads the weights of a GRU. With reset_after, the reset gate is applied after the product of the
// last gate, and the state has its own bias.
static enum inf_code read_gru(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                              struct inf_error *err)
{
    const struct inf_weight *recurrent, *bias;
    int64_t units = cell->units;
    struct inf_shape want = INF_SHAPE(units, 3 * units);
    if (cell->reset_after) {
        INF_TRY(inf_layers_weight(scope, "recurrent_kernel", &want, NULL, &cell->recurrent, err));
    } else {
        INF_TRY(inf_layers_weight_data(scope, "recurrent_kernel", &want, &recurrent, err));
        INF_TRY(add_columns(scope, recurrent, 0, 2 * units, &cell->recurrent, err));
        INF_TRY(add_columns(scope, recurrent, 2 * units, 3 * units, &cell->recurrent_last, err));
    }
    if (!cell->use_bias)
        return INF_OK;
    if (!cell->reset_after)
        return inf_layers_weight(scope, "bias", &INF_SHAPE(3 * units), NULL, &cell->bias, err);
    INF_TRY(inf_layers_weight_data(scope, "bias", &INF_SHAPE(2, 3 * units), &bias, err));
    INF_TRY(add_row(scope, bias, 0, &cell->bias, err));
    return add_row(scope, bias, 1, &cell->recurrent_bias, err);
}

enum inf_code inf_layers_cell_read(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                   struct inf_error *err)
{
    INF_TRY(read_config(cell, scope, err));
    int64_t columns = (int64_t)inf_layers_cell_gates(cell) * cell->units;
    INF_TRY(inf_layers_weight(scope, "kernel", &INF_SHAPE(INF_DIM_UNKNOWN, columns), NULL,
                              &cell->kernel, err));
    if (cell->kind == INF_LAYERS_CELL_GRU)
        return read_gru(cell, scope, err);
    INF_TRY(inf_layers_weight(scope, "recurrent_kernel", &INF_SHAPE(cell->units, columns), NULL,
                              &cell->recurrent, err));
    if (!cell->use_bias)
        return INF_OK;
    return inf_layers_weight(scope, "bias", &INF_SHAPE(columns), NULL, &cell->bias, err);
}

static enum inf_code emit_product(struct inf_layers_scope *scope, uint32_t a, uint32_t b,
                                  uint32_t bias, uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, a, b, bias);
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_cell_project(const struct inf_layers_cell *cell,
                                      struct inf_layers_scope *scope, uint32_t input,
                                      uint32_t *out_value, struct inf_error *err)
{
    return emit_product(scope, input, cell->kernel, cell->bias, out_value, err);
}

// Adds a split of x [batch,1,count*units] into `count` gates [batch,1,units].
static enum inf_code split_gates(struct inf_layers_scope *scope, uint32_t x, uint32_t *gates,
                                 uint32_t count, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_SPLIT, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.split.axis = 2;
    return inf_layers_emit_many(scope, &node, gates, count, err);
}

// Adds activation(a + b), or activation(a) if b is INF_VALUE_NONE.
static enum inf_code emit_gate(struct inf_layers_scope *scope,
                               const struct inf_layers_activation *activation, uint32_t a,
                               uint32_t b, uint32_t *out_value, struct inf_error *err)
{
    if (b != INF_VALUE_NONE)
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, a, b, &a, err));
    return inf_layers_activate(scope, activation, a, out_value, err);
}

static enum inf_code step_simple(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                 uint32_t input, struct inf_error *err)
{
    uint32_t state = cell->states[0];
    if (state != INF_VALUE_NONE)
        INF_TRY(emit_product(scope, state, cell->recurrent, INF_VALUE_NONE, &state, err));
    return emit_gate(scope, cell->activation, input, state, &cell->states[0], err);
}

// Adds one time step of an LSTM. The gates are in, forget, cell, out:
//   c' = forget * c + in * cell, h' = out * activation(c')
static enum inf_code step_lstm(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                               uint32_t input, struct inf_error *err)
{
    uint32_t gates[4], carry, kept;
    if (cell->states[0] != INF_VALUE_NONE) {
        uint32_t state;
        INF_TRY(emit_product(scope, cell->states[0], cell->recurrent, INF_VALUE_NONE, &state, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, input, state, &input, err));
    }
    INF_TRY(split_gates(scope, input, gates, 4, err));
    for (uint32_t i = 0; i < 4; i++)
        INF_TRY(inf_layers_activate(scope, i == 2 ? cell->activation : cell->recurrent_activation,
                                    gates[i], &gates[i], err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, gates[0], gates[2], &carry, err));
    if (cell->states[1] != INF_VALUE_NONE) {
        INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, gates[1], cell->states[1], &kept, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, carry, kept, &carry, err));
    }
    cell->states[1] = carry;
    INF_TRY(inf_layers_activate(scope, cell->activation, carry, &carry, err));
    return inf_layers_binary(scope, INF_BINARY_MUL, gates[3], carry, &cell->states[0], err);
}

// Sets *out to the contribution of the state h to the last gate of a GRU, where R are the weights
// of the state: (reset * h) R, or reset * (h R + bias) if reset_after is set.
static enum inf_code emit_reset(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                uint32_t reset, uint32_t last, uint32_t *out_value,
                                struct inf_error *err)
{
    *out_value = INF_VALUE_NONE;
    if (cell->reset_after) {
        if (last == INF_VALUE_NONE)
            return INF_OK;
        return inf_layers_binary(scope, INF_BINARY_MUL, reset, last, out_value, err);
    }
    if (cell->states[0] == INF_VALUE_NONE)
        return INF_OK;
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, reset, cell->states[0], out_value, err));
    return emit_product(scope, *out_value, cell->recurrent_last, INF_VALUE_NONE, out_value, err);
}

// Sets gates[] to the contributions of the state to the gates; INF_VALUE_NONE for zeros.
static enum inf_code emit_gru_state(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                    uint32_t gates[3], struct inf_error *err)
{
    uint32_t state = cell->states[0];
    gates[0] = gates[1] = gates[2] = INF_VALUE_NONE;
    if (state != INF_VALUE_NONE) {
        INF_TRY(emit_product(scope, state, cell->recurrent, cell->recurrent_bias, &state, err));
    } else if (cell->recurrent_bias != INF_VALUE_NONE) {
        // The state is zero, so only its bias [3*units] is added, reshaped to [1,1,3*units].
        INF_TRY(inf_layers_expand(scope, cell->recurrent_bias, 0, &state, err));
        INF_TRY(inf_layers_expand(scope, state, 0, &state, err));
    } else {
        return INF_OK;
    }
    return split_gates(scope, state, gates, cell->reset_after ? 3 : 2, err);
}

// Adds one time step of a GRU. Its gates, in the order of the weights, are the update gate, the
// reset gate and the candidate state:
//   h' = update * h + (1 - update) * candidate
static enum inf_code step_gru(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                              uint32_t input, struct inf_error *err)
{
    uint32_t gates[3], state[3], update, reset, last, rest, one, kept;
    INF_TRY(split_gates(scope, input, gates, 3, err));
    INF_TRY(emit_gru_state(cell, scope, state, err));
    INF_TRY(emit_gate(scope, cell->recurrent_activation, gates[0], state[0], &update, err));
    INF_TRY(emit_gate(scope, cell->recurrent_activation, gates[1], state[1], &reset, err));
    INF_TRY(emit_reset(cell, scope, reset, state[2], &last, err));
    INF_TRY(emit_gate(scope, cell->activation, gates[2], last, &last, err));
    INF_TRY(inf_layers_add_float(scope, 1.0f, &one, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_SUB, one, update, &rest, err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, rest, last, &rest, err));
    if (cell->states[0] != INF_VALUE_NONE) {
        INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, update, cell->states[0], &kept, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, kept, rest, &rest, err));
    }
    cell->states[0] = rest;
    return INF_OK;
}

enum inf_code inf_layers_cell_step(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                   uint32_t input, struct inf_error *err)
{
    switch (cell->kind) {
    case INF_LAYERS_CELL_LSTM:
        return step_lstm(cell, scope, input, err);
    case INF_LAYERS_CELL_GRU:
        return step_gru(cell, scope, input, err);
    default:
        return step_simple(cell, scope, input, err);
    }
}
