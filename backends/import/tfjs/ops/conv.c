// SPDX-License-Identifier: Apache-2.0
// Convolutions, matrix products, pooling, batch normalisation and resizing.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/tfjs/layout.h"
#include "backends/import/tfjs/op_table.h"

// Reads height and width from a list attribute with one integer for each dimension; the integers
// for batch and channels must be 1. The result is unchanged if the attribute is absent.
static enum inf_code read_pair(struct inf_tfjs_scope *scope, const char *key, int32_t *height,
                               int32_t *width, struct inf_error *err)
{
    int32_t items[4];
    uint32_t count;
    INF_TRY(inf_tfjs_attr_ints(scope->node, key, items, INF_ARRAY_LENGTH(items), &count, err));
    if (count == 0)
        return INF_OK;
    if (count != 4)
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s has %u elements, wanted 4", key, count);
    uint32_t channel = inf_tfjs_channel(scope, 4);
    int32_t rows = items[inf_tfjs_spatial(scope, 0)], columns = items[inf_tfjs_spatial(scope, 1)];
    if (items[0] != 1 || items[channel] != 1)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "%s is [%d,%d,%d,%d], wanted 1 for batch and channels", key, items[0],
                             items[1], items[2], items[3]);
    if (rows < 1 || rows > 65535 || columns < 1 || columns > 65535)
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s is [%d,%d,%d,%d], wanted 1 to 65535", key,
                             items[0], items[1], items[2], items[3]);
    *height = rows;
    *width = columns;
    return INF_OK;
}

struct pads {
    enum inf_padding padding;
    int32_t top, bottom, left, right;
};

static enum inf_code read_explicit_pads(struct inf_tfjs_scope *scope, struct pads *pads,
                                        struct inf_error *err)
{
    int32_t items[8];
    uint32_t count;
    INF_TRY(inf_tfjs_attr_ints(scope->node, "explicit_paddings", items, INF_ARRAY_LENGTH(items),
                               &count, err));
    if (count != INF_ARRAY_LENGTH(items))
        return inf_tfjs_fail(scope, err, INF_INVALID, "explicit_paddings has %u elements, wanted 8",
                             count);
    uint32_t rows = 2 * inf_tfjs_spatial(scope, 0);
    for (uint32_t i = 0; i < count; i++)
        if (items[i] < 0 || items[i] > 65535 || ((i < rows || i > rows + 3) && items[i] != 0))
            return inf_tfjs_fail(scope, err, INF_INVALID,
                                 "explicit_paddings[%u] is %d, wanted 0 to 65535, and 0 for batch "
                                 "and channels",
                                 i, items[i]);
    pads->top = items[rows];
    pads->bottom = items[rows + 1];
    pads->left = items[rows + 2];
    pads->right = items[rows + 3];
    return INF_OK;
}

static enum inf_code read_pads(struct inf_tfjs_scope *scope, struct pads *pads,
                               struct inf_error *err)
{
    struct inf_tfjs_text padding = {"nothing"};
    INF_TRY(inf_tfjs_attr_text(scope->node, "padding", &padding, err));
    *pads = (struct pads){.padding = INF_PADDING_SAME};
    if (strcmp(padding.text, "same") == 0)
        return INF_OK;
    pads->padding = INF_PADDING_VALID;
    if (strcmp(padding.text, "valid") == 0)
        return INF_OK;
    pads->padding = INF_PADDING_EXPLICIT;
    if (strcmp(padding.text, "explicit") == 0)
        return read_explicit_pads(scope, pads, err);
    return inf_tfjs_fail(scope, err, INF_INVALID, "padding is '%s', wanted SAME, VALID or EXPLICIT",
                         padding.text);
}

// The operators that are fused into the node of a convolution or matrix product.
struct fusion {
    uint32_t bias;  // value of the bias, or INF_VALUE_NONE
    uint32_t alpha; // slope of prelu, or INF_VALUE_NONE
    enum inf_activation activation;
    float activation_alpha;
};

static enum inf_code read_activation(struct inf_tfjs_scope *scope, const char *name,
                                     struct fusion *fusion, struct inf_error *err)
{
    static const struct {
        const char *name;
        enum inf_activation activation;
        float alpha;
    } activations[] = {
        {"linear", INF_ACTIVATION_NONE, 0.0f},     {"relu", INF_ACTIVATION_RELU, 0.0f},
        {"relu6", INF_ACTIVATION_RELU6, 0.0f},     {"elu", INF_ACTIVATION_ELU, 1.0f},
        {"prelu", INF_ACTIVATION_PRELU, 0.0f},     {"leakyrelu", INF_ACTIVATION_LEAKY_RELU, 0.2f},
        {"sigmoid", INF_ACTIVATION_SIGMOID, 0.0f}, {"tanh", INF_ACTIVATION_TANH, 0.0f},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(activations); i++) {
        if (strcmp(activations[i].name, name) != 0)
            continue;
        fusion->activation = activations[i].activation;
        fusion->activation_alpha = activations[i].alpha;
        if (fusion->activation == INF_ACTIVATION_LEAKY_RELU)
            return inf_tfjs_attr_float(scope->node, "leakyrelu_alpha", &fusion->activation_alpha,
                                       err);
        return INF_OK;
    }
    return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                         "fused operator '%s', known: BiasAdd and then Relu, Relu6, Elu, Prelu, "
                         "LeakyRelu, Sigmoid or Tanh",
                         name);
}

// Reads the fused operators and assigns the inputs after x and filter to them.
static enum inf_code read_fusion(struct inf_tfjs_scope *scope, struct fusion *fusion,
                                 struct inf_error *err)
{
    struct inf_tfjs_text ops[3];
    uint32_t count, next = 0, input = 2;
    *fusion = (struct fusion){.bias = INF_VALUE_NONE, .alpha = INF_VALUE_NONE};
    INF_TRY(inf_tfjs_attr_texts(scope->node, "fused_ops", ops, INF_ARRAY_LENGTH(ops), &count, err));
    if (next < count && strcmp(ops[next].text, "biasadd") == 0) {
        if (input < scope->input_count)
            fusion->bias = scope->inputs[input];
        input++;
        next++;
    }
    if (next < count)
        INF_TRY(read_activation(scope, ops[next++].text, fusion, err));
    if (next < count)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "fused operator '%s' after '%s'",
                             ops[next].text, ops[next - 1].text);
    if (fusion->activation == INF_ACTIVATION_PRELU) {
        if (input < scope->input_count)
            fusion->alpha = scope->inputs[input];
        input++;
    }
    int32_t num_args = (int32_t)input - 2;
    INF_TRY(inf_tfjs_attr_int(scope->node, "num_args", 0, INT32_MAX, &num_args, err));
    if (input != scope->input_count || num_args != (int32_t)input - 2)
        return inf_tfjs_fail(scope, err, INF_INVALID,
                             "has %u inputs and num_args %d, wanted %u inputs for its fused "
                             "operators",
                             scope->input_count, num_args, input);
    return INF_OK;
}

// Sets *out_alpha to a constant slope of prelu, reshaped to a vector of its last dimension; the
// data is shared. INF_VALUE_NONE if the slope is not constant or differs between rows.
static enum inf_code flatten_alpha(struct inf_tfjs_scope *scope, uint32_t alpha,
                                   uint32_t *out_alpha, struct inf_error *err)
{
    const struct inf_value *value = &scope->graph->values[alpha];
    *out_alpha = INF_VALUE_NONE;
    if (!inf_graph_is_const(scope->graph, alpha) || value->shape.rank < 1)
        return INF_OK;
    for (int32_t i = 0; i + 1 < value->shape.rank; i++)
        if (value->shape.dims[i] != 1)
            return INF_OK;
    struct inf_shape shape = INF_SHAPE(value->shape.dims[value->shape.rank - 1]);
    return inf_graph_add_const(scope->graph, value->name, value->dtype, &shape,
                               inf_blob_ref(value->data), out_alpha, err);
}

// Adds a convolution or matrix product with bias and activation. Its inputs so far are x and
// weights. A prelu that cannot be fused becomes a separate node.
static enum inf_code finish_fused(struct inf_tfjs_scope *scope, struct inf_build_node *call,
                                  const struct fusion *fusion, enum inf_activation *activation,
                                  struct inf_error *err)
{
    uint32_t alpha = INF_VALUE_NONE, value;
    bool is_prelu = fusion->activation == INF_ACTIVATION_PRELU;
    if (is_prelu && scope->channels_first != 0 &&
        scope->graph->values[fusion->alpha].shape.rank > 1)
        return inf_tfjs_fail(
            scope, err, INF_UNSUPPORTED,
            "a Prelu with more than one dimension behind channels that come first");
    if (is_prelu)
        INF_TRY(flatten_alpha(scope, fusion->alpha, &alpha, err));
    *activation = is_prelu && alpha == INF_VALUE_NONE ? INF_ACTIVATION_NONE : fusion->activation;
    if (fusion->bias != INF_VALUE_NONE || alpha != INF_VALUE_NONE)
        call->inputs[call->input_count++] = fusion->bias;
    if (alpha != INF_VALUE_NONE)
        call->inputs[call->input_count++] = alpha;
    INF_TRY(inf_tfjs_emit(scope, call, &value, err));
    if (is_prelu && alpha == INF_VALUE_NONE) {
        struct inf_build_node prelu =
            inf_build_describe(INF_OP_PRELU, value, fusion->alpha, INF_VALUE_NONE);
        INF_TRY(inf_tfjs_emit(scope, &prelu, &value, err));
    }
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_conv2d(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 4, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_CONV2D, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_conv2d *attrs = &call.attrs.conv2d;
    struct pads pads;
    struct fusion fusion;
    INF_TRY(read_pair(scope, "strides", &attrs->stride_h, &attrs->stride_w, err));
    INF_TRY(read_pair(scope, "dilations", &attrs->dilation_h, &attrs->dilation_w, err));
    INF_TRY(read_pads(scope, &pads, err));
    INF_TRY(read_fusion(scope, &fusion, err));
    attrs->padding = pads.padding;
    attrs->pad_top = pads.top;
    attrs->pad_bottom = pads.bottom;
    attrs->pad_left = pads.left;
    attrs->pad_right = pads.right;
    attrs->activation_alpha = fusion.activation_alpha;
    // If the filter has fewer channels than x, the convolution works on groups of channels.
    int64_t channels = inf_tfjs_input(scope, 0)->shape.rank == 4
                           ? inf_tfjs_input(scope, 0)->shape.dims[3]
                           : INF_DIM_UNKNOWN;
    int64_t filter_channels =
        inf_tfjs_input(scope, 1)->shape.rank == 4 ? inf_tfjs_input(scope, 1)->shape.dims[2] : 0;
    if (channels > 0 && filter_channels > 0 && channels % filter_channels == 0 &&
        channels / filter_channels <= 1 << 24)
        attrs->groups = (int32_t)(channels / filter_channels);
    return finish_fused(scope, &call, &fusion, &attrs->activation, err);
}

static enum inf_code lower_depthwise(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 4, err));
    struct inf_build_node call = inf_build_describe(INF_OP_DEPTHWISE_CONV2D, scope->inputs[0],
                                                    scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_depthwise_conv2d *attrs = &call.attrs.depthwise_conv2d;
    struct pads pads;
    struct fusion fusion;
    INF_TRY(read_pair(scope, "strides", &attrs->stride_h, &attrs->stride_w, err));
    INF_TRY(read_pair(scope, "dilations", &attrs->dilation_h, &attrs->dilation_w, err));
    INF_TRY(read_pads(scope, &pads, err));
    INF_TRY(read_fusion(scope, &fusion, err));
    attrs->padding = pads.padding;
    attrs->pad_top = pads.top;
    attrs->pad_bottom = pads.bottom;
    attrs->pad_left = pads.left;
    attrs->pad_right = pads.right;
    attrs->activation_alpha = fusion.activation_alpha;
    return finish_fused(scope, &call, &fusion, &attrs->activation, err);
}

// Lowers a transposed convolution. The inputs are output shape, filter, x.
static enum inf_code lower_conv2d_transpose(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 2, 4, err));
    INF_TRY(inf_tfjs_list_channels_last(scope, &scope->inputs[0], err));
    struct inf_build_node call = inf_build_describe(INF_OP_CONV2D_TRANSPOSE, scope->inputs[2],
                                                    scope->inputs[1], scope->inputs[0]);
    struct inf_attrs_conv2d_transpose *attrs = &call.attrs.conv2d_transpose;
    struct pads pads;
    INF_TRY(read_pair(scope, "strides", &attrs->stride_h, &attrs->stride_w, err));
    INF_TRY(read_pair(scope, "dilations", &attrs->dilation_h, &attrs->dilation_w, err));
    INF_TRY(read_pads(scope, &pads, err));
    attrs->padding = pads.padding;
    attrs->pad_top = pads.top;
    attrs->pad_bottom = pads.bottom;
    attrs->pad_left = pads.left;
    attrs->pad_right = pads.right;
    struct inf_builder b = inf_tfjs_builder(scope, err);
    call.inputs[0] = inf_build_crop_gradient(&b, &call);
    INF_TRY(b.code);
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers MatMul and _FusedMatMul (transpose_a, transpose_b), and BatchMatMul and BatchMatMulV2
// (adj_x, adj_y).
static enum inf_code lower_matmul(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_MATMUL, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_matmul *attrs = &call.attrs.matmul;
    struct fusion fusion;
    bool is_batch = scope->op->kind != 0;
    INF_TRY(inf_tfjs_attr_bool(scope->node, is_batch ? "adj_x" : "transpose_a", &attrs->transpose_a,
                               err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, is_batch ? "adj_y" : "transpose_b", &attrs->transpose_b,
                               err));
    INF_TRY(read_fusion(scope, &fusion, err));
    attrs->activation_alpha = fusion.activation_alpha;
    return finish_fused(scope, &call, &fusion, &attrs->activation, err);
}

static enum inf_code lower_pool(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 4, err));
    struct inf_build_node call =
        inf_build_describe(INF_OP_POOL2D, scope->inputs[0], INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_attrs_pool2d *attrs = &call.attrs.pool2d;
    struct pads pads;
    attrs->kind = (enum inf_pool_kind)scope->op->kind;
    INF_TRY(read_pair(scope, "ksize", &attrs->kernel_h, &attrs->kernel_w, err));
    INF_TRY(read_pair(scope, "strides", &attrs->stride_h, &attrs->stride_w, err));
    INF_TRY(read_pads(scope, &pads, err));
    attrs->padding = pads.padding;
    attrs->pad_top = pads.top;
    attrs->pad_bottom = pads.bottom;
    attrs->pad_left = pads.left;
    attrs->pad_right = pads.right;
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_batch_norm(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    INF_TRY(inf_tfjs_channels_last(scope, 0, 0, err));
    struct inf_build_node call = inf_build_describe_list(INF_OP_BATCH_NORM, scope->inputs, 5);
    bool is_training = false;
    INF_TRY(inf_tfjs_attr_bool(scope->node, "is_training", &is_training, err));
    if (is_training)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "is_training is set, wanted a model made for inference");
    call.attrs.batch_norm.epsilon = 1e-4f;
    INF_TRY(inf_tfjs_attr_float(scope->node, "epsilon", &call.attrs.batch_norm.epsilon, err));
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_resize(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_RESIZE, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    struct inf_attrs_resize *attrs = &call.attrs.resize;
    attrs->kind = (enum inf_resize_kind)scope->op->kind;
    INF_TRY(inf_tfjs_attr_bool(scope->node, "align_corners", &attrs->align_corners, err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, "half_pixel_centers", &attrs->half_pixel_centers, err));
    return inf_tfjs_finish(scope, &call, err);
}

static const struct inf_tfjs_op ops[] = {
    {"Conv2D", lower_conv2d, 2, 2, 0},
    {"_FusedConv2D", lower_conv2d, 2, 4, 0},
    {"DepthwiseConv2d", lower_depthwise, 2, 2, 0},
    {"DepthwiseConv2dNative", lower_depthwise, 2, 2, 0},
    {"FusedDepthwiseConv2dNative", lower_depthwise, 2, 4, 0},
    {"Conv2DBackpropInput", lower_conv2d_transpose, 3, 3, 0},
    {"Conv2dTranspose", lower_conv2d_transpose, 3, 3, 0},
    {"MatMul", lower_matmul, 2, 2, false},
    {"_FusedMatMul", lower_matmul, 2, 4, false},
    {"BatchMatMul", lower_matmul, 2, 2, true},
    {"BatchMatMulV2", lower_matmul, 2, 2, true},
    {"MaxPool", lower_pool, 1, 1, INF_POOL_MAX},
    {"AvgPool", lower_pool, 1, 1, INF_POOL_AVERAGE},
    {"FusedBatchNorm", lower_batch_norm, 5, 5, 0, "y"},
    {"FusedBatchNormV2", lower_batch_norm, 5, 5, 0, "y"},
    {"FusedBatchNormV3", lower_batch_norm, 5, 5, 0, "y"},
    {"ResizeBilinear", lower_resize, 2, 2, INF_RESIZE_BILINEAR},
    {"ResizeNearestNeighbor", lower_resize, 2, 2, INF_RESIZE_NEAREST},
};

const struct inf_tfjs_op_table inf_tfjs_ops_conv = {ops, INF_ARRAY_LENGTH(ops)};
