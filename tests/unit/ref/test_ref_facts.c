// SPDX-License-Identifier: Apache-2.0
// The reference kernels, compared with kernel calls that were recorded from the tests of
// TensorFlow.js 4.22 on its plain CPU backend. The comment of each case has the hash of the
// recorded call.
#include "tests/unit/ref/ref_case.h"

static void check_unary(enum inf_unary_kind kind, float alpha, int64_t count, const float *x,
                        const float *y)
{
    begin_case(INF_OP_UNARY);
    one.attrs.unary.kind = kind;
    one.attrs.unary.alpha = alpha;
    add_input(INF_DTYPE_F32, SHAPE(count), x);
    expect_output(INF_DTYPE_F32, SHAPE(count), y);
}

Test(ref, agrees_with_tensorflow_js_on_unary)
{
    // Expected values: recorded call 93189582d0d12a28 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ABS, 0, 6, F32(1, -2, 0, 3, -0.100000001f, NAN),
                F32(1, 2, 0, 3, 0.100000001f, NAN));
    // Expected values: recorded call 2b0957ee7fe3e7ee of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ACOS, 0, 5, F32(0.100000001f, -3, 2, 7, -4),
                F32(1.47062886f, NAN, NAN, NAN, NAN));
    // Expected values: recorded call 64ff810c6b22ad68 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ACOSH, 0, 5, F32(2, 3, 4, 5, 6),
                F32(1.31695795f, 1.76274717f, 2.06343699f, 2.29243159f, 2.47788882f));
    // Expected values: recorded call 1e642b30cf32b18b of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ASIN, 0, 4, F32(-0.300000012f, 0.100000001f, 0.200000003f, 0.300000012f),
                F32(-0.304692656f, 0.100167423f, 0.201357931f, 0.304692656f));
    // Expected values: recorded call a6f73b137bcde52b of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ASINH, 0, 5, F32(1, -3, 2, 7, -4),
                F32(0.881373584f, -1.81844652f, 1.44363546f, 2.64412069f, -2.0947125f));
    // Expected values: recorded call 61c6d2bd98a29da9 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ATAN, 0, 3, F32(4, NAN, 0), F32(1.3258177f, NAN, 0));
    // Expected values: recorded call a6d1bab473ac1edd of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ATANH, 0, 5, F32(-0.25f, 0.25f, 0.5f, 0.75f, -0.400000006f),
                F32(-0.255412817f, 0.255412817f, 0.549306154f, 0.972955048f, -0.423648924f));
    // Expected values: recorded call 816ca81489de536c of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_CEIL, 0, 3, F32(1.5f, NAN, -1.39999998f), F32(2, NAN, -1));
    // Expected values: recorded call b93776f0714986dd of the TensorFlow.js kernel tests.
    check_unary(
        INF_UNARY_COS, 0, 16, F32(1, 3, 4, 6, 7, 9, 10, 12, -1, -3, -4, -6, -7, -9, -10, -12),
        F32(0.540302277f, -0.989992499f, -0.653643608f, 0.960170269f, 0.753902256f, -0.91113025f,
            -0.839071512f, 0.843853951f, 0.540302277f, -0.989992499f, -0.653643608f, 0.960170269f,
            0.753902256f, -0.91113025f, -0.839071512f, 0.843853951f));
    // Expected values: recorded call 44ef40623fd04ce4 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_COSH, 0, 4, F32(-1, 2, 3, -5),
                F32(1.54308069f, 3.76219559f, 10.0676622f, 74.2099457f));
    // Expected values: recorded call 8670d3eed598a0bd of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ELU, 1, 8, F32(-3.5f, -5, -8, -9.5f, -3.5f, -5, -8, -9.5f),
                F32(-0.969802618f, -0.993262053f, -0.999664545f, -0.999925137f, -0.969802618f,
                    -0.993262053f, -0.999664545f, -0.999925137f));
    // Expected values: recorded call 4e4daa24268d3a83 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ERF, 0, 5, F32(-0.25f, 0.25f, 0.5f, 0.75f, -0.400000006f),
                F32(-0.276326269f, 0.276326269f, 0.520500004f, 0.711155593f, -0.42839244f));
    // Expected values: recorded call 6229e6ace8c2bf1a of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_EXP, 0, 6, F32(-2, -1, 0, -3, -3, -2),
                F32(0.135335281f, 0.36787945f, 1, 0.0497870669f, 0.0497870669f, 0.135335281f));
    // Expected values: recorded call 095770001adcbbd8 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_EXPM1, 0, 4, F32(-1, 2, 3, -5),
                F32(-0.63212055f, 6.38905621f, 19.085537f, -0.993262053f));
    // Expected values: recorded call fd0e10cb13ce728c of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_FLOOR, 0, 3, F32(1.5f, NAN, -1.39999998f), F32(1, NAN, -2));
    // Expected values: recorded call e9dd13f164be2128 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_LEAKY_RELU, 0.1f, 4, F32(1, -1, 0.100000001f, 0.5f),
                F32(1, -0.100000001f, 0.100000001f, 0.5f));
    // Expected values: recorded call 03d4ee8692a83df6 of the TensorFlow.js kernel tests.
    check_unary(
        INF_UNARY_LOG, 0, 6,
        F32(0.900000095f, 0.300000101f, 0.900000095f, 0.500000119f, 0.950000107f, 0.850000143f),
        F32(-0.105360411f, -1.20397246f, -0.105360411f, -0.693146944f, -0.0512931831f,
            -0.162518755f));
    // Expected values: recorded call 6530936297c27619 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_LOG1P, 0, 2, F32(1, 2), F32(0.693147182f, 1.09861231f));
    // Expected values: recorded call 0a25a8b4e26e6569 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_NEG, 0, 4, F32(0.5f, 0.353553385f, 0.288675159f, 0.178885445f),
                F32(-0.5f, -0.353553385f, -0.288675159f, -0.178885445f));
    // Expected values: recorded call eef2d90fd7090427 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_RELU, 0, 8, F32(1, -2, 5, -3, -1, 4, 7, 8), F32(1, 0, 5, 0, 0, 4, 7, 8));
    // Expected values: recorded call c218fb7b09f7e03e of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_RELU6, 0, 4, F32(8, -1, 0, 0.100000001f), F32(6, 0, 0, 0.100000001f));
    // Expected values: recorded call d9979fac8627c528 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_ROUND, 0, 3, F32(1.5f, NAN, -1.39999998f), F32(2, NAN, -1));
    // Expected values: recorded call 2e406a08111efd0d of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_RSQRT, 0, 4, F32(2.00099993f, 4.00099993f, 6.00099993f, 8.0010004f),
                F32(0.706930101f, 0.499937505f, 0.408214271f, 0.353531301f));
    // Expected values: recorded call 8fae89e369662e79 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_SELU, 0, 3, F32(1, -1, 0), F32(1.05070102f, -1.11133075f, 0));
    // Expected values: recorded call 4e9d7f0c32f0d243 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_SIGMOID, 0, 5, F32(1, -3, 2, 7, -4),
                F32(0.731058598f, 0.0474258736f, 0.880797088f, 0.999088943f, 0.0179862101f));
    // Expected values: recorded call 725bd0fbc3b614b8 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_SIN, 0, 5, F32(1, -3, 2, 7, -4),
                F32(0.841470957f, -0.141120002f, 0.909297407f, 0.656986594f, 0.756802499f));
    // Expected values: recorded call 46bf56b2ce6de940 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_SINH, 0, 4, F32(-1, 2, 3, -5),
                F32(-1.17520118f, 3.62686038f, 10.0178747f, -74.2032089f));
    // Expected values: recorded call 0f67b63eb44af5c1 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_SOFTPLUS, 0, 5, F32(1, -3, 2, 7, -4),
                F32(1.31326163f, 0.048587352f, 2.12692809f, 7.00091124f, 0.0181499273f));
    // Expected values: recorded call 87ddf411bc17561a of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_SQRT, 0, 4, F32(3, 8, 24, 48),
                F32(1.73205078f, 2.82842708f, 4.89897966f, 6.92820311f));
    // Expected values: recorded call 26defff4f3f3a5ce of the TensorFlow.js kernel tests.
    check_unary(
        INF_UNARY_SQUARE, 0, 6,
        F32(-0.166666746f, 0.833333254f, 1.83333325f, -1.16666675f, -1.16666675f, -0.166666746f),
        F32(0.0277778041f, 0.694444299f, 3.36111093f, 1.36111128f, 1.36111128f, 0.0277778041f));
    // Expected values: recorded call b0837f251a692b5a of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_TAN, 0, 7,
                F32(-608065408.0f, 781902016.0f, -470910688.0f, 1.7867593e+09f, 1.87377792e+09f,
                    -1.01510797e+09f, 830023232.0f),
                F32(0.66690594f, -1.2100575f, 30144.1758f, 0.500024855f, 6.17555523f, 0.948930621f,
                    -40.6855774f));
    // Expected values: recorded call be9ee8441561eef5 of the TensorFlow.js kernel tests.
    check_unary(INF_UNARY_TANH, 0, 5, F32(1, -3, 2, 7, -4),
                F32(0.761594176f, -0.995054781f, 0.964027584f, 0.999998331f, -0.999329329f));
}

Test(ref, agrees_with_tensorflow_js_on_binary)
{
    begin_case(INF_OP_BINARY); // Add call recorded from TensorFlow.js, hash 13fb1657fe103a7f
    one.attrs.binary.kind = INF_BINARY_ADD;
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1, 2), F32(2, 4, 6, 8));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.00100000005f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 1, 1, 2),
                  F32(2.00099993f, 4.00099993f, 6.00099993f, 8.0010004f));
    begin_case(INF_OP_BINARY); // Atan2 call recorded from TensorFlow.js, hash 3678e34b3d1c8958
    one.attrs.binary.kind = INF_BINARY_ATAN2;
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_F32, SCALAR, F32(2));
    expect_output(
        INF_DTYPE_F32, SHAPE(2, 3),
        F32(0.463647604f, 0.785398185f, 0.982793748f, 1.10714877f, 1.19028997f, 1.24904573f));
    begin_case(INF_OP_BINARY); // FloorDiv call recorded from TensorFlow.js, hash 3831d608207140e8
    one.attrs.binary.kind = INF_BINARY_FLOOR_DIV;
    add_input(INF_DTYPE_I32, SHAPE(4), I32(-5, -4, 3, 2));
    add_input(INF_DTYPE_I32, SCALAR, I32(2));
    expect_output(INF_DTYPE_I32, SHAPE(4), I32(-3, -2, 1, 1));
    begin_case(INF_OP_BINARY); // LogicalAnd call recorded from TensorFlow.js, hash f574f4e821ecb1db
    one.attrs.binary.kind = INF_BINARY_LOGICAL_AND;
    add_input(INF_DTYPE_BOOL, SHAPE(2, 1), U8(1, 0));
    add_input(INF_DTYPE_BOOL, SHAPE(2, 3), U8(0, 1, 0, 0, 1, 0));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 3), U8(0, 1, 0, 0, 0, 0));
    begin_case(INF_OP_BINARY); // LogicalOr call recorded from TensorFlow.js, hash 697fc6209f51dfe1
    one.attrs.binary.kind = INF_BINARY_LOGICAL_OR;
    add_input(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0));
    add_input(INF_DTYPE_BOOL, SHAPE(2, 3, 1), U8(0, 0, 1, 1, 0, 0));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0));
    begin_case(INF_OP_BINARY); // Maximum call recorded from TensorFlow.js, hash cab9f83f2f185657
    one.attrs.binary.kind = INF_BINARY_MAX;
    add_input(INF_DTYPE_F32, SHAPE(2, 1), F32(0.5f, 0.300000012f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2),
              F32(0.200000003f, 0.400000006f, 0.600000024f, 0.150000006f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(0.5f, 0.5f, 0.600000024f, 0.300000012f));
    begin_case(INF_OP_BINARY); // Minimum call recorded from TensorFlow.js, hash 8e749cf13e9c3c77
    one.attrs.binary.kind = INF_BINARY_MIN;
    add_input(INF_DTYPE_F32, SHAPE(4), F32(0.5f, 3, -0.100000001f, -4));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.600000024f));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(0.5f, 0.600000024f, -0.100000001f, -4));
    begin_case(INF_OP_BINARY); // Mod call recorded from TensorFlow.js, hash 5816b98ea6dd1a48
    one.attrs.binary.kind = INF_BINARY_FLOOR_MOD;
    add_input(INF_DTYPE_F32, SCALAR, F32(0.699999988f));
    add_input(INF_DTYPE_F32, SHAPE(4), F32(0.200000003f, 0.300000012f, 0.400000006f, 0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(4),
                  F32(0.0999999791f, 0.0999999642f, 0.299999982f, 0.199999988f));
    begin_case(INF_OP_BINARY); // Multiply call recorded from TensorFlow.js, hash 4483bd62657f85b7
    one.attrs.binary.kind = INF_BINARY_MUL;
    add_input(INF_DTYPE_F32, SHAPE(3, 3), F32(1, 1, 1, 1, 1, 1, 1, 1, 1));
    add_input(INF_DTYPE_F32, SHAPE(3), F32(0.0799999982f, 1, 0.0799999982f));
    expect_output(INF_DTYPE_F32, SHAPE(3, 3),
                  F32(0.0799999982f, 1, 0.0799999982f, 0.0799999982f, 1, 0.0799999982f,
                      0.0799999982f, 1, 0.0799999982f));
    begin_case(INF_OP_BINARY); // Pow call recorded from TensorFlow.js, hash a6263276ab2f55f7
    one.attrs.binary.kind = INF_BINARY_POW;
    add_input(INF_DTYPE_F32, SHAPE(4), F32(1, 2, 3, 5));
    add_input(INF_DTYPE_F32, SCALAR, F32(1.5f));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(1, 2.82842708f, 5.19615221f, 11.1803398f));
    begin_case(INF_OP_BINARY); // RealDiv call recorded from TensorFlow.js, hash 16060693df1289d1
    one.attrs.binary.kind = INF_BINARY_DIV;
    add_input(INF_DTYPE_F32, SHAPE(2, 1), F32(3, 4));
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(13, 18, 32, 41));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2),
                  F32(0.230769232f, 0.166666672f, 0.125f, 0.097560972f));
    // the SquaredDifference call recorded from TensorFlow.js that has the hash 384051e5cabf34dc
    begin_case(INF_OP_BINARY);
    one.attrs.binary.kind = INF_BINARY_SQUARED_DIFFERENCE;
    add_input(INF_DTYPE_F32, SHAPE(4), F32(0.5f, 3, -0.100000001f, -4));
    add_input(INF_DTYPE_F32, SCALAR, F32(0.600000024f));
    expect_output(INF_DTYPE_F32, SHAPE(4),
                  F32(0.0100000044f, 5.75999975f, 0.490000039f, 21.1599998f));
    begin_case(INF_OP_BINARY); // Sub call recorded from TensorFlow.js, hash f04f21236197fd3e
    one.attrs.binary.kind = INF_BINARY_SUB;
    add_input(INF_DTYPE_F32, SCALAR, F32(1));
    add_input(INF_DTYPE_F32, SHAPE(2, 3),
              F32(0.100000001f, 0.699999988f, 0.100000001f, 0.5f, 0.0500000007f, 0.150000006f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3),
                  F32(0.899999976f, 0.300000012f, 0.899999976f, 0.5f, 0.949999988f, 0.850000024f));
}

Test(ref, agrees_with_tensorflow_js_on_compare)
{
    begin_case(INF_OP_COMPARE); // Equal call recorded from TensorFlow.js, hash 007350cf11b0fc4c
    one.attrs.compare.kind = INF_COMPARE_EQUAL;
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(0, -20, -10, 10, 30, -20));
    add_input(INF_DTYPE_F32, SHAPE(1, 3), F32(0, -20, -20));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 3), U8(1, 1, 0, 0, 0, 1));
    begin_case(INF_OP_COMPARE); // Greater call recorded from TensorFlow.js, hash 09cfe4c2af00cdcf
    one.attrs.compare.kind = INF_COMPARE_GREATER;
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 1),
              F32(1.10000002f, 2.0999999f, 5.0999999f, 9.10000038f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 2),
              F32(1.10000002f, 2.0999999f, 3.0999999f, 4.0999999f, 5.0999999f, 6.0999999f,
                  7.0999999f, 8.10000038f));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 2, 1, 2), U8(0, 0, 0, 0, 0, 0, 1, 1));
    // the GreaterEqual call recorded from TensorFlow.js that has the hash 1c05635133a9d68d
    begin_case(INF_OP_COMPARE);
    one.attrs.compare.kind = INF_COMPARE_GREATER_EQUAL;
    add_input(INF_DTYPE_F32, SHAPE(3), F32(3, -2, 1));
    add_input(INF_DTYPE_F32, SCALAR, F32(-1));
    expect_output(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 1));
    begin_case(INF_OP_COMPARE); // Less call recorded from TensorFlow.js, hash 27198c35345a806c
    one.attrs.compare.kind = INF_COMPARE_LESS;
    add_input(INF_DTYPE_I32, SHAPE(2, 3, 2), I32(1, 0, 2, 3, 4, 5, 6, 7, 9, 8, 10, 11));
    add_input(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 2, 3, 7, 10, 9));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0));
    begin_case(INF_OP_COMPARE); // LessEqual call recorded from TensorFlow.js, hash 044821764da9fdd5
    one.attrs.compare.kind = INF_COMPARE_LESS_EQUAL;
    add_input(INF_DTYPE_F32, SHAPE(2, 1), F32(1.10000002f, 7.0999999f));
    add_input(INF_DTYPE_F32, SHAPE(2, 3),
              F32(0.100000001f, 1.10000002f, 2.0999999f, 7.0999999f, 8.10000038f, 9.10000038f));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 3), U8(0, 1, 1, 1, 1, 1));
    begin_case(INF_OP_COMPARE); // NotEqual call recorded from TensorFlow.js, hash 0a2ea8f524861921
    one.attrs.compare.kind = INF_COMPARE_NOT_EQUAL;
    add_input(INF_DTYPE_I32, SHAPE(2, 3, 2), I32(1, 0, 2, 3, 4, 5, 6, 7, 9, 8, 10, 11));
    add_input(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 2, 3, 7, 10, 9));
    expect_output(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1));
}

Test(ref, agrees_with_tensorflow_js_on_reduce)
{
    begin_case(INF_OP_REDUCE); // All call recorded from TensorFlow.js, hash 06ed48fc9bee567f
    one.attrs.reduce.kind = INF_REDUCE_ALL;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 1;
    add_input(INF_DTYPE_BOOL, SHAPE(2, 3), U8(1, 1, 0, 0, 1, 0));
    expect_output(INF_DTYPE_BOOL, SHAPE(1, 3), U8(0, 1, 0));
    begin_case(INF_OP_REDUCE); // Any call recorded from TensorFlow.js, hash 606ebd72b96539bd
    one.attrs.reduce.kind = INF_REDUCE_ANY;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 1;
    add_input(INF_DTYPE_BOOL, SHAPE(2, 3), U8(1, 1, 0, 0, 1, 0));
    expect_output(INF_DTYPE_BOOL, SHAPE(1, 3), U8(1, 1, 0));
    begin_case(INF_OP_REDUCE); // Max call recorded from TensorFlow.js, hash 1dd48eb26a836693
    one.attrs.reduce.kind = INF_REDUCE_MAX;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 2;
    one.attrs.reduce.axes.values[0] = 2;
    one.attrs.reduce.axes.values[1] = 3;
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
              F32(0, 20, 20, 20, -10, -30, -10, -30, 0, -20, -20, -20, 10, 30, 10, 30));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(20, -10, 0, 30));
    begin_case(INF_OP_REDUCE); // Mean call recorded from TensorFlow.js, hash 600c4c1f1aad1114
    one.attrs.reduce.kind = INF_REDUCE_MEAN;
    one.attrs.reduce.axes.count = 1;
    one.attrs.reduce.axes.values[0] = -1;
    add_input(INF_DTYPE_F32, SHAPE(3, 2), F32(1, 2, 3, 0, 0, 1));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(1.5f, 1.5f, 0.5f));
    begin_case(INF_OP_REDUCE); // Min call recorded from TensorFlow.js, hash e1b439639c67b09c
    one.attrs.reduce.kind = INF_REDUCE_MIN;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 2;
    one.attrs.reduce.axes.values[0] = 2;
    one.attrs.reduce.axes.values[1] = 3;
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
              F32(0, -20, -20, -20, 10, 30, 10, 30, 0, 20, 20, 20, -10, -30, -10, -30));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(-20, 10, 0, -30));
    begin_case(INF_OP_REDUCE); // Prod call recorded from TensorFlow.js, hash 44e25c3ade3c65b3
    one.attrs.reduce.kind = INF_REDUCE_PROD;
    one.attrs.reduce.axes.count = 2;
    one.attrs.reduce.axes.values[1] = 1;
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(3, 4, 5, 6, 7, 8, 3, 5, 0, 6, 5, 6));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(0, 34560));
    begin_case(INF_OP_REDUCE); // Sum call recorded from TensorFlow.js, hash a46292806f0d52da
    one.attrs.reduce.kind = INF_REDUCE_SUM;
    one.attrs.reduce.axes.count = 1;
    add_input(INF_DTYPE_F32, SHAPE(3, 2),
              F32(0.135335281f, 1, 1, 0.135335281f, 0.0497870669f, 0.36787945f));
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(1.18512237f, 1.50321472f));
}

Test(ref, agrees_with_tensorflow_js_on_slice)
{
    begin_case(INF_OP_SLICE); // Slice call recorded from TensorFlow.js, hash 2270d40b29d95f2f
    add_input(INF_DTYPE_F32, SHAPE(3, 3),
              F32(1, 1, 1, 0, -2.23606777f, -2.68328142f, 0, 0, 0.89442718f));
    add_list(2, I32(0, 0));
    add_list(2, I32(2, 3));
    add_list(2, I32(1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 1, 1, 0, -2.23606777f, -2.68328142f));
    // the StridedSlice call recorded from TensorFlow.js that has the hash 00be4c8dd570592c
    begin_case(INF_OP_SLICE);
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    add_list(3, I32(-1, -1, -1));
    add_list(3, I32(-3, -4, -3));
    add_list(3, I32(-1, -1, -1));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
    // the StridedSlice call recorded from TensorFlow.js that has the hash d2ef99d2ced5fdc5
    begin_case(INF_OP_SLICE);
    one.attrs.slice.ellipsis_mask = 1;
    add_input(INF_DTYPE_F32, SHAPE(3, 2, 3),
              F32(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6));
    add_list(2, I32(1, 0));
    add_list(2, I32(2, 1));
    add_list(2, I32(1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(3, 2, 1), F32(1, 2, 3, 4, 5, 6));
}

Test(ref, agrees_with_tensorflow_js_on_gather)
{
    begin_case(INF_OP_GATHER); // GatherV2 call recorded from TensorFlow.js, hash 83739f293184b3e1
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    add_input(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 0, 0, 1));
    expect_output(
        INF_DTYPE_F32, SHAPE(2, 2, 3, 2),
        F32(7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    begin_case(INF_OP_GATHER); // GatherV2 call recorded from TensorFlow.js, hash 160c2ef36dfe25bf
    one.attrs.gather.axis = 1;
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    add_input(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 2, 2, 1));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
                  F32(3, 4, 5, 6, 5, 6, 3, 4, 9, 10, 11, 12, 11, 12, 9, 10));
}

Test(ref, agrees_with_tensorflow_js_on_pad)
{
    begin_case(INF_OP_PAD); // MirrorPad call recorded from TensorFlow.js, hash f8545163cf153f1a
    one.attrs.pad.mode = INF_PAD_REFLECT;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, NAN, 1, NAN));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(4, 4),
                  F32(NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1));
    begin_case(INF_OP_PAD); // MirrorPad call recorded from TensorFlow.js, hash 3156bf0be662366b
    one.attrs.pad.mode = INF_PAD_SYMMETRIC;
    add_input(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 3, 4, 5, 6));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 1, 1));
    expect_output(INF_DTYPE_I32, SHAPE(4, 5),
                  I32(1, 1, 2, 3, 3, 1, 1, 2, 3, 3, 4, 4, 5, 6, 6, 4, 4, 5, 6, 6));
    begin_case(INF_OP_PAD); // PadV2 call recorded from TensorFlow.js, hash 23ba9c2751c9bda0
    add_input(INF_DTYPE_F32, SHAPE(2, 1), F32(1, 1));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 1, 1));
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(-2.1f));
    expect_output(INF_DTYPE_F32, SHAPE(4, 3),
                  F32(-2.0999999f, -2.0999999f, -2.0999999f, -2.0999999f, 1, -2.0999999f,
                      -2.0999999f, 1, -2.0999999f, -2.0999999f, -2.0999999f, -2.0999999f));
}

Test(ref, agrees_with_tensorflow_js_on_batch_norm)
{
    // the FusedBatchNorm call recorded from TensorFlow.js that has the hash 6174af85a83fa9a8
    begin_case(INF_OP_BATCH_NORM);
    one.attrs.batch_norm.epsilon = 0.001f;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 3),
              F32(0.313689202f, 0.923890233f, 0.594781995f, 0.05021042f, 0.675454021f, 0.939100325f,
                  0.132779926f, 0.964742661f, 0.886089146f));
    add_input(INF_DTYPE_F32, SHAPE(3), F32(0.621869087f, 0.856737375f, 0.192010611f));
    add_input(INF_DTYPE_F32, SHAPE(3), F32(0.430984855f, 0.777122378f, 0.479162991f));
    add_input(INF_DTYPE_F32, SHAPE(3), F32(0.195263118f, 0.748572588f, 0.451663971f));
    add_input(INF_DTYPE_F32, SHAPE(3), F32(0.229630008f, 0.615219891f, 0.46623686f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 3),
                  F32(0.584336519f, 0.968462229f, 0.519365311f, 0.243154034f, 0.697321534f,
                      0.61608541f, 0.35007447f, 1.01304817f, 0.601194441f));
}

Test(ref, agrees_with_tensorflow_js_on_transpose)
{
    // the Transpose call recorded from TensorFlow.js that has the hash 8a2f1f4050817ebd
    begin_case(INF_OP_TRANSPOSE);
    one.attrs.transpose.perm.count = 5;
    one.attrs.transpose.perm.values[1] = 1;
    one.attrs.transpose.perm.values[2] = 2;
    one.attrs.transpose.perm.values[3] = 4;
    one.attrs.transpose.perm.values[4] = 3;
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 2, 2),
              F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                  24, 25, 26, 27, 28, 29, 30, 31, 32));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2, 2, 2),
                  F32(1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14, 16, 17, 19, 18, 20, 21, 23,
                      22, 24, 25, 27, 26, 28, 29, 31, 30, 32));
    // the Transpose call recorded from TensorFlow.js that has the hash 5cacb3248d3d17af
    begin_case(INF_OP_TRANSPOSE);
    one.attrs.transpose.perm.count = 3;
    one.attrs.transpose.perm.values[1] = 1;
    one.attrs.transpose.perm.values[2] = 2;
    add_input(INF_DTYPE_F32, SHAPE(2, 4, 4),
              F32(2, -3, 4, 15, 6, 0.699999988f, 1, 18, 0.00999999978f, 0, 12, 13, 4, 15, 12, -7,
                  18, 19, 2, 21, 6, 23, 24, 25, 101, 31, 34, 54, 1, 0, -3, -4));
    expect_output(INF_DTYPE_F32, SHAPE(2, 4, 4),
                  F32(2, -3, 4, 15, 6, 0.699999988f, 1, 18, 0.00999999978f, 0, 12, 13, 4, 15, 12,
                      -7, 18, 19, 2, 21, 6, 23, 24, 25, 101, 31, 34, 54, 1, 0, -3, -4));
}

Test(ref, agrees_with_tensorflow_js_on_softmax)
{
    begin_case(INF_OP_SOFTMAX); // Softmax call recorded from TensorFlow.js, hash 402f1c81430ae0fb
    add_input(INF_DTYPE_F32, SHAPE(3), F32(10, 0, -1));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(0.999937892f, 4.53971115e-05f, 1.67006638e-05f));
}

// --- the operator random ---

Test(ref, draws_what_the_seed_says)
{
    // The expected numbers were computed in Python from SplitMix64's published constants.
    // Consecutive elements are 64 draws apart.
    begin_case(INF_OP_RANDOM);
    one.attrs.random.seed = 42;
    add_list(2, I32(2, 2));
    expect_output(
        INF_DTYPE_F32, SHAPE(2, 2),
        F32(0.7415648698806763f, 0.32495617866516113f, 0.04289048910140991f, 0.4946075677871704f));
    one.attrs.random.kind = INF_RANDOM_NORMAL;
    expect_output(
        INF_DTYPE_F32, SHAPE(2, 2),
        F32(0.4147197504315305f, -1.0723714838399727f, -2.505769366970197f, 0.5309856337142166f));
    begin_case(INF_OP_RANDOM);
    add_list(2, I32(3, 0));
    expect_output(INF_DTYPE_F32, SHAPE(3, 0), NULL);
}

Test(ref, draws_other_numbers_every_run_without_a_seed)
{
    float first[8];
    begin_case(INF_OP_RANDOM);
    add_list(1, I32(8));
    run_case();
    memcpy(first, one.outputs[0].data, sizeof first);
    run_case();
    cr_assert_neq(memcmp(first, one.outputs[0].data, sizeof first), 0);
}

Test(ref, draws_have_their_mean_deviation_and_range)
{
    // The mean of 40,000 draws has a standard error of 0.005 deviations. The test allows five times
    // that.
    static const struct {
        enum inf_random_kind kind;
        double mean, deviation, least, most;
    } rows[] = {
        {INF_RANDOM_UNIFORM, 0.5, 0.28867513, 0, 0.99999999},
        {INF_RANDOM_NORMAL, 0, 1, -6, 6},
        {INF_RANDOM_TRUNCATED_NORMAL, 0, 0.87962566, -2, 2},
    };
    enum {
        COUNT = 40000
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        double sum = 0, squares = 0;
        begin_case(INF_OP_RANDOM);
        one.attrs.random.kind = rows[i].kind;
        one.attrs.random.seed = -5;
        add_list(1, I32(COUNT));
        run_case();
        const float *drawn = one.outputs[0].data;
        for (int j = 0; j < COUNT; j++) {
            cr_assert(drawn[j] >= rows[i].least && drawn[j] <= rows[i].most, "%g",
                      (double)drawn[j]);
            sum += drawn[j];
            squares += (double)drawn[j] * drawn[j];
        }
        double mean = sum / COUNT, deviation = sqrt(squares / COUNT - mean * mean);
        cr_assert_float_eq(mean, rows[i].mean, 0.025 * rows[i].deviation);
        cr_assert_float_eq(deviation, rows[i].deviation, 0.025 * rows[i].deviation);
    }
}
