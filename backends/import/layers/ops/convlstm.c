// SPDX-License-Identifier: Apache-2.0
// ConvLSTM2D: an LSTM whose products are convolutions. One convolution computes the contribution of
// the inputs for all time steps. The contribution of the state needs one convolution for each step.
#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

// The largest number of time steps of one layer.
#define TIME_MAX 1024

struct conv_lstm {
    int32_t filters, kernel[2], strides[2], dilation[2];
    bool first, is_same, use_bias, return_sequences, return_state, backwards;
    int64_t time;
    const struct inf_layers_activation *activation, *recurrent_activation;
    uint32_t recurrent; // filter of the convolution that is applied to the state
    uint32_t state, carry;
};

static enum inf_code read_flags(struct inf_layers_scope *scope, struct conv_lstm *lstm,
                                struct inf_error *err)
{
    const struct inf_json *config = &scope->layer->config;
    bool stateful = false;
    INF_TRY(inf_layers_bool(config, "stateful", &stateful, err));
    if (stateful)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "is stateful");
    lstm->use_bias = true;
    INF_TRY(inf_layers_bool(config, "use_bias", &lstm->use_bias, err));
    INF_TRY(inf_layers_bool(config, "return_sequences", &lstm->return_sequences, err));
    INF_TRY(inf_layers_bool(config, "return_state", &lstm->return_state, err));
    INF_TRY(inf_layers_bool(config, "go_backwards", &lstm->backwards, err));
    INF_TRY(inf_layers_activation_read(scope, "activation", "tanh", &lstm->activation, err));
    return inf_layers_activation_read(scope, "recurrent_activation", "hard_sigmoid",
                                      &lstm->recurrent_activation, err);
}

static enum inf_code read_conv_lstm(struct inf_layers_scope *scope, struct conv_lstm *lstm,
                                    struct inf_error *err)
{
    static const struct inf_layers_range range = {1, 65535};
    static const char *const paddings[] = {"valid", "same", NULL};
    const struct inf_json *config = &scope->layer->config;
    int32_t padding = 0;
    *lstm = (struct conv_lstm){
        .strides = {1, 1}, .dilation = {1, 1}, .state = INF_VALUE_NONE, .carry = INF_VALUE_NONE};
    INF_TRY(inf_layers_require_rank(scope, 5, err));
    INF_TRY(inf_layers_int(config, "filters", 1, 1 << 22, &lstm->filters, err));
    INF_TRY(inf_layers_ints(config, "kernel_size", range, lstm->kernel, 2, err));
    INF_TRY(inf_layers_ints(config, "strides", range, lstm->strides, 2, err));
    INF_TRY(inf_layers_ints(config, "dilation_rate", range, lstm->dilation, 2, err));
    INF_TRY(inf_layers_choice(config, "padding", paddings, &padding, err));
    INF_TRY(inf_layers_channels_first(scope, &lstm->first, err));
    INF_TRY(read_flags(scope, lstm, err));
    lstm->is_same = padding == 1;
    if (lstm->filters == 0 || lstm->kernel[0] == 0)
        return inf_layers_fail(scope, err, INF_INVALID,
                               "does not say its filters and its kernel_size");
    lstm->time = inf_layers_shape_of(scope, inf_layers_x(scope))->dims[1];
    if (lstm->time < 1 || lstm->time > TIME_MAX)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "its input has %lld time steps (-1: not known), wanted 1 to %d",
                               (long long)lstm->time, TIME_MAX);
    if (scope->inputs[0].mask != INF_VALUE_NONE)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "its input is masked");
    return INF_OK;
}

// Adds a transpose of x [batch,time,...] that moves the channels to the last axis, or from there
// back to axis 2.
static enum inf_code convert_layout(struct inf_layers_scope *scope, bool to_last, uint32_t x,
                                    uint32_t *out_value, struct inf_error *err)
{
    static const int64_t last[] = {0, 1, 3, 4, 2}, first[] = {0, 1, 4, 2, 3};
    return inf_layers_transpose(scope, x, to_last ? last : first, out_value, err);
}

// Adds a reshape of x, which has five axes, from [batch,time,...] to [batch*time,...].
static enum inf_code join_steps(struct inf_layers_scope *scope, uint32_t x, uint32_t *out_value,
                                struct inf_error *err)
{
    const struct inf_layers_dim dims[] = {
        inf_layers_dim_fixed(-1),
        inf_layers_dim_of(x, 2),
        inf_layers_dim_of(x, 3),
        inf_layers_dim_of(x, 4),
    };
    return inf_layers_reshape(scope, x, dims, INF_ARRAY_LENGTH(dims), out_value, err);
}

// Adds the convolution of the inputs of all time steps with the filters of all gates. The result is
// [batch,time,h,w,4*filters].
static enum inf_code add_projection(struct inf_layers_scope *scope, const struct conv_lstm *lstm,
                                    uint32_t *out_value, struct inf_error *err)
{
    uint32_t x = inf_layers_x(scope), y;
    if (lstm->first)
        INF_TRY(convert_layout(scope, true, x, &x, err));
    int64_t channels = inf_layers_shape_of(scope, x)->dims[4];
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV2D, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(join_steps(scope, x, &node.inputs[0], err));
    INF_TRY(inf_layers_weight(
        scope, "kernel",
        &INF_SHAPE(lstm->kernel[0], lstm->kernel[1], channels, 4 * (int64_t)lstm->filters), NULL,
        &node.inputs[1], err));
    node.input_count = 2;
    if (lstm->use_bias)
        INF_TRY(inf_layers_weight(scope, "bias", &INF_SHAPE(4 * (int64_t)lstm->filters), NULL,
                                  &node.inputs[node.input_count++], err));
    struct inf_attrs_conv2d *attrs = &node.attrs.conv2d;
    attrs->stride_h = lstm->strides[0];
    attrs->stride_w = lstm->strides[1];
    attrs->dilation_h = lstm->dilation[0];
    attrs->dilation_w = lstm->dilation[1];
    attrs->padding = lstm->is_same ? INF_PADDING_SAME : INF_PADDING_VALID;
    INF_TRY(inf_layers_emit(scope, &node, &y, err));
    const struct inf_layers_dim dims[] = {
        inf_layers_dim_fixed(-1), inf_layers_dim_fixed(lstm->time), inf_layers_dim_of(y, 1),
        inf_layers_dim_of(y, 2),  inf_layers_dim_of(y, 3),
    };
    return inf_layers_reshape(scope, y, dims, INF_ARRAY_LENGTH(dims), out_value, err);
}

static enum inf_code add_split(struct inf_layers_scope *scope, uint32_t x, int32_t axis,
                               uint32_t *out_values, uint32_t count, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_SPLIT, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.split.axis = axis;
    return inf_layers_emit_many(scope, &node, out_values, count, err);
}

// Adds one time step. The gates are in, forget, cell, out: c' = forget * c + in * cell, h' = out *
// activation(c'). `input` is [batch,h,w,4*filters].
static enum inf_code add_step(struct inf_layers_scope *scope, struct conv_lstm *lstm,
                              uint32_t input, struct inf_error *err)
{
    uint32_t gates[4], carry, kept, state;
    if (lstm->state != INF_VALUE_NONE) {
        struct inf_build_node node =
            inf_build_describe(INF_OP_CONV2D, lstm->state, lstm->recurrent, INF_VALUE_NONE);
        node.attrs.conv2d.padding = INF_PADDING_SAME;
        INF_TRY(inf_layers_emit(scope, &node, &state, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, input, state, &input, err));
    }
    INF_TRY(add_split(scope, input, 3, gates, 4, err));
    for (uint32_t i = 0; i < 4; i++)
        INF_TRY(inf_layers_activate(scope, i == 2 ? lstm->activation : lstm->recurrent_activation,
                                    gates[i], &gates[i], err));
    INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, gates[0], gates[2], &carry, err));
    if (lstm->carry != INF_VALUE_NONE) {
        INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, gates[1], lstm->carry, &kept, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, carry, kept, &carry, err));
    }
    lstm->carry = carry;
    INF_TRY(inf_layers_activate(scope, lstm->activation, carry, &carry, err));
    return inf_layers_binary(scope, INF_BINARY_MUL, gates[3], carry, &lstm->state, err);
}

// Adds all time steps. Sets outputs[] to their results in the order of computation.
static enum inf_code add_steps(struct inf_layers_scope *scope, struct conv_lstm *lstm,
                               uint32_t *outputs, struct inf_error *err)
{
    uint32_t x, count = (uint32_t)lstm->time;
    uint32_t *inputs = inf_arena_alloc(scope->context->arena, count * sizeof *inputs);
    if (inputs == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for %u time steps", count);
    INF_TRY(inf_layers_spend(scope, (uint64_t)count, err));
    INF_TRY(add_projection(scope, lstm, &x, err));
    INF_TRY(add_split(scope, x, 1, inputs, count, err));
    INF_TRY(inf_layers_weight(
        scope, "recurrent_kernel",
        &INF_SHAPE(lstm->kernel[0], lstm->kernel[1], lstm->filters, 4 * (int64_t)lstm->filters),
        NULL, &lstm->recurrent, err));
    for (uint32_t i = 0; i < count; i++) {
        INF_TRY(inf_layers_squeeze(scope, inputs[lstm->backwards ? count - 1 - i : i], 1, &x, err));
        INF_TRY(add_step(scope, lstm, x, err));
        outputs[i] = lstm->state;
    }
    return INF_OK;
}

// Makes the layer's output: all steps along axis 1, or the last step.
static enum inf_code finish_output(struct inf_layers_scope *scope, const struct conv_lstm *lstm,
                                   uint32_t *outputs, uint32_t *out_value, struct inf_error *err)
{
    uint32_t count = (uint32_t)lstm->time;
    if (!lstm->return_sequences)
        return inf_layers_from_last(scope, lstm->first, outputs[count - 1], out_value, err);
    for (uint32_t i = 0; i < count; i++)
        INF_TRY(inf_layers_expand(scope, outputs[i], 1, &outputs[i], err));
    struct inf_build_node node = {.op = INF_OP_CONCAT, .list = outputs, .input_count = count};
    inf_attrs_init(&node.attrs, node.op);
    node.attrs.concat.axis = 1;
    INF_TRY(inf_layers_emit(scope, &node, out_value, err));
    return lstm->first ? convert_layout(scope, false, *out_value, out_value, err) : INF_OK;
}

static enum inf_code lower_conv_lstm(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct conv_lstm lstm;
    uint32_t value;
    INF_TRY(read_conv_lstm(scope, &lstm, err));
    uint32_t *outputs = inf_arena_alloc(scope->context->arena, (size_t)lstm.time * sizeof *outputs);
    if (outputs == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for its outputs");
    INF_TRY(add_steps(scope, &lstm, outputs, err));
    INF_TRY(finish_output(scope, &lstm, outputs, &value, err));
    INF_TRY(inf_layers_outputs(scope, lstm.return_state ? 3 : 1, err));
    scope->result.items[0].value = value;
    if (!lstm.return_state)
        return INF_OK;
    INF_TRY(
        inf_layers_from_last(scope, lstm.first, lstm.state, &scope->result.items[1].value, err));
    return inf_layers_from_last(scope, lstm.first, lstm.carry, &scope->result.items[2].value, err);
}

static const struct inf_layers_class classes[] = {
    {"ConvLSTM2D", lower_conv_lstm, 1, 1, 0, false},
};

const struct inf_layers_class_table inf_layers_classes_conv_lstm = {classes,
                                                                    INF_ARRAY_LENGTH(classes)};
