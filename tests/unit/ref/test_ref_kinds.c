// SPDX-License-Identifier: Apache-2.0
// Kinds of unary, bitwise and reducing operators on the reference device. The expected literals are
// worked out by hand or with Python's math module, or are the examples of ONNX's documentation.
#include "tests/unit/ref/ref_case.h"

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
