// SPDX-License-Identifier: Apache-2.0
// The graphs that fusing produces. tests/conformance checks that fusing does not change results.
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/graph/pass_kit.h"

// --- the pass fuse_bias ---

Test(fuse_bias, adds_to_what_bias_there_is)
{
    struct inf_graph *graph = with_binary(INF_BINARY_ADD, INF_SHAPE(1, 1, 1, 2), true);
    run_only(graph, INF_PASS_FUSE_BIAS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[0], 12.0f);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[1], 23.0f);
    inf_graph_destroy(&graph);
    graph = with_binary(INF_BINARY_SUB, SCALAR, false);
    run_only(graph, INF_PASS_FUSE_BIAS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[0], 8.0f);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[1], 18.0f);
    inf_graph_destroy(&graph);
    expect_unfused(with_binary(INF_BINARY_SUB, INF_SHAPE(2), true), INF_PASS_FUSE_BIAS);
    expect_unfused(with_binary(INF_BINARY_ADD, INF_SHAPE(1, 4, 4, 2), false), INF_PASS_FUSE_BIAS);
    expect_unfused(with_binary(INF_BINARY_ADD, INF_SHAPE(5, 1, 1, 1, 2), false),
                   INF_PASS_FUSE_BIAS);
}

Test(fuse_bias, makes_a_bias_where_there_is_none)
{
    static const enum linear kinds[] = {CONV, DEPTHWISE, TRANSPOSE, MATMUL, MATMUL_B};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t x = linear_node(graph, kinds[i]);
        uint32_t filter = graph->nodes[0].inputs[1];
        add_output(graph, "y",
                   node(graph, INF_OP_BINARY, "add", x, floats(graph, INF_SHAPE(1, 2), 7, 8)));
        run_only(graph, INF_PASS_FUSE_BIAS);
        cr_assert_eq(graph->node_count, 1);
        uint32_t bias = kinds[i] == TRANSPOSE ? 3 : 2;
        cr_assert_eq(graph->nodes[0].input_count, bias + 1);
        cr_assert_eq(graph->nodes[0].inputs[1], filter);
        cr_assert_eq(data_of(graph, graph->nodes[0].inputs[bias])[1], 8.0f);
        cr_assert(
            inf_shape_equal(&graph->values[graph->nodes[0].inputs[bias]].shape, &INF_SHAPE(2)));
        inf_graph_destroy(&graph);
    }
}

Test(fuse_bias, leaves_sums_of_two_results)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = linear_node(graph, CONV);
    uint32_t other = add_input(graph, "other", INF_DTYPE_F32, INF_SHAPE(2));
    add_output(graph, "y", node(graph, INF_OP_BINARY, "residual", x, other));
    expect_unfused(graph, INF_PASS_FUSE_BIAS);
    graph = new_graph();
    x = linear_node(graph, CONV);
    add_output(graph, "y", node(graph, INF_OP_BINARY, "twice", x, x));
    expect_unfused(graph, INF_PASS_FUSE_BIAS);
}

// --- the pass fuse_activation ---

Test(fuse_activation, unary_nodes_move_into_linear_ones)
{
    static const struct {
        enum inf_unary_kind unary;
        enum inf_activation activation;
    } cases[] = {
        {INF_UNARY_RELU, INF_ACTIVATION_RELU},
        {INF_UNARY_RELU6, INF_ACTIVATION_RELU6},
        {INF_UNARY_SIGMOID, INF_ACTIVATION_SIGMOID},
        {INF_UNARY_TANH, INF_ACTIVATION_TANH},
        {INF_UNARY_ELU, INF_ACTIVATION_ELU},
        {INF_UNARY_LEAKY_RELU, INF_ACTIVATION_LEAKY_RELU},
        {INF_UNARY_HARD_SWISH, INF_ACTIVATION_HARD_SWISH},
        {INF_UNARY_SILU, INF_ACTIVATION_SILU},
        {INF_UNARY_GELU, INF_ACTIVATION_GELU},
        {INF_UNARY_GELU_TANH, INF_ACTIVATION_GELU_TANH},
        {INF_UNARY_NEG, INF_ACTIVATION_NONE},
        {INF_UNARY_SELU, INF_ACTIVATION_NONE},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t y = node(graph, INF_OP_UNARY, "unary", linear_node(graph, CONV));
        last_attrs(graph)->unary.kind = cases[i].unary;
        last_attrs(graph)->unary.alpha = 0.25f;
        add_output(graph, "y", y);
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        bool fused = cases[i].activation != INF_ACTIVATION_NONE;
        bool scaled = cases[i].activation == INF_ACTIVATION_ELU ||
                      cases[i].activation == INF_ACTIVATION_LEAKY_RELU;
        cr_assert_eq(graph->node_count, fused ? 1 : 2, "case %zu", i);
        cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, cases[i].activation, "case %zu", i);
        cr_assert_eq(graph->nodes[0].attrs.conv2d.activation_alpha, scaled ? 0.25f : 0.0f);
        cr_assert_eq(graph->outputs[0].value, y);
        inf_graph_destroy(&graph);
    }
}

Test(fuse_activation, only_one_and_only_the_sole_user)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = linear_node(graph, CONV);
    y = node(graph, INF_OP_UNARY, "first", y);
    last_attrs(graph)->unary.kind = INF_UNARY_TANH;
    y = node(graph, INF_OP_UNARY, "second", y);
    last_attrs(graph)->unary.kind = INF_UNARY_SIGMOID;
    add_output(graph, "y", y);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, INF_ACTIVATION_TANH);
    cr_assert_str_eq(graph->nodes[1].name, "second");
    inf_graph_destroy(&graph);
    graph = new_graph();
    y = linear_node(graph, CONV);
    add_output(graph, "raw", y);
    add_output(graph, "y", node(graph, INF_OP_UNARY, "unary", y));
    last_attrs(graph)->unary.kind = INF_UNARY_RELU;
    expect_unfused(graph, INF_PASS_FUSE_ACTIVATION);
}

Test(fuse_activation, sums_take_bounds_only)
{
    static const struct {
        enum inf_binary_kind binary;
        enum inf_unary_kind unary;
        enum inf_dtype dtype;
        bool fused;
    } cases[] = {
        {INF_BINARY_ADD, INF_UNARY_RELU, INF_DTYPE_F32, true},
        {INF_BINARY_DIV, INF_UNARY_RELU6, INF_DTYPE_F32, true},
        {INF_BINARY_ADD, INF_UNARY_SIGMOID, INF_DTYPE_F32, false},
        {INF_BINARY_POW, INF_UNARY_RELU, INF_DTYPE_F32, false},
        {INF_BINARY_ADD, INF_UNARY_RELU, INF_DTYPE_I32, false},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t a = add_input(graph, "a", cases[i].dtype, INF_SHAPE(3));
        uint32_t b = add_input(graph, "b", cases[i].dtype, INF_SHAPE(3));
        uint32_t y = node(graph, INF_OP_BINARY, "binary", a, b);
        last_attrs(graph)->binary.kind = cases[i].binary;
        add_output(graph, "y", node(graph, INF_OP_UNARY, "unary", y));
        last_attrs(graph)->unary.kind = cases[i].unary;
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        cr_assert_eq(graph->node_count, cases[i].fused ? 1 : 2, "case %zu", i);
        cr_assert_eq(graph->nodes[0].attrs.binary.activation != INF_ACTIVATION_NONE,
                     cases[i].fused);
        inf_graph_destroy(&graph);
    }
}

// Makes a graph that computes kind_b(b, kind_a(x, a)), where a kind is min or max. If `conv`, x is
// the result of a convolution.
static struct inf_graph *two_bounds(bool conv, enum inf_binary_kind kind_a, float a,
                                    enum inf_binary_kind kind_b, float b)
{
    struct inf_graph *graph = new_graph();
    uint32_t x =
        conv ? linear_node(graph, CONV) : add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    uint32_t y = node(graph, INF_OP_BINARY, "inner", x, floats(graph, SCALAR, a));
    last_attrs(graph)->binary.kind = kind_a;
    y = node(graph, INF_OP_BINARY, "outer", floats(graph, INF_SHAPE(1), b), y);
    last_attrs(graph)->binary.kind = kind_b;
    add_output(graph, "y", y);
    return graph;
}

Test(fuse_activation, min_of_max_is_a_clip)
{
    struct inf_graph *graph = two_bounds(false, INF_BINARY_MAX, -1, INF_BINARY_MIN, 2);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].op, INF_OP_CLIP);
    cr_assert_eq(graph->nodes[0].input_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.clip.min, -1.0f);
    cr_assert_eq(graph->nodes[0].attrs.clip.max, 2.0f);
    inf_graph_destroy(&graph);
    graph = two_bounds(true, INF_BINARY_MIN, 6, INF_BINARY_MAX, 0);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, INF_ACTIVATION_RELU6);
    inf_graph_destroy(&graph);
    graph = two_bounds(true, INF_BINARY_MAX, -3, INF_BINARY_MIN, 5);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, INF_ACTIVATION_CLIP);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation_min, -3.0f);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation_max, 5.0f);
    inf_graph_destroy(&graph);
}

Test(fuse_activation, bounds_that_do_not_meet_are_one_value)
{
    // max(x, 5) is at least 5, so min(max(x, 5), 2) is 2 for every x. Expect a clip to [2, 2].
    struct inf_graph *graph = two_bounds(false, INF_BINARY_MAX, 5, INF_BINARY_MIN, 2);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.clip.min, 2.0f);
    cr_assert_eq(graph->nodes[0].attrs.clip.max, 2.0f);
    inf_graph_destroy(&graph);
    // max(min(x, 2), 5) is 5 for every x.
    graph = two_bounds(false, INF_BINARY_MIN, 2, INF_BINARY_MAX, 5);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->nodes[0].attrs.clip.min, 5.0f);
    cr_assert_eq(graph->nodes[0].attrs.clip.max, 5.0f);
    inf_graph_destroy(&graph);
}

// Given clip(clip(x, a, b), c, d) with a > b or c > d, expect the same result as unfused. clip
// computes min(max(x, min), max).
Test(fuse_activation, bounds_the_wrong_way_round_keep_their_answer)
{
    // Each case has a, b, c, d, and the result for every x.
    static const float cases[][5] = {
        {5, 2, 0, 10, 2}, {5, 2, 3, 10, 3}, {0, 1, 5, 2, 2}, {5, 2, 9, 7, 7}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t y =
            node(graph, INF_OP_CLIP, "inner", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4)));
        last_attrs(graph)->clip.min = cases[i][0];
        last_attrs(graph)->clip.max = cases[i][1];
        y = node(graph, INF_OP_CLIP, "outer", y);
        last_attrs(graph)->clip.min = cases[i][2];
        last_attrs(graph)->clip.max = cases[i][3];
        add_output(graph, "y", y);
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        cr_assert_eq(graph->node_count, 1);
        for (float x = -20; x <= 20; x += 1)
            cr_assert_eq(
                fminf(fmaxf(x, graph->nodes[0].attrs.clip.min), graph->nodes[0].attrs.clip.max),
                cases[i][4], "case %zu", i);
        inf_graph_destroy(&graph);
    }
}

Test(fuse_activation, bounds_by_nan_or_by_tensors_stay)
{
    expect_unfused(two_bounds(false, INF_BINARY_MAX, NAN, INF_BINARY_MIN, NAN),
                   INF_PASS_FUSE_ACTIVATION);
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    uint32_t y = node(graph, INF_OP_BINARY, "max", x, floats(graph, INF_SHAPE(2), 0, 0));
    last_attrs(graph)->binary.kind = INF_BINARY_MAX;
    add_output(graph, "y", y);
    add_output(graph, "z",
               node(graph, INF_OP_BINARY, "wider", x, floats(graph, INF_SHAPE(1, 1), 0)));
    last_attrs(graph)->binary.kind = INF_BINARY_MIN;
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->nodes[0].op, INF_OP_BINARY);
    cr_assert_eq(graph->nodes[1].op, INF_OP_BINARY, "it lengthens the shape");
    inf_graph_destroy(&graph);
}

static struct inf_graph *with_prelu(enum linear kind, struct inf_shape shape)
{
    struct inf_graph *graph = new_graph();
    const float elements[64] = {0.5f, 0.25f};
    uint32_t alpha = add_constant(graph, INF_DTYPE_F32, shape, elements);
    add_output(graph, "y", node(graph, INF_OP_PRELU, "prelu", linear_node(graph, kind), alpha));
    return graph;
}

Test(fuse_activation, prelu_brings_its_alpha_along)
{
    const struct inf_shape shapes[] = {INF_SHAPE(2), INF_SHAPE(1, 1, 2), INF_SHAPE(1, 1, 1, 2)};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(shapes); i++) {
        struct inf_graph *graph = with_prelu(i == 1 ? DEPTHWISE : CONV, shapes[i]);
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        cr_assert_eq(graph->node_count, 1);
        const struct inf_node *only = &graph->nodes[0];
        cr_assert_eq(only->input_count, 4);
        cr_assert_eq(only->inputs[2], INF_VALUE_NONE);
        cr_assert_eq(i == 1 ? only->attrs.depthwise_conv2d.activation
                            : only->attrs.conv2d.activation,
                     INF_ACTIVATION_PRELU);
        cr_assert_eq(data_of(graph, only->inputs[3])[1], 0.25f);
        cr_assert(inf_shape_equal(&graph->values[only->inputs[3]].shape, &INF_SHAPE(2)));
        inf_graph_destroy(&graph);
    }
    struct inf_graph *graph = with_prelu(CONV_BIAS, INF_SHAPE(2));
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[0], 10.0f, "the bias stays");
    inf_graph_destroy(&graph);
}

Test(fuse_activation, prelu_of_one_alpha_is_leaky_relu)
{
    struct inf_graph *graph = with_prelu(TRANSPOSE, INF_SHAPE(1));
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.conv2d_transpose.activation, INF_ACTIVATION_LEAKY_RELU);
    cr_assert_eq(graph->nodes[0].attrs.conv2d_transpose.activation_alpha, 0.5f);
    inf_graph_destroy(&graph);
    expect_unfused(with_prelu(TRANSPOSE, INF_SHAPE(2)), INF_PASS_FUSE_ACTIVATION);
    expect_unfused(with_prelu(CONV, INF_SHAPE(4, 4, 2)), INF_PASS_FUSE_ACTIVATION);
}

// --- the pass fuse_dilation ---

// Makes x -> space_to_batch -> 3x3 convolution -> batch_to_space.
static struct inf_graph *with_blocks(enum inf_op op, const int32_t pads[4], const int32_t crops[4],
                                     const int32_t back[2])
{
    static const int32_t block[] = {2, 3};
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 9, 13, 2));
    uint32_t apart = node(graph, INF_OP_SPACE_TO_BATCH, "apart", x,
                          add_constant(graph, INF_DTYPE_I32, INF_SHAPE(2), block),
                          add_constant(graph, INF_DTYPE_I32, INF_SHAPE(2, 2), pads));
    bool deep = op == INF_OP_DEPTHWISE_CONV2D;
    uint32_t w = add_constant(graph, INF_DTYPE_F32,
                              deep ? INF_SHAPE(3, 3, 2, 1) : INF_SHAPE(3, 3, 2, 2), NULL);
    uint32_t y = node(graph, op, "conv", apart, w);
    add_output(graph, "y",
               node(graph, INF_OP_BATCH_TO_SPACE, "joined", y,
                    add_constant(graph, INF_DTYPE_I32, INF_SHAPE(2), back),
                    add_constant(graph, INF_DTYPE_I32, INF_SHAPE(2, 2), crops)));
    return graph;
}

static const int32_t block_pads[] = {2, 3, 4, 4}, block_crops[] = {1, 0, 0, 2}, blocks[] = {2, 3};

Test(fuse_dilation, a_convolution_of_blocks_is_dilated)
{
    struct inf_graph *graph = with_blocks(INF_OP_CONV2D, block_pads, block_crops, blocks);
    run_only(graph, INF_PASS_FUSE_DILATION);
    cr_assert_eq(graph->node_count, 1);
    const struct inf_attrs_conv2d *attrs = &graph->nodes[0].attrs.conv2d;
    cr_expect_eq(graph->nodes[0].inputs[0], graph->inputs[0].value);
    cr_expect_eq(attrs->dilation_h, 2);
    cr_expect_eq(attrs->dilation_w, 3);
    cr_expect_eq(attrs->padding, INF_PADDING_EXPLICIT);
    cr_expect_eq(attrs->pad_top, 1);
    cr_expect_eq(attrs->pad_bottom, 3);
    cr_expect_eq(attrs->pad_left, 4);
    cr_expect_eq(attrs->pad_right, 2);
    // 9 + 1 + 3 - 2 * 2 rows and 13 + 4 + 2 - 3 * 2 columns
    const struct inf_shape *shape = &graph->values[graph->outputs[0].value].shape;
    cr_expect_eq(shape->dims[1], 9);
    cr_expect_eq(shape->dims[2], 13);
    inf_graph_destroy(&graph);
    graph = with_blocks(INF_OP_DEPTHWISE_CONV2D, block_pads, block_crops, blocks);
    run_only(graph, INF_PASS_FUSE_DILATION);
    cr_assert_eq(graph->node_count, 1);
    cr_expect_eq(graph->nodes[0].attrs.depthwise_conv2d.dilation_w, 3);
    inf_graph_destroy(&graph);
}

Test(fuse_dilation, other_convolutions_stay)
{
    static const int32_t much[] = {3, 0, 0, 2}, other[] = {3, 2};
    expect_unfused(with_blocks(INF_OP_CONV2D, block_pads, much, blocks), INF_PASS_FUSE_DILATION);
    expect_unfused(with_blocks(INF_OP_CONV2D, block_pads, block_crops, other),
                   INF_PASS_FUSE_DILATION);
    for (int i = 0; i < 4; i++) {
        struct inf_graph *graph = with_blocks(INF_OP_CONV2D, block_pads, block_crops, blocks);
        struct inf_attrs_conv2d *attrs = &graph->nodes[1].attrs.conv2d;
        *(i == 0   ? &attrs->stride_w
          : i == 1 ? &attrs->dilation_h
                   : &attrs->pad_right) = i == 3 ? 0 : 2;
        if (i == 3)
            attrs->padding = INF_PADDING_SAME;
        expect_unfused(graph, INF_PASS_FUSE_DILATION);
    }
    // Another reader needs the blocks.
    struct inf_graph *graph = with_blocks(INF_OP_CONV2D, block_pads, block_crops, blocks);
    add_output(graph, "z", graph->nodes[0].outputs[0]);
    expect_unfused(graph, INF_PASS_FUSE_DILATION);
    graph = with_blocks(INF_OP_CONV2D, block_pads, block_crops, blocks);
    add_output(graph, "z", graph->nodes[1].outputs[0]);
    expect_unfused(graph, INF_PASS_FUSE_DILATION);
}

// --- the pass fuse_pad ---

// Makes x -> pad -> 3x3 convolution.
static struct inf_graph *with_pad(const int32_t paddings[8], enum inf_padding padding, float value)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 2));
    uint32_t p = add_constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), paddings);
    uint32_t padded = node(graph, INF_OP_PAD, "pad", x, p, floats(graph, SCALAR, value));
    uint32_t w = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 2, 2), NULL);
    add_output(graph, "y", node(graph, INF_OP_CONV2D, "conv", padded, w));
    last_attrs(graph)->conv2d.padding = padding;
    if (padding == INF_PADDING_EXPLICIT)
        last_attrs(graph)->conv2d.pad_left = 5;
    return graph;
}

Test(fuse_pad, zeros_around_an_image_become_padding)
{
    static const enum inf_padding kinds[] = {INF_PADDING_VALID, INF_PADDING_EXPLICIT};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        struct inf_graph *graph = with_pad(image_pads, kinds[i], 0);
        run_only(graph, INF_PASS_FUSE_PAD);
        cr_assert_eq(graph->node_count, 1);
        const struct inf_attrs_conv2d *attrs = &graph->nodes[0].attrs.conv2d;
        cr_assert_eq(graph->nodes[0].inputs[0], graph->inputs[0].value);
        cr_assert_eq(attrs->padding, INF_PADDING_EXPLICIT);
        cr_assert_eq(attrs->pad_top, 1);
        cr_assert_eq(attrs->pad_bottom, 2);
        cr_assert_eq(attrs->pad_left, kinds[i] == INF_PADDING_VALID ? 3 : 8);
        cr_assert_eq(attrs->pad_right, 4);
        inf_graph_destroy(&graph);
    }
}

Test(fuse_pad, other_padding_stays)
{
    static const int32_t batch[] = {1, 0, 0, 0, 0, 0, 0, 0};
    static const int32_t channels[] = {0, 0, 1, 1, 1, 1, 0, 0};
    static const int32_t huge[] = {0, 0, 65536, 0, 0, 0, 0, 0};
    expect_unfused(with_pad(batch, INF_PADDING_VALID, 0), INF_PASS_FUSE_PAD);
    expect_unfused(with_pad(image_pads, INF_PADDING_VALID, 1), INF_PASS_FUSE_PAD);
    expect_unfused(with_pad(image_pads, INF_PADDING_SAME, 0), INF_PASS_FUSE_PAD);
    expect_unfused(with_pad(huge, INF_PADDING_VALID, 0), INF_PASS_FUSE_PAD);
    struct inf_graph *graph = with_pad(channels, INF_PADDING_VALID, 0);
    graph->nodes[0].attrs.pad.mode = INF_PAD_REFLECT;
    expect_unfused(graph, INF_PASS_FUSE_PAD);
    graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 2));
    uint32_t p = add_constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), image_pads);
    x = node(graph, INF_OP_PAD, "pad", x, p);
    add_output(graph, "y", node(graph, INF_OP_POOL2D, "pool", x));
    expect_unfused(graph, INF_PASS_FUSE_PAD);
}

Test(fuse_pad, a_pad_with_other_readers_stays_for_them)
{
    struct inf_graph *graph = with_pad(image_pads, INF_PADDING_VALID, 0);
    add_output(graph, "padded", graph->nodes[0].outputs[0]);
    run_only(graph, INF_PASS_FUSE_PAD);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_eq(graph->nodes[1].inputs[0], graph->inputs[0].value);
    inf_graph_destroy(&graph);
}

// --- the pass fuse_transpose ---

// Makes x [1,rows,4] times the transposed constant [5,4], or a computed matrix if `computed`.
static struct inf_graph *with_transposed(const int32_t *perm, int32_t count, int64_t rows,
                                         bool computed)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, rows, 4));
    uint32_t w = computed ? add_input(graph, "w", INF_DTYPE_F32, INF_SHAPE(5, 4))
                          : add_constant(graph, INF_DTYPE_F32, INF_SHAPE(5, 4), NULL);
    w = node(graph, INF_OP_TRANSPOSE, "transpose", w);
    last_attrs(graph)->transpose.perm.count = count;
    for (int32_t i = 0; i < count; i++)
        last_attrs(graph)->transpose.perm.values[i] = perm[i];
    add_output(graph, "y", node(graph, INF_OP_MATMUL, "matmul", x, w));
    return graph;
}

Test(fuse_transpose, products_read_transposed_operands)
{
    static const int32_t swap[] = {1, 0};
    for (int32_t count = 0; count <= 4; count += 2) {
        bool computed = count == 4; // only one row is multiplied with the computed matrix
        struct inf_graph *graph =
            with_transposed(swap, INF_MIN(count, 2), computed ? 1 : 30, computed);
        uint32_t w = graph->nodes[0].inputs[0];
        run_only(graph, INF_PASS_FUSE_TRANSPOSE);
        cr_assert_eq(graph->nodes[1].inputs[1], w);
        cr_assert(graph->nodes[1].attrs.matmul.transpose_b);
        inf_graph_destroy(&graph);
    }
    expect_unfused(with_transposed(swap, 2, 30, true), INF_PASS_FUSE_TRANSPOSE);
}
