// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The operator RNN takes ONNX's weights, gates and states without conversion.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

enum input {
    X,
    LENGTHS = 4,
    HIDDEN,
    CELL,
    INPUTS = 8
};

// Number of activations in one direction, by kind of layer.
static const int32_t activation_counts[] = {
    [INF_RNN_LSTM] = 3, [INF_RNN_GRU] = 2, [INF_RNN_SIMPLE] = 1};

static enum inf_unary_kind find_activation(struct inf_onnx_scope *s, const char *name)
{
    static const struct {
        const char *name;
        enum inf_unary_kind kind;
    } known[] = {{"Sigmoid", INF_UNARY_SIGMOID},
                 {"Tanh", INF_UNARY_TANH},
                 {"Relu", INF_UNARY_RELU},
                 {"Softplus", INF_UNARY_SOFTPLUS},
                 {"Softsign", INF_UNARY_SOFTSIGN}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(known); i++)
        if (strcasecmp(known[i].name, name) == 0)
            return known[i].kind;
    inf_build_fail(&s->b, INF_UNSUPPORTED, "activation '%.40s'", name);
    return INF_UNARY_TANH;
}

// Reads the activations. Absent ones get the operator's defaults.
static void read_activations(struct inf_onnx_scope *s, struct inf_attrs_rnn *attrs)
{
    const struct inf_onnx_attr *attr = inf_onnx_find_attr(s, "activations");
    int32_t directions = attrs->direction == INF_DIRECTION_BIDIRECTIONAL ? 2 : 1;
    int32_t wanted = directions * activation_counts[attrs->kind];
    struct inf_pb_field field;
    bool more;
    int32_t count = 0;
    if (attr == NULL)
        return;
    struct inf_pb pb = {attr->body};
    while (inf_build_ok(&s->b) && inf_pb_next(&pb, &field, &more, NULL) == INF_OK && more) {
        const char *name = "";
        if (field.number != 9)
            continue;
        s->b.code = inf_onnx_text(&name, s->import->arena, field.bytes, s->b.err);
        if (inf_build_ok(&s->b) && count < wanted)
            attrs->activations.values[count] = find_activation(s, name);
        count++;
    }
    if (inf_build_ok(&s->b) && count != wanted)
        inf_build_fail(&s->b, INF_INVALID, "has %d activations, wanted %d", count, wanted);
    attrs->activations.count = wanted;
}

static enum inf_direction read_direction(struct inf_onnx_scope *s)
{
    static const char *const names[INF_DIRECTION_COUNT] = {[INF_DIRECTION_FORWARD] = "forward",
                                                           [INF_DIRECTION_REVERSE] = "reverse",
                                                           [INF_DIRECTION_BIDIRECTIONAL] =
                                                               "bidirectional"};
    const char *given = inf_onnx_attr_text(s, "direction", "forward");
    for (int i = 0; i < INF_DIRECTION_COUNT; i++)
        if (strcmp(names[i], given) == 0)
            return (enum inf_direction)i;
    inf_build_fail(&s->b, INF_INVALID, "direction '%.40s'", given);
    return INF_DIRECTION_FORWARD;
}

static uint32_t swap_first_axes(struct inf_onnx_scope *s, uint32_t value)
{
    return value == INF_VALUE_NONE ? value
                                   : inf_build_transpose(&s->b, value, (int64_t[]){1, 0, 2}, 3);
}

// Converts inputs of layout 1 (batch first), in which x is [batch, steps, input] and states are
// [batch, directions, hidden].
static void swap_inputs(struct inf_onnx_scope *s, uint32_t inputs[INPUTS])
{
    inputs[X] = swap_first_axes(s, inputs[X]);
    inputs[HIDDEN] = swap_first_axes(s, inputs[HIDDEN]);
    inputs[CELL] = swap_first_axes(s, inputs[CELL]);
}

static void lower_layer(struct inf_onnx_scope *s)
{
    uint32_t inputs[INPUTS];
    uint32_t outputs[3];
    bool lstm = s->op->kind == INF_RNN_LSTM;
    bool batch_first = inf_onnx_attr_int(s, "layout", 0) != 0;
    for (uint32_t i = 0; i < INPUTS; i++)
        inputs[i] = inf_onnx_input(s, i);
    if (inf_build_rank(&s->b, inputs[X]) != 3)
        inf_build_fail(&s->b, INF_INVALID, "x is not of rank 3");
    if (inf_build_ok(&s->b) && batch_first)
        swap_inputs(s, inputs);
    struct inf_build_node node = inf_build_describe_list(INF_OP_RNN, inputs, lstm ? INPUTS : CELL);
    struct inf_attrs_rnn *attrs = &node.attrs.rnn;
    node.output_count = lstm ? 3 : 2;
    attrs->kind = (enum inf_rnn_kind)s->op->kind;
    attrs->direction = read_direction(s);
    attrs->clip = inf_onnx_attr_float(s, "clip", 0);
    attrs->linear_before_reset =
        attrs->kind == INF_RNN_GRU && inf_onnx_attr_int(s, "linear_before_reset", 0) != 0;
    attrs->input_forget = lstm && inf_onnx_attr_int(s, "input_forget", 0) != 0;
    (void)inf_onnx_find_attr(s, "output_sequence");
    (void)inf_onnx_find_attr(s, "hidden_size"); // the shape of R has the same number
    read_activations(s, attrs);
    if (!inf_build_ok(&s->b))
        return;
    inf_build_emit(&s->b, &node, outputs);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->output_count; i++) {
        s->outputs[i] = outputs[i];
        if (batch_first)
            s->outputs[i] = i == 0
                                ? inf_build_transpose(&s->b, outputs[0], (int64_t[]){2, 0, 1, 3}, 4)
                                : swap_first_axes(s, outputs[i]);
    }
}

static const struct inf_onnx_op ops[] = {
    {"RNN", lower_layer, 3, 6, 2, INF_RNN_SIMPLE},
    {"GRU", lower_layer, 3, 6, 2, INF_RNN_GRU},
    {"LSTM", lower_layer, 3, 8, 3, INF_RNN_LSTM},
};

const struct inf_onnx_op_table inf_onnx_ops_rnn = {ops, INF_ARRAY_LENGTH(ops)};
