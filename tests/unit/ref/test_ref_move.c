// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that move or create data, compared with literals worked out by
// hand. The cases use many element types, because these operators only move bytes.
#include "tests/unit/ref/ref_case.h"

static void run_permute(int32_t count, const int64_t *axes)
{
    begin_case(INF_OP_TRANSPOSE);
    one.attrs.transpose.perm.count = count;
    memcpy(one.attrs.transpose.perm.values, axes, sizeof(*axes) * (size_t)count);
}

Test(ref, transposes_any_rank)
{
    run_permute(3, I64(2, 0, 1));
    add_input(INF_DTYPE_U8, SHAPE(1, 2, 3), U8(1, 2, 3, 4, 5, 6));
    expect_output(INF_DTYPE_U8, SHAPE(3, 1, 2), U8(1, 4, 2, 5, 3, 6));
    run_permute(0, I64(0)); // no permutation: the axes are reversed
    add_input(INF_DTYPE_F64, SHAPE(2, 2), F64(1, 2, 3, 4));
    expect_output(INF_DTYPE_F64, SHAPE(2, 2), F64(1, 3, 2, 4));
    run_permute(8, I64(7, 6, 5, 4, 3, 2, 1, 0));
    add_input(INF_DTYPE_U16, SHAPE(2, 1, 1, 1, 2, 1, 1, 2), U16(1, 2, 3, 4, 5, 6, 7, 8));
    expect_output(INF_DTYPE_U16, SHAPE(2, 1, 1, 2, 1, 1, 1, 2), U16(1, 5, 3, 7, 2, 6, 4, 8));
    run_permute(2, I64(1, 0));
    add_input(INF_DTYPE_F32, SHAPE(0, 3), NULL);
    expect_output(INF_DTYPE_F32, SHAPE(3, 0), NULL);
    begin_case(INF_OP_TRANSPOSE);
    add_input(INF_DTYPE_F32, SCALAR, F32(4));
    expect_output(INF_DTYPE_F32, SCALAR, F32(4));
}

Test(ref, renames_without_touching)
{
    begin_case(INF_OP_RESHAPE);
    add_input(INF_DTYPE_BF16, SHAPE(2, 3), U16(1, 2, 3, 4, 5, 6));
    add_list(2, I32(3, -1));
    expect_output(INF_DTYPE_BF16, SHAPE(3, 2), U16(1, 2, 3, 4, 5, 6));
    begin_case(INF_OP_EXPAND_DIMS);
    one.attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {-1}};
    add_input(INF_DTYPE_I8, SHAPE(2), I8(-1, 2));
    expect_output(INF_DTYPE_I8, SHAPE(2, 1), I8(-1, 2));
    begin_case(INF_OP_SQUEEZE);
    add_input(INF_DTYPE_BOOL, SHAPE(1, 2, 1), U8(1, 0));
    expect_output(INF_DTYPE_BOOL, SHAPE(2), U8(1, 0));
    begin_case(INF_OP_IDENTITY);
    add_input(INF_DTYPE_F32, SHAPE(1), F32(NAN));
    expect_output(INF_DTYPE_F32, SHAPE(1), F32(NAN));
}

Test(ref, joins_and_cuts_along_an_axis)
{
    begin_case(INF_OP_CONCAT);
    one.attrs.concat.axis = -1;
    add_input(INF_DTYPE_I64, SHAPE(2, 1), I64(1, 2));
    add_input(INF_DTYPE_I64, SHAPE(2, 0), NULL);
    add_input(INF_DTYPE_I64, SHAPE(2, 2), I64(3, 4, 5, 6));
    expect_output(INF_DTYPE_I64, SHAPE(2, 3), I64(1, 3, 4, 2, 5, 6));
    begin_case(INF_OP_SPLIT);
    one.attrs.split.axis = 1;
    one.output_count = 3;
    add_input(INF_DTYPE_F16, SHAPE(2, 4), U16(1, 2, 3, 4, 5, 6, 7, 8));
    add_list(3, I32(1, 0, -1));
    run_case();
    one_node_expect(&one, 0, INF_DTYPE_F16, SHAPE(2, 1), U16(1, 5));
    one_node_expect(&one, 1, INF_DTYPE_F16, SHAPE(2, 0), NULL);
    one_node_expect(&one, 2, INF_DTYPE_F16, SHAPE(2, 3), U16(2, 3, 4, 6, 7, 8));
    begin_case(INF_OP_SPLIT);
    one.output_count = 2;
    add_input(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 2, 3, 4));
    run_case();
    one_node_expect(&one, 0, INF_DTYPE_I32, SHAPE(1, 2), I32(1, 2));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(1, 2), I32(3, 4));
}

static void run_slice(const int32_t *from, const int32_t *to, const int32_t *step)
{
    begin_case(INF_OP_SLICE);
    add_input(INF_DTYPE_I32, SHAPE(3, 4), I32(0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23));
    add_list(2, from);
    add_list(2, to);
    add_list(2, step);
}

Test(ref, slices_with_strides_of_either_sign)
{
    run_slice(I32(0, 1), I32(3, 4), I32(2, 2));
    expect_output(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 3, 21, 23));
    run_slice(I32(-1, 3), I32(-4, 0), I32(-1, -2));
    expect_output(INF_DTYPE_I32, SHAPE(3, 2), I32(23, 21, 13, 11, 3, 1));
    run_slice(I32(1, 2), I32(0, 99), I32(1, 1));
    one.attrs.slice.shrink_axis_mask = 1;
    expect_output(INF_DTYPE_I32, SHAPE(2), I32(12, 13));
    run_slice(I32(0, 1), I32(0, 2), I32(1, 1));
    one.attrs.slice.ellipsis_mask = 1;
    expect_output(INF_DTYPE_I32, SHAPE(3, 1), I32(1, 11, 21));
    run_slice(I32(2, 0), I32(1, 4), I32(1, 1)); // the slice has no element
    expect_output(INF_DTYPE_I32, SHAPE(0, 4), NULL);
}

static void run_pad(enum inf_pad_mode mode, const int32_t *paddings)
{
    begin_case(INF_OP_PAD);
    one.attrs.pad.mode = mode;
    add_input(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 3, 4, 5, 6));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), paddings);
}

Test(ref, pads_in_four_ways)
{
    run_pad(INF_PAD_CONSTANT, I32(1, 0, 0, 2));
    expect_output(INF_DTYPE_I32, SHAPE(3, 5), I32(0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0));
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(-7));
    expect_output(INF_DTYPE_I32, SHAPE(3, 5),
                  I32(-7, -7, -7, -7, -7, 1, 2, 3, -7, -7, 4, 5, 6, -7, -7));
    run_pad(INF_PAD_REFLECT, I32(0, 1, 2, 1));
    expect_output(INF_DTYPE_I32, SHAPE(3, 6),
                  I32(3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2));
    run_pad(INF_PAD_SYMMETRIC, I32(1, 0, 2, 1));
    expect_output(INF_DTYPE_I32, SHAPE(3, 6),
                  I32(2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 5, 4, 4, 5, 6, 6));
    run_pad(INF_PAD_EDGE, I32(1, 0, 0, 2));
    expect_output(INF_DTYPE_I32, SHAPE(3, 5), I32(1, 2, 3, 3, 3, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6));
    begin_case(INF_OP_PAD); // pads an empty tensor
    add_input(INF_DTYPE_U8, SHAPE(0, 1), NULL);
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 0, 1));
    one_node_const(&one, INF_DTYPE_U8, SCALAR, U8(200));
    expect_output(INF_DTYPE_U8, SHAPE(2, 2), U8(200, 200, 200, 200));
}

Test(ref, repeats_and_stretches)
{
    begin_case(INF_OP_TILE);
    add_input(INF_DTYPE_F64, SHAPE(1, 2), F64(1, 2));
    add_list(2, I32(2, 3));
    expect_output(INF_DTYPE_F64, SHAPE(2, 6), F64(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2));
    begin_case(INF_OP_TILE);
    add_input(INF_DTYPE_F64, SHAPE(1, 2), F64(1, 2));
    add_list(2, I32(0, 3));
    expect_output(INF_DTYPE_F64, SHAPE(0, 6), NULL);
    begin_case(INF_OP_BROADCAST);
    add_input(INF_DTYPE_BOOL, SHAPE(2, 1), U8(1, 0));
    add_list(3, I32(2, 2, 2));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 2, 2), U8(1, 1, 0, 0, 1, 1, 0, 0));
}

Test(ref, gathers_slices)
{
    begin_case(INF_OP_GATHER);
    one.attrs.gather.axis = -2;
    add_input(INF_DTYPE_I32, SHAPE(3, 2), I32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_I64, SHAPE(2, 2), I64(2, 0, 1, 2));
    expect_output(INF_DTYPE_I32, SHAPE(2, 2, 2), I32(5, 6, 1, 2, 3, 4, 5, 6));
    begin_case(INF_OP_GATHER);
    one.attrs.gather.axis = 2;
    one.attrs.gather.batch_dims = 1;
    add_input(INF_DTYPE_F16, SHAPE(2, 1, 3), U16(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_I32, SHAPE(2, 2), I32(0, 2, 1, 1));
    expect_output(INF_DTYPE_F16, SHAPE(2, 1, 2), U16(1, 3, 5, 5));
    begin_case(INF_OP_GATHER);
    add_input(INF_DTYPE_U8, SHAPE(3), U8(7, 8, 9));
    add_input(INF_DTYPE_I32, SCALAR, I32(2));
    expect_output(INF_DTYPE_U8, SCALAR, U8(9));
    begin_case(INF_OP_GATHER);
    add_input(INF_DTYPE_U8, SHAPE(0), NULL);
    add_input(INF_DTYPE_I32, SHAPE(0), NULL);
    expect_output(INF_DTYPE_U8, SHAPE(0), NULL);
}

Test(ref, refuses_indices_out_of_range)
{
    static const int64_t bad[] = {3, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(bad); i++) {
        begin_case(INF_OP_GATHER);
        add_input(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
        add_input(INF_DTYPE_I64, SHAPE(3), I64(0, 2, bad[i]));
        char text[160];
        snprintf(text, sizeof(text),
                 "node 'node' (gather): index %lld (element 2 of the indices) is outside [0, 3)",
                 (long long)bad[i]);
        expect_failure(text);
    }
    begin_case(INF_OP_GATHER);
    add_input(INF_DTYPE_F32, SHAPE(0), NULL);
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    expect_failure("node 'node' (gather): index 0 (element 0 of the indices) is outside [0, 0)");
}

Test(ref, moves_blocks_both_ways)
{
    begin_case(INF_OP_SPACE_TO_DEPTH); // 2x4 pixels with one channel
    add_input(INF_DTYPE_U8, SHAPE(1, 2, 4, 1), U8(1, 2, 3, 4, 5, 6, 7, 8));
    expect_output(INF_DTYPE_U8, SHAPE(1, 1, 2, 4), U8(1, 2, 5, 6, 3, 4, 7, 8));
    begin_case(INF_OP_DEPTH_TO_SPACE); // 8 channels become 2x2 pixels with 2 channels
    add_input(INF_DTYPE_I32, SHAPE(1, 1, 1, 8), I32(1, 2, 3, 4, 5, 6, 7, 8));
    expect_output(INF_DTYPE_I32, SHAPE(1, 2, 2, 2), I32(1, 2, 3, 4, 5, 6, 7, 8));
    begin_case(INF_OP_DEPTH_TO_SPACE);
    add_input(INF_DTYPE_I32, SHAPE(1, 1, 2, 4), I32(1, 2, 3, 4, 5, 6, 7, 8));
    expect_output(INF_DTYPE_I32, SHAPE(1, 2, 4, 1), I32(1, 2, 5, 6, 3, 4, 7, 8));
}

Test(ref, makes_shapes_fills_and_ranges)
{
    begin_case(INF_OP_SHAPE);
    add_input(INF_DTYPE_U8, SHAPE(2, 0, 5), NULL);
    expect_output(INF_DTYPE_I32, SHAPE(3), I32(2, 0, 5));
    begin_case(INF_OP_SHAPE);
    add_input(INF_DTYPE_U8, SCALAR, U8(1));
    expect_output(INF_DTYPE_I32, SHAPE(0), NULL);
    begin_case(INF_OP_FILL);
    add_list(2, I32(2, 1));
    add_input(INF_DTYPE_I64, SCALAR, I64(INT64_MIN));
    expect_output(INF_DTYPE_I64, SHAPE(2, 1), I64(INT64_MIN, INT64_MIN));
    begin_case(INF_OP_RANGE);
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(5));
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(-2));
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(-3));
    expect_output(INF_DTYPE_I32, SHAPE(3), I32(5, 2, -1));
    begin_case(INF_OP_RANGE);
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(0));
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(1));
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(0.3f));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(0, 0.3f, 0.6f, 0.9f));
}
