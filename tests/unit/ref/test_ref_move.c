// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that move or make data, against literals worked out by hand. Many
// types: they look at bytes only.
#include "tests/unit/ref/ref_case.h"

static void permute(int32_t count, const int64_t *axes)
{
    begin(INF_OP_TRANSPOSE);
    one.attrs.transpose.perm.count = count;
    memcpy(one.attrs.transpose.perm.values, axes, sizeof(*axes) * (size_t)count);
}

Test(ref, transposes_any_rank)
{
    permute(3, I64(2, 0, 1));
    in(INF_DTYPE_U8, SHAPE(1, 2, 3), U8(1, 2, 3, 4, 5, 6));
    wants(INF_DTYPE_U8, SHAPE(3, 1, 2), U8(1, 4, 2, 5, 3, 6));
    permute(0, I64(0)); // reversed
    in(INF_DTYPE_F64, SHAPE(2, 2), F64(1, 2, 3, 4));
    wants(INF_DTYPE_F64, SHAPE(2, 2), F64(1, 3, 2, 4));
    permute(8, I64(7, 6, 5, 4, 3, 2, 1, 0));
    in(INF_DTYPE_U16, SHAPE(2, 1, 1, 1, 2, 1, 1, 2), U16(1, 2, 3, 4, 5, 6, 7, 8));
    wants(INF_DTYPE_U16, SHAPE(2, 1, 1, 2, 1, 1, 1, 2), U16(1, 5, 3, 7, 2, 6, 4, 8));
    permute(2, I64(1, 0));
    in(INF_DTYPE_F32, SHAPE(0, 3), NULL);
    wants(INF_DTYPE_F32, SHAPE(3, 0), NULL);
    begin(INF_OP_TRANSPOSE);
    in(INF_DTYPE_F32, SCALAR, F32(4));
    wants(INF_DTYPE_F32, SCALAR, F32(4));
}

Test(ref, renames_without_touching)
{
    begin(INF_OP_RESHAPE);
    in(INF_DTYPE_BF16, SHAPE(2, 3), U16(1, 2, 3, 4, 5, 6));
    list(2, I32(3, -1));
    wants(INF_DTYPE_BF16, SHAPE(3, 2), U16(1, 2, 3, 4, 5, 6));
    begin(INF_OP_EXPAND_DIMS);
    one.attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {-1}};
    in(INF_DTYPE_I8, SHAPE(2), I8(-1, 2));
    wants(INF_DTYPE_I8, SHAPE(2, 1), I8(-1, 2));
    begin(INF_OP_SQUEEZE);
    in(INF_DTYPE_BOOL, SHAPE(1, 2, 1), U8(1, 0));
    wants(INF_DTYPE_BOOL, SHAPE(2), U8(1, 0));
    begin(INF_OP_IDENTITY);
    in(INF_DTYPE_F32, SHAPE(1), F32(NAN));
    wants(INF_DTYPE_F32, SHAPE(1), F32(NAN));
}

Test(ref, joins_and_cuts_along_an_axis)
{
    begin(INF_OP_CONCAT);
    one.attrs.concat.axis = -1;
    in(INF_DTYPE_I64, SHAPE(2, 1), I64(1, 2));
    in(INF_DTYPE_I64, SHAPE(2, 0), NULL);
    in(INF_DTYPE_I64, SHAPE(2, 2), I64(3, 4, 5, 6));
    wants(INF_DTYPE_I64, SHAPE(2, 3), I64(1, 3, 4, 2, 5, 6));
    begin(INF_OP_SPLIT);
    one.attrs.split.axis = 1;
    one.output_count = 3;
    in(INF_DTYPE_F16, SHAPE(2, 4), U16(1, 2, 3, 4, 5, 6, 7, 8));
    list(3, I32(1, 0, -1));
    run();
    one_node_expect(&one, 0, INF_DTYPE_F16, SHAPE(2, 1), U16(1, 5));
    one_node_expect(&one, 1, INF_DTYPE_F16, SHAPE(2, 0), NULL);
    one_node_expect(&one, 2, INF_DTYPE_F16, SHAPE(2, 3), U16(2, 3, 4, 6, 7, 8));
    begin(INF_OP_SPLIT);
    one.output_count = 2;
    in(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 2, 3, 4));
    run();
    one_node_expect(&one, 0, INF_DTYPE_I32, SHAPE(1, 2), I32(1, 2));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(1, 2), I32(3, 4));
}

static void slice(const int32_t *from, const int32_t *to, const int32_t *step)
{
    begin(INF_OP_SLICE);
    in(INF_DTYPE_I32, SHAPE(3, 4), I32(0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23));
    list(2, from);
    list(2, to);
    list(2, step);
}

Test(ref, slices_with_strides_of_either_sign)
{
    slice(I32(0, 1), I32(3, 4), I32(2, 2));
    wants(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 3, 21, 23));
    slice(I32(-1, 3), I32(-4, 0), I32(-1, -2));
    wants(INF_DTYPE_I32, SHAPE(3, 2), I32(23, 21, 13, 11, 3, 1));
    slice(I32(1, 2), I32(0, 99), I32(1, 1));
    one.attrs.slice.shrink_axis_mask = 1;
    wants(INF_DTYPE_I32, SHAPE(2), I32(12, 13));
    slice(I32(0, 1), I32(0, 2), I32(1, 1));
    one.attrs.slice.ellipsis_mask = 1;
    wants(INF_DTYPE_I32, SHAPE(3, 1), I32(1, 11, 21));
    slice(I32(2, 0), I32(1, 4), I32(1, 1)); // nothing
    wants(INF_DTYPE_I32, SHAPE(0, 4), NULL);
}

static void pad(enum inf_pad_mode mode, const int32_t *paddings)
{
    begin(INF_OP_PAD);
    one.attrs.pad.mode = mode;
    in(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 3, 4, 5, 6));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), paddings);
}

Test(ref, pads_in_four_ways)
{
    pad(INF_PAD_CONSTANT, I32(1, 0, 0, 2));
    wants(INF_DTYPE_I32, SHAPE(3, 5), I32(0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0));
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(-7));
    wants(INF_DTYPE_I32, SHAPE(3, 5), I32(-7, -7, -7, -7, -7, 1, 2, 3, -7, -7, 4, 5, 6, -7, -7));
    pad(INF_PAD_REFLECT, I32(0, 1, 2, 1));
    wants(INF_DTYPE_I32, SHAPE(3, 6), I32(3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5, 3, 2, 1, 2, 3, 2));
    pad(INF_PAD_SYMMETRIC, I32(1, 0, 2, 1));
    wants(INF_DTYPE_I32, SHAPE(3, 6), I32(2, 1, 1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 5, 4, 4, 5, 6, 6));
    pad(INF_PAD_EDGE, I32(1, 0, 0, 2));
    wants(INF_DTYPE_I32, SHAPE(3, 5), I32(1, 2, 3, 3, 3, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6));
    begin(INF_OP_PAD); // out of nothing
    in(INF_DTYPE_U8, SHAPE(0, 1), NULL);
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 0, 1));
    one_node_const(&one, INF_DTYPE_U8, SCALAR, U8(200));
    wants(INF_DTYPE_U8, SHAPE(2, 2), U8(200, 200, 200, 200));
}

Test(ref, repeats_and_stretches)
{
    begin(INF_OP_TILE);
    in(INF_DTYPE_F64, SHAPE(1, 2), F64(1, 2));
    list(2, I32(2, 3));
    wants(INF_DTYPE_F64, SHAPE(2, 6), F64(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2));
    begin(INF_OP_TILE);
    in(INF_DTYPE_F64, SHAPE(1, 2), F64(1, 2));
    list(2, I32(0, 3));
    wants(INF_DTYPE_F64, SHAPE(0, 6), NULL);
    begin(INF_OP_BROADCAST);
    in(INF_DTYPE_BOOL, SHAPE(2, 1), U8(1, 0));
    list(3, I32(2, 2, 2));
    wants(INF_DTYPE_BOOL, SHAPE(2, 2, 2), U8(1, 1, 0, 0, 1, 1, 0, 0));
}

Test(ref, gathers_slices)
{
    begin(INF_OP_GATHER);
    one.attrs.gather.axis = -2;
    in(INF_DTYPE_I32, SHAPE(3, 2), I32(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_I64, SHAPE(2, 2), I64(2, 0, 1, 2));
    wants(INF_DTYPE_I32, SHAPE(2, 2, 2), I32(5, 6, 1, 2, 3, 4, 5, 6));
    begin(INF_OP_GATHER);
    one.attrs.gather.axis = 2;
    one.attrs.gather.batch_dims = 1;
    in(INF_DTYPE_F16, SHAPE(2, 1, 3), U16(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_I32, SHAPE(2, 2), I32(0, 2, 1, 1));
    wants(INF_DTYPE_F16, SHAPE(2, 1, 2), U16(1, 3, 5, 5));
    begin(INF_OP_GATHER);
    in(INF_DTYPE_U8, SHAPE(3), U8(7, 8, 9));
    in(INF_DTYPE_I32, SCALAR, I32(2));
    wants(INF_DTYPE_U8, SCALAR, U8(9));
    begin(INF_OP_GATHER);
    in(INF_DTYPE_U8, SHAPE(0), NULL);
    in(INF_DTYPE_I32, SHAPE(0), NULL);
    wants(INF_DTYPE_U8, SHAPE(0), NULL);
}

Test(ref, refuses_indices_out_of_range)
{
    static const int64_t bad[] = {3, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(bad); i++) {
        begin(INF_OP_GATHER);
        in(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
        in(INF_DTYPE_I64, SHAPE(3), I64(0, 2, bad[i]));
        char text[160];
        snprintf(text, sizeof(text),
                 "node 'node' (gather): index %lld (element 2 of the indices) is outside [0, 3)",
                 (long long)bad[i]);
        fails(text);
    }
    begin(INF_OP_GATHER);
    in(INF_DTYPE_F32, SHAPE(0), NULL);
    in(INF_DTYPE_I32, SHAPE(1), I32(0));
    fails("node 'node' (gather): index 0 (element 0 of the indices) is outside [0, 0)");
}

Test(ref, moves_blocks_both_ways)
{
    begin(INF_OP_SPACE_TO_DEPTH); // 2x4, one channel
    in(INF_DTYPE_U8, SHAPE(1, 2, 4, 1), U8(1, 2, 3, 4, 5, 6, 7, 8));
    wants(INF_DTYPE_U8, SHAPE(1, 1, 2, 4), U8(1, 2, 5, 6, 3, 4, 7, 8));
    begin(INF_OP_DEPTH_TO_SPACE); // 8 channels become 2x2 of 2
    in(INF_DTYPE_I32, SHAPE(1, 1, 1, 8), I32(1, 2, 3, 4, 5, 6, 7, 8));
    wants(INF_DTYPE_I32, SHAPE(1, 2, 2, 2), I32(1, 2, 3, 4, 5, 6, 7, 8));
    begin(INF_OP_DEPTH_TO_SPACE);
    in(INF_DTYPE_I32, SHAPE(1, 1, 2, 4), I32(1, 2, 3, 4, 5, 6, 7, 8));
    wants(INF_DTYPE_I32, SHAPE(1, 2, 4, 1), I32(1, 2, 5, 6, 3, 4, 7, 8));
}

Test(ref, makes_shapes_fills_and_ranges)
{
    begin(INF_OP_SHAPE);
    in(INF_DTYPE_U8, SHAPE(2, 0, 5), NULL);
    wants(INF_DTYPE_I32, SHAPE(3), I32(2, 0, 5));
    begin(INF_OP_SHAPE);
    in(INF_DTYPE_U8, SCALAR, U8(1));
    wants(INF_DTYPE_I32, SHAPE(0), NULL);
    begin(INF_OP_FILL);
    list(2, I32(2, 1));
    in(INF_DTYPE_I64, SCALAR, I64(INT64_MIN));
    wants(INF_DTYPE_I64, SHAPE(2, 1), I64(INT64_MIN, INT64_MIN));
    begin(INF_OP_RANGE);
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(5));
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(-2));
    one_node_const(&one, INF_DTYPE_I32, SCALAR, I32(-3));
    wants(INF_DTYPE_I32, SHAPE(3), I32(5, 2, -1));
    begin(INF_OP_RANGE);
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(0));
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(1));
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(0.3f));
    wants(INF_DTYPE_F32, SHAPE(4), F32(0, 0.3f, 0.6f, 0.9f));
}
