// SPDX-License-Identifier: Apache-2.0
// The reference kernels against kernel calls recorded from TensorFlow.js 4.22's own tests on its plain
// CPU backend. Behind each begin() stand the kernel and the number of the record.
#include "tests/unit/ref_case.h"

static void unary(enum inf_unary_kind kind, float alpha, int64_t count, const float *x,
                  const float *y)
{
    begin(INF_OP_UNARY);
    one.attrs.unary.kind = kind;
    one.attrs.unary.alpha = alpha;
    in(INF_DTYPE_F32, SHAPE(count), x);
    wants(INF_DTYPE_F32, SHAPE(count), y);
}

Test(ref, agrees_with_tensorflow_js_on_unary)
{
    // 93189582d0d12a28
    unary(INF_UNARY_ABS, 0, 6, F32(1, -2, 0, 3, -0.100000001f, NAN),
          F32(1, 2, 0, 3, 0.100000001f, NAN));
    // 2b0957ee7fe3e7ee
    unary(INF_UNARY_ACOS, 0, 5, F32(0.100000001f, -3, 2, 7, -4),
          F32(1.47062886f, NAN, NAN, NAN, NAN));
    // 64ff810c6b22ad68
    unary(INF_UNARY_ACOSH, 0, 5, F32(2, 3, 4, 5, 6),
          F32(1.31695795f, 1.76274717f, 2.06343699f, 2.29243159f, 2.47788882f));
    // 1e642b30cf32b18b
    unary(INF_UNARY_ASIN, 0, 4, F32(-0.300000012f, 0.100000001f, 0.200000003f, 0.300000012f),
          F32(-0.304692656f, 0.100167423f, 0.201357931f, 0.304692656f));
    // a6f73b137bcde52b
    unary(INF_UNARY_ASINH, 0, 5, F32(1, -3, 2, 7, -4),
          F32(0.881373584f, -1.81844652f, 1.44363546f, 2.64412069f, -2.0947125f));
    // 61c6d2bd98a29da9
    unary(INF_UNARY_ATAN, 0, 3, F32(4, NAN, 0), F32(1.3258177f, NAN, 0));
    // a6d1bab473ac1edd
    unary(INF_UNARY_ATANH, 0, 5, F32(-0.25f, 0.25f, 0.5f, 0.75f, -0.400000006f),
          F32(-0.255412817f, 0.255412817f, 0.549306154f, 0.972955048f, -0.423648924f));
    // 816ca81489de536c
    unary(INF_UNARY_CEIL, 0, 3, F32(1.5f, NAN, -1.39999998f), F32(2, NAN, -1));
    // b93776f0714986dd
    unary(INF_UNARY_COS, 0, 16, F32(1, 3, 4, 6, 7, 9, 10, 12, -1, -3, -4, -6, -7, -9, -10, -12),
          F32(0.540302277f, -0.989992499f, -0.653643608f, 0.960170269f, 0.753902256f, -0.91113025f,
              -0.839071512f, 0.843853951f, 0.540302277f, -0.989992499f, -0.653643608f, 0.960170269f,
              0.753902256f, -0.91113025f, -0.839071512f, 0.843853951f));
    // 44ef40623fd04ce4
    unary(INF_UNARY_COSH, 0, 4, F32(-1, 2, 3, -5),
          F32(1.54308069f, 3.76219559f, 10.0676622f, 74.2099457f));
    // 8670d3eed598a0bd
    unary(INF_UNARY_ELU, 1, 8, F32(-3.5f, -5, -8, -9.5f, -3.5f, -5, -8, -9.5f),
          F32(-0.969802618f, -0.993262053f, -0.999664545f, -0.999925137f, -0.969802618f,
              -0.993262053f, -0.999664545f, -0.999925137f));
    // 4e4daa24268d3a83
    unary(INF_UNARY_ERF, 0, 5, F32(-0.25f, 0.25f, 0.5f, 0.75f, -0.400000006f),
          F32(-0.276326269f, 0.276326269f, 0.520500004f, 0.711155593f, -0.42839244f));
    // 6229e6ace8c2bf1a
    unary(INF_UNARY_EXP, 0, 6, F32(-2, -1, 0, -3, -3, -2),
          F32(0.135335281f, 0.36787945f, 1, 0.0497870669f, 0.0497870669f, 0.135335281f));
    // 095770001adcbbd8
    unary(INF_UNARY_EXPM1, 0, 4, F32(-1, 2, 3, -5),
          F32(-0.63212055f, 6.38905621f, 19.085537f, -0.993262053f));
    // fd0e10cb13ce728c
    unary(INF_UNARY_FLOOR, 0, 3, F32(1.5f, NAN, -1.39999998f), F32(1, NAN, -2));
    // e9dd13f164be2128
    unary(INF_UNARY_LEAKY_RELU, 0.1f, 4, F32(1, -1, 0.100000001f, 0.5f),
          F32(1, -0.100000001f, 0.100000001f, 0.5f));
    // 03d4ee8692a83df6
    unary(INF_UNARY_LOG, 0, 6,
          F32(0.900000095f, 0.300000101f, 0.900000095f, 0.500000119f, 0.950000107f, 0.850000143f),
          F32(-0.105360411f, -1.20397246f, -0.105360411f, -0.693146944f, -0.0512931831f,
              -0.162518755f));
    // 6530936297c27619
    unary(INF_UNARY_LOG1P, 0, 2, F32(1, 2), F32(0.693147182f, 1.09861231f));
    // 0a25a8b4e26e6569
    unary(INF_UNARY_NEG, 0, 4, F32(0.5f, 0.353553385f, 0.288675159f, 0.178885445f),
          F32(-0.5f, -0.353553385f, -0.288675159f, -0.178885445f));
    // eef2d90fd7090427
    unary(INF_UNARY_RELU, 0, 8, F32(1, -2, 5, -3, -1, 4, 7, 8), F32(1, 0, 5, 0, 0, 4, 7, 8));
    // c218fb7b09f7e03e
    unary(INF_UNARY_RELU6, 0, 4, F32(8, -1, 0, 0.100000001f), F32(6, 0, 0, 0.100000001f));
    // d9979fac8627c528
    unary(INF_UNARY_ROUND, 0, 3, F32(1.5f, NAN, -1.39999998f), F32(2, NAN, -1));
    // 2e406a08111efd0d
    unary(INF_UNARY_RSQRT, 0, 4, F32(2.00099993f, 4.00099993f, 6.00099993f, 8.0010004f),
          F32(0.706930101f, 0.499937505f, 0.408214271f, 0.353531301f));
    // 8fae89e369662e79
    unary(INF_UNARY_SELU, 0, 3, F32(1, -1, 0), F32(1.05070102f, -1.11133075f, 0));
    // 4e9d7f0c32f0d243
    unary(INF_UNARY_SIGMOID, 0, 5, F32(1, -3, 2, 7, -4),
          F32(0.731058598f, 0.0474258736f, 0.880797088f, 0.999088943f, 0.0179862101f));
    // 725bd0fbc3b614b8
    unary(INF_UNARY_SIN, 0, 5, F32(1, -3, 2, 7, -4),
          F32(0.841470957f, -0.141120002f, 0.909297407f, 0.656986594f, 0.756802499f));
    // 46bf56b2ce6de940
    unary(INF_UNARY_SINH, 0, 4, F32(-1, 2, 3, -5),
          F32(-1.17520118f, 3.62686038f, 10.0178747f, -74.2032089f));
    // 0f67b63eb44af5c1
    unary(INF_UNARY_SOFTPLUS, 0, 5, F32(1, -3, 2, 7, -4),
          F32(1.31326163f, 0.048587352f, 2.12692809f, 7.00091124f, 0.0181499273f));
    // 87ddf411bc17561a
    unary(INF_UNARY_SQRT, 0, 4, F32(3, 8, 24, 48),
          F32(1.73205078f, 2.82842708f, 4.89897966f, 6.92820311f));
    // 26defff4f3f3a5ce
    unary(INF_UNARY_SQUARE, 0, 6,
          F32(-0.166666746f, 0.833333254f, 1.83333325f, -1.16666675f, -1.16666675f, -0.166666746f),
          F32(0.0277778041f, 0.694444299f, 3.36111093f, 1.36111128f, 1.36111128f, 0.0277778041f));
    // b0837f251a692b5a
    unary(INF_UNARY_TAN, 0, 7,
          F32(-608065408.0f, 781902016.0f, -470910688.0f, 1.7867593e+09f, 1.87377792e+09f,
              -1.01510797e+09f, 830023232.0f),
          F32(0.66690594f, -1.2100575f, 30144.1758f, 0.500024855f, 6.17555523f, 0.948930621f,
              -40.6855774f));
    // be9ee8441561eef5
    unary(INF_UNARY_TANH, 0, 5, F32(1, -3, 2, 7, -4),
          F32(0.761594176f, -0.995054781f, 0.964027584f, 0.999998331f, -0.999329329f));
}

Test(ref, agrees_with_tensorflow_js_on_binary)
{
    begin(INF_OP_BINARY); // Add 13fb1657fe103a7f
    one.attrs.binary.kind = INF_BINARY_ADD;
    in(INF_DTYPE_F32, SHAPE(2, 1, 1, 2), F32(2, 4, 6, 8));
    in(INF_DTYPE_F32, SCALAR, F32(0.00100000005f));
    wants(INF_DTYPE_F32, SHAPE(2, 1, 1, 2), F32(2.00099993f, 4.00099993f, 6.00099993f, 8.0010004f));
    begin(INF_OP_BINARY); // Atan2 3678e34b3d1c8958
    one.attrs.binary.kind = INF_BINARY_ATAN2;
    in(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_F32, SCALAR, F32(2));
    wants(INF_DTYPE_F32, SHAPE(2, 3),
          F32(0.463647604f, 0.785398185f, 0.982793748f, 1.10714877f, 1.19028997f, 1.24904573f));
    begin(INF_OP_BINARY); // FloorDiv 3831d608207140e8
    one.attrs.binary.kind = INF_BINARY_FLOOR_DIV;
    in(INF_DTYPE_I32, SHAPE(4), I32(-5, -4, 3, 2));
    in(INF_DTYPE_I32, SCALAR, I32(2));
    wants(INF_DTYPE_I32, SHAPE(4), I32(-3, -2, 1, 1));
    begin(INF_OP_BINARY); // LogicalAnd f574f4e821ecb1db
    one.attrs.binary.kind = INF_BINARY_LOGICAL_AND;
    in(INF_DTYPE_BOOL, SHAPE(2, 1), U8(1, 0));
    in(INF_DTYPE_BOOL, SHAPE(2, 3), U8(0, 1, 0, 0, 1, 0));
    wants(INF_DTYPE_BOOL, SHAPE(2, 3), U8(0, 1, 0, 0, 0, 0));
    begin(INF_OP_BINARY); // LogicalOr 697fc6209f51dfe1
    one.attrs.binary.kind = INF_BINARY_LOGICAL_OR;
    in(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0));
    in(INF_DTYPE_BOOL, SHAPE(2, 3, 1), U8(0, 0, 1, 1, 0, 0));
    wants(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0));
    begin(INF_OP_BINARY); // Maximum cab9f83f2f185657
    one.attrs.binary.kind = INF_BINARY_MAX;
    in(INF_DTYPE_F32, SHAPE(2, 1), F32(0.5f, 0.300000012f));
    in(INF_DTYPE_F32, SHAPE(2, 2), F32(0.200000003f, 0.400000006f, 0.600000024f, 0.150000006f));
    wants(INF_DTYPE_F32, SHAPE(2, 2), F32(0.5f, 0.5f, 0.600000024f, 0.300000012f));
    begin(INF_OP_BINARY); // Minimum 8e749cf13e9c3c77
    one.attrs.binary.kind = INF_BINARY_MIN;
    in(INF_DTYPE_F32, SHAPE(4), F32(0.5f, 3, -0.100000001f, -4));
    in(INF_DTYPE_F32, SCALAR, F32(0.600000024f));
    wants(INF_DTYPE_F32, SHAPE(4), F32(0.5f, 0.600000024f, -0.100000001f, -4));
    begin(INF_OP_BINARY); // Mod 5816b98ea6dd1a48
    one.attrs.binary.kind = INF_BINARY_FLOOR_MOD;
    in(INF_DTYPE_F32, SCALAR, F32(0.699999988f));
    in(INF_DTYPE_F32, SHAPE(4), F32(0.200000003f, 0.300000012f, 0.400000006f, 0.5f));
    wants(INF_DTYPE_F32, SHAPE(4), F32(0.0999999791f, 0.0999999642f, 0.299999982f, 0.199999988f));
    begin(INF_OP_BINARY); // Multiply 4483bd62657f85b7
    one.attrs.binary.kind = INF_BINARY_MUL;
    in(INF_DTYPE_F32, SHAPE(3, 3), F32(1, 1, 1, 1, 1, 1, 1, 1, 1));
    in(INF_DTYPE_F32, SHAPE(3), F32(0.0799999982f, 1, 0.0799999982f));
    wants(INF_DTYPE_F32, SHAPE(3, 3),
          F32(0.0799999982f, 1, 0.0799999982f, 0.0799999982f, 1, 0.0799999982f, 0.0799999982f, 1,
              0.0799999982f));
    begin(INF_OP_BINARY); // Pow a6263276ab2f55f7
    one.attrs.binary.kind = INF_BINARY_POW;
    in(INF_DTYPE_F32, SHAPE(4), F32(1, 2, 3, 5));
    in(INF_DTYPE_F32, SCALAR, F32(1.5f));
    wants(INF_DTYPE_F32, SHAPE(4), F32(1, 2.82842708f, 5.19615221f, 11.1803398f));
    begin(INF_OP_BINARY); // RealDiv 16060693df1289d1
    one.attrs.binary.kind = INF_BINARY_DIV;
    in(INF_DTYPE_F32, SHAPE(2, 1), F32(3, 4));
    in(INF_DTYPE_F32, SHAPE(2, 2), F32(13, 18, 32, 41));
    wants(INF_DTYPE_F32, SHAPE(2, 2), F32(0.230769232f, 0.166666672f, 0.125f, 0.097560972f));
    begin(INF_OP_BINARY); // SquaredDifference 384051e5cabf34dc
    one.attrs.binary.kind = INF_BINARY_SQUARED_DIFFERENCE;
    in(INF_DTYPE_F32, SHAPE(4), F32(0.5f, 3, -0.100000001f, -4));
    in(INF_DTYPE_F32, SCALAR, F32(0.600000024f));
    wants(INF_DTYPE_F32, SHAPE(4), F32(0.0100000044f, 5.75999975f, 0.490000039f, 21.1599998f));
    begin(INF_OP_BINARY); // Sub f04f21236197fd3e
    one.attrs.binary.kind = INF_BINARY_SUB;
    in(INF_DTYPE_F32, SCALAR, F32(1));
    in(INF_DTYPE_F32, SHAPE(2, 3),
       F32(0.100000001f, 0.699999988f, 0.100000001f, 0.5f, 0.0500000007f, 0.150000006f));
    wants(INF_DTYPE_F32, SHAPE(2, 3),
          F32(0.899999976f, 0.300000012f, 0.899999976f, 0.5f, 0.949999988f, 0.850000024f));
}

Test(ref, agrees_with_tensorflow_js_on_compare)
{
    begin(INF_OP_COMPARE); // Equal 007350cf11b0fc4c
    one.attrs.compare.kind = INF_COMPARE_EQUAL;
    in(INF_DTYPE_F32, SHAPE(2, 3), F32(0, -20, -10, 10, 30, -20));
    in(INF_DTYPE_F32, SHAPE(1, 3), F32(0, -20, -20));
    wants(INF_DTYPE_BOOL, SHAPE(2, 3), U8(1, 1, 0, 0, 0, 1));
    begin(INF_OP_COMPARE); // Greater 09cfe4c2af00cdcf
    one.attrs.compare.kind = INF_COMPARE_GREATER;
    in(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(1.10000002f, 2.0999999f, 5.0999999f, 9.10000038f));
    in(INF_DTYPE_F32, SHAPE(2, 2, 1, 2),
       F32(1.10000002f, 2.0999999f, 3.0999999f, 4.0999999f, 5.0999999f, 6.0999999f, 7.0999999f,
           8.10000038f));
    wants(INF_DTYPE_BOOL, SHAPE(2, 2, 1, 2), U8(0, 0, 0, 0, 0, 0, 1, 1));
    begin(INF_OP_COMPARE); // GreaterEqual 1c05635133a9d68d
    one.attrs.compare.kind = INF_COMPARE_GREATER_EQUAL;
    in(INF_DTYPE_F32, SHAPE(3), F32(3, -2, 1));
    in(INF_DTYPE_F32, SCALAR, F32(-1));
    wants(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 1));
    begin(INF_OP_COMPARE); // Less 27198c35345a806c
    one.attrs.compare.kind = INF_COMPARE_LESS;
    in(INF_DTYPE_I32, SHAPE(2, 3, 2), I32(1, 0, 2, 3, 4, 5, 6, 7, 9, 8, 10, 11));
    in(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 2, 3, 7, 10, 9));
    wants(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(0, 1, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0));
    begin(INF_OP_COMPARE); // LessEqual 044821764da9fdd5
    one.attrs.compare.kind = INF_COMPARE_LESS_EQUAL;
    in(INF_DTYPE_F32, SHAPE(2, 1), F32(1.10000002f, 7.0999999f));
    in(INF_DTYPE_F32, SHAPE(2, 3),
       F32(0.100000001f, 1.10000002f, 2.0999999f, 7.0999999f, 8.10000038f, 9.10000038f));
    wants(INF_DTYPE_BOOL, SHAPE(2, 3), U8(0, 1, 1, 1, 1, 1));
    begin(INF_OP_COMPARE); // NotEqual 0a2ea8f524861921
    one.attrs.compare.kind = INF_COMPARE_NOT_EQUAL;
    in(INF_DTYPE_I32, SHAPE(2, 3, 2), I32(1, 0, 2, 3, 4, 5, 6, 7, 9, 8, 10, 11));
    in(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 2, 3, 7, 10, 9));
    wants(INF_DTYPE_BOOL, SHAPE(2, 3, 2), U8(0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1));
}

Test(ref, agrees_with_tensorflow_js_on_reduce)
{
    begin(INF_OP_REDUCE); // All 06ed48fc9bee567f
    one.attrs.reduce.kind = INF_REDUCE_ALL;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 1;
    in(INF_DTYPE_BOOL, SHAPE(2, 3), U8(1, 1, 0, 0, 1, 0));
    wants(INF_DTYPE_BOOL, SHAPE(1, 3), U8(0, 1, 0));
    begin(INF_OP_REDUCE); // Any 606ebd72b96539bd
    one.attrs.reduce.kind = INF_REDUCE_ANY;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 1;
    in(INF_DTYPE_BOOL, SHAPE(2, 3), U8(1, 1, 0, 0, 1, 0));
    wants(INF_DTYPE_BOOL, SHAPE(1, 3), U8(1, 1, 0));
    begin(INF_OP_REDUCE); // Max 1dd48eb26a836693
    one.attrs.reduce.kind = INF_REDUCE_MAX;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 2;
    one.attrs.reduce.axes.values[0] = 2;
    one.attrs.reduce.axes.values[1] = 3;
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
       F32(0, 20, 20, 20, -10, -30, -10, -30, 0, -20, -20, -20, 10, 30, 10, 30));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(20, -10, 0, 30));
    begin(INF_OP_REDUCE); // Mean 600c4c1f1aad1114
    one.attrs.reduce.kind = INF_REDUCE_MEAN;
    one.attrs.reduce.axes.count = 1;
    one.attrs.reduce.axes.values[0] = -1;
    in(INF_DTYPE_F32, SHAPE(3, 2), F32(1, 2, 3, 0, 0, 1));
    wants(INF_DTYPE_F32, SHAPE(3), F32(1.5f, 1.5f, 0.5f));
    begin(INF_OP_REDUCE); // Min e1b439639c67b09c
    one.attrs.reduce.kind = INF_REDUCE_MIN;
    one.attrs.reduce.keep_dims = true;
    one.attrs.reduce.axes.count = 2;
    one.attrs.reduce.axes.values[0] = 2;
    one.attrs.reduce.axes.values[1] = 3;
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
       F32(0, -20, -20, -20, 10, 30, 10, 30, 0, 20, 20, 20, -10, -30, -10, -30));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(-20, 10, 0, -30));
    begin(INF_OP_REDUCE); // Prod 44e25c3ade3c65b3
    one.attrs.reduce.kind = INF_REDUCE_PROD;
    one.attrs.reduce.axes.count = 2;
    one.attrs.reduce.axes.values[1] = 1;
    in(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(3, 4, 5, 6, 7, 8, 3, 5, 0, 6, 5, 6));
    wants(INF_DTYPE_F32, SHAPE(2), F32(0, 34560));
    begin(INF_OP_REDUCE); // Sum a46292806f0d52da
    one.attrs.reduce.kind = INF_REDUCE_SUM;
    one.attrs.reduce.axes.count = 1;
    in(INF_DTYPE_F32, SHAPE(3, 2),
       F32(0.135335281f, 1, 1, 0.135335281f, 0.0497870669f, 0.36787945f));
    wants(INF_DTYPE_F32, SHAPE(2), F32(1.18512237f, 1.50321472f));
}

Test(ref, agrees_with_tensorflow_js_on_matmul)
{
    begin(INF_OP_MATMUL); // BatchMatMul acb4499273f6b0e8
    in(INF_DTYPE_F32, SHAPE(3, 1), F32(1.12038589f, -0.240771726f, 0.963086903f));
    in(INF_DTYPE_F32, SHAPE(1, 3), F32(8.30662441f, -4.73642588f, 3.93410635f));
    wants(INF_DTYPE_F32, SHAPE(3, 3),
          F32(9.30662441f, -5.30662489f, 4.40771723f, -2.00000024f, 1.14039743f, -0.947221577f,
              8.00000095f, -4.56158972f, 3.78888631f));
    begin(INF_OP_MATMUL); // BatchMatMul 5e28745a4ee027e5
    one.attrs.matmul.transpose_a = true;
    one.attrs.matmul.transpose_b = true;
    in(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 10, 20, 30));
    in(INF_DTYPE_F32, SHAPE(3, 2), F32(1, 2, 3, 10, 20, 30));
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(41, 203, 620, 70, 330, 1100));
    begin(INF_OP_MATMUL); // _FusedMatMul c6dd3732b566b115
    one.attrs.matmul.activation = INF_ACTIVATION_SIGMOID;
    in(INF_DTYPE_F32, SHAPE(1, 2, 3), F32(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_F32, SHAPE(1, 3, 2), F32(0, 1, -3, 2, 2, 1));
    wants(INF_DTYPE_F32, SHAPE(1, 2, 2), F32(0.5f, 0.999664664f, 0.0474258736f, 1));
    begin(INF_OP_MATMUL); // _FusedMatMul 459f8a7169a151ed
    one.attrs.matmul.activation = INF_ACTIVATION_ELU;
    one.attrs.matmul.activation_alpha = 1;
    in(INF_DTYPE_F32, SHAPE(1, 2, 3), F32(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_F32, SHAPE(1, 3, 2), F32(0, 1, -3, 2, 2, 1));
    in(INF_DTYPE_F32, SHAPE(2), F32(1, 1));
    wants(INF_DTYPE_F32, SHAPE(1, 2, 2), F32(1, 9, -0.864664733f, 21));
}

Test(ref, agrees_with_tensorflow_js_on_conv2d)
{
    begin(INF_OP_CONV2D); // Conv2D 5aed61ae875446d5
    one.attrs.conv2d.padding = INF_PADDING_VALID;
    in(INF_DTYPE_F32, SHAPE(1, 4, 4, 1),
       F32(0.491982192f, 0.986021817f, 0.727551162f, 0.340506226f, 0.808145106f, 0.465104192f,
           0.515041053f, 0.1305549f, 0.990154445f, 0.394941717f, 0.55558455f, 0.144028038f,
           0.189863697f, 0.208682746f, 0.141640082f, 0.168587238f));
    in(INF_DTYPE_F32, SHAPE(1, 1, 1, 2), F32(0.100000001f, -0.200000003f));
    wants(INF_DTYPE_F32, SHAPE(1, 4, 4, 2),
          F32(0.0491982214f, -0.0983964428f, 0.0986021832f, -0.197204366f, 0.0727551207f,
              -0.145510241f, 0.0340506248f, -0.0681012496f, 0.0808145106f, -0.161629021f,
              0.0465104207f, -0.0930208415f, 0.0515041053f, -0.103008211f, 0.0130554903f,
              -0.0261109807f, 0.0990154445f, -0.198030889f, 0.0394941717f, -0.0789883435f,
              0.0555584542f, -0.111116908f, 0.014402804f, -0.0288056079f, 0.0189863704f,
              -0.0379727408f, 0.0208682753f, -0.0417365506f, 0.0141640082f, -0.0283280164f,
              0.0168587249f, -0.0337174498f));
    begin(INF_OP_CONV2D); // Conv2D 25c40c07d8108035
    one.attrs.conv2d.padding = INF_PADDING_SAME;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 2), F32(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
       F32(0.111783877f, -0.966549754f, 1.21021295f, 0.841217279f, 0.349683374f, -0.423061132f,
           1.27395737f, -1.09014535f));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
          F32(1.30709863f, 1.30709863f, -0.92814362f, 1.30709863f, 1.30709863f, -0.92814362f,
              1.19666433f, 1.19666433f, -0.854765892f));
    begin(INF_OP_CONV2D); // Conv2D 5772d30422302b98
    in(INF_DTYPE_F32, SHAPE(2, 3, 3, 1), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    in(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(-1, 1, -2, 0.5f));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 2, 1), F32(-4.5f, -6, -9, -10.5f, -4.5f, -6, -9, -10.5f));
    begin(INF_OP_CONV2D); // FusedConv2D 4b8fc0875f1e61b6
    one.attrs.conv2d.activation = INF_ACTIVATION_PRELU;
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
       F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    in(INF_DTYPE_F32, SHAPE(1, 1, 2, 2), F32(-1, 1, -2, 0.5f));
    one_node_absent(&one);
    in(INF_DTYPE_F32, SHAPE(2), F32(0.25f, 0.75f));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
          F32(-1.25f, 2, -2.75f, 5, -4.25f, 8, -5.75f, 11, -7.25f, 14, -8.75f, 17, -10.25f, 20,
              -11.75f, 23));
    begin(INF_OP_CONV2D); // FusedConv2D e206fd63a35d4fe0
    one.attrs.conv2d.padding = INF_PADDING_SAME;
    one.attrs.conv2d.activation = INF_ACTIVATION_LEAKY_RELU;
    one.attrs.conv2d.activation_alpha = 0.3f;
    in(INF_DTYPE_F32, SHAPE(1, 4, 4, 1),
       F32(10, 30, 50, 70, 20, 40, 60, 80, -10, -30, -50, -70, -20, -40, -60, -80));
    in(INF_DTYPE_F32, SHAPE(1, 1, 1, 3), F32(1, 0.5f, 1));
    wants(INF_DTYPE_F32, SHAPE(1, 4, 4, 3),
          F32(10, 5, 10, 30, 15, 30, 50, 25, 50, 70, 35, 70, 20, 10, 20, 40, 20, 40, 60, 30, 60, 80,
              40, 80, -3, -1.5f, -3, -9, -4.5f, -9, -15, -7.5f, -15, -21, -10.5f, -21, -6, -3, -6,
              -12, -6, -12, -18, -9, -18, -24, -12, -24));
    begin(INF_OP_CONV2D); // FusedConv2D cddcc43dafcea8a7
    one.attrs.conv2d.activation = INF_ACTIVATION_ELU;
    one.attrs.conv2d.activation_alpha = 1;
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
       F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    in(INF_DTYPE_F32, SHAPE(1, 1, 2, 2), F32(-1, 1, -2, 0.5f));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
          F32(-0.993262053f, 2, -0.999983311f, 5, -0.99999994f, 8, -1, 11, -1, 14, -1, 17, -1, 20,
              -1, 23));
}

Test(ref, agrees_with_tensorflow_js_on_depthwise_conv2d)
{
    begin(INF_OP_DEPTHWISE_CONV2D); // DepthwiseConv2dNative b46a7617e8523ccb
    one.attrs.depthwise_conv2d.padding = INF_PADDING_SAME;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
       F32(0.675706983f, 0.758566976f, 0.413529009f, 0.963967025f, 0.217290998f, 0.101334997f,
           0.804230988f, 0.329672992f, 0.924503028f, 0.728742003f, 0.180216998f, 0.210458994f,
           0.133869007f, 0.650826991f, 0.0476129986f, 0.554795027f, 0.653365016f, 0.442196012f));
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
       F32(0.347153991f, 0.386691988f, 0.327190995f, 0.48378399f, 0.591807008f, 0.242630005f,
           0.951820016f, 0.174353004f, 0.592136025f, 0.623468995f, 0.988243997f, 0.660731018f,
           0.946533978f, 0.0801365003f, 0.864889026f, 0.87460202f));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 3, 4),
          F32(1.83059144f, 0.93712455f, 2.12179756f, 1.39023745f, 0.990165651f, 0.803470612f,
              1.31405258f, 1.14959025f, 0.182146415f, 0.1963844f, 0.241140738f, 0.188081041f,
              0.950655341f, 0.622580588f, 1.92450929f, 1.20179534f, 1.07422411f, 0.483267576f,
              1.36948025f, 1.1425637f, 0.449443996f, 0.477041304f, 0.505857825f, 0.393989325f,
              0.0746508688f, 0.0633184165f, 0.741009772f, 0.411589861f, 0.403195024f, 0.176937521f,
              0.602414966f, 0.345499128f, 0.226818278f, 0.252651006f, 0.144682556f, 0.213927343f));
    begin(INF_OP_DEPTHWISE_CONV2D); // DepthwiseConv2dNative 60bfde14958d3b7d
    one.attrs.depthwise_conv2d.pad_top = 1;
    one.attrs.depthwise_conv2d.pad_bottom = 2;
    one.attrs.depthwise_conv2d.pad_right = 1;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
       F32(0.230664f, 0.987388015f, 0.0685207993f, 0.419223994f, 0.887861013f, 0.731640995f,
           0.0741906986f, 0.409265012f, 0.35137701f));
    in(INF_DTYPE_F32, SHAPE(2, 2, 1, 1),
       F32(0.303873003f, 0.229222998f, 0.144333005f, 0.803372979f));
    wants(INF_DTYPE_F32, SHAPE(1, 5, 3, 1),
          F32(0.826533258f, 0.197560444f, 0.00988981314f, 1.07021606f, 1.03167534f, 0.126421571f,
              0.67040962f, 0.778863192f, 0.273041248f, 0.116357505f, 0.204908282f, 0.106773987f, 0,
              0, 0));
    begin(INF_OP_DEPTHWISE_CONV2D); // FusedDepthwiseConv2D 4f87682764637cb3
    one.attrs.depthwise_conv2d.padding = INF_PADDING_VALID;
    one.attrs.depthwise_conv2d.activation = INF_ACTIVATION_SIGMOID;
    in(INF_DTYPE_F32, SHAPE(1, 5, 5, 1),
       F32(0.149194002f, 0.0890090019f, 0.654891014f, 0.0833240002f, 0.537042975f, 0.644330978f,
           0.563036978f, 0.211859003f, 0.633500993f, 0.186426997f, 0.777033985f, 0.500010014f,
           0.607340991f, 0.95302999f, 0.696479023f, 0.0503869988f, 0.62045002f, 0.72804898f,
           0.028043f, 0.437009007f, 0.712881029f, 0.741935015f, 0.974474013f, 0.621101975f,
           0.171410993f));
    in(INF_DTYPE_F32, SHAPE(3, 3, 1, 1),
       F32(-0.125386f, -0.975198984f, -0.640437007f, -0.281895012f, -0.990967989f, -0.347207993f,
           -0.889702022f, -0.180694997f, -0.691991985f));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
          F32(0.0730996579f, 0.0754466429f, 0.0791420117f, 0.0869306996f, 0.0787393004f,
              0.04409042f, 0.0356233716f, 0.0311462041f, 0.0504890978f));
    begin(INF_OP_DEPTHWISE_CONV2D); // FusedDepthwiseConv2D 15a92c396aa6d3e7
    in(INF_DTYPE_F32, SHAPE(2, 3, 3, 1), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    in(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(-1, 1, -2, 0.5f));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 2, 1), F32(-4.5f, -6, -9, -10.5f, -4.5f, -6, -9, -10.5f));
}

Test(ref, agrees_with_tensorflow_js_on_conv2d_transpose)
{
    begin(INF_OP_CONV2D_TRANSPOSE); // Conv2DBackpropInput debb450afdae7e86
    one.attrs.conv2d_transpose.pad_bottom = 1;
    one.attrs.conv2d_transpose.pad_right = 1;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
       F32(1.52433062f, -0.770534337f, -0.645623386f, 0.779628873f, 1.58413887f, -0.255818546f,
           -0.589662194f, 0.0541166216f, 0.707491398f));
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
       F32(0.111783877f, -0.966549754f, 1.21021295f, 0.841217279f, 0.349683374f, -0.423061132f,
           1.27395737f, -1.09014535f));
    list(4, I32(1, 3, 3, 2));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
          F32(0.170395583f, -1.47334135f, 1.75863135f, 2.02705312f, -1.00468087f, -0.0241596736f,
              0.620182991f, -1.39843512f, 2.79308724f, -2.21107054f, 0.681157291f, 2.69299889f,
              0.206708536f, 0.240107179f, 0.83959353f, -2.06843686f, 2.07324862f, -2.25701642f));
    begin(INF_OP_CONV2D_TRANSPOSE); // Conv2DBackpropInput e74b3e5e4a7c444d
    one.attrs.conv2d_transpose.padding = INF_PADDING_SAME;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
       F32(1.52433062f, -0.770534337f, -0.645623386f, 0.779628873f, 1.58413887f, -0.255818546f,
           -0.589662194f, 0.0541166216f, 0.707491398f));
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
       F32(0.111783877f, -0.966549754f, 1.21021295f, 0.841217279f, 0.349683374f, -0.423061132f,
           1.27395737f, -1.09014535f));
    list(4, I32(1, 3, 3, 2));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
          F32(0.170395583f, -1.47334135f, 1.75863135f, 2.02705312f, -1.00468087f, -0.0241596736f,
              0.620182991f, -1.39843512f, 2.79308724f, -2.21107054f, 0.681157291f, 2.69299889f,
              0.206708536f, 0.240107179f, 0.83959353f, -2.06843686f, 2.07324862f, -2.25701642f));
    begin(INF_OP_CONV2D_TRANSPOSE); // Conv2DBackpropInput 51e8aa01d911d93a
    one.attrs.conv2d_transpose.stride_h = 2;
    one.attrs.conv2d_transpose.stride_w = 2;
    one.attrs.conv2d_transpose.padding = INF_PADDING_SAME;
    in(INF_DTYPE_F32, SHAPE(1, 2, 2, 4),
       F32(1.24000001f, 1.65999997f, 0.899999976f, 1.38999999f, 0.159999996f, 0.270000011f,
           0.419999987f, 0.610000014f, 0.0399999991f, 0.170000002f, 0.340000004f, 0.280000001f, 0,
           0.0599999987f, 0.140000001f, 0.239999995f));
    in(INF_DTYPE_F32, SHAPE(2, 2, 1, 4), F32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    list(4, I32(1, 3, 3, 1));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
          F32(7.63000011f, 28.3899994f, 2.94000006f, 49.1499977f, 69.909996f, 14.6199999f,
              1.69000006f, 5.01000023f, 1.05999994f));
}

Test(ref, agrees_with_tensorflow_js_on_pool2d)
{
    begin(INF_OP_POOL2D); // AvgPool ee86056fd74949e7
    one.attrs.pool2d.kind = INF_POOL_AVERAGE;
    one.attrs.pool2d.kernel_h = 3;
    one.attrs.pool2d.kernel_w = 3;
    one.attrs.pool2d.pad_top = 1;
    one.attrs.pool2d.pad_bottom = 2;
    one.attrs.pool2d.pad_right = 1;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), F32(0, 1, 2, 3, 4, 5, 6, 7, 8));
    wants(INF_DTYPE_F32, SHAPE(1, 4, 2, 1), F32(2.5f, 3, 4, 4.5f, 5.5f, 6, 7, 7.5f));
    begin(INF_OP_POOL2D); // AvgPool 918a7e9b71cbb070
    one.attrs.pool2d.kind = INF_POOL_AVERAGE;
    one.attrs.pool2d.kernel_h = 2;
    one.attrs.pool2d.kernel_w = 2;
    one.attrs.pool2d.stride_h = 2;
    one.attrs.pool2d.stride_w = 2;
    in(INF_DTYPE_F32, SHAPE(1, 4, 4, 1), F32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    wants(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(2.5f, 4.5f, 10.5f, 12.5f));
    begin(INF_OP_POOL2D); // MaxPool 8b5a75abbf7f32f6
    one.attrs.pool2d.kind = INF_POOL_MAX;
    one.attrs.pool2d.kernel_h = 2;
    one.attrs.pool2d.kernel_w = 2;
    in(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
       F32(1, 99, 2, 88, 3, 77, 4, 66, 5, 55, 6, 44, 7, 33, 9, 22, 8, 11));
    wants(INF_DTYPE_F32, SHAPE(1, 2, 2, 2), F32(5, 99, 6, 88, 9, 66, 9, 55));
    begin(INF_OP_POOL2D); // MaxPool 3a668703e90f9cac
    one.attrs.pool2d.kind = INF_POOL_MAX;
    one.attrs.pool2d.kernel_h = 2;
    one.attrs.pool2d.kernel_w = 2;
    one.attrs.pool2d.stride_h = 2;
    one.attrs.pool2d.stride_w = 2;
    in(INF_DTYPE_F32, SHAPE(1, 4, 4, 2),
       F32(0, 1, 1, 2, 2, 2, 3, 1, 4, 1, 5, 1, 6, 1, 7, 1, 8, 1, 9, 1, 10, 1, 11, 1, 12, 1, 13, 2,
           14, 2, 15, 1));
    wants(INF_DTYPE_F32, SHAPE(1, 2, 2, 2), F32(5, 2, 7, 2, 13, 2, 15, 2));
}

Test(ref, agrees_with_tensorflow_js_on_resize)
{
    begin(INF_OP_RESIZE); // ResizeBilinear 5787ad7c5fe8a012
    one.attrs.resize.kind = INF_RESIZE_BILINEAR;
    one.attrs.resize.align_corners = true;
    in(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
       F32(115.110298f, 111.909363f, 66.8743362f, 72.0384903f, 81.8663788f, 119.535858f,
           68.5554199f, 97.4964218f, 116.907417f, 128.694672f, 86.7831421f, 104.311668f));
    list(2, I32(3, 5));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
          F32(115.110298f, 111.909363f, 66.8743362f, 104.342346f, 104.398621f, 80.0397186f,
              93.5743942f, 96.8878708f, 93.2050934f, 82.8064423f, 89.377121f, 106.370476f,
              72.0384903f, 81.8663788f, 119.535858f, 91.8328552f, 104.702896f, 91.8908768f,
              93.9662933f, 99.6083603f, 96.8991013f, 96.0997162f, 94.5138245f, 101.907318f,
              98.2331543f, 89.4192963f, 106.915543f, 100.366577f, 84.3247604f, 111.923767f,
              68.5554199f, 97.4964218f, 116.907417f, 83.5902328f, 94.8181f, 113.758484f,
              98.6250458f, 92.1397858f, 110.609543f, 113.659859f, 89.4614639f, 107.460602f,
              128.694672f, 86.7831421f, 104.311668f));
    begin(INF_OP_RESIZE); // ResizeBilinear 189f2ed00d49eef5
    one.attrs.resize.kind = INF_RESIZE_BILINEAR;
    in(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
       F32(115.110298f, 111.909363f, 66.8743362f, 72.0384903f, 81.8663788f, 119.535858f,
           68.5554199f, 97.4964218f, 116.907417f, 128.694672f, 86.7831421f, 104.311668f));
    list(2, I32(3, 5));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
          F32(115.110298f, 111.909363f, 66.8743362f, 97.8815765f, 99.8921661f, 87.938942f,
              80.6528549f, 87.8749771f, 109.003555f, 72.0384903f, 81.8663788f, 119.535858f,
              72.0384903f, 81.8663788f, 119.535858f, 84.0737152f, 102.300735f, 100.229721f,
              94.3679352f, 95.4381332f, 103.892395f, 104.662163f, 88.5755234f, 107.555061f,
              109.80928f, 85.1442184f, 109.386398f, 109.80928f, 85.1442184f, 109.386398f,
              68.5554199f, 97.4964218f, 116.907417f, 92.6111221f, 93.211113f, 111.869118f,
              116.666824f, 88.9257965f, 106.830818f, 128.694672f, 86.7831421f, 104.311668f,
              128.694672f, 86.7831421f, 104.311668f));
    begin(INF_OP_RESIZE); // ResizeNearestNeighbor 1665efc50bc001af
    one.attrs.resize.kind = INF_RESIZE_NEAREST;
    one.attrs.resize.align_corners = true;
    in(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
       F32(100.268181f, 74.618576f, 81.6211777f, 127.869644f, 85.0583267f, 102.954391f, 104.379883f,
           96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f));
    list(2, I32(3, 5));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
          F32(100.268181f, 74.618576f, 81.6211777f, 100.268181f, 74.618576f, 81.6211777f,
              127.869644f, 85.0583267f, 102.954391f, 127.869644f, 85.0583267f, 102.954391f,
              127.869644f, 85.0583267f, 102.954391f, 104.379883f, 96.7073364f, 92.6060104f,
              104.379883f, 96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f,
              77.6302185f, 68.5579453f, 96.1721268f, 77.6302185f, 68.5579453f, 96.1721268f,
              104.379883f, 96.7073364f, 92.6060104f, 104.379883f, 96.7073364f, 92.6060104f,
              77.6302185f, 68.5579453f, 96.1721268f, 77.6302185f, 68.5579453f, 96.1721268f,
              77.6302185f, 68.5579453f, 96.1721268f));
    begin(INF_OP_RESIZE); // ResizeNearestNeighbor 9781a9c772270052
    one.attrs.resize.kind = INF_RESIZE_NEAREST;
    in(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
       F32(100.268181f, 74.618576f, 81.6211777f, 127.869644f, 85.0583267f, 102.954391f, 104.379883f,
           96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f));
    list(2, I32(3, 5));
    wants(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
          F32(100.268181f, 74.618576f, 81.6211777f, 100.268181f, 74.618576f, 81.6211777f,
              100.268181f, 74.618576f, 81.6211777f, 127.869644f, 85.0583267f, 102.954391f,
              127.869644f, 85.0583267f, 102.954391f, 100.268181f, 74.618576f, 81.6211777f,
              100.268181f, 74.618576f, 81.6211777f, 100.268181f, 74.618576f, 81.6211777f,
              127.869644f, 85.0583267f, 102.954391f, 127.869644f, 85.0583267f, 102.954391f,
              104.379883f, 96.7073364f, 92.6060104f, 104.379883f, 96.7073364f, 92.6060104f,
              104.379883f, 96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f,
              77.6302185f, 68.5579453f, 96.1721268f));
}

Test(ref, agrees_with_tensorflow_js_on_slice)
{
    begin(INF_OP_SLICE); // Slice 2270d40b29d95f2f
    in(INF_DTYPE_F32, SHAPE(3, 3), F32(1, 1, 1, 0, -2.23606777f, -2.68328142f, 0, 0, 0.89442718f));
    list(2, I32(0, 0));
    list(2, I32(2, 3));
    list(2, I32(1, 1));
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 1, 1, 0, -2.23606777f, -2.68328142f));
    begin(INF_OP_SLICE); // StridedSlice 00be4c8dd570592c
    in(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    list(3, I32(-1, -1, -1));
    list(3, I32(-3, -4, -3));
    list(3, I32(-1, -1, -1));
    wants(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
    begin(INF_OP_SLICE); // StridedSlice d2ef99d2ced5fdc5
    one.attrs.slice.ellipsis_mask = 1;
    in(INF_DTYPE_F32, SHAPE(3, 2, 3), F32(1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 6, 6));
    list(2, I32(1, 0));
    list(2, I32(2, 1));
    list(2, I32(1, 1));
    wants(INF_DTYPE_F32, SHAPE(3, 2, 1), F32(1, 2, 3, 4, 5, 6));
}

Test(ref, agrees_with_tensorflow_js_on_gather)
{
    begin(INF_OP_GATHER); // GatherV2 83739f293184b3e1
    in(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    in(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 0, 0, 1));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 3, 2),
          F32(7, 8, 9, 10, 11, 12, 1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    begin(INF_OP_GATHER); // GatherV2 160c2ef36dfe25bf
    one.attrs.gather.axis = 1;
    in(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    in(INF_DTYPE_I32, SHAPE(2, 2), I32(1, 2, 2, 1));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
          F32(3, 4, 5, 6, 5, 6, 3, 4, 9, 10, 11, 12, 11, 12, 9, 10));
}

Test(ref, agrees_with_tensorflow_js_on_pad)
{
    begin(INF_OP_PAD); // MirrorPad f8545163cf153f1a
    one.attrs.pad.mode = INF_PAD_REFLECT;
    in(INF_DTYPE_F32, SHAPE(2, 2), F32(1, NAN, 1, NAN));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 1, 1));
    wants(INF_DTYPE_F32, SHAPE(4, 4),
          F32(NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1, NAN, 1));
    begin(INF_OP_PAD); // MirrorPad 3156bf0be662366b
    one.attrs.pad.mode = INF_PAD_SYMMETRIC;
    in(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 3, 4, 5, 6));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 1, 1));
    wants(INF_DTYPE_I32, SHAPE(4, 5),
          I32(1, 1, 2, 3, 3, 1, 1, 2, 3, 3, 4, 4, 5, 6, 6, 4, 4, 5, 6, 6));
    begin(INF_OP_PAD); // PadV2 23ba9c2751c9bda0
    in(INF_DTYPE_F32, SHAPE(2, 1), F32(1, 1));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(1, 1, 1, 1));
    one_node_const(&one, INF_DTYPE_F32, SCALAR, F32(-2.1f));
    wants(INF_DTYPE_F32, SHAPE(4, 3),
          F32(-2.0999999f, -2.0999999f, -2.0999999f, -2.0999999f, 1, -2.0999999f, -2.0999999f, 1,
              -2.0999999f, -2.0999999f, -2.0999999f, -2.0999999f));
}

Test(ref, agrees_with_tensorflow_js_on_batch_norm)
{
    begin(INF_OP_BATCH_NORM); // FusedBatchNorm 6174af85a83fa9a8
    one.attrs.batch_norm.epsilon = 0.001f;
    in(INF_DTYPE_F32, SHAPE(1, 1, 3, 3),
       F32(0.313689202f, 0.923890233f, 0.594781995f, 0.05021042f, 0.675454021f, 0.939100325f,
           0.132779926f, 0.964742661f, 0.886089146f));
    in(INF_DTYPE_F32, SHAPE(3), F32(0.621869087f, 0.856737375f, 0.192010611f));
    in(INF_DTYPE_F32, SHAPE(3), F32(0.430984855f, 0.777122378f, 0.479162991f));
    in(INF_DTYPE_F32, SHAPE(3), F32(0.195263118f, 0.748572588f, 0.451663971f));
    in(INF_DTYPE_F32, SHAPE(3), F32(0.229630008f, 0.615219891f, 0.46623686f));
    wants(INF_DTYPE_F32, SHAPE(1, 1, 3, 3),
          F32(0.584336519f, 0.968462229f, 0.519365311f, 0.243154034f, 0.697321534f, 0.61608541f,
              0.35007447f, 1.01304817f, 0.601194441f));
}

Test(ref, agrees_with_tensorflow_js_on_transpose)
{
    begin(INF_OP_TRANSPOSE); // Transpose 8a2f1f4050817ebd
    one.attrs.transpose.perm.count = 5;
    one.attrs.transpose.perm.values[1] = 1;
    one.attrs.transpose.perm.values[2] = 2;
    one.attrs.transpose.perm.values[3] = 4;
    one.attrs.transpose.perm.values[4] = 3;
    in(INF_DTYPE_F32, SHAPE(2, 2, 2, 2, 2),
       F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
           25, 26, 27, 28, 29, 30, 31, 32));
    wants(INF_DTYPE_F32, SHAPE(2, 2, 2, 2, 2),
          F32(1, 3, 2, 4, 5, 7, 6, 8, 9, 11, 10, 12, 13, 15, 14, 16, 17, 19, 18, 20, 21, 23, 22, 24,
              25, 27, 26, 28, 29, 31, 30, 32));
    begin(INF_OP_TRANSPOSE); // Transpose 5cacb3248d3d17af
    one.attrs.transpose.perm.count = 3;
    one.attrs.transpose.perm.values[1] = 1;
    one.attrs.transpose.perm.values[2] = 2;
    in(INF_DTYPE_F32, SHAPE(2, 4, 4),
       F32(2, -3, 4, 15, 6, 0.699999988f, 1, 18, 0.00999999978f, 0, 12, 13, 4, 15, 12, -7, 18, 19,
           2, 21, 6, 23, 24, 25, 101, 31, 34, 54, 1, 0, -3, -4));
    wants(INF_DTYPE_F32, SHAPE(2, 4, 4),
          F32(2, -3, 4, 15, 6, 0.699999988f, 1, 18, 0.00999999978f, 0, 12, 13, 4, 15, 12, -7, 18,
              19, 2, 21, 6, 23, 24, 25, 101, 31, 34, 54, 1, 0, -3, -4));
}

Test(ref, agrees_with_tensorflow_js_on_softmax)
{
    begin(INF_OP_SOFTMAX); // Softmax 402f1c81430ae0fb
    in(INF_DTYPE_F32, SHAPE(3), F32(10, 0, -1));
    wants(INF_DTYPE_F32, SHAPE(3), F32(0.999937892f, 4.53971115e-05f, 1.67006638e-05f));
}

// --- random numbers ---

Test(ref, draws_what_the_seed_says)
{
    // Worked out in Python from SplitMix64's published constants: 64 draws apart.
    begin(INF_OP_RANDOM);
    one.attrs.random.seed = 42;
    list(2, I32(2, 2));
    wants(
        INF_DTYPE_F32, SHAPE(2, 2),
        F32(0.7415648698806763f, 0.32495617866516113f, 0.04289048910140991f, 0.4946075677871704f));
    one.attrs.random.kind = INF_RANDOM_NORMAL;
    wants(INF_DTYPE_F32, SHAPE(2, 2),
          F32(0.4147197504315305f, -1.0723714838399727f, -2.505769366970197f, 0.5309856337142166f));
    begin(INF_OP_RANDOM);
    list(2, I32(3, 0));
    wants(INF_DTYPE_F32, SHAPE(3, 0), NULL);
}

Test(ref, draws_other_numbers_every_run_without_a_seed)
{
    float first[8];
    begin(INF_OP_RANDOM);
    list(1, I32(8));
    run();
    memcpy(first, one.outputs[0].data, sizeof first);
    run();
    cr_assert_neq(memcmp(first, one.outputs[0].data, sizeof first), 0);
}

Test(ref, draws_have_their_mean_deviation_and_range)
{
    // Of 40,000 draws the mean strays by 0.005 deviations; five times that is allowed.
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
        begin(INF_OP_RANDOM);
        one.attrs.random.kind = rows[i].kind;
        one.attrs.random.seed = -5;
        list(1, I32(COUNT));
        run();
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
