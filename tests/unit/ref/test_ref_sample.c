// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that have windows of any rank, resample, normalise, quantise,
// or are recurrent. The expected literals are worked out by hand or with Python's math module, or
// are the examples of ONNX's documentation.
#include "tests/unit/ref/ref_case.h"

#define AXES(...)                                                                                  \
    ((struct inf_ints){.count = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),     \
                       .values = {__VA_ARGS__}})

// --- operators with windows of any rank ---

Test(ref, convolves_in_any_rank)
{
    begin_case(INF_OP_CONV_ND); // one axis: y[i] = x[i + 2] - x[i] + 0.5
    add_input(INF_DTYPE_F32, SHAPE(1, 5, 1), F32(1, 2, 4, 7, 11));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(-1, 1));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.5f));
    one.attrs.conv_nd.dilations = AXES(2);
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(3.5f, 5.5f, 7.5f));
    begin_case(INF_OP_CONV_ND); // three axes: the sum of a 2x2x2 cube
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 2, 1), F32(1, 2, 3, 4, 5, 6, 7, 8));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 1, 1), F32(1, 1, 1, 1, 1, 1, 1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1, 1), F32(36));
    begin_case(INF_OP_CONV_ND); // two groups with one weight each; padding adds zeros
    one.attrs.conv_nd.groups = 2;
    one.attrs.conv_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2), F32(1, 10, 2, 20));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(3, -1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 2), F32(0, 0, 3, -10, 6, -20));
}

Test(ref, transposes_convolutions_in_any_rank)
{
    begin_case(INF_OP_CONV_ND_TRANSPOSE);
    one.attrs.conv_nd_transpose.strides = AXES(2);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(1, 2, 3));
    add_input(INF_DTYPE_F32, SHAPE(3, 1, 1), F32(1, 10, 100));
    add_list(3, I32(1, 7, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 7, 1), F32(1, 10, 102, 20, 203, 30, 300));
    begin_case(INF_OP_CONV_ND_TRANSPOSE); // a transposed convolution in two groups
    one.attrs.conv_nd_transpose.groups = 2;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(5, 7));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(2, 3));
    add_list(3, I32(1, 1, 2));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(10, 21));
}

Test(ref, pools_in_any_rank)
{
    begin_case(INF_OP_POOL_ND);
    one.output_count = 2;
    one.attrs.pool_nd.kernel = AXES(2);
    one.attrs.pool_nd.index_batch = true;
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 8, 5, 2, 5, 9, NAN, 0, -1, 0, -INFINITY, 1));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2), F32(5, 8, 5, 9, -1, 0, -1, 1));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 2, 2), I32(2, 1, 2, 5, 8, 7, 8, 11));
    one.attrs.pool_nd.index_channels_first = true;
    run_case();
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 2, 2), I32(1, 3, 1, 5, 7, 9, 7, 11));
    // expect first the mean over the elements inside x only, then the mean that also counts padding
    begin_case(INF_OP_POOL_ND);
    one.attrs.pool_nd.kind = INF_POOL_AVERAGE;
    one.attrs.pool_nd.kernel = AXES(2);
    one.attrs.pool_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(4, 6));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(4, 5));
    one.attrs.pool_nd.count_padding = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(2, 5));
    // Rounding the size up adds a last window that ends outside. Only its inner elements count.
    begin_case(INF_OP_POOL_ND);
    one.attrs.pool_nd.kind = INF_POOL_AVERAGE;
    one.attrs.pool_nd.kernel = AXES(2);
    one.attrs.pool_nd.strides = AXES(2);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(4, 6, 9));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(5));
    one.attrs.pool_nd.ceil = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(5, 9));
    one.attrs.pool_nd.count_padding = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(5, 9));
    begin_case(INF_OP_POOL_ND);
    one.attrs.pool_nd.kind = INF_POOL_LP;
    one.attrs.pool_nd.kernel = AXES(2);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(3, -4, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(5, 4));
    begin_case(INF_OP_POOL_ND); // a window that contains only padding has no mean
    one.attrs.pool_nd.kind = INF_POOL_AVERAGE;
    one.attrs.pool_nd.kernel = AXES(1);
    one.attrs.pool_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(NAN, 3));
    one.attrs.pool_nd.zero_if_empty = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(0, 3));
    begin_case(INF_OP_POOL_ND); // the window is larger than x, so y is empty
    one.attrs.pool_nd.kernel = AXES(3);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(3, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 0, 1), NULL);
    begin_case(INF_OP_POOL_ND); // the maximum of a window of padding is the smallest i8
    one.attrs.pool_nd.kernel = AXES(1);
    one.attrs.pool_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_I8, SHAPE(1, 1, 1), I8(-5));
    expect_output(INF_DTYPE_I8, SHAPE(1, 2, 1), I8(INT8_MIN, -5));
}

Test(ref, dilates_pictures)
{
    begin_case(INF_OP_DILATION2D);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(0.1f, 0.2f, 0.3f, 0.4f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1), F32(0.4f, 0.3f, 0.1f, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(0.5f));
    one.attrs.dilation2d.padding = INF_PADDING_SAME; // padding never is the maximum
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(0.5f, 0.6f, 0.7f, 0.8f));
}

// --- normalisation and quantisation ---

Test(ref, normalises_over_neighbours)
{
    begin_case(INF_OP_LRN);
    one.attrs.lrn =
        (struct inf_attrs_lrn){.before = 1, .after = 1, .bias = 1, .alpha = 2, .beta = 0.5f};
    add_input(INF_DTYPE_F32, SHAPE(1, 3), F32(1, 2, 3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3), F32(0.30151134f, 0.37139068f, 0.57735027f));
}

Test(ref, normalises_over_axes)
{
    begin_case(INF_OP_NORMALIZE);
    one.attrs.normalize.axes = AXES(-1);
    one.attrs.normalize.epsilon = 0;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 3, -5, 5));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(10, 100));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(1, 2));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(-9, 102, -9, 102));
    begin_case(INF_OP_NORMALIZE); // over the first axis: instance normalisation of two channels
    one.attrs.normalize.axes = AXES(0);
    one.attrs.normalize.epsilon = 3;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 0, 3, 2));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(-0.5f, -0.5f, 0.5f, 0.5f));
    begin_case(INF_OP_NORMALIZE); // the mean square of 3 and 4 is 12.5
    one.attrs.normalize.kind = INF_NORMALIZE_RMS;
    one.attrs.normalize.epsilon = 3.5f;
    add_input(INF_DTYPE_F32, SHAPE(2), F32(3, 4));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(0.75f, 1));
}

Test(ref, quantises_and_back)
{
    begin_case(INF_OP_QUANTIZE); // the example of ONNX's QuantizeLinear
    add_input(INF_DTYPE_F32, SHAPE(6), F32(0, 2, 3, 1000, -254, -1000));
    add_input(INF_DTYPE_F32, SCALAR, F32(2));
    add_input(INF_DTYPE_U8, SCALAR, U8(128));
    expect_output(INF_DTYPE_U8, SHAPE(6), U8(128, 129, 130, 255, 1, 0));
    begin_case(INF_OP_QUANTIZE); // ties round to even, each row has a scale, NaN becomes 0
    one.attrs.quantize.axis = 0;
    one.attrs.quantize.dtype = INF_DTYPE_I8;
    add_input(INF_DTYPE_F32, SHAPE(2, 4), F32(0.5f, 1.5f, -2.5f, NAN, 1, 3, INFINITY, -INFINITY));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(1, 2));
    expect_output(INF_DTYPE_I8, SHAPE(2, 4), I8(0, 2, -2, 0, 0, 2, 127, -128));
    begin_case(INF_OP_DEQUANTIZE); // the example of ONNX's DequantizeLinear
    add_input(INF_DTYPE_U8, SHAPE(4), U8(0, 3, 128, 255));
    add_input(INF_DTYPE_F32, SCALAR, F32(2));
    add_input(INF_DTYPE_U8, SCALAR, U8(128));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(-256, -250, 0, 254));
    begin_case(INF_OP_DEQUANTIZE); // the difference of two i32 does not wrap around
    add_input(INF_DTYPE_I32, SHAPE(1), I32(INT32_MIN));
    add_input(INF_DTYPE_F32, SCALAR, F32(1));
    add_input(INF_DTYPE_I32, SCALAR, I32(INT32_MAX));
    expect_output(INF_DTYPE_F32, SHAPE(1), F32(-4294967295.0f));
}

// Starts a convolution of one row: adds the operands x and filter. The caller adds operands 2 to 6.
static void qconv_row(void)
{
    begin_case(INF_OP_QCONV2D);
    add_input(INF_DTYPE_U8, SHAPE(1, 1, 4, 1), U8(255, 10, 0, 130));
    add_input(INF_DTYPE_I8, SHAPE(1, 2, 1, 1), I8(-128, 127));
}

Test(ref, multiplies_quantised_numbers)
{
    // Padded elements equal the zero point of x, so they add nothing to the sums.
    qconv_row();
    one.attrs.qconv2d.pad_left = 1;
    one.attrs.qconv2d.dtype = INF_DTYPE_I32;
    add_input(INF_DTYPE_I32, SHAPE(1), I32(5));
    add_input(INF_DTYPE_U8, SCALAR, U8(10));
    expect_output(INF_DTYPE_I32, SHAPE(1, 1, 4, 1), I32(31120, -31355, -1265, 16525));
    // Before the zero point 10 is added, the results are 4.5, which rounds to the even number 4,
    // -128 and -3.
    qconv_row();
    one.attrs.qconv2d.dtype = INF_DTYPE_I8;
    one.attrs.qconv2d.max = 40;
    one.inputs[1].data = memcpy(one.inputs[1].data, I8(1, 2), 2);
    add_input(INF_DTYPE_I32, SHAPE(1), I32(-266));
    one_node_absent(&one);
    one_node_absent(&one);
    add_input(INF_DTYPE_F32, SCALAR, F32(0.5f));
    add_input(INF_DTYPE_I8, SCALAR, I8(10));
    expect_output(INF_DTYPE_I8, SHAPE(1, 1, 3, 1), I8(14, -118, 7));
    begin_case(INF_OP_QMATMUL); // a zero point and a scale for each column; b is transposed
    one.attrs.qmatmul.transpose_b = true;
    add_input(INF_DTYPE_I8, SHAPE(1, 2), I8(-1, 3));
    add_input(INF_DTYPE_U8, SHAPE(2, 2), U8(200, 1, 0, 255));
    one_node_absent(&one);
    add_input(INF_DTYPE_I8, SCALAR, I8(1));
    add_input(INF_DTYPE_U8, SHAPE(2), U8(100, 128));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(0.1f, 0.25f));
    add_input(INF_DTYPE_U8, SCALAR, U8(128));
    // The sums are -398 and 510. They are multiplied by 0.1 and 0.25, rounded, and 128 is added;
    // the second result is clamped.
    expect_output(INF_DTYPE_U8, SHAPE(1, 2), U8(88, 255));
    // 17 weights in 2 blocks of 16: block 0 is 1, -1 and zeros, block 1 begins with 7. The scales
    // are 0.5 and 2, so y is 0.5 * (1 * 3 - 1 * 5) + 2 * 7 * 10 = 139, and 0.25 for the bias.
    begin_case(INF_OP_MATMUL_BLOCKS);
    one.attrs.matmul_blocks.block = 16;
    add_input(INF_DTYPE_F32, SHAPE(1, 17), F32(3, 5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10));
    add_input(INF_DTYPE_U8, SHAPE(1, 2, 8),
              U8(0x79, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x8f, 0, 0, 0, 0, 0, 0, 0));
    add_input(INF_DTYPE_F32, SHAPE(1, 2), F32(0.5f, 2));
    one_node_absent(&one);
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.25f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1), F32(139.25f));
    // 2 bits and a zero point in bytes: the numbers 3 and 1 less 1; 8 bits and a fraction as zero
    // point: 200 - 0.5.
    begin_case(INF_OP_MATMUL_BLOCKS);
    one.attrs.matmul_blocks.bits = 2;
    one.attrs.matmul_blocks.block = 16;
    add_input(INF_DTYPE_F32, SHAPE(2), F32(10, 100));
    add_input(INF_DTYPE_U8, SHAPE(1, 1, 4), U8(0x7, 0, 0, 0));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(4));
    add_input(INF_DTYPE_U8, SHAPE(1, 4), U8(1, 9, 9, 9));
    expect_output(INF_DTYPE_F32, SHAPE(1), F32(80));
    begin_case(INF_OP_MATMUL_BLOCKS);
    one.attrs.matmul_blocks.bits = 8;
    one.attrs.matmul_blocks.block = 16;
    add_input(INF_DTYPE_F32, SHAPE(1), F32(2));
    add_input(INF_DTYPE_U8, SHAPE(1, 1, 16), U8(200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(1));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(1), F32(399));
    // The first result is (1.5 - 4) / 0.25 + 20 = 10; the second one is clamped.
    begin_case(INF_OP_QBINARY);
    one.attrs.qbinary.kind = INF_BINARY_SUB;
    add_input(INF_DTYPE_U8, SHAPE(2), U8(131, 255));
    add_input(INF_DTYPE_I8, SHAPE(1), I8(4));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.5f));
    add_input(INF_DTYPE_F32, SCALAR, F32(1));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.25f));
    add_input(INF_DTYPE_U8, SCALAR, U8(128));
    one_node_absent(&one);
    add_input(INF_DTYPE_U8, SCALAR, U8(20));
    expect_output(INF_DTYPE_U8, SHAPE(2), U8(10, 255)); // the second result, 20 + 238, is clamped
    // In integers, halves go up: 2.5 becomes 3 and -2.5 becomes -2.
    begin_case(INF_OP_QBINARY);
    one.attrs.qbinary.integer = true;
    one.attrs.qbinary.dtype = INF_DTYPE_I8;
    add_input(INF_DTYPE_I8, SHAPE(4), I8(4, -4, 127, -128));
    add_input(INF_DTYPE_I8, SHAPE(4), I8(1, -1, 127, -128));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.5f));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.5f));
    add_input(INF_DTYPE_F32, SCALAR, F32(1));
    expect_output(INF_DTYPE_I8, SHAPE(4), I8(3, -2, 127, -128));
    begin_case(INF_OP_QBINARY); // differences, with zero points: (6 - 3) / 2 = 1.5, -1.5
    one.attrs.qbinary.integer = true;
    one.attrs.qbinary.kind = INF_BINARY_SUB;
    add_input(INF_DTYPE_U8, SHAPE(2), U8(134, 131));
    add_input(INF_DTYPE_U8, SHAPE(2), U8(3, 6));
    add_input(INF_DTYPE_F32, SCALAR, F32(1));
    add_input(INF_DTYPE_F32, SCALAR, F32(1));
    add_input(INF_DTYPE_F32, SCALAR, F32(2));
    add_input(INF_DTYPE_U8, SCALAR, U8(128));
    one_node_absent(&one);
    add_input(INF_DTYPE_U8, SCALAR, U8(10));
    expect_output(INF_DTYPE_U8, SHAPE(2), U8(12, 9));
    begin_case(INF_OP_QBINARY); // products: 5 * 5 * 0.1 = 2.5, ties to even; 12 * -1 * 0.1 = -1.2
    one.attrs.qbinary.integer = true;
    one.attrs.qbinary.kind = INF_BINARY_MUL;
    one.attrs.qbinary.dtype = INF_DTYPE_I8;
    add_input(INF_DTYPE_I8, SHAPE(2), I8(5, 12));
    add_input(INF_DTYPE_I8, SHAPE(2), I8(5, -1));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.5f));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.5f));
    add_input(INF_DTYPE_F32, SCALAR, F32(2.5f));
    expect_output(INF_DTYPE_I8, SHAPE(2), I8(2, -1));
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(255 - i);
    begin_case(INF_OP_LOOKUP);
    add_input(INF_DTYPE_I8, SHAPE(3), I8(-1, 0, -128));
    add_input(INF_DTYPE_U8, SHAPE(256), table);
    expect_output(INF_DTYPE_U8, SHAPE(3), U8(0, 255, 127));
}

// --- resampling and sampling of pictures ---

static void run_resample(enum inf_sample_kind kind, enum inf_coordinates coordinates,
                         struct inf_shape from, const float *x, const int32_t *sizes)
{
    begin_case(INF_OP_RESAMPLE);
    one.attrs.resample.kind = kind;
    one.attrs.resample.coordinates = coordinates;
    add_input(INF_DTYPE_F32, from, x);
    add_list(from.rank, sizes);
}

Test(ref, resamples_linearly)
{
    // Expected results are from ONNX's resize_upsample_scales_linear and
    // resize_upsample_scales_linear_align_corners.
    const float x[] = {1, 2, 3, 4};
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_HALF_PIXEL, SHAPE(1, 1, 2, 2), x,
                 I32(1, 1, 4, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 4),
                  F32(1, 1.25f, 1.75f, 2, 1.5f, 1.75f, 2.25f, 2.5f, 2.5f, 2.75f, 3.25f, 3.5f, 3,
                      3.25f, 3.75f, 4));
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_ALIGN_CORNERS, SHAPE(2, 2), x, I32(2, 4));
    expect_output(INF_DTYPE_F32, SHAPE(2, 4),
                  F32(1, 4 / 3.0f, 5 / 3.0f, 2, 3, 10 / 3.0f, 11 / 3.0f, 4));
    // From ONNX's resize_downsample_scales_linear. The scale is 0.6, although the ratio of the
    // sizes is 0.5.
    const float eight[] = {1, 2, 3, 4, 5, 6, 7, 8};
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_HALF_PIXEL, SHAPE(2, 4), eight, I32(1, 2));
    one_node_const(&one, INF_DTYPE_F32, SHAPE(2), F32(0.6f, 0.6f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2), F32(2.6666665f, 4.3333331f));
    // Shrinks by 2 with antialiasing. The weights are 1/8, 3/8, 3/8, 1/8. Weights outside x are
    // dropped, and the others are normalised.
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_HALF_PIXEL, SHAPE(4), F32(0, 8, 0, 0), I32(2));
    one.attrs.resample.antialias = true;
    one.attrs.resample.exclude_outside = true;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(24 / 7.0f, 8 / 7.0f));
}

Test(ref, resamples_by_cubics)
{
    // The expected row is the first row of ONNX's resize_upsample_scales_cubic.
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    run_resample(INF_SAMPLE_CUBIC, INF_COORDINATES_HALF_PIXEL, SHAPE(1, 1, 4, 4), x,
                 I32(1, 1, 8, 8));
    run_case();
    const float *y = one.outputs[0].data;
    const float row[] = {0.47265625f, 0.76953125f, 1.24609375f, 1.875f,
                         2.28125f,    2.91015625f, 3.38671875f, 3.68359375f};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(row); i++)
        cr_expect_float_eq(y[i], row[i], 1e-6f, "element %zu is %g", i, (double)y[i]);
}

Test(ref, resamples_the_nearest)
{
    const float x[] = {1, 2, 3, 4};
    run_resample(INF_SAMPLE_NEAREST, INF_COORDINATES_HALF_PIXEL, SHAPE(4), x, I32(2));
    // positions 0.5 and 2.5 are halfway between two elements; this mode takes the lower one
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(1, 3));
    one.attrs.resample.rounding = INF_ROUNDING_PREFER_CEIL;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(2, 4));
    one.attrs.resample.coordinates = INF_COORDINATES_ASYMMETRIC;
    one.attrs.resample.rounding = INF_ROUNDING_CEIL;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(1, 3));
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_CROP, SHAPE(5), F32(0, 10, 20, 30, 40), I32(3));
    one.attrs.resample.extrapolation = -7;
    one_node_absent(&one);
    one_node_const(&one, INF_DTYPE_F32, SHAPE(2), F32(0.5f, 1.25f));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(20, 35, -7));
}

Test(ref, crops_and_resizes)
{
    begin_case(INF_OP_CROP_AND_RESIZE);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 1, 1.5f));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    add_list(2, I32(3, 3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), F32(1, 1.75f, 0, 2, 2.75f, 0, 3, 3.75f, 0));
    begin_case(INF_OP_CROP_AND_RESIZE); // a NaN coordinate is outside of the picture
    one.attrs.crop_and_resize.extrapolation = 9;
    add_input(INF_DTYPE_U8, SHAPE(1, 1, 1, 1), U8(5));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(NAN, 0, 1, 1e30f));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    add_list(2, I32(1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(9));
    begin_case(INF_OP_CROP_AND_RESIZE);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(5));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 1, 1));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(1));
    add_list(2, I32(1, 1));
    expect_failure(
        "node 'node' (crop_and_resize): index 1 (element 0 of the indices) is outside [0, 1)");
}

Test(ref, aligns_regions)
{
    begin_case(INF_OP_ROI_ALIGN);
    one.attrs.roi_align = (struct inf_attrs_roi_align){
        .kind = INF_POOL_AVERAGE, .output_h = 1, .output_w = 2, .samples = 1, .scale = 1};
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 3, 1), F32(0, 10, 20, 30, 40, 50));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 2, 1));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    // The samples are at (0.5, 0.5) and (0.5, 1.5). Each is the mean of four pixels.
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(20, 30));
    one.attrs.roi_align.kind = INF_POOL_MAX; // the largest of the four weighted pixels
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(10, 12.5f));
    begin_case(INF_OP_ROI_ALIGN);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(1));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 1e9f, 1e9f));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    expect_failure(
        "node 'node' (roi_align): region 0 has 1000000000 by 1000000000 pixels for one place, "
        "wanted at most 4096");
}

Test(ref, samples_grids)
{
    begin_case(INF_OP_GRID_SAMPLE);
    one.attrs.grid_sample.align_corners = true;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 5, 2), F32(-1, -1, 1, 1, 0, 0, 2, -1, NAN, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 5, 1), F32(1, 4, 2.5f, 1, 0));
    one.attrs.grid_sample.border = INF_BORDER_EDGE;
    run_case();
    cr_assert_float_eq(((const float *)one.outputs[0].data)[3], 2, 1e-6f);
    begin_case(INF_OP_GRID_SAMPLE); // the part of a pixel area that is outside counts as 0
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(4, 8));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 2), F32(-1, 0, -0.5f, 0, 0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(2, 4, 6));
    one.attrs.grid_sample.border = INF_BORDER_REFLECT;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(4, 4, 6));
    one.attrs.grid_sample.kind = INF_SAMPLE_NEAREST;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(4, 4, 4));
}

Test(ref, transforms_pictures)
{
    // each pixel of y is the pixel of x one column further right
    begin_case(INF_OP_IMAGE_TRANSFORM);
    one.attrs.image_transform.fill = 9;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(1, 2, 3));
    add_input(INF_DTYPE_F32, SHAPE(1, 8), F32(1, 0, 1, 0, 1, 0, 0, 0));
    add_list(2, I32(1, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(2, 3, 9, 9));
    one.attrs.image_transform.border = INF_BORDER_EDGE;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(2, 3, 3, 3));
    one.attrs.image_transform.border = INF_BORDER_REFLECT;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(2, 3, 3, 2));
    one.attrs.image_transform.border = INF_BORDER_CONSTANT;
    one.attrs.image_transform.kind = INF_RESIZE_BILINEAR;
    memcpy(one.inputs[1].data, F32(1, 0, 0.5f, 0, 1, 0, 0, 0), 8 * sizeof(float));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(1.5f, 2.5f, 6, 9));
}

// --- recurrent networks ---

static void run_lstm(const float *x)
{
    begin_case(INF_OP_RNN);
    one.output_count = 3;
    add_input(INF_DTYPE_F32, SHAPE(3, 1, 1), x);
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 1), F32(0.5f, 0.25f, -0.5f, 1));
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 1), F32(0.1f, 0.2f, 0.3f, 0.4f));
    add_input(INF_DTYPE_F32, SHAPE(1, 8), F32(0.1f, 0, 0.1f, 0, 0, 0, 0.1f, 0));
}

Test(ref, runs_an_lstm)
{
    run_lstm(F32(1, -2, 3));
    expect_output(INF_DTYPE_F32, SHAPE(3, 1, 1, 1), F32(0.25612025f, 0.04002688f, 0.47087488f));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.47087488f));
    one_node_expect(&one, 2, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.85087619f));
    run_lstm(F32(1, -2, 3)); // backwards, over two of the three steps
    one.attrs.rnn.direction = INF_DIRECTION_REVERSE;
    add_input(INF_DTYPE_I32, SHAPE(1), I32(2));
    expect_output(INF_DTYPE_F32, SHAPE(3, 1, 1, 1), F32(0.19331281f, -0.1025618f, 0));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.19331281f));
    one_node_expect(&one, 2, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(0.36201203f));
    run_lstm(F32(1, -2, 3)); // without any step, the final states are the initial states
    add_input(INF_DTYPE_I32, SHAPE(1), I32(-4));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(7));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(8));
    expect_output(INF_DTYPE_F32, SHAPE(3, 1, 1, 1), F32(0, 0, 0));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(7));
    one_node_expect(&one, 2, INF_DTYPE_F32, SHAPE(1, 1, 1), F32(8));
}

Test(ref, runs_a_gru)
{
    begin_case(INF_OP_RNN);
    one.output_count = 2;
    one.attrs.rnn.kind = INF_RNN_GRU;
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(1, 2));
    add_input(INF_DTYPE_F32, SHAPE(1, 6, 1), F32(0.5f, -0.5f, 0.25f, 1, 1, -1));
    add_input(INF_DTYPE_F32, SHAPE(1, 6, 2),
              F32(0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, -0.1f, -0.2f, 0.7f, -0.7f, 0.8f, 0.9f));
    add_input(INF_DTYPE_F32, SHAPE(1, 12),
              F32(0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f, 0.2f));
    one_node_absent(&one);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(0.5f, -0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 1, 1, 2),
                  F32(0.643205f, -0.59483503f, 0.72181749f, -0.83606263f));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(1, 1, 2), F32(0.72181749f, -0.83606263f));
    one.attrs.rnn.linear_before_reset = true;
    expect_output(INF_DTYPE_F32, SHAPE(2, 1, 1, 2),
                  F32(0.63803206f, -0.58613209f, 0.71728172f, -0.82553186f));
}

Test(ref, runs_a_simple_network_both_ways)
{
    begin_case(INF_OP_RNN);
    one.output_count = 2;
    one.attrs.rnn.kind = INF_RNN_SIMPLE;
    one.attrs.rnn.direction = INF_DIRECTION_BIDIRECTIONAL;
    one.attrs.rnn.activations = AXES(INF_UNARY_RELU, INF_UNARY_NEG);
    one.attrs.rnn.clip = 100;
    add_input(INF_DTYPE_F32, SHAPE(3, 1, 1), F32(1, -5, 60));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(2, 1));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(3, 1));
    // forward: 2, max(-10 + 6, 0) = 0, and 120 clipped to 100; backward: -60, -(-5 - 60), -(1 + 65)
    expect_output(INF_DTYPE_F32, SHAPE(3, 2, 1, 1), F32(2, -66, 0, 65, 100, -60));
    one_node_expect(&one, 1, INF_DTYPE_F32, SHAPE(2, 1, 1), F32(100, -66));
}

// --- kinds of unary operators, bitwise operators and reductions ---

Test(ref, knows_the_newer_unary_kinds)
{
    static const struct {
        enum inf_unary_kind kind;
        float alpha, beta, wanted[4];
    } rows[] = {
        {INF_UNARY_IS_INF, 0, 0, {0, 0, 0, 0}},
        {INF_UNARY_IS_FINITE, 0, 0, {1, 1, 1, 0}},
        {INF_UNARY_SIGN_OR_ZERO, 0, 0, {-1, 0, 1, 0}},
        {INF_UNARY_STEP, -3, 0, {-3, -3, 1, NAN}},
        {INF_UNARY_GELU, 0, 0, {-0.15865525f, 0, 1.9544997f, NAN}},
        {INF_UNARY_GELU_TANH, 0, 0, {-0.15880801f, 0, 1.9545977f, NAN}},
        {INF_UNARY_MISH, 0, 0, {-0.30340146f, 0, 1.943959f, NAN}},
        {INF_UNARY_SILU, 0, 0, {-0.26894142f, 0, 1.7615942f, NAN}},
        {INF_UNARY_SOFTSIGN, 0, 0, {-0.5f, 0, 2 / 3.0f, NAN}},
        {INF_UNARY_HARD_SIGMOID, 0.25f, 0.5f, {0.25f, 0.5f, 1, NAN}},
        {INF_UNARY_CELU, 2, 0, {-0.78693868f, 0, 2, NAN}},
        {INF_UNARY_THRESHOLDED_RELU, 1, 0, {0, 0, 2, NAN}},
        {INF_UNARY_SHRINK, 0.5f, 0.25f, {-0.75f, 0, 1.75f, NAN}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin_case(INF_OP_UNARY);
        one.attrs.unary = (struct inf_attrs_unary){
            .kind = rows[i].kind, .alpha = rows[i].alpha, .beta = rows[i].beta};
        add_input(INF_DTYPE_F32, SHAPE(4), F32(-1, 0, 2, NAN));
        expect_output(INF_DTYPE_F32, SHAPE(4), rows[i].wanted);
    }
    begin_case(INF_OP_UNARY);
    one.attrs.unary.kind = INF_UNARY_BITWISE_NOT;
    add_input(INF_DTYPE_U8, SHAPE(2), U8(0, 0x5a));
    expect_output(INF_DTYPE_U8, SHAPE(2), U8(0xff, 0xa5));
}

Test(ref, works_bit_by_bit)
{
    static const struct {
        enum inf_binary_kind kind;
        int32_t wanted[4];
    } rows[] = {
        {INF_BINARY_BITWISE_AND, {8, 0, -8, 0}},
        {INF_BINARY_BITWISE_OR, {14, 33, -1, INT32_MIN + 40}},
        {INF_BINARY_BITWISE_XOR, {6, 33, 7, INT32_MIN + 40}},
        {INF_BINARY_SHIFT_LEFT, {12 << 10, 2, 0, 0}},
        {INF_BINARY_SHIFT_RIGHT, {0, 0, -1, -1}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin_case(INF_OP_BINARY);
        one.attrs.binary.kind = rows[i].kind;
        bool shift = i >= 3;
        add_input(INF_DTYPE_I32, SHAPE(4), I32(12, 1, -8, INT32_MIN));
        add_input(INF_DTYPE_I32, SHAPE(4), shift ? I32(10, 1, 64, 40) : I32(10, 32, -1, 40));
        expect_output(INF_DTYPE_I32, SHAPE(4), rows[i].wanted);
    }
}

Test(ref, reduces_to_norms)
{
    static const struct {
        enum inf_reduce_kind kind;
        float wanted;
    } rows[] = {{INF_REDUCE_L1, 7},
                {INF_REDUCE_L2, 5},
                {INF_REDUCE_SUM_SQUARE, 25},
                {INF_REDUCE_LOG_SUM, 0}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin_case(INF_OP_REDUCE);
        one.attrs.reduce.kind = rows[i].kind;
        add_input(INF_DTYPE_F32, SHAPE(3), F32(-3, 4, 0));
        expect_output(INF_DTYPE_F32, SCALAR, F32(rows[i].wanted));
    }
    begin_case(INF_OP_REDUCE); // log(e^1 + e^2 + e^3), then values whose e^x overflows
    one.attrs.reduce.kind = INF_REDUCE_LOG_SUM_EXP;
    one.attrs.reduce.axes = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(4, 3),
              F32(1, 2, 3, 1000, -INFINITY, 1000, -INFINITY, -INFINITY, -INFINITY, 1, INFINITY, 2));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(3.407606f, 1000.6931f, -INFINITY, INFINITY));
}

Test(ref, clips_to_the_upper_bound_where_bounds_cross)
{
    begin_case(INF_OP_CLIP);
    one.attrs.clip.min = 5;
    one.attrs.clip.max = 2;
    add_input(INF_DTYPE_F32, SHAPE(4), F32(-1, 3, 9, NAN));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(2, 2, 2, NAN));
}
