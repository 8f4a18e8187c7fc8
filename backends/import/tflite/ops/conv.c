// SPDX-License-Identifier: Apache-2.0
// Convolutions. The layout is the graph's, channels last; filters are [co, kh, kw, ci] in the file
// and get the graph's order of axes when they are read.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/tensor.h"
#include "backends/import/tflite/window.h"

static const struct inf_tflite_layout conv_layout = {4, {1, 2, 3, 0}};

// Returns the number of channel groups: the channels of x for each channel of the filter.
static int32_t count_groups(struct inf_tflite_scope *s, uint32_t x, uint32_t filter)
{
    int64_t channels = inf_build_dim(&s->b, x, 3), each = inf_build_dim(&s->b, filter, 2);
    if (channels < 0 || each < 0)
        return 1;
    if (each == 0 || channels % each != 0) {
        inf_build_fail(&s->b, INF_INVALID, "its filter is for %lld channels, x has %lld",
                       (long long)each, (long long)channels);
        return 1;
    }
    return (int32_t)INF_MAX(channels / each, 1);
}

static void lower_conv(struct inf_tflite_scope *s)
{
    struct inf_tflite_window window = inf_tflite_window_read(
        s, &(struct inf_tflite_window_fields){
               .stride_w = 1, .stride_h = 2, .dilation_w = 4, .dilation_h = 5});
    uint32_t x = inf_tflite_real(s, 0);
    uint32_t filter = inf_tflite_weights(s, 1, 0, &conv_layout);
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV2D, x, filter, inf_tflite_bias(s, 2, 0, 1));
    INF_TFLITE_SET_WINDOW(&node.attrs.conv2d, &window);
    if (inf_build_ok(&s->b) && inf_build_rank(&s->b, x) == 4)
        node.attrs.conv2d.groups = count_groups(s, x, filter);
    s->outputs[0] = inf_tflite_activate(s, inf_build_value(&s->b, &node), 3);
}

// The filter of a depthwise convolution is [1, kh, kw, c * m] in the file. With m = 1 it becomes
// [kh, kw, c, 1]. For other m it stays as it is, for a convolution with c groups: the scales of its
// output channels then lie along one axis.
static void lower_depthwise(struct inf_tflite_scope *s)
{
    static const struct inf_tflite_layout single = {4, {1, 2, 3, 0}}, grouped = {4, {1, 2, 0, 3}};
    struct inf_tflite_window window = inf_tflite_window_read(
        s, &(struct inf_tflite_window_fields){
               .stride_w = 1, .stride_h = 2, .dilation_w = 5, .dilation_h = 6});
    uint32_t x = inf_tflite_real(s, 0);
    const struct inf_tflite_tensor *weights = inf_tflite_input_tensor(s, 1);
    if (weights->shape.rank != 4 || weights->shape.dims[0] != 1)
        inf_build_fail(&s->b, INF_INVALID, "its filter has %d axes, wanted [1,kh,kw,c*m]",
                       weights->shape.rank);
    if (inf_build_rank(&s->b, x) != 4)
        inf_build_fail(&s->b, INF_INVALID, "x has %d axes, wanted 4", inf_build_rank(&s->b, x));
    int64_t channels = inf_build_known_dim(&s->b, x, 3);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t bias = inf_tflite_bias(s, 2, 0, 1);
    struct inf_build_node node;
    if (channels == weights->shape.dims[3]) {
        uint32_t filter = inf_tflite_weights(s, 1, 0, &single);
        node = inf_build_describe(INF_OP_DEPTHWISE_CONV2D, x, filter, bias);
        INF_TFLITE_SET_WINDOW(&node.attrs.depthwise_conv2d, &window);
    } else {
        uint32_t filter = inf_tflite_weights(s, 1, 0, &grouped);
        node = inf_build_describe(INF_OP_CONV2D, x, filter, bias);
        INF_TFLITE_SET_WINDOW(&node.attrs.conv2d, &window);
        node.attrs.conv2d.groups = (int32_t)INF_MAX(channels, 1);
    }
    s->outputs[0] = inf_tflite_activate(s, inf_build_value(&s->b, &node), 4);
}

static void lower_transpose_conv(struct inf_tflite_scope *s)
{
    static const struct inf_tflite_layout layout = {4, {1, 2, 0, 3}};
    struct inf_tflite_window window =
        inf_tflite_window_read(s, &(struct inf_tflite_window_fields){.stride_w = 1, .stride_h = 2});
    uint32_t x = inf_tflite_real(s, 2);
    uint32_t filter = inf_tflite_weights(s, 1, 2, &layout);
    const uint32_t inputs[] = {x, filter, inf_tflite_list(s, 0), inf_tflite_bias(s, 3, 2, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_CONV2D_TRANSPOSE, inputs,
                                                         inputs[3] != INF_VALUE_NONE ? 4 : 3);
    INF_TFLITE_SET_WINDOW(&node.attrs.conv2d_transpose, &window);
    s->outputs[0] = inf_tflite_activate(s, inf_build_value(&s->b, &node), 3);
}

// --- three spatial axes ---

// Reads the strides and dilations of a three-dimensional convolution.
static void read_volume_window(struct inf_tflite_scope *s, struct inf_ints *strides,
                               struct inf_ints *dilations)
{
    *strides = (struct inf_ints){.count = 3,
                                 .values = {inf_tflite_window_size(s, 1, "stride_d", 0),
                                            inf_tflite_window_size(s, 3, "stride_h", 0),
                                            inf_tflite_window_size(s, 2, "stride_w", 0)}};
    *dilations =
        (struct inf_ints){.count = 3,
                          .values = {inf_tflite_window_size(s, 5, "dilation_d_factor", 1),
                                     inf_tflite_window_size(s, 7, "dilation_h_factor", 1),
                                     inf_tflite_window_size(s, 6, "dilation_w_factor", 1)}};
}

static void lower_conv_3d(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_real(s, 0), filter = inf_tflite_real(s, 1);
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV_ND, x, filter, inf_tflite_real(s, 2));
    read_volume_window(s, &node.attrs.conv_nd.strides, &node.attrs.conv_nd.dilations);
    node.attrs.conv_nd.padding = inf_tflite_window_padding(s);
    s->outputs[0] = inf_tflite_activate(s, inf_build_value(&s->b, &node), 4);
}

static void lower_conv_3d_transpose(struct inf_tflite_scope *s)
{
    const uint32_t inputs[] = {inf_tflite_real(s, 2), inf_tflite_real(s, 1), inf_tflite_list(s, 0),
                               inf_tflite_real(s, 3)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_CONV_ND_TRANSPOSE, inputs,
                                                         inputs[3] != INF_VALUE_NONE ? 4 : 3);
    read_volume_window(s, &node.attrs.conv_nd_transpose.strides,
                       &node.attrs.conv_nd_transpose.dilations);
    node.attrs.conv_nd_transpose.padding = inf_tflite_window_padding(s);
    s->outputs[0] = inf_tflite_activate(s, inf_build_value(&s->b, &node), 4);
}

// --- the custom operator of MediaPipe's segmentation networks ---

// Sets *size to the size of the result of a transposed convolution along one axis. Sets pads[0] and
// pads[1] to the number of elements that are cut off at the beginning and at the end of the result.
// If `same` is true, a convolution with padding `same` and this stride would compute `input`
// elements from the result.
static void find_transposed_size(int64_t input, int64_t kernel, int64_t stride, bool same,
                                 int64_t *size, int64_t pads[2])
{
    int64_t cut = same ? INF_MAX(kernel - (input - 1) % stride - 1, 0) : 0;
    pads[0] = cut / 2;
    pads[1] = cut - cut / 2;
    *size = stride * (input - 1) + kernel - cut;
}

// Lowers Convolution2DTransposeBias: a transposed convolution with a bias. No operand gives the
// size of the result; it is computed from the size of the input. The options are the padding (1:
// same, 2: valid), the stride along the width and the stride along the height.
static void lower_transpose_bias(struct inf_tflite_scope *s)
{
    static const struct inf_tflite_layout layout = {4, {1, 2, 0, 3}};
    enum {
        SAME = 1,
        VALID = 2
    };
    int32_t words[3];
    int64_t sizes[2], pads[2][2];
    if (!inf_tflite_option_words(s, words, 3))
        return;
    if ((words[0] != SAME && words[0] != VALID) || words[1] < 1 || words[1] > 65535 ||
        words[2] < 1 || words[2] > 65535) {
        inf_build_fail(&s->b, INF_INVALID, "has padding %d and strides %d, %d", words[0], words[1],
                       words[2]);
        return;
    }
    uint32_t x = inf_tflite_real(s, 0);
    uint32_t filter = inf_tflite_weights(s, 1, 0, &layout);
    if (inf_build_rank(&s->b, x) != 4)
        inf_build_fail(&s->b, INF_INVALID, "has a picture of rank %d, wanted 4",
                       inf_build_rank(&s->b, x));
    for (int32_t axis = 0; inf_build_ok(&s->b) && axis < 2; axis++)
        find_transposed_size(inf_build_known_dim(&s->b, x, 1 + axis),
                             inf_build_known_dim(&s->b, filter, axis), words[2 - axis],
                             words[0] == SAME, &sizes[axis], pads[axis]);
    if (!inf_build_ok(&s->b))
        return;
    const int64_t shape[] = {inf_build_known_dim(&s->b, x, 0), sizes[0], sizes[1],
                             inf_build_known_dim(&s->b, filter, 2)};
    const uint32_t inputs[] = {x, filter, inf_build_list(&s->b, shape, 4),
                               inf_tflite_bias(s, 2, 0, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_CONV2D_TRANSPOSE, inputs, 4);
    node.attrs.conv2d_transpose.stride_h = words[2];
    node.attrs.conv2d_transpose.stride_w = words[1];
    node.attrs.conv2d_transpose.padding = INF_PADDING_EXPLICIT;
    node.attrs.conv2d_transpose.pad_top = (int32_t)pads[0][0];
    node.attrs.conv2d_transpose.pad_bottom = (int32_t)pads[0][1];
    node.attrs.conv2d_transpose.pad_left = (int32_t)pads[1][0];
    node.attrs.conv2d_transpose.pad_right = (int32_t)pads[1][1];
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_CONV_2D, NULL, lower_conv, 2, 3, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_CONV_2D, 0},
    {INF_TFLITE_DEPTHWISE_CONV_2D, NULL, lower_depthwise, 2, 3, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_DEPTHWISE_CONV_2D, 0},
    {INF_TFLITE_TRANSPOSE_CONV, NULL, lower_transpose_conv, 3, 4, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_TRANSPOSE_CONV, 0},
    {INF_TFLITE_CUSTOM, "Convolution2DTransposeBias", lower_transpose_bias, 3, 3, 1,
     INF_TFLITE_MODE_REAL, 0, 0},
    {INF_TFLITE_CONV_3D, NULL, lower_conv_3d, 2, 3, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_CONV_3D, 0},
    {INF_TFLITE_CONV_3D_TRANSPOSE, NULL, lower_conv_3d_transpose, 3, 4, 1, INF_TFLITE_MODE_REAL,
     INF_TFLITE_OPTIONS_CONV_3D, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_conv = {ops, INF_ARRAY_LENGTH(ops)};
