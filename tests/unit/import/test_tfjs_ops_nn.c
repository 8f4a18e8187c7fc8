// SPDX-License-Identifier: Apache-2.0
// The lowering of operators with weights, compared with TensorFlow's definitions.
#include <criterion/criterion.h>

#include "tests/unit/import/tfjs_ops_kit.h"

TestSuite(tfjs_ops_nn, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

// Adds a convolution of x [1,5,7,4] with a filter of the given dimensions.
static void add_conv(const char *op, const int64_t *filter, const char *inputs)
{
    static const float zeros[1024];
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(1, 5, 7, 4));
    inf_tfjs_writer_floats(w, "f", zeros, filter, 4);
    inf_tfjs_writer_floats(w, "b", zeros, DIMS(6));
    inf_tfjs_writer_floats(w, "slope", (float[]){1, 2, 3, 4, 5, 6}, DIMS(1, 1, 6));
    inf_tfjs_writer_floats(w, "slopes", zeros, DIMS(5, 7, 6));
    add_node("n", op, inputs);
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 1, 1, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
}

Test(tfjs_ops_nn, convolutions_read_windows_from_attributes)
{
    add_conv("Conv2D", (int64_t[]){3, 2, 4, 6}, "x,f");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 2, 3, 1));
    inf_tfjs_writer_attr_ints(w, "dilations", DIMS(1, 1, 1, 1));
    cr_assert_str_eq(output_of("n"), "FP32 [1,3,3,6]");
    add_conv("Conv2D", (int64_t[]){3, 2, 4, 6}, "x,f");
    inf_tfjs_writer_attr_ints(w, "dilations", DIMS(1, 2, 3, 1));
    inf_tfjs_writer_attr_text(w, "padding", "VALID");
    cr_assert_str_eq(output_of("n"), "FP32 [1,1,4,6]");
    add_conv("Conv2D", (int64_t[]){3, 2, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    inf_tfjs_writer_attr_ints(w, "explicit_paddings", DIMS(0, 0, 1, 2, 3, 4, 0, 0));
    cr_assert_str_eq(output_of("n"), "FP32 [1,6,13,6]");
    const struct inf_attrs_conv2d *attrs = &attrs_of(0, INF_OP_CONV2D)->conv2d;
    cr_assert(attrs->pad_top == 1 && attrs->pad_bottom == 2);
    cr_assert(attrs->pad_left == 3 && attrs->pad_right == 4);
    add_conv("Conv2D", (int64_t[]){1, 1, 2, 6}, "x,f");
    cr_assert_str_eq(output_of("n"), "FP32 [1,5,7,6]");
    cr_assert_eq(attrs_of(0, INF_OP_CONV2D)->conv2d.groups, 2);
    add_conv("DepthwiseConv2dNative", (int64_t[]){3, 3, 4, 2}, "x,f");
    cr_assert_str_eq(output_of("n"), "FP32 [1,5,7,8]");
    add_conv("Conv2D", (int64_t[]){1, 1, 3, 6}, "x,f");
    refuse_model("n", INF_INVALID, "'n'");
    add_conv("Conv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    refuse_model("n", INF_INVALID, "explicit_paddings has 0 elements, wanted 8");
    add_conv("Conv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    inf_tfjs_writer_attr_ints(w, "explicit_paddings", DIMS(0, 0, -1, 2, 3, 4, 0, 0));
    refuse_model("n", INF_INVALID, "explicit_paddings[2] is -1");
    add_conv("Conv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "data_format", "CHWN");
    refuse_model("n", INF_UNSUPPORTED, "node 'n' (Conv2D): data_format 'chwn', wanted NHWC");
}

Test(tfjs_ops_nn, fused_operators_hand_out_bias_and_slope)
{
    static const struct {
        const char *fused;
        enum inf_activation activation;
        float alpha;
    } rows[] = {
        {"BiasAdd", INF_ACTIVATION_NONE, 0},
        {"BiasAdd,Relu", INF_ACTIVATION_RELU, 0},
        {"BiasAdd,Relu6", INF_ACTIVATION_RELU6, 0},
        {"BiasAdd,Elu", INF_ACTIVATION_ELU, 1},
        {"BiasAdd,LeakyRelu", INF_ACTIVATION_LEAKY_RELU, 0.25f},
        {"BiasAdd,Sigmoid", INF_ACTIVATION_SIGMOID, 0},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
        inf_tfjs_writer_attr_texts(w, "fused_ops", rows[i].fused);
        inf_tfjs_writer_attr_int(w, "num_args", 1);
        inf_tfjs_writer_attr_float(w, "leakyrelu_alpha", 0.25);
        output_of("n");
        const struct inf_node *fused = inf_tfjs_case_node(0, INF_OP_CONV2D);
        cr_assert_eq(fused->input_count, 3u);
        cr_assert_eq(fused->attrs.conv2d.activation, rows[i].activation);
        cr_assert_eq(fused->attrs.conv2d.activation_alpha, rows[i].alpha);
    }
    add_conv("FusedDepthwiseConv2dNative", (int64_t[]){3, 3, 3, 2}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu6");
    refuse_model("n", INF_INVALID, "'n'");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "Relu");
    output_of("n");
    cr_assert_eq(attrs_of(0, INF_OP_CONV2D)->conv2d.activation, INF_ACTIVATION_RELU);
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_CONV2D)->input_count, 2u);
}

Test(tfjs_ops_nn, a_fused_prelu_is_a_vector_or_a_node_of_its_own)
{
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b,slope");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    inf_tfjs_writer_attr_int(w, "num_args", 2);
    output_of("n");
    const struct inf_node *fused = inf_tfjs_case_node(0, INF_OP_CONV2D);
    cr_assert_eq(fused->attrs.conv2d.activation, INF_ACTIVATION_PRELU);
    cr_assert_eq(fused->input_count, 4u);
    const struct inf_value *slope = &inf_tfjs_case.graph->values[fused->inputs[3]];
    cr_assert(inf_shape_equal(&slope->shape, &INF_SHAPE(6)));
    cr_assert_eq(((float *)slope->data->data)[5], 6.0f);

    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,slope");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "Prelu");
    output_of("n");
    fused = inf_tfjs_case_node(0, INF_OP_CONV2D);
    cr_assert_eq(fused->input_count, 4u);
    cr_assert_eq(fused->inputs[2], INF_VALUE_NONE);

    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b,slopes");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    cr_assert_str_eq(output_of("n"), "FP32 [1,5,7,6]");
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_CONV2D)->input_count, 3u);
    cr_assert_eq(attrs_of(0, INF_OP_CONV2D)->conv2d.activation, INF_ACTIVATION_NONE);
    inf_tfjs_case_node(1, INF_OP_PRELU);
}

Test(tfjs_ops_nn, fused_operators_that_are_not_known_or_lack_inputs_are_refused)
{
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Gelu");
    refuse_model("n", INF_UNSUPPORTED, "node 'n' (_FusedConv2D): fused operator 'gelu'");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "FusedBatchNorm");
    refuse_model("n", INF_UNSUPPORTED, "fused operator 'fusedbatchnorm'");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu,Relu");
    refuse_model("n", INF_UNSUPPORTED, "fused operator 'relu' after 'relu'");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu");
    refuse_model("n", INF_INVALID, "has 2 inputs");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    refuse_model("n", INF_INVALID, "has 3 inputs");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    refuse_model("n", INF_INVALID, "has 3 inputs");
    add_conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd");
    inf_tfjs_writer_attr_int(w, "num_args", 2);
    refuse_model("n", INF_INVALID, "num_args 2");
}

Test(tfjs_ops_nn, transposed_convolution_matmul_and_batch_norm)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(1, 4, 5, 3));
    add_ints("sizes", (int32_t[]){1, 8, 10, 2}, 4);
    inf_tfjs_writer_floats(w, "f", (float[24]){0}, DIMS(2, 2, 2, 3));
    add_node("n", "Conv2DBackpropInput", "sizes,f,x");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 2, 2, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
    cr_assert_str_eq(output_of("n"), "FP32 [1,8,10,2]");
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_CONV2D_TRANSPOSE)->inputs[0],
                 inf_tfjs_case.graph->inputs[0].value);
    // The output comes from 4 rows and 5 columns of x; TensorFlow.js ignores the others.
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(-1, 8, 8, 3));
    add_ints("sizes", (int32_t[]){-1, 4, 5, 2}, 4);
    inf_tfjs_writer_floats(w, "f", (float[24]){0}, DIMS(2, 2, 2, 3));
    add_node("n", "Conv2DBackpropInput", "sizes,f,x");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 1, 1, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
    cr_assert_str_eq(output_of("n"), "FP32 [?,4,5,2]");
    // Two slices come before the node.
    uint32_t cut = inf_tfjs_case_node(2, INF_OP_CONV2D_TRANSPOSE)->inputs[0];
    const struct inf_shape *shape = &inf_tfjs_case.graph->values[cut].shape;
    cr_assert(shape->dims[1] == 4 && shape->dims[2] == 5 && shape->dims[3] == 3);
    // x has too few rows.
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(1, 3, 8, 3));
    add_ints("sizes", (int32_t[]){1, 4, 5, 2}, 4);
    inf_tfjs_writer_floats(w, "f", (float[24]){0}, DIMS(2, 2, 2, 3));
    add_node("n", "Conv2DBackpropInput", "sizes,f,x");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 1, 1, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
    refuse_model("n", INF_INVALID, "an output of 4 rows comes from 4, x has 3");

    begin_model();
    add_input("a", "DT_FLOAT", DIMS(7, 2));
    inf_tfjs_writer_floats(w, "b", (float[35]){0}, DIMS(5, 7));
    inf_tfjs_writer_floats(w, "bias", (float[5]){0}, DIMS(5));
    add_node("n", "_FusedMatMul", "a,b,bias");
    inf_tfjs_writer_attr_bool(w, "transpose_a", 1);
    inf_tfjs_writer_attr_bool(w, "transpose_b", 1);
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu");
    inf_tfjs_writer_attr_int(w, "num_args", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [2,5]");
    cr_assert_eq(attrs_of(0, INF_OP_MATMUL)->matmul.activation, INF_ACTIVATION_RELU);

    begin_model();
    add_input("a", "DT_FLOAT", DIMS(3, 1, 2, 7));
    add_input("b", "DT_FLOAT", DIMS(4, 5, 7));
    add_node("n", "BatchMatMulV2", "a,b");
    inf_tfjs_writer_attr_bool(w, "adj_y", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [3,4,2,5]");

    begin_model();
    add_input("x", "DT_FLOAT", DIMS(-1, 3, 3, 2));
    inf_tfjs_writer_floats(w, "c", (float[2]){0}, DIMS(2));
    add_node("n", "FusedBatchNormV3", "x,c,c,c,c");
    inf_tfjs_writer_attr_float(w, "epsilon", 0.5);
    inf_tfjs_writer_attr_bool(w, "is_training", 0);
    cr_assert_str_eq(output_of("n:y:0"), "FP32 [?,3,3,2]");
    cr_assert_eq(attrs_of(0, INF_OP_BATCH_NORM)->batch_norm.epsilon, 0.5f);
    static const char *const others[] = {"n:1", "n:batch_mean:0"};
    for (size_t i = 0; i < 2; i++) {
        begin_model();
        add_input("x", "DT_FLOAT", DIMS(-1, 3, 3, 2));
        inf_tfjs_writer_floats(w, "c", (float[2]){0}, DIMS(2));
        add_node("n", "FusedBatchNormV3", "x,c,c,c,c");
        refuse_model(others[i], i == 0 ? INF_INVALID : INF_UNSUPPORTED,
                     "node 'n' (FusedBatchNormV3)");
    }
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(-1, 3, 3, 2));
    inf_tfjs_writer_floats(w, "c", (float[2]){0}, DIMS(2));
    add_node("n", "FusedBatchNorm", "x,c,c,c,c");
    inf_tfjs_writer_attr_bool(w, "is_training", 1);
    refuse_model("n", INF_UNSUPPORTED, "is_training is set");
}
