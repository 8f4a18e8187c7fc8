// SPDX-License-Identifier: Apache-2.0
// Convolutions. Convolutions along one axis are computed on images with a height of one pixel.
#include <string.h>

#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

// Kinds of convolution classes; each is a bit of inf_layers_class.kind.
enum {
    ONE_AXIS = 1,
    DEPTHWISE = 2,
    SEPARABLE = 4,
    TRANSPOSED = 8,
};

enum {
    PADDING_VALID,
    PADDING_SAME,
    PADDING_CAUSAL,
};

struct conv {
    bool one_axis, first, use_bias;
    int32_t kernel[2], strides[2], dilation[2]; // for height and width
    int32_t filters, groups, padding;
    // depth multiplier; -1: the file has none, and the weights' shape determines it
    int32_t multiplier;
    int64_t channels;
};

// Reads one or two integers. If there is one axis, the integer is for the width.
static enum inf_code read_pair(const struct inf_layers_scope *scope, const char *key, bool one_axis,
                               int32_t pair[2], struct inf_error *err)
{
    static const struct inf_layers_range range = {1, 65535};
    return inf_layers_ints(&scope->layer->config, key, range, one_axis ? &pair[1] : pair,
                           one_axis ? 1 : 2, err);
}

static enum inf_code read_conv(struct inf_layers_scope *scope, struct conv *conv,
                               struct inf_error *err)
{
    static const char *const paddings[] = {"valid", "same", "causal", NULL};
    const struct inf_json *config = &scope->layer->config;
    int32_t kind = scope->layer->class->kind;
    *conv = (struct conv){
        .one_axis = kind & ONE_AXIS,
        .use_bias = true,
        .strides = {1, 1},
        .dilation = {1, 1},
        .multiplier = -1,
        .groups = 1,
    };
    if (conv->one_axis)
        conv->kernel[0] = 1;
    INF_TRY(inf_layers_require_rank(scope, conv->one_axis ? 3 : 4, err));
    INF_TRY(read_pair(scope, "kernel_size", conv->one_axis, conv->kernel, err));
    INF_TRY(read_pair(scope, "strides", conv->one_axis, conv->strides, err));
    INF_TRY(read_pair(scope, "dilation_rate", conv->one_axis, conv->dilation, err));
    INF_TRY(inf_layers_int(config, "filters", 1, 1 << 24, &conv->filters, err));
    INF_TRY(inf_layers_int(config, "depth_multiplier", 1, 1 << 24, &conv->multiplier, err));
    INF_TRY(inf_layers_int(config, "groups", 1, 1 << 24, &conv->groups, err));
    INF_TRY(inf_layers_choice(config, "padding", paddings, &conv->padding, err));
    INF_TRY(inf_layers_bool(config, "use_bias", &conv->use_bias, err));
    INF_TRY(inf_layers_channels_first(scope, &conv->first, err));
    if (conv->kernel[1] == 0)
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its kernel_size");
    if (conv->filters == 0 && kind != DEPTHWISE && kind != (DEPTHWISE | ONE_AXIS))
        return inf_layers_fail(scope, err, INF_INVALID, "does not say its filters");
    if (conv->padding == PADDING_CAUSAL && !conv->one_axis)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "causal padding of two axes");
    return INF_OK;
}

// Adds the input as an image with channels last.
static enum inf_code add_picture_input(struct inf_layers_scope *scope, struct conv *conv,
                                       uint32_t *out_value, struct inf_error *err)
{
    uint32_t x;
    INF_TRY(inf_layers_to_last(scope, conv->first, inf_layers_x(scope), &x, err));
    if (conv->one_axis)
        INF_TRY(inf_layers_expand(scope, x, 1, &x, err));
    conv->channels = inf_layers_shape_of(scope, x)->dims[3];
    *out_value = x;
    return INF_OK;
}

static enum inf_code finish_conv(struct inf_layers_scope *scope, const struct conv *conv,
                                 uint32_t value, struct inf_error *err)
{
    if (conv->one_axis)
        INF_TRY(inf_layers_squeeze(scope, value, 1, &value, err));
    const struct inf_layers_activation *activation;
    INF_TRY(inf_layers_activation_read(scope, "activation", "linear", &activation, err));
    INF_TRY(inf_layers_activate(scope, activation, value, &value, err));
    INF_TRY(inf_layers_from_last(scope, conv->first, value, &value, err));
    return inf_layers_finish(scope, value, err);
}

// Makes a filter a value [kh,kw,a,b]. In the file, a filter for one axis is [k,a,b].
static enum inf_code add_filter(struct inf_layers_scope *scope, const struct conv *conv,
                                const char *name, int64_t a, int64_t b, uint32_t *out_value,
                                struct inf_error *err)
{
    if (!conv->one_axis)
        return inf_layers_weight(scope, name, &INF_SHAPE(conv->kernel[0], conv->kernel[1], a, b),
                                 NULL, out_value, err);
    const struct inf_weight *weight;
    INF_TRY(inf_layers_weight_data(scope, name, &INF_SHAPE(conv->kernel[1], a, b), &weight, err));
    const struct inf_shape *has = &weight->shape;
    return inf_layers_weight(
        scope, name, has, &INF_SHAPE(1, has->dims[0], has->dims[1], has->dims[2]), out_value, err);
}

static enum inf_code add_bias(struct inf_layers_scope *scope, const struct conv *conv,
                              int64_t count, struct inf_build_node *node, struct inf_error *err)
{
    if (!conv->use_bias)
        return INF_OK;
    return inf_layers_weight(scope, "bias", &INF_SHAPE(count), NULL,
                             &node->inputs[node->input_count++], err);
}

static enum inf_padding find_padding(const struct conv *conv)
{
    return conv->padding == PADDING_SAME    ? INF_PADDING_SAME
           : conv->padding == PADDING_VALID ? INF_PADDING_VALID
                                            : INF_PADDING_EXPLICIT;
}

// Finds the padding before the first element of a causal convolution, with which no output depends
// on later inputs.
static enum inf_code find_causal_padding(struct inf_layers_scope *scope, const struct conv *conv,
                                         int32_t *out_pad, struct inf_error *err)
{
    int64_t pad = (int64_t)conv->dilation[1] * (conv->kernel[1] - 1);
    *out_pad = conv->padding == PADDING_CAUSAL ? (int32_t)INF_MIN(pad, 65536) : 0;
    if (*out_pad > 65535)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "causal padding by %lld, at most 65535 is built", (long long)pad);
    return INF_OK;
}

static enum inf_code emit_conv(struct inf_layers_scope *scope, const struct conv *conv,
                               struct inf_build_node *node, uint32_t *out_value,
                               struct inf_error *err)
{
    struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    attrs->stride_h = conv->strides[0];
    attrs->stride_w = conv->strides[1];
    attrs->dilation_h = conv->dilation[0];
    attrs->dilation_w = conv->dilation[1];
    attrs->groups = conv->groups;
    attrs->padding = find_padding(conv);
    INF_TRY(find_causal_padding(scope, conv, &attrs->pad_left, err));
    return inf_layers_emit(scope, node, out_value, err);
}

static enum inf_code emit_depthwise(struct inf_layers_scope *scope, const struct conv *conv,
                                    struct inf_build_node *node, uint32_t *out_value,
                                    struct inf_error *err)
{
    struct inf_attrs_depthwise_conv2d *attrs = &node->attrs.depthwise_conv2d;
    attrs->stride_h = conv->strides[0];
    attrs->stride_w = conv->strides[1];
    attrs->dilation_h = conv->dilation[0];
    attrs->dilation_w = conv->dilation[1];
    attrs->padding = find_padding(conv);
    INF_TRY(find_causal_padding(scope, conv, &attrs->pad_left, err));
    return inf_layers_emit(scope, node, out_value, err);
}

static enum inf_code lower_conv(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct conv conv;
    uint32_t value;
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV2D, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(read_conv(scope, &conv, err));
    INF_TRY(add_picture_input(scope, &conv, &node.inputs[0], err));
    if (conv.channels > 0 && conv.channels % conv.groups != 0)
        return inf_layers_fail(scope, err, INF_INVALID,
                               "%lld channels do not divide into %d groups",
                               (long long)conv.channels, conv.groups);
    INF_TRY(add_filter(scope, &conv, "kernel",
                       conv.channels > 0 ? conv.channels / conv.groups : INF_DIM_UNKNOWN,
                       conv.filters, &node.inputs[1], err));
    node.input_count = 2;
    INF_TRY(add_bias(scope, &conv, conv.filters, &node, err));
    INF_TRY(emit_conv(scope, &conv, &node, &value, err));
    return finish_conv(scope, &conv, value, err);
}

// Returns the number of output channels of a depthwise convolution; unknown if the number of input
// channels is unknown.
static int64_t depthwise_channels(const struct conv *conv)
{
    return conv->channels > 0 && conv->multiplier > 0 ? conv->channels * conv->multiplier
                                                      : INF_DIM_UNKNOWN;
}

static enum inf_code lower_depthwise(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct conv conv;
    uint32_t value;
    struct inf_build_node node =
        inf_build_describe(INF_OP_DEPTHWISE_CONV2D, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(read_conv(scope, &conv, err));
    INF_TRY(add_picture_input(scope, &conv, &node.inputs[0], err));
    // Keras 3 calls the filter of a depthwise convolution "kernel", as in other convolutions.
    const char *name = "depthwise_kernel";
    if (inf_layers_weights_find(scope->context->weights, scope->prefixes[0], name) == UINT32_MAX &&
        inf_layers_weights_find(scope->context->weights, scope->prefixes[0], "kernel") !=
            UINT32_MAX)
        name = "kernel";
    INF_TRY(add_filter(scope, &conv, name, conv.channels, conv.multiplier, &node.inputs[1], err));
    node.input_count = 2;
    INF_TRY(add_bias(scope, &conv, depthwise_channels(&conv), &node, err));
    INF_TRY(emit_depthwise(scope, &conv, &node, &value, err));
    return finish_conv(scope, &conv, value, err);
}

// Lowers SeparableConv: a depthwise convolution followed by a 1x1 convolution.
static enum inf_code lower_separable(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct conv conv;
    uint32_t value;
    struct inf_build_node depthwise =
        inf_build_describe(INF_OP_DEPTHWISE_CONV2D, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_build_node pointwise =
        inf_build_describe(INF_OP_CONV2D, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(read_conv(scope, &conv, err));
    INF_TRY(add_picture_input(scope, &conv, &depthwise.inputs[0], err));
    INF_TRY(add_filter(scope, &conv, "depthwise_kernel", conv.channels, conv.multiplier,
                       &depthwise.inputs[1], err));
    depthwise.input_count = 2;
    INF_TRY(emit_depthwise(scope, &conv, &depthwise, &pointwise.inputs[0], err));
    struct conv single = {.one_axis = conv.one_axis,
                          .use_bias = conv.use_bias,
                          .kernel = {1, 1},
                          .strides = {1, 1},
                          .dilation = {1, 1},
                          .groups = 1};
    INF_TRY(add_filter(scope, &single, "pointwise_kernel", depthwise_channels(&conv), conv.filters,
                       &pointwise.inputs[1], err));
    pointwise.input_count = 2;
    INF_TRY(add_bias(scope, &single, conv.filters, &pointwise, err));
    INF_TRY(emit_conv(scope, &single, &pointwise, &value, err));
    return finish_conv(scope, &conv, value, err);
}

// Returns the size of the output of a transposed convolution along axis 1 or 2.
static struct inf_layers_dim find_output_size(const struct conv *conv, uint32_t x, int32_t axis)
{
    struct inf_layers_dim dim = inf_layers_dim_of(x, axis);
    int32_t beyond = conv->kernel[axis - 1] - conv->strides[axis - 1];
    dim.scale = conv->strides[axis - 1];
    dim.offset = conv->padding == PADDING_VALID ? INF_MAX(beyond, 0) : 0;
    return dim;
}

static enum inf_code lower_transposed(struct inf_layers_scope *scope, struct inf_error *err)
{
    struct conv conv;
    struct inf_json output_padding;
    uint32_t value;
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV2D_TRANSPOSE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    INF_TRY(read_conv(scope, &conv, err));
    INF_TRY(inf_layers_find(&scope->layer->config, "output_padding", &output_padding, err));
    if (output_padding.value != NULL || conv.groups != 1 || conv.dilation[0] != 1 ||
        conv.dilation[1] != 1 || conv.padding == PADDING_CAUSAL)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED,
                               "has output_padding, groups, dilation or causal padding, wanted "
                               "none");
    INF_TRY(add_picture_input(scope, &conv, &node.inputs[0], err));
    INF_TRY(add_filter(scope, &conv, "kernel", conv.filters, conv.channels, &node.inputs[1], err));
    const struct inf_layers_dim dims[] = {
        inf_layers_dim_of(node.inputs[0], 0),
        conv.one_axis ? inf_layers_dim_fixed(1) : find_output_size(&conv, node.inputs[0], 1),
        find_output_size(&conv, node.inputs[0], 2),
        inf_layers_dim_fixed(conv.filters),
    };
    INF_TRY(inf_layers_dims(scope, dims, INF_ARRAY_LENGTH(dims), &node.inputs[2], err));
    node.input_count = 3;
    INF_TRY(add_bias(scope, &conv, conv.filters, &node, err));
    node.attrs.conv2d_transpose.stride_h = conv.strides[0];
    node.attrs.conv2d_transpose.stride_w = conv.strides[1];
    node.attrs.conv2d_transpose.padding = find_padding(&conv);
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return finish_conv(scope, &conv, value, err);
}

static const struct inf_layers_class classes[] = {
    {"Conv1D", lower_conv, 1, 1, ONE_AXIS, false},
    {"Conv2D", lower_conv, 1, 1, 0, false},
    {"DepthwiseConv1D", lower_depthwise, 1, 1, DEPTHWISE | ONE_AXIS, false},
    {"DepthwiseConv2D", lower_depthwise, 1, 1, DEPTHWISE, false},
    {"SeparableConv1D", lower_separable, 1, 1, SEPARABLE | ONE_AXIS, false},
    {"SeparableConv2D", lower_separable, 1, 1, SEPARABLE, false},
    {"Conv1DTranspose", lower_transposed, 1, 1, TRANSPOSED | ONE_AXIS, false},
    {"Conv2DTranspose", lower_transposed, 1, 1, TRANSPOSED, false},
};

const struct inf_layers_class_table inf_layers_classes_conv = {classes, INF_ARRAY_LENGTH(classes)};
