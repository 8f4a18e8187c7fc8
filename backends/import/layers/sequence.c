// SPDX-License-Identifier: Apache-2.0
// Adds a recurrent layer as one RNN node, and converts the weights. Keras stores weights as
// [features,gates*units] with its own order of gates. The RNN node takes ONNX's layout
// [directions,gates*units,features] and ONNX's order.
#include "backends/import/layers/sequence.h"

#define GATES_MAX 4

// --- setting the attributes of the RNN node ---

// Adds one activation of the cell to the attributes of the RNN node. An RNN node has one alpha and
// one beta for all its activations, so all activations with parameters must have the same ones.
static enum inf_code add_activation(struct inf_layers_scope *scope,
                                    const struct inf_layers_activation *activation,
                                    struct inf_attrs_rnn *attrs, struct inf_error *err)
{
    struct inf_attrs_unary unary;
    if (!inf_layers_activation_is_unary(activation, &unary))
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "an activation is no function of one number, which more time steps "
                               "than are written out want");
    attrs->activations.values[attrs->activations.count++] = unary.kind;
    if (unary.alpha == 0)
        return INF_OK;
    if (attrs->activation_alpha != 0 &&
        (attrs->activation_alpha != unary.alpha || attrs->activation_beta != unary.beta))
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "two activations have parameters of their own, which more time "
                               "steps than are written out cannot have");
    attrs->activation_alpha = unary.alpha;
    attrs->activation_beta = unary.beta;
    return INF_OK;
}

static enum inf_code set_attributes(const struct inf_layers_cell *cell,
                                    struct inf_layers_scope *scope, struct inf_attrs_rnn *attrs,
                                    struct inf_error *err)
{
    attrs->linear_before_reset = cell->reset_after;
    attrs->kind = cell->kind == INF_LAYERS_CELL_LSTM  ? INF_RNN_LSTM
                  : cell->kind == INF_LAYERS_CELL_GRU ? INF_RNN_GRU
                                                      : INF_RNN_SIMPLE;
    // The order of activations is: of the gates, of the new value of the cell and, for an LSTM, of
    // the output.
    if (attrs->kind != INF_RNN_SIMPLE)
        INF_TRY(add_activation(scope, cell->recurrent_activation, attrs, err));
    INF_TRY(add_activation(scope, cell->activation, attrs, err));
    return attrs->kind == INF_RNN_LSTM ? add_activation(scope, cell->activation, attrs, err)
                                       : INF_OK;
}

bool inf_layers_sequence_has(const struct inf_layers_cell *cell, struct inf_layers_scope *scope)
{
    union inf_attrs attrs;
    inf_attrs_init(&attrs, INF_OP_RNN);
    return set_attributes(cell, scope, &attrs.rnn, NULL) == INF_OK;
}

// --- converting the weights to the layout of the RNN node ---

static enum inf_code add_concat(struct inf_layers_scope *scope, const uint32_t *parts,
                                uint32_t count, int32_t axis, uint32_t *out_value,
                                struct inf_error *err)
{
    struct inf_build_node node = {.op = INF_OP_CONCAT, .list = parts, .input_count = count};
    inf_attrs_init(&node.attrs, node.op);
    node.attrs.concat.axis = axis;
    return inf_layers_emit(scope, &node, out_value, err);
}

// Reorders the gates of an LSTM from in, forget, cell, out to in, out, forget, cell. Other cells
// keep their order.
static enum inf_code order_gates(const struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                 uint32_t x, uint32_t *out_value, struct inf_error *err)
{
    uint32_t gates[GATES_MAX];
    struct inf_build_node split =
        inf_build_describe(INF_OP_SPLIT, x, INF_VALUE_NONE, INF_VALUE_NONE);
    *out_value = x;
    if (cell->kind != INF_LAYERS_CELL_LSTM)
        return INF_OK;
    split.attrs.split.axis = -1;
    INF_TRY(inf_layers_emit_many(scope, &split, gates, inf_layers_cell_gates(cell), err));
    const uint32_t ordered[] = {gates[0], gates[3], gates[1], gates[2]};
    return add_concat(scope, ordered, inf_layers_cell_gates(cell), -1, out_value, err);
}

// Converts a matrix [rows,gates*units] to [1,gates*units,rows].
static enum inf_code convert_matrix(const struct inf_layers_cell *cell,
                                    struct inf_layers_scope *scope, uint32_t x, uint32_t *out_value,
                                    struct inf_error *err)
{
    INF_TRY(order_gates(cell, scope, x, &x, err));
    INF_TRY(inf_layers_transpose(scope, x, (const int64_t[]){1, 0}, &x, err));
    return inf_layers_expand(scope, x, 0, out_value, err);
}

static enum inf_code convert_recurrent(const struct inf_layers_cell *cell,
                                       struct inf_layers_scope *scope, uint32_t *out_value,
                                       struct inf_error *err)
{
    uint32_t whole = cell->recurrent;
    if (cell->kind == INF_LAYERS_CELL_GRU && !cell->reset_after) {
        const uint32_t parts[] = {cell->recurrent, cell->recurrent_last};
        INF_TRY(add_concat(scope, parts, 2, 1, &whole, err));
    }
    return convert_matrix(cell, scope, whole, out_value, err);
}

// Joins the biases of input and state: [1,2*gates*units].
static enum inf_code convert_bias(const struct inf_layers_cell *cell,
                                  struct inf_layers_scope *scope, uint32_t *out_value,
                                  struct inf_error *err)
{
    uint32_t parts[] = {cell->bias, cell->recurrent_bias};
    *out_value = INF_VALUE_NONE;
    if (cell->bias == INF_VALUE_NONE)
        return INF_OK;
    if (parts[1] == INF_VALUE_NONE)
        INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, cell->bias, 0.0f, &parts[1], err));
    for (int i = 0; i < 2; i++)
        INF_TRY(order_gates(cell, scope, parts[i], &parts[i], err));
    INF_TRY(add_concat(scope, parts, 2, 0, out_value, err));
    return inf_layers_expand(scope, *out_value, 0, out_value, err);
}

// --- adding the RNN node ---

// Swaps the first two axes of x.
static enum inf_code swap_first_axes(struct inf_layers_scope *scope, uint32_t x,
                                     uint32_t *out_value, struct inf_error *err)
{
    return inf_layers_transpose(scope, x, (const int64_t[]){1, 0, 2}, out_value, err);
}

enum inf_code inf_layers_sequence_run(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                      uint32_t x, bool backwards, uint32_t *out_value,
                                      struct inf_error *err)
{
    enum {
        X,
        KERNEL,
        RECURRENT,
        BIAS,
        LENGTHS,
        STATES,
        INPUTS = STATES + 2
    };
    uint32_t inputs[INPUTS], outputs[3];
    struct inf_build_node node = {.op = INF_OP_RNN, .list = inputs, .input_count = INPUTS};
    inf_attrs_init(&node.attrs, node.op);
    INF_TRY(set_attributes(cell, scope, &node.attrs.rnn, err));
    INF_TRY(swap_first_axes(scope, x, &inputs[X], err));
    if (backwards) {
        struct inf_build_node turn =
            inf_build_describe(INF_OP_REVERSE, inputs[X], INF_VALUE_NONE, INF_VALUE_NONE);
        turn.attrs.reverse.axes = (struct inf_ints){.count = 1, .values = {0}};
        INF_TRY(inf_layers_emit(scope, &turn, &inputs[X], err));
    }
    INF_TRY(convert_matrix(cell, scope, cell->kernel, &inputs[KERNEL], err));
    INF_TRY(convert_recurrent(cell, scope, &inputs[RECURRENT], err));
    INF_TRY(convert_bias(cell, scope, &inputs[BIAS], err));
    inputs[LENGTHS] = inputs[STATES] = inputs[STATES + 1] = INF_VALUE_NONE;
    for (uint32_t i = 0; i < cell->state_count && cell->states[i] != INF_VALUE_NONE; i++)
        INF_TRY(swap_first_axes(scope, cell->states[i], &inputs[STATES + i], err));
    INF_TRY(inf_layers_emit_many(scope, &node, outputs, 1 + cell->state_count, err));
    for (uint32_t i = 0; i < cell->state_count; i++)
        INF_TRY(swap_first_axes(scope, outputs[1 + i], &cell->states[i], err));
    INF_TRY(inf_layers_squeeze(scope, outputs[0], 1, out_value, err));
    return swap_first_axes(scope, *out_value, out_value, err);
}
