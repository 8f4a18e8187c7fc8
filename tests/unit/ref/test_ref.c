// SPDX-License-Identifier: Apache-2.0
// Element-wise operators, reductions and programs of the reference device, compared with literals
// worked out by hand. The results of TensorFlow.js for the same operators are in test_ref_facts.c.
#include "tests/unit/ref/ref_case.h"

// --- unary operators ---

static void run_unary(enum inf_unary_kind kind, enum inf_dtype dtype, int64_t count, const void *x)
{
    begin_case(INF_OP_UNARY);
    one.attrs.unary.kind = kind;
    add_input(dtype, SHAPE(count), x);
}

Test(ref, rounds_ties_to_even_and_keeps_nan)
{
    run_unary(INF_UNARY_ROUND, INF_DTYPE_F32, 8,
              F32(0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f, NAN, INFINITY));
    expect_output(INF_DTYPE_F32, SHAPE(8), F32(0, 2, 2, 0, -2, 2, NAN, INFINITY));
    run_unary(INF_UNARY_SIGN, INF_DTYPE_F32, 4, F32(-3, 0, INFINITY, NAN));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(-1, 0, 1, NAN));
    run_unary(INF_UNARY_RELU, INF_DTYPE_F32, 5, F32(NAN, -INFINITY, -1, 0, INFINITY));
    expect_output(INF_DTYPE_F32, SHAPE(5), F32(NAN, 0, 0, 0, INFINITY));
    run_unary(INF_UNARY_RELU6, INF_DTYPE_F32, 5, F32(NAN, -1, 5.5f, 6.5f, INFINITY));
    expect_output(INF_DTYPE_F32, SHAPE(5), F32(NAN, 0, 5.5f, 6, 6));
    begin_case(INF_OP_CLIP);
    one.attrs.clip.min = -1;
    one.attrs.clip.max = 2;
    add_input(INF_DTYPE_F32, SHAPE(5), F32(NAN, -INFINITY, 0.25f, 2, 1e30f));
    expect_output(INF_DTYPE_F32, SHAPE(5), F32(NAN, -1, 0.25f, 2, 2));
}

Test(ref, does_not_overflow_where_the_answer_does_not)
{
    run_unary(INF_UNARY_SOFTPLUS, INF_DTYPE_F32, 4, F32(1000, -1000, 0, NAN));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(1000, 0, 0.69314718f, NAN));
    run_unary(INF_UNARY_SIGMOID, INF_DTYPE_F32, 4, F32(-1000, 1000, 0, INFINITY));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(0, 1, 0.5f, 1));
    run_unary(INF_UNARY_TANH, INF_DTYPE_F32, 3, F32(-500, 500, 1e-30f));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(-1, 1, 1e-30f));
    run_unary(INF_UNARY_EXP, INF_DTYPE_F32, 4, F32(100, -200, 0, -INFINITY));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(INFINITY, 0, 1, 0));
}

Test(ref, computes_the_activations_of_mobile_networks)
{
    run_unary(INF_UNARY_HARD_SWISH, INF_DTYPE_F32, 5, F32(-4, -3, -1.5f, 1, 4));
    expect_output(INF_DTYPE_F32, SHAPE(5), F32(0, 0, -0.375f, 0.66666667f, 4));
    run_unary(INF_UNARY_ELU, INF_DTYPE_F32, 3, F32(-1, 0, 2));
    one.attrs.unary.alpha = 2;
    // elu(-1) with alpha 2 is 2 (1/e - 1)
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(-1.26424112f, 0, 2));
    run_unary(INF_UNARY_SELU, INF_DTYPE_F32, 2, F32(-1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(-1.11133074f, 1.05070099f));
    run_unary(INF_UNARY_LEAKY_RELU, INF_DTYPE_F32, 2, F32(-10, 10));
    one.attrs.unary.alpha = 0.25f;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(-2.5f, 10));
}

Test(ref, takes_integers_and_halves_too)
{
    run_unary(INF_UNARY_NEG, INF_DTYPE_I64, 3, I64(INT64_MAX, INT64_MIN, 5));
    expect_output(INF_DTYPE_I64, SHAPE(3), I64(-INT64_MAX, INT64_MIN, -5));
    run_unary(INF_UNARY_ABS, INF_DTYPE_I8, 3, I8(-128, -127, 3));
    expect_output(INF_DTYPE_I8, SHAPE(3), I8(-128, 127, 3));
    run_unary(INF_UNARY_SQUARE, INF_DTYPE_U8, 2, U8(15, 16));
    expect_output(INF_DTYPE_U8, SHAPE(2), U8(225, 0));
    run_unary(INF_UNARY_RELU6, INF_DTYPE_I32, 3, I32(INT32_MIN, 4, INT32_MAX));
    expect_output(INF_DTYPE_I32, SHAPE(3), I32(0, 4, 6));
    run_unary(INF_UNARY_SQRT, INF_DTYPE_F16, 2, U16(0x4400, 0x3c00)); // the operands are 4, 1
    expect_output(INF_DTYPE_F16, SHAPE(2), U16(0x4000, 0x3c00));      // the results are 2, 1
    run_unary(INF_UNARY_NEG, INF_DTYPE_BF16, 2, U16(0x3f80, 0xc000)); // the operands are 1, -2
    expect_output(INF_DTYPE_BF16, SHAPE(2), U16(0xbf80, 0x4000));
    run_unary(INF_UNARY_EXP, INF_DTYPE_F64, 1, F64(0));
    expect_output(INF_DTYPE_F64, SHAPE(1), F64(1));
    run_unary(INF_UNARY_LOGICAL_NOT, INF_DTYPE_BOOL, 2, U8(0, 1));
    expect_output(INF_DTYPE_BOOL, SHAPE(2), U8(1, 0));
}

static void run_cast(enum inf_dtype from, enum inf_dtype to, int64_t count, const void *x)
{
    begin_case(INF_OP_CAST);
    one.attrs.cast.dtype = to;
    add_input(from, SHAPE(count), x);
}

Test(ref, bitcast_keeps_the_bits)
{
    begin_case(INF_OP_BITCAST);
    one.attrs.bitcast.dtype = INF_DTYPE_I32;
    add_input(INF_DTYPE_F32, SHAPE(4), F32(1, -0.0f, INFINITY, -2));
    expect_output(INF_DTYPE_I32, SHAPE(4), I32(0x3f800000, INT32_MIN, 0x7f800000, -0x40000000));
    begin_case(INF_OP_BITCAST);
    one.attrs.bitcast.dtype = INF_DTYPE_BOOL;
    add_input(INF_DTYPE_U8, SHAPE(3), U8(0, 2, 255));
    expect_output(INF_DTYPE_BOOL, SHAPE(3), U8(0, 1, 1));
}

Test(ref, casts_floats_by_truncation_within_the_range)
{
    run_cast(INF_DTYPE_F32, INF_DTYPE_I32, 7,
             F32(1.9f, -1.9f, NAN, INFINITY, -INFINITY, 3e9f, -3e9f));
    expect_output(INF_DTYPE_I32, SHAPE(7),
                  I32(1, -1, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN));
    run_cast(INF_DTYPE_F32, INF_DTYPE_U8, 4, F32(-1, 255.9f, 300, 7.5f));
    expect_output(INF_DTYPE_U8, SHAPE(4), U8(0, 255, 255, 7));
    run_cast(INF_DTYPE_F64, INF_DTYPE_U64, 2, F64(1e20, 18446744073709549568.0));
    expect_output(INF_DTYPE_U64, SHAPE(2), U64(UINT64_MAX, 18446744073709549568u));
    run_cast(INF_DTYPE_F32, INF_DTYPE_BOOL, 4, F32(0, -0.0f, 0.1f, NAN));
    expect_output(INF_DTYPE_BOOL, SHAPE(4), U8(0, 0, 1, 1));
    run_cast(INF_DTYPE_F32, INF_DTYPE_F16, 3, F32(1, 65504, 1e6f));
    expect_output(INF_DTYPE_F16, SHAPE(3), U16(0x3c00, 0x7bff, 0x7c00));
}

Test(ref, casts_integers_by_wrapping_and_exactly)
{
    run_cast(INF_DTYPE_I32, INF_DTYPE_U8, 3, I32(-1, 256, 257));
    expect_output(INF_DTYPE_U8, SHAPE(3), U8(255, 0, 1));
    run_cast(INF_DTYPE_I64, INF_DTYPE_U64, 1, I64(-1));
    expect_output(INF_DTYPE_U64, SHAPE(1), U64(UINT64_MAX));
    run_cast(INF_DTYPE_BOOL, INF_DTYPE_F32, 2, U8(0, 1));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(0, 1));
    run_cast(INF_DTYPE_I64, INF_DTYPE_I32, 1, I64((INT64_C(1) << 32) + 9));
    expect_output(INF_DTYPE_I32, SHAPE(1), I32(9));
}

// --- binary operators ---

static void run_binary(enum inf_binary_kind kind, enum inf_dtype dtype, int64_t count,
                       const void *a, const void *b)
{
    begin_case(INF_OP_BINARY);
    one.attrs.binary.kind = kind;
    add_input(dtype, SHAPE(count), a);
    add_input(dtype, SHAPE(count), b);
}

Test(ref, broadcasts_both_sides)
{
    begin_case(INF_OP_BINARY);
    one.attrs.binary.kind = INF_BINARY_SUB;
    add_input(INF_DTYPE_F32, SHAPE(3, 1), F32(10, 20, 30));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 2), F32(1, 2, 3, 4));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(9, 8, 19, 18, 29, 28, 7, 6, 17, 16, 27, 26));
    begin_case(INF_OP_BINARY);
    add_input(INF_DTYPE_F32, SHAPE(2, 0, 3), NULL);
    add_input(INF_DTYPE_F32, SHAPE(1), F32(1));
    expect_output(INF_DTYPE_F32, SHAPE(2, 0, 3), NULL);
    begin_case(INF_OP_BINARY);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 1, 1, 1, 1, 1, 2), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1, 1, 1, 1, 1, 1), F32(10, 20));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 1, 1, 1, 1, 1, 2),
                  F32(11, 12, 13, 14, 21, 22, 23, 24));
}

Test(ref, divides_integers_as_each_kind_says)
{
    const int32_t a[] = {7, -7, 7, -7}, b[] = {2, 2, -2, -2};
    run_binary(INF_BINARY_DIV, INF_DTYPE_I32, 4, a, b);
    expect_output(INF_DTYPE_I32, SHAPE(4), I32(3, -3, -3, 3));
    run_binary(INF_BINARY_FLOOR_DIV, INF_DTYPE_I32, 4, a, b);
    expect_output(INF_DTYPE_I32, SHAPE(4), I32(3, -4, -4, 3));
    run_binary(INF_BINARY_FLOOR_MOD, INF_DTYPE_I32, 4, a, b);
    expect_output(INF_DTYPE_I32, SHAPE(4), I32(1, 1, -1, -1));
    run_binary(INF_BINARY_MOD, INF_DTYPE_I32, 4, a, b);
    expect_output(INF_DTYPE_I32, SHAPE(4), I32(1, -1, 1, -1));
    run_binary(INF_BINARY_FLOOR_MOD, INF_DTYPE_F32, 4, F32(7, -7, 7, -7), F32(2, 2, -2, -2));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(1, 1, -1, -1));
    run_binary(INF_BINARY_DIV, INF_DTYPE_I32, 1, I32(INT32_MIN), I32(-1));
    expect_output(INF_DTYPE_I32, SHAPE(1), I32(INT32_MIN));
    run_binary(INF_BINARY_DIV_NO_NAN, INF_DTYPE_I32, 2, I32(5, 5), I32(0, 2));
    expect_output(INF_DTYPE_I32, SHAPE(2), I32(0, 2));
}

Test(ref, refuses_to_divide_an_integer_by_0)
{
    enum inf_binary_kind kinds[] = {INF_BINARY_DIV, INF_BINARY_FLOOR_DIV, INF_BINARY_FLOOR_MOD,
                                    INF_BINARY_MOD};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        run_binary(kinds[i], INF_DTYPE_I32, 3, I32(1, 2, 3), I32(1, 1, 0));
        expect_failure("node 'node' (binary): element 2: an integer is divided by 0");
    }
    run_binary(INF_BINARY_DIV, INF_DTYPE_F32, 3, F32(1, -1, 0), F32(0, 0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(INFINITY, -INFINITY, NAN));
    run_binary(INF_BINARY_DIV_NO_NAN, INF_DTYPE_F32, 2, F32(1, NAN), F32(0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(0, 0));
}

Test(ref, wraps_integers_around)
{
    run_binary(INF_BINARY_ADD, INF_DTYPE_I32, 2, I32(INT32_MAX, INT32_MIN), I32(1, -1));
    expect_output(INF_DTYPE_I32, SHAPE(2), I32(INT32_MIN, INT32_MAX));
    run_binary(INF_BINARY_SUB, INF_DTYPE_U8, 2, U8(3, 200), U8(5, 100));
    expect_output(INF_DTYPE_U8, SHAPE(2), U8(254, 100));
    run_binary(INF_BINARY_MUL, INF_DTYPE_U64, 1, U64(UINT64_MAX), U64(UINT64_MAX));
    expect_output(INF_DTYPE_U64, SHAPE(1), U64(1));
    run_binary(INF_BINARY_POW, INF_DTYPE_I64, 4, I64(3, -2, 2, 7), I64(4, 63, -1, 0));
    expect_output(INF_DTYPE_I64, SHAPE(4), I64(81, INT64_MIN, 0, 1));
    run_binary(INF_BINARY_SQUARED_DIFFERENCE, INF_DTYPE_I32, 1, I32(INT32_MAX), I32(INT32_MIN));
    expect_output(INF_DTYPE_I32, SHAPE(1), I32(1));
    // The sum has more bits than a double can hold.
    run_binary(INF_BINARY_ADD, INF_DTYPE_I64, 1, I64((INT64_C(1) << 53) + 1), I64(2));
    expect_output(INF_DTYPE_I64, SHAPE(1), I64((INT64_C(1) << 53) + 3));
    run_binary(INF_BINARY_MAX, INF_DTYPE_U64, 1, U64(UINT64_MAX), U64(1));
    expect_output(INF_DTYPE_U64, SHAPE(1), U64(UINT64_MAX));
}

Test(ref, gives_nan_where_either_side_is)
{
    run_binary(INF_BINARY_MIN, INF_DTYPE_F32, 4, F32(NAN, 1, -INFINITY, 2), F32(1, NAN, 0, 3));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(NAN, NAN, -INFINITY, 2));
    run_binary(INF_BINARY_MAX, INF_DTYPE_F32, 4, F32(NAN, 1, INFINITY, 2), F32(1, NAN, 0, 3));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(NAN, NAN, INFINITY, 3));
    run_binary(INF_BINARY_ATAN2, INF_DTYPE_F32, 2, F32(1, 0), F32(0, -1));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(1.57079633f, 3.14159265f));
    run_binary(INF_BINARY_ADD, INF_DTYPE_F32, 2, F32(5, NAN), F32(4, 1));
    one.attrs.binary.activation = INF_ACTIVATION_RELU6;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(6, NAN));
    run_binary(INF_BINARY_LOGICAL_XOR, INF_DTYPE_BOOL, 4, U8(0, 0, 1, 1), U8(0, 1, 0, 1));
    expect_output(INF_DTYPE_BOOL, SHAPE(4), U8(0, 1, 1, 0));
}

Test(ref, compares_nan_with_nothing_and_large_integers_exactly)
{
    static const uint8_t wanted[INF_COMPARE_COUNT][4] = {
        [INF_COMPARE_EQUAL] = {0, 1, 0, 0},   [INF_COMPARE_NOT_EQUAL] = {1, 0, 1, 1},
        [INF_COMPARE_LESS] = {0, 0, 1, 0},    [INF_COMPARE_LESS_EQUAL] = {0, 1, 1, 0},
        [INF_COMPARE_GREATER] = {0, 0, 0, 1}, [INF_COMPARE_GREATER_EQUAL] = {0, 1, 0, 1},
    };
    for (enum inf_compare_kind kind = 0; kind < INF_COMPARE_COUNT; kind++) {
        begin_case(INF_OP_COMPARE);
        one.attrs.compare.kind = kind;
        add_input(INF_DTYPE_F32, SHAPE(4), F32(NAN, -0.0f, 1, INFINITY));
        add_input(INF_DTYPE_F32, SHAPE(4), F32(NAN, 0, 2, 3));
        expect_output(INF_DTYPE_BOOL, SHAPE(4), wanted[kind]);
    }
    begin_case(INF_OP_COMPARE);
    one.attrs.compare.kind = INF_COMPARE_LESS;
    add_input(INF_DTYPE_U64, SHAPE(2), U64(UINT64_MAX - 1, 1));
    add_input(INF_DTYPE_U64, SHAPE(1), U64(UINT64_MAX));
    expect_output(INF_DTYPE_BOOL, SHAPE(2), U8(1, 1));
}

Test(ref, selects_elements_of_any_type)
{
    begin_case(INF_OP_SELECT);
    add_input(INF_DTYPE_BOOL, SHAPE(2, 1), U8(1, 0));
    add_input(INF_DTYPE_BF16, SHAPE(2), U16(1, 2));
    add_input(INF_DTYPE_BF16, SHAPE(1, 1), U16(9));
    expect_output(INF_DTYPE_BF16, SHAPE(2, 2), U16(1, 2, 9, 9));
    begin_case(INF_OP_PRELU);
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(-1, -2, 3, NAN));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(0.5f, 10));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(-0.5f, -20, 3, NAN));
}

// --- reductions ---

static void run_reduce(enum inf_reduce_kind kind, struct inf_ints axes, bool keep_dims)
{
    begin_case(INF_OP_REDUCE);
    one.attrs.reduce.kind = kind;
    one.attrs.reduce.axes = axes;
    one.attrs.reduce.keep_dims = keep_dims;
}

#define ALL_AXES ((struct inf_ints){0})

Test(ref, reduces_any_axes)
{
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; // a tensor of shape [2,2,3]
    run_reduce(INF_REDUCE_SUM, AXES(0, -1), false);
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 3), x);
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(6 + 24, 15 + 33));
    run_reduce(INF_REDUCE_MEAN, AXES(1), true);
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 3), x);
    expect_output(INF_DTYPE_F32, SHAPE(2, 1, 3), F32(2.5f, 3.5f, 4.5f, 8.5f, 9.5f, 10.5f));
    run_reduce(INF_REDUCE_PROD, ALL_AXES, false);
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 3), x);
    expect_output(INF_DTYPE_F32, SCALAR, F32(479001600));
    run_reduce(INF_REDUCE_MAX, AXES(0), false);
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, NAN, 2, 3));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(2, NAN));
    run_reduce(INF_REDUCE_ALL, AXES(1), false);
    add_input(INF_DTYPE_BOOL, SHAPE(2, 2), U8(1, 1, 0, 1));
    expect_output(INF_DTYPE_BOOL, SHAPE(2), U8(1, 0));
    run_reduce(INF_REDUCE_ANY, ALL_AXES, true);
    add_input(INF_DTYPE_BOOL, SHAPE(1, 2), U8(0, 1));
    expect_output(INF_DTYPE_BOOL, SHAPE(1, 1), U8(1));
}

Test(ref, reduces_integers_exactly)
{
    run_reduce(INF_REDUCE_SUM, ALL_AXES, false);
    add_input(INF_DTYPE_I64, SHAPE(3), I64(INT64_C(1) << 60, 1, -(INT64_C(1) << 60)));
    expect_output(INF_DTYPE_I64, SCALAR, I64(1));
    run_reduce(INF_REDUCE_SUM, ALL_AXES, false);
    add_input(INF_DTYPE_U8, SHAPE(2), U8(200, 100));
    expect_output(INF_DTYPE_U8, SCALAR, U8(44));
    run_reduce(INF_REDUCE_MEAN, ALL_AXES, false);
    add_input(INF_DTYPE_I32, SHAPE(2), I32(-3, -4));
    expect_output(INF_DTYPE_I32, SCALAR, I32(-3));
    run_reduce(INF_REDUCE_MIN, ALL_AXES, false);
    add_input(INF_DTYPE_I8, SHAPE(3), I8(5, -128, 7));
    expect_output(INF_DTYPE_I8, SCALAR, I8(-128));
}

Test(ref, reduces_nothing_to_the_neutral_element)
{
    static const struct {
        enum inf_reduce_kind kind;
        float wanted;
    } cases[] = {{INF_REDUCE_SUM, 0},
                 {INF_REDUCE_PROD, 1},
                 {INF_REDUCE_MEAN, NAN},
                 {INF_REDUCE_MAX, -INFINITY},
                 {INF_REDUCE_MIN, INFINITY}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        run_reduce(cases[i].kind, AXES(0), false);
        add_input(INF_DTYPE_F32, SHAPE(0, 2), NULL);
        expect_output(INF_DTYPE_F32, SHAPE(2), F32(cases[i].wanted, cases[i].wanted));
    }
    run_reduce(INF_REDUCE_SUM, AXES(1), false);
    add_input(INF_DTYPE_F32, SHAPE(0, 2), NULL);
    expect_output(INF_DTYPE_F32, SHAPE(0), NULL);
}

Test(ref, finds_the_first_extreme)
{
    begin_case(INF_OP_ARG);
    one.attrs.arg.axis = -1;
    add_input(INF_DTYPE_F32, SHAPE(3, 3), F32(1, 5, 5, -1, -1, -2, NAN, 3, 4));
    expect_output(INF_DTYPE_I32, SHAPE(3), I32(1, 0, 0));
    begin_case(INF_OP_ARG);
    one.attrs.arg.kind = INF_ARG_MIN;
    one.attrs.arg.keep_dims = true;
    one.attrs.arg.dtype = INF_DTYPE_I64;
    add_input(INF_DTYPE_U64, SHAPE(2, 2), U64(UINT64_MAX, 1, UINT64_MAX - 1, 1));
    expect_output(INF_DTYPE_I64, SHAPE(1, 2), I64(1, 0));
}

Test(ref, normalises_without_overflow)
{
    begin_case(INF_OP_SOFTMAX);
    one.attrs.softmax.axis = 0;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1000, -1000, 1000, -1000));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(0.5f, 0.5f, 0.5f, 0.5f));
    begin_case(INF_OP_SOFTMAX);
    one.attrs.softmax.log = true;
    add_input(INF_DTYPE_F32, SHAPE(2), F32(0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(-0.69314718f, -0.69314718f));
    begin_case(INF_OP_SOFTMAX);
    add_input(INF_DTYPE_F32, SHAPE(2, 0), NULL);
    expect_output(INF_DTYPE_F32, SHAPE(2, 0), NULL);
    begin_case(INF_OP_BATCH_NORM); // (x - mean) / sqrt(variance + epsilon) * scale + offset
    one.attrs.batch_norm.epsilon = 1;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(10, 1));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(0, 100));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(1, 0));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(3, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(0, 102, 10, 104));
}

// --- compiling and running programs ---

Test(ref, stops_between_steps_when_cancelled)
{
    run_unary(INF_UNARY_NEG, INF_DTYPE_F32, 1, F32(1));
    struct inf_graph *graph = NULL;
    cr_assert_eq(one_node_graph(&one, &graph, NULL), INF_OK);
    uint32_t nodes[] = {0};
    struct inf_segment segment = {.graph = graph, .nodes = nodes, .node_count = 1, .slots = 2};
    struct inf_program *program = NULL;
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    float x = 3, y = 0;
    struct inf_binding bindings[2] = {{.host = &x}, {.host = &y}};
    atomic_bool cancelled = true;
    struct inf_run wanted = {
        .bindings = bindings, .slot = 1, .cancelled = &cancelled, .profile = true};
    struct inf_ticket ticket;
    cr_assert_eq(inf_program_run(program, &wanted, &ticket, NULL), INF_CANCELLED);
    cr_assert_eq(y, 0);
    cancelled = false;
    cr_assert_eq(inf_program_run(program, &wanted, &ticket, NULL), INF_OK);
    cr_assert_eq(y, -3);

    struct inf_step_profile step = {.node = 99};
    cr_assert_eq(inf_program_profile(program, 0, &step, 1), 0u);
    cr_assert_eq(inf_program_profile(program, 1, &step, 1), 1u);
    cr_assert_eq(step.node, 0u);
    cr_assert_str_eq(step.kernel, "ref_unary");
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
}

Test(ref, takes_operands_from_buffers_and_refuses_none)
{
    run_unary(INF_UNARY_SQUARE, INF_DTYPE_F32, 2, F32(0, 0));
    struct inf_graph *graph = NULL;
    cr_assert_eq(one_node_graph(&one, &graph, NULL), INF_OK);
    uint32_t nodes[] = {0};
    struct inf_segment segment = {.graph = graph, .nodes = nodes, .node_count = 1, .slots = 1};
    struct inf_program *program = NULL;
    struct inf_buffer *buffer = NULL;
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    cr_assert_eq(inf_buffer_alloc(&buffer, device, 80, INF_BUFFER_ARENA, NULL), INF_OK);
    float *floats = inf_buffer_host(buffer);
    floats[0] = 3;
    floats[1] = -5;
    struct inf_binding bindings[2] = {{.buffer = buffer}, {.buffer = buffer, .offset = 64}};
    struct inf_run wanted = {.bindings = bindings};
    struct inf_ticket ticket;
    cr_assert_eq(inf_program_run(program, &wanted, &ticket, NULL), INF_OK);
    cr_assert_eq(floats[16], 9);
    cr_assert_eq(floats[17], 25);
    bindings[1] = (struct inf_binding){0};
    cr_assert_eq(inf_program_run(program, &wanted, &ticket, NULL), INF_INVALID);
    inf_buffer_free(&buffer);
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
}

Test(ref, evaluates_constant_nodes_and_no_others)
{
    begin_case(INF_OP_BINARY);
    one_node_const(&one, INF_DTYPE_F32, SHAPE(2), F32(1, 2));
    one_node_const(&one, INF_DTYPE_F32, SHAPE(1), F32(10));
    struct inf_graph *graph = NULL;
    cr_assert_eq(one_node_graph(&one, &graph, NULL), INF_OK);
    struct inf_blob *output = inf_blob_create(2 * sizeof(float));
    const struct inf_evaluator *evaluator = inf_ref_evaluator();
    cr_assert_eq(evaluator->run(evaluator->context, graph, 0, &output, NULL, NULL), INF_OK);
    cr_assert_eq(memcmp(output->data, F32(11, 12), 8), 0);
    inf_graph_destroy(&graph);

    run_unary(INF_UNARY_NEG, INF_DTYPE_F32, 2, F32(1, 2));
    cr_assert_eq(one_node_graph(&one, &graph, NULL), INF_OK);
    struct inf_error err = {0};
    cr_assert_eq(evaluator->run(evaluator->context, graph, 0, &output, NULL, &err), INF_INVALID);
    cr_assert_str_eq(err.text, "node 'node' (unary): input 0 is not constant");
    inf_graph_destroy(&graph);
    inf_blob_unref(&output);
}

Test(ref, ends_long_nodes_when_they_are_cancelled)
{
    begin_case(INF_OP_MATMUL);
    one_node_const(&one, INF_DTYPE_F32, SHAPE(1, 2), F32(1, 2));
    one_node_const(&one, INF_DTYPE_F32, SHAPE(2, 1), F32(3, 4));
    struct inf_graph *graph = NULL;
    cr_assert_eq(one_node_graph(&one, &graph, NULL), INF_OK);
    struct inf_blob *output = inf_blob_create(sizeof(float));
    const struct inf_evaluator *evaluator = inf_ref_evaluator();
    const atomic_bool cancelled = true, not_yet = false;
    struct inf_error err = {0};
    cr_assert_eq(evaluator->run(evaluator->context, graph, 0, &output, &cancelled, &err),
                 INF_CANCELLED);
    cr_assert_str_eq(err.text, "node 'node' (matmul): cancelled while it was computed");
    cr_assert_eq(evaluator->run(evaluator->context, graph, 0, &output, &not_yet, NULL), INF_OK);
    cr_assert_eq(*(const float *)output->data, 11);
    inf_graph_destroy(&graph);
    inf_blob_unref(&output);
}

Test(ref, declines_unknown_shapes)
{
    run_unary(INF_UNARY_NEG, INF_DTYPE_F32, 2, F32(1, 2));
    struct inf_graph *graph = NULL;
    cr_assert_eq(one_node_graph(&one, &graph, NULL), INF_OK);
    graph->values[0].shape.dims[0] = INF_DIM_UNKNOWN;
    struct inf_error err = {0};
    cr_assert_eq(inf_device_supports(device, graph, 0, &err), INF_UNSUPPORTED);
    cr_assert_str_eq(err.text,
                     "node 'node' (unary): value 'x' is FP32 [?], not of known type and shape");
    inf_graph_destroy(&graph);
}
