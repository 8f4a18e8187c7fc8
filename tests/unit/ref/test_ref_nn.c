// SPDX-License-Identifier: Apache-2.0
// Convolutions, matrix products, pooling and resizing of the reference device, compared with
// literals worked out by hand.
#include "tests/unit/ref/ref_case.h"

// A picture of 3 by 3 pixels with the values 1 to 9.
static const float nine[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

Test(ref, conv2d_pads_below_first)
{
    // a 2x2 filter of ones over 3x3 pixels; SAME padding adds one row below and one column on the
    // right
    begin_case(INF_OP_CONV2D);
    one.attrs.conv2d.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), nine);
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(1, 1, 1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), F32(12, 16, 9, 24, 28, 15, 15, 17, 9));
    one.attrs.conv2d.stride_h = one.attrs.conv2d.stride_w = 2;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(12, 9, 15, 9));
    one.attrs.conv2d.padding = INF_PADDING_EXPLICIT;
    one.attrs.conv2d.pad_top = one.attrs.conv2d.pad_left = 1;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 5, 11, 28));
}

Test(ref, conv2d_dilates_and_adds_bias_and_activation)
{
    begin_case(INF_OP_CONV2D); // reads the picture's corners 1, 3, 7, 9
    one.attrs.conv2d.dilation_h = one.attrs.conv2d.dilation_w = 2;
    one.attrs.conv2d.activation = INF_ACTIVATION_PRELU;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), nine);
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 2), F32(1, -1, 10, -10, 100, -100, 1000, -1000));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(0.5f, 1));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(9, 0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 2), F32(9731.5f, -4865));
    begin_case(INF_OP_CONV2D); // activation prelu, and no bias
    one.attrs.conv2d.activation = INF_ACTIVATION_PRELU;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(1, -1));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(2));
    one_node_absent(&one);
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.25f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(2, -0.5f));
}

Test(ref, conv2d_applies_every_activation)
{
    static const struct {
        enum inf_activation kind;
        float wanted[3]; // expected results for the inputs -4, 0.5 and 8
    } cases[] = {
        {INF_ACTIVATION_NONE, {-4, 0.5f, 8}},
        {INF_ACTIVATION_RELU, {0, 0.5f, 8}},
        {INF_ACTIVATION_RELU6, {0, 0.5f, 6}},
        {INF_ACTIVATION_CLIP, {-1, 0.5f, 1}},
        {INF_ACTIVATION_SIGMOID, {0.0179862100f, 0.622459331f, 0.999664650f}},
        {INF_ACTIVATION_TANH, {-0.999329300f, 0.462117157f, 0.999999775f}},
        {INF_ACTIVATION_ELU, {-1.96336872f, 0.5f, 8}},
        {INF_ACTIVATION_LEAKY_RELU, {-8, 0.5f, 8}},
        {INF_ACTIVATION_HARD_SWISH, {0, 0.291666667f, 8}},
        {INF_ACTIVATION_SILU, {-0.0719448398f, 0.311229666f, 7.99731720f}},
        {INF_ACTIVATION_GELU, {-0.000126684967f, 0.345731231f, 8}},
        {INF_ACTIVATION_GELU_TANH, {-0.0000702459482f, 0.345714010f, 8}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        begin_case(INF_OP_CONV2D);
        one.attrs.conv2d.activation = cases[i].kind;
        one.attrs.conv2d.activation_alpha = 2;
        one.attrs.conv2d.activation_min = -1;
        one.attrs.conv2d.activation_max = 1;
        add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(-4, 0.5f, 8));
        add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(1));
        expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), cases[i].wanted);
    }
}

Test(ref, conv2d_keeps_groups_apart)
{
    begin_case(INF_OP_CONV2D); // 4 channels in 2 groups; each group has 3 of the 6 outputs
    one.attrs.conv2d.groups = 2;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 4), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 6), F32(1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 6), F32(21, 42, 63, 172, 215, 258));
}

Test(ref, conv2d_takes_more_channels_than_a_block_and_none_at_all)
{
    float filter[3 * 131], wanted[131]; // filter[c][o] = c + o, x = 1, 10, 100
    for (int o = 0; o < 131; o++) {
        for (int c = 0; c < 3; c++)
            filter[c * 131 + o] = (float)(c + o);
        wanted[o] = (float)(o + 10 * (1 + o) + 100 * (2 + o));
    }
    begin_case(INF_OP_CONV2D);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 3), F32(1, 10, 100));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 131), filter);
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 131), wanted);
    begin_case(INF_OP_CONV2D);
    add_input(INF_DTYPE_F32, SHAPE(0, 5, 5, 3), NULL);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 131), filter);
    expect_output(INF_DTYPE_F32, SHAPE(0, 5, 5, 131), NULL);
    begin_case(INF_OP_CONV2D); // x has no channels, so the result is the bias
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 0), NULL);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 0, 2), NULL);
    add_input(INF_DTYPE_F32, SHAPE(2), F32(3, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 2), F32(3, 4));
}

Test(ref, conv2d_lets_no_padding_meet_infinity)
{
    begin_case(INF_OP_CONV2D);
    one.attrs.conv2d.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(2));
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1, 1), F32(INFINITY, 4, NAN));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(8));
}

Test(ref, convolutions_compute_other_floats)
{
    begin_case(INF_OP_CONV2D);
    add_input(INF_DTYPE_F64, SHAPE(1, 1, 1, 2), F64(1e300, 1));
    add_input(INF_DTYPE_F64, SHAPE(1, 1, 2, 1), F64(2, 3));
    expect_output(INF_DTYPE_F64, SHAPE(1, 1, 1, 1), F64(2e300 + 3));
    begin_case(INF_OP_DEPTHWISE_CONV2D);
    add_input(INF_DTYPE_F16, SHAPE(1, 1, 1, 1), U16(0x4000));         // the element is 2
    add_input(INF_DTYPE_F16, SHAPE(1, 1, 1, 2), U16(0x4000, 0xbc00)); // the elements are 2, -1
    expect_output(INF_DTYPE_F16, SHAPE(1, 1, 1, 2), U16(0x4400, 0xc000));
}

Test(ref, depthwise_multiplies_channels)
{
    begin_case(INF_OP_DEPTHWISE_CONV2D); // 2 channels with 2 filters each, 1x2 windows
    one.attrs.depthwise_conv2d.activation = INF_ACTIVATION_CLIP;
    one.attrs.depthwise_conv2d.activation_min = -100;
    one.attrs.depthwise_conv2d.activation_max = 300;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 2), F32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 2), F32(1, 10, 100, -1, 2, 20, 0, -2));
    add_input(INF_DTYPE_F32, SHAPE(4), F32(0, 1, 2, 3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 4), F32(7, 71, 202, -7, 13, 131, 300, -13));
}

Test(ref, transposed_convolution_spreads)
{
    begin_case(INF_OP_CONV2D_TRANSPOSE); // each element spreads over 2x2 elements that overlap
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(1, 10, 100, 1000));
    add_list(4, I32(1, 3, 3, 1));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
                  F32(1.5f, 12.5f, 20.5f, 103.5f, 1234.5f, 2040.5f, 300.5f, 3400.5f, 4000.5f));
    begin_case(INF_OP_CONV2D_TRANSPOSE); // with stride 2, no element reaches y's last column
    one.attrs.conv2d_transpose.stride_h = one.attrs.conv2d_transpose.stride_w = 2;
    one.attrs.conv2d_transpose.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 2), F32(1, 2, 3, 4));
    // the layout is [kh,kw,co,ci]
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 2), F32(1, 10, 2, 20, 3, 30));
    add_list(4, I32(1, 1, 4, 3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 3), F32(21, 42, 63, 0, 0, 0, 43, 86, 129, 0, 0, 0));
}

Test(ref, matmul_transposes_either_side)
{
    const float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 10, 100, 2, 20, 200};
    begin_case(INF_OP_MATMUL); // a [2,3] times b [3,2]
    add_input(INF_DTYPE_F32, SHAPE(2, 3), a);
    add_input(INF_DTYPE_F32, SHAPE(3, 2), b);
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(261, 614, 624, 1250));
    begin_case(INF_OP_MATMUL); // a [3,2] and b [2,3], both transposed
    one.attrs.matmul.transpose_a = one.attrs.matmul.transpose_b = true;
    add_input(INF_DTYPE_F32, SHAPE(3, 2), a);
    add_input(INF_DTYPE_F32, SHAPE(2, 3), b);
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(531, 1062, 642, 1284));
}

Test(ref, matmul_broadcasts_batches_and_takes_bias)
{
    begin_case(INF_OP_MATMUL); // a [2,1,1,2] times b [2,2,1]
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1, 2), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1), F32(1, 10, 100, 1000));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(21.5f, 2100.5f, 43.5f, 4300.5f));
    begin_case(INF_OP_MATMUL);
    one.attrs.matmul.activation = INF_ACTIVATION_RELU;
    add_input(INF_DTYPE_F32, SHAPE(2, 0), NULL);
    add_input(INF_DTYPE_F32, SHAPE(0, 3), NULL);
    add_input(INF_DTYPE_F32, SHAPE(3), F32(1, -1, 2));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 0, 2, 1, 0, 2));
    begin_case(INF_OP_MATMUL);
    add_input(INF_DTYPE_I32, SHAPE(1, 2), I32(3, -4));
    add_input(INF_DTYPE_I32, SHAPE(2, 1), I32(5, 6));
    expect_output(INF_DTYPE_I32, SHAPE(1, 1), I32(-9));
}

static void run_pool(enum inf_pool_kind kind, int32_t kernel, int32_t stride,
                     enum inf_padding padding)
{
    begin_case(INF_OP_POOL2D);
    one.attrs.pool2d.kind = kind;
    one.attrs.pool2d.kernel_h = one.attrs.pool2d.kernel_w = kernel;
    one.attrs.pool2d.stride_h = one.attrs.pool2d.stride_w = stride;
    one.attrs.pool2d.padding = padding;
}

Test(ref, pools_only_what_is_inside)
{
    run_pool(INF_POOL_AVERAGE, 2, 2, INF_PADDING_SAME);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), nine);
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(3, 4.5f, 7.5f, 9));
    run_pool(INF_POOL_MAX, 2, 2, INF_PADDING_EXPLICIT);
    one.attrs.pool2d.pad_top = one.attrs.pool2d.pad_left = 1;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), F32(-1, -2, -3, -4, -5, -6, -7, -8, -9));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(-1, -2, -4, -5));
    run_pool(INF_POOL_MAX, 2, 1, INF_PADDING_VALID);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 3, 2), F32(1, -1, 2, -2, NAN, NAN, 4, -4, 5, -5, 6, -6));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 2), F32(5, -1, 6, -2));
    run_pool(INF_POOL_AVERAGE, 2, 1, INF_PADDING_VALID);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 2, NAN, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(NAN));
    run_pool(INF_POOL_MAX, 2, 1, INF_PADDING_VALID);
    add_input(INF_DTYPE_I8, SHAPE(1, 2, 2, 1), I8(-128, -127, -126, -125));
    expect_output(INF_DTYPE_I8, SHAPE(1, 1, 1, 1), I8(-125));
}

static void run_resize(enum inf_resize_kind kind, bool align_corners, bool half_pixel_centers)
{
    begin_case(INF_OP_RESIZE);
    one.attrs.resize.kind = kind;
    one.attrs.resize.align_corners = align_corners;
    one.attrs.resize.half_pixel_centers = half_pixel_centers;
}

Test(ref, resizes_in_three_ways)
{
    run_resize(INF_RESIZE_BILINEAR, false, false); // reads x at the positions 0, 0.5, 1 and 1.5
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(10, 20));
    add_list(2, I32(1, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(10, 15, 20, 20));
    one.attrs.resize.align_corners = true; // reads x at the positions 0, 1/3, 2/3 and 1
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(10, 13.3333333f, 16.6666667f, 20));
    one.attrs.resize.align_corners = false;
    // reads x at the positions -0.25, 0.25, 0.75 and 1.25
    one.attrs.resize.half_pixel_centers = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(10, 12.5f, 17.5f, 20));
    run_resize(INF_RESIZE_BILINEAR, true, false); // the only output column is the first column of x
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(1, 2, 3));
    add_list(2, I32(1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(1));
}

Test(ref, resizes_to_the_nearest)
{
    run_resize(INF_RESIZE_NEAREST, false, false); // reads x at the positions 0, 0.75, 1.5 and 2.25
    add_input(INF_DTYPE_F16, SHAPE(1, 1, 3, 1), U16(1, 2, 3));
    add_list(2, I32(1, 4));
    expect_output(INF_DTYPE_F16, SHAPE(1, 1, 4, 1), U16(1, 1, 2, 3));
    one.attrs.resize.align_corners = true; // reads x at the positions 0, 0.67, 1.33 and 2
    expect_output(INF_DTYPE_F16, SHAPE(1, 1, 4, 1), U16(1, 2, 2, 3));
    run_resize(INF_RESIZE_NEAREST, false, true); // reads x at the positions 0.75 and 2.25
    add_input(INF_DTYPE_I32, SHAPE(1, 1, 3, 1), I32(1, 2, 3));
    add_list(2, I32(1, 2));
    expect_output(INF_DTYPE_I32, SHAPE(1, 1, 2, 1), I32(1, 3));
}
