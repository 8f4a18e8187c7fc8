// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that normalise or quantise. The expected literals are worked
// out by hand or with Python's math module, or are the examples of ONNX's documentation.
#include "tests/unit/ref/ref_case.h"

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
}

Test(ref, multiplies_with_weights_in_blocks)
{
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
}

Test(ref, combines_quantised_numbers)
{
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
}

Test(ref, combines_quantised_numbers_in_integers)
{
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
}

Test(ref, looks_bytes_up)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(255 - i);
    begin_case(INF_OP_LOOKUP);
    add_input(INF_DTYPE_I8, SHAPE(3), I8(-1, 0, -128));
    add_input(INF_DTYPE_U8, SHAPE(256), table);
    expect_output(INF_DTYPE_U8, SHAPE(3), U8(0, 255, 127));
}
