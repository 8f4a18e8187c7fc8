// SPDX-License-Identifier: Apache-2.0
// Recorded TensorFlow.js calls (see test_ref_facts.c) of operators with windows and of matrix
// products.
#include "tests/unit/ref/ref_case.h"

Test(ref, agrees_with_tensorflow_js_on_matmul)
{
    // the BatchMatMul call recorded from TensorFlow.js that has the hash acb4499273f6b0e8
    begin_case(INF_OP_MATMUL);
    add_input(INF_DTYPE_F32, SHAPE(3, 1), F32(1.12038589f, -0.240771726f, 0.963086903f));
    add_input(INF_DTYPE_F32, SHAPE(1, 3), F32(8.30662441f, -4.73642588f, 3.93410635f));
    expect_output(INF_DTYPE_F32, SHAPE(3, 3),
                  F32(9.30662441f, -5.30662489f, 4.40771723f, -2.00000024f, 1.14039743f,
                      -0.947221577f, 8.00000095f, -4.56158972f, 3.78888631f));
    // the BatchMatMul call recorded from TensorFlow.js that has the hash 5e28745a4ee027e5
    begin_case(INF_OP_MATMUL);
    one.attrs.matmul.transpose_a = true;
    one.attrs.matmul.transpose_b = true;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 10, 20, 30));
    add_input(INF_DTYPE_F32, SHAPE(3, 2), F32(1, 2, 3, 10, 20, 30));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(41, 203, 620, 70, 330, 1100));
    // the _FusedMatMul call recorded from TensorFlow.js that has the hash c6dd3732b566b115
    begin_case(INF_OP_MATMUL);
    one.attrs.matmul.activation = INF_ACTIVATION_SIGMOID;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 3), F32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 2), F32(0, 1, -3, 2, 2, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2), F32(0.5f, 0.999664664f, 0.0474258736f, 1));
    // the _FusedMatMul call recorded from TensorFlow.js that has the hash 459f8a7169a151ed
    begin_case(INF_OP_MATMUL);
    one.attrs.matmul.activation = INF_ACTIVATION_ELU;
    one.attrs.matmul.activation_alpha = 1;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 3), F32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 2), F32(0, 1, -3, 2, 2, 1));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2), F32(1, 9, -0.864664733f, 21));
}

Test(ref, agrees_with_tensorflow_js_on_conv2d)
{
    begin_case(INF_OP_CONV2D); // Conv2D call recorded from TensorFlow.js, hash 5aed61ae875446d5
    one.attrs.conv2d.padding = INF_PADDING_VALID;
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 4, 1),
              F32(0.491982192f, 0.986021817f, 0.727551162f, 0.340506226f, 0.808145106f,
                  0.465104192f, 0.515041053f, 0.1305549f, 0.990154445f, 0.394941717f, 0.55558455f,
                  0.144028038f, 0.189863697f, 0.208682746f, 0.141640082f, 0.168587238f));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 2), F32(0.100000001f, -0.200000003f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 4, 4, 2),
                  F32(0.0491982214f, -0.0983964428f, 0.0986021832f, -0.197204366f, 0.0727551207f,
                      -0.145510241f, 0.0340506248f, -0.0681012496f, 0.0808145106f, -0.161629021f,
                      0.0465104207f, -0.0930208415f, 0.0515041053f, -0.103008211f, 0.0130554903f,
                      -0.0261109807f, 0.0990154445f, -0.198030889f, 0.0394941717f, -0.0789883435f,
                      0.0555584542f, -0.111116908f, 0.014402804f, -0.0288056079f, 0.0189863704f,
                      -0.0379727408f, 0.0208682753f, -0.0417365506f, 0.0141640082f, -0.0283280164f,
                      0.0168587249f, -0.0337174498f));
    begin_case(INF_OP_CONV2D); // Conv2D call recorded from TensorFlow.js, hash 25c40c07d8108035
    one.attrs.conv2d.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
              F32(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
              F32(0.111783877f, -0.966549754f, 1.21021295f, 0.841217279f, 0.349683374f,
                  -0.423061132f, 1.27395737f, -1.09014535f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
                  F32(1.30709863f, 1.30709863f, -0.92814362f, 1.30709863f, 1.30709863f,
                      -0.92814362f, 1.19666433f, 1.19666433f, -0.854765892f));
    begin_case(INF_OP_CONV2D); // Conv2D call recorded from TensorFlow.js, hash 5772d30422302b98
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 3, 1),
              F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(-1, 1, -2, 0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
                  F32(-4.5f, -6, -9, -10.5f, -4.5f, -6, -9, -10.5f));
    // the FusedConv2D call recorded from TensorFlow.js that has the hash 4b8fc0875f1e61b6
    begin_case(INF_OP_CONV2D);
    one.attrs.conv2d.activation = INF_ACTIVATION_PRELU;
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
              F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 2), F32(-1, 1, -2, 0.5f));
    one_node_absent(&one);
    add_input(INF_DTYPE_F32, SHAPE(2), F32(0.25f, 0.75f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
                  F32(-1.25f, 2, -2.75f, 5, -4.25f, 8, -5.75f, 11, -7.25f, 14, -8.75f, 17, -10.25f,
                      20, -11.75f, 23));
    // the FusedConv2D call recorded from TensorFlow.js that has the hash e206fd63a35d4fe0
    begin_case(INF_OP_CONV2D);
    one.attrs.conv2d.padding = INF_PADDING_SAME;
    one.attrs.conv2d.activation = INF_ACTIVATION_LEAKY_RELU;
    one.attrs.conv2d.activation_alpha = 0.3f;
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 4, 1),
              F32(10, 30, 50, 70, 20, 40, 60, 80, -10, -30, -50, -70, -20, -40, -60, -80));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 3), F32(1, 0.5f, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 4, 4, 3),
                  F32(10, 5, 10, 30, 15, 30, 50, 25, 50, 70, 35, 70, 20, 10, 20, 40, 20, 40, 60, 30,
                      60, 80, 40, 80, -3, -1.5f, -3, -9, -4.5f, -9, -15, -7.5f, -15, -21, -10.5f,
                      -21, -6, -3, -6, -12, -6, -12, -18, -9, -18, -24, -12, -24));
    // the FusedConv2D call recorded from TensorFlow.js that has the hash cddcc43dafcea8a7
    begin_case(INF_OP_CONV2D);
    one.attrs.conv2d.activation = INF_ACTIVATION_ELU;
    one.attrs.conv2d.activation_alpha = 1;
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
              F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 2), F32(-1, 1, -2, 0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
                  F32(-0.993262053f, 2, -0.999983311f, 5, -0.99999994f, 8, -1, 11, -1, 14, -1, 17,
                      -1, 20, -1, 23));
}

Test(ref, agrees_with_tensorflow_js_on_depthwise_conv2d)
{
    // the DepthwiseConv2dNative call recorded from TensorFlow.js that has the hash b46a7617e8523ccb
    begin_case(INF_OP_DEPTHWISE_CONV2D);
    one.attrs.depthwise_conv2d.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
              F32(0.675706983f, 0.758566976f, 0.413529009f, 0.963967025f, 0.217290998f,
                  0.101334997f, 0.804230988f, 0.329672992f, 0.924503028f, 0.728742003f,
                  0.180216998f, 0.210458994f, 0.133869007f, 0.650826991f, 0.0476129986f,
                  0.554795027f, 0.653365016f, 0.442196012f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 2),
              F32(0.347153991f, 0.386691988f, 0.327190995f, 0.48378399f, 0.591807008f, 0.242630005f,
                  0.951820016f, 0.174353004f, 0.592136025f, 0.623468995f, 0.988243997f,
                  0.660731018f, 0.946533978f, 0.0801365003f, 0.864889026f, 0.87460202f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 4),
                  F32(1.83059144f, 0.93712455f, 2.12179756f, 1.39023745f, 0.990165651f,
                      0.803470612f, 1.31405258f, 1.14959025f, 0.182146415f, 0.1963844f,
                      0.241140738f, 0.188081041f, 0.950655341f, 0.622580588f, 1.92450929f,
                      1.20179534f, 1.07422411f, 0.483267576f, 1.36948025f, 1.1425637f, 0.449443996f,
                      0.477041304f, 0.505857825f, 0.393989325f, 0.0746508688f, 0.0633184165f,
                      0.741009772f, 0.411589861f, 0.403195024f, 0.176937521f, 0.602414966f,
                      0.345499128f, 0.226818278f, 0.252651006f, 0.144682556f, 0.213927343f));
    // the DepthwiseConv2dNative call recorded from TensorFlow.js that has the hash 60bfde14958d3b7d
    begin_case(INF_OP_DEPTHWISE_CONV2D);
    one.attrs.depthwise_conv2d.pad_top = 1;
    one.attrs.depthwise_conv2d.pad_bottom = 2;
    one.attrs.depthwise_conv2d.pad_right = 1;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
              F32(0.230664f, 0.987388015f, 0.0685207993f, 0.419223994f, 0.887861013f, 0.731640995f,
                  0.0741906986f, 0.409265012f, 0.35137701f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 1),
              F32(0.303873003f, 0.229222998f, 0.144333005f, 0.803372979f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 5, 3, 1),
                  F32(0.826533258f, 0.197560444f, 0.00988981314f, 1.07021606f, 1.03167534f,
                      0.126421571f, 0.67040962f, 0.778863192f, 0.273041248f, 0.116357505f,
                      0.204908282f, 0.106773987f, 0, 0, 0));
    // the FusedDepthwiseConv2D call recorded from TensorFlow.js that has the hash 4f87682764637cb3
    begin_case(INF_OP_DEPTHWISE_CONV2D);
    one.attrs.depthwise_conv2d.padding = INF_PADDING_VALID;
    one.attrs.depthwise_conv2d.activation = INF_ACTIVATION_SIGMOID;
    add_input(INF_DTYPE_F32, SHAPE(1, 5, 5, 1),
              F32(0.149194002f, 0.0890090019f, 0.654891014f, 0.0833240002f, 0.537042975f,
                  0.644330978f, 0.563036978f, 0.211859003f, 0.633500993f, 0.186426997f,
                  0.777033985f, 0.500010014f, 0.607340991f, 0.95302999f, 0.696479023f,
                  0.0503869988f, 0.62045002f, 0.72804898f, 0.028043f, 0.437009007f, 0.712881029f,
                  0.741935015f, 0.974474013f, 0.621101975f, 0.171410993f));
    add_input(INF_DTYPE_F32, SHAPE(3, 3, 1, 1),
              F32(-0.125386f, -0.975198984f, -0.640437007f, -0.281895012f, -0.990967989f,
                  -0.347207993f, -0.889702022f, -0.180694997f, -0.691991985f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
                  F32(0.0730996579f, 0.0754466429f, 0.0791420117f, 0.0869306996f, 0.0787393004f,
                      0.04409042f, 0.0356233716f, 0.0311462041f, 0.0504890978f));
    // the FusedDepthwiseConv2D call recorded from TensorFlow.js that has the hash 15a92c396aa6d3e7
    begin_case(INF_OP_DEPTHWISE_CONV2D);
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 3, 1),
              F32(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 1), F32(-1, 1, -2, 0.5f));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
                  F32(-4.5f, -6, -9, -10.5f, -4.5f, -6, -9, -10.5f));
}

Test(ref, agrees_with_tensorflow_js_on_conv2d_transpose)
{
    // the Conv2DBackpropInput call recorded from TensorFlow.js that has the hash debb450afdae7e86
    begin_case(INF_OP_CONV2D_TRANSPOSE);
    one.attrs.conv2d_transpose.pad_bottom = 1;
    one.attrs.conv2d_transpose.pad_right = 1;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
              F32(1.52433062f, -0.770534337f, -0.645623386f, 0.779628873f, 1.58413887f,
                  -0.255818546f, -0.589662194f, 0.0541166216f, 0.707491398f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
              F32(0.111783877f, -0.966549754f, 1.21021295f, 0.841217279f, 0.349683374f,
                  -0.423061132f, 1.27395737f, -1.09014535f));
    add_list(4, I32(1, 3, 3, 2));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
                  F32(0.170395583f, -1.47334135f, 1.75863135f, 2.02705312f, -1.00468087f,
                      -0.0241596736f, 0.620182991f, -1.39843512f, 2.79308724f, -2.21107054f,
                      0.681157291f, 2.69299889f, 0.206708536f, 0.240107179f, 0.83959353f,
                      -2.06843686f, 2.07324862f, -2.25701642f));
    // the Conv2DBackpropInput call recorded from TensorFlow.js that has the hash e74b3e5e4a7c444d
    begin_case(INF_OP_CONV2D_TRANSPOSE);
    one.attrs.conv2d_transpose.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
              F32(1.52433062f, -0.770534337f, -0.645623386f, 0.779628873f, 1.58413887f,
                  -0.255818546f, -0.589662194f, 0.0541166216f, 0.707491398f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 1),
              F32(0.111783877f, -0.966549754f, 1.21021295f, 0.841217279f, 0.349683374f,
                  -0.423061132f, 1.27395737f, -1.09014535f));
    add_list(4, I32(1, 3, 3, 2));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
                  F32(0.170395583f, -1.47334135f, 1.75863135f, 2.02705312f, -1.00468087f,
                      -0.0241596736f, 0.620182991f, -1.39843512f, 2.79308724f, -2.21107054f,
                      0.681157291f, 2.69299889f, 0.206708536f, 0.240107179f, 0.83959353f,
                      -2.06843686f, 2.07324862f, -2.25701642f));
    // the Conv2DBackpropInput call recorded from TensorFlow.js that has the hash 51e8aa01d911d93a
    begin_case(INF_OP_CONV2D_TRANSPOSE);
    one.attrs.conv2d_transpose.stride_h = 2;
    one.attrs.conv2d_transpose.stride_w = 2;
    one.attrs.conv2d_transpose.padding = INF_PADDING_SAME;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 4),
              F32(1.24000001f, 1.65999997f, 0.899999976f, 1.38999999f, 0.159999996f, 0.270000011f,
                  0.419999987f, 0.610000014f, 0.0399999991f, 0.170000002f, 0.340000004f,
                  0.280000001f, 0, 0.0599999987f, 0.140000001f, 0.239999995f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1, 4),
              F32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    add_list(4, I32(1, 3, 3, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1),
                  F32(7.63000011f, 28.3899994f, 2.94000006f, 49.1499977f, 69.909996f, 14.6199999f,
                      1.69000006f, 5.01000023f, 1.05999994f));
}

Test(ref, agrees_with_tensorflow_js_on_pool2d)
{
    begin_case(INF_OP_POOL2D); // AvgPool call recorded from TensorFlow.js, hash ee86056fd74949e7
    one.attrs.pool2d.kind = INF_POOL_AVERAGE;
    one.attrs.pool2d.kernel_h = 3;
    one.attrs.pool2d.kernel_w = 3;
    one.attrs.pool2d.pad_top = 1;
    one.attrs.pool2d.pad_bottom = 2;
    one.attrs.pool2d.pad_right = 1;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), F32(0, 1, 2, 3, 4, 5, 6, 7, 8));
    expect_output(INF_DTYPE_F32, SHAPE(1, 4, 2, 1), F32(2.5f, 3, 4, 4.5f, 5.5f, 6, 7, 7.5f));
    begin_case(INF_OP_POOL2D); // AvgPool call recorded from TensorFlow.js, hash 918a7e9b71cbb070
    one.attrs.pool2d.kind = INF_POOL_AVERAGE;
    one.attrs.pool2d.kernel_h = 2;
    one.attrs.pool2d.kernel_w = 2;
    one.attrs.pool2d.stride_h = 2;
    one.attrs.pool2d.stride_w = 2;
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 4, 1),
              F32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(2.5f, 4.5f, 10.5f, 12.5f));
    begin_case(INF_OP_POOL2D); // MaxPool call recorded from TensorFlow.js, hash 8b5a75abbf7f32f6
    one.attrs.pool2d.kind = INF_POOL_MAX;
    one.attrs.pool2d.kernel_h = 2;
    one.attrs.pool2d.kernel_w = 2;
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 3, 2),
              F32(1, 99, 2, 88, 3, 77, 4, 66, 5, 55, 6, 44, 7, 33, 9, 22, 8, 11));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 2), F32(5, 99, 6, 88, 9, 66, 9, 55));
    begin_case(INF_OP_POOL2D); // MaxPool call recorded from TensorFlow.js, hash 3a668703e90f9cac
    one.attrs.pool2d.kind = INF_POOL_MAX;
    one.attrs.pool2d.kernel_h = 2;
    one.attrs.pool2d.kernel_w = 2;
    one.attrs.pool2d.stride_h = 2;
    one.attrs.pool2d.stride_w = 2;
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 4, 2),
              F32(0, 1, 1, 2, 2, 2, 3, 1, 4, 1, 5, 1, 6, 1, 7, 1, 8, 1, 9, 1, 10, 1, 11, 1, 12, 1,
                  13, 2, 14, 2, 15, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 2), F32(5, 2, 7, 2, 13, 2, 15, 2));
}

Test(ref, agrees_with_tensorflow_js_on_resize)
{
    // the ResizeBilinear call recorded from TensorFlow.js that has the hash 5787ad7c5fe8a012
    begin_case(INF_OP_RESIZE);
    one.attrs.resize.kind = INF_RESIZE_BILINEAR;
    one.attrs.resize.align_corners = true;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
              F32(115.110298f, 111.909363f, 66.8743362f, 72.0384903f, 81.8663788f, 119.535858f,
                  68.5554199f, 97.4964218f, 116.907417f, 128.694672f, 86.7831421f, 104.311668f));
    add_list(2, I32(3, 5));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
                  F32(115.110298f, 111.909363f, 66.8743362f, 104.342346f, 104.398621f, 80.0397186f,
                      93.5743942f, 96.8878708f, 93.2050934f, 82.8064423f, 89.377121f, 106.370476f,
                      72.0384903f, 81.8663788f, 119.535858f, 91.8328552f, 104.702896f, 91.8908768f,
                      93.9662933f, 99.6083603f, 96.8991013f, 96.0997162f, 94.5138245f, 101.907318f,
                      98.2331543f, 89.4192963f, 106.915543f, 100.366577f, 84.3247604f, 111.923767f,
                      68.5554199f, 97.4964218f, 116.907417f, 83.5902328f, 94.8181f, 113.758484f,
                      98.6250458f, 92.1397858f, 110.609543f, 113.659859f, 89.4614639f, 107.460602f,
                      128.694672f, 86.7831421f, 104.311668f));
    // the ResizeBilinear call recorded from TensorFlow.js that has the hash 189f2ed00d49eef5
    begin_case(INF_OP_RESIZE);
    one.attrs.resize.kind = INF_RESIZE_BILINEAR;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
              F32(115.110298f, 111.909363f, 66.8743362f, 72.0384903f, 81.8663788f, 119.535858f,
                  68.5554199f, 97.4964218f, 116.907417f, 128.694672f, 86.7831421f, 104.311668f));
    add_list(2, I32(3, 5));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
                  F32(115.110298f, 111.909363f, 66.8743362f, 97.8815765f, 99.8921661f, 87.938942f,
                      80.6528549f, 87.8749771f, 109.003555f, 72.0384903f, 81.8663788f, 119.535858f,
                      72.0384903f, 81.8663788f, 119.535858f, 84.0737152f, 102.300735f, 100.229721f,
                      94.3679352f, 95.4381332f, 103.892395f, 104.662163f, 88.5755234f, 107.555061f,
                      109.80928f, 85.1442184f, 109.386398f, 109.80928f, 85.1442184f, 109.386398f,
                      68.5554199f, 97.4964218f, 116.907417f, 92.6111221f, 93.211113f, 111.869118f,
                      116.666824f, 88.9257965f, 106.830818f, 128.694672f, 86.7831421f, 104.311668f,
                      128.694672f, 86.7831421f, 104.311668f));
    // the ResizeNearestNeighbor call recorded from TensorFlow.js that has the hash 1665efc50bc001af
    begin_case(INF_OP_RESIZE);
    one.attrs.resize.kind = INF_RESIZE_NEAREST;
    one.attrs.resize.align_corners = true;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
              F32(100.268181f, 74.618576f, 81.6211777f, 127.869644f, 85.0583267f, 102.954391f,
                  104.379883f, 96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f));
    add_list(2, I32(3, 5));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
                  F32(100.268181f, 74.618576f, 81.6211777f, 100.268181f, 74.618576f, 81.6211777f,
                      127.869644f, 85.0583267f, 102.954391f, 127.869644f, 85.0583267f, 102.954391f,
                      127.869644f, 85.0583267f, 102.954391f, 104.379883f, 96.7073364f, 92.6060104f,
                      104.379883f, 96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f,
                      77.6302185f, 68.5579453f, 96.1721268f, 77.6302185f, 68.5579453f, 96.1721268f,
                      104.379883f, 96.7073364f, 92.6060104f, 104.379883f, 96.7073364f, 92.6060104f,
                      77.6302185f, 68.5579453f, 96.1721268f, 77.6302185f, 68.5579453f, 96.1721268f,
                      77.6302185f, 68.5579453f, 96.1721268f));
    // the ResizeNearestNeighbor call recorded from TensorFlow.js that has the hash 9781a9c772270052
    begin_case(INF_OP_RESIZE);
    one.attrs.resize.kind = INF_RESIZE_NEAREST;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 3),
              F32(100.268181f, 74.618576f, 81.6211777f, 127.869644f, 85.0583267f, 102.954391f,
                  104.379883f, 96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f));
    add_list(2, I32(3, 5));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 5, 3),
                  F32(100.268181f, 74.618576f, 81.6211777f, 100.268181f, 74.618576f, 81.6211777f,
                      100.268181f, 74.618576f, 81.6211777f, 127.869644f, 85.0583267f, 102.954391f,
                      127.869644f, 85.0583267f, 102.954391f, 100.268181f, 74.618576f, 81.6211777f,
                      100.268181f, 74.618576f, 81.6211777f, 100.268181f, 74.618576f, 81.6211777f,
                      127.869644f, 85.0583267f, 102.954391f, 127.869644f, 85.0583267f, 102.954391f,
                      104.379883f, 96.7073364f, 92.6060104f, 104.379883f, 96.7073364f, 92.6060104f,
                      104.379883f, 96.7073364f, 92.6060104f, 77.6302185f, 68.5579453f, 96.1721268f,
                      77.6302185f, 68.5579453f, 96.1721268f));
}
