// SPDX-License-Identifier: Apache-2.0
// How operators are lowered: each to what TensorFlow says it is.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/tfjs_case.h"

TestSuite(tfjs_ops, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

static struct inf_tfjs_writer *w;

#define DIMS(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void begin(void)
{
    w = inf_tfjs_writer_begin(inf_tfjs_case.path);
}

static void input(const char *name, const char *type, const int64_t *dims, size_t rank)
{
    inf_tfjs_writer_placeholder(w, name, type, dims, rank);
}

// A list of integers.
static void ints(const char *name, const int32_t *elements, int64_t count)
{
    inf_tfjs_writer_ints(w, name, elements, &count, 1);
}

static void scalar_int(const char *name, int32_t element)
{
    inf_tfjs_writer_ints(w, name, &element, NULL, 0);
}

static void scalar(const char *name, float element)
{
    inf_tfjs_writer_floats(w, name, &element, NULL, 0);
}

static void node(const char *name, const char *op, const char *inputs)
{
    inf_tfjs_writer_node(w, name, op, inputs);
}

// Ends the model with output `y` and imports it; the text is its type and shape.
static const char *output_of(const char *tensor)
{
    inf_tfjs_writer_output(w, "y", tensor);
    inf_tfjs_case_accept(w);
    return inf_tfjs_case_output(0);
}

// The same for a model that is refused.
static void refuse(const char *tensor, enum inf_code code, const char *part)
{
    inf_tfjs_writer_output(w, "y", tensor);
    inf_tfjs_case_refuse(w, code, part);
}

static const union inf_attrs *attrs_of(uint32_t index, enum inf_op op)
{
    return &inf_tfjs_case_node(index, op)->attrs;
}

// The integers of a constant operand.
static void check_ints(uint32_t index, uint32_t operand, const int64_t *wanted, uint32_t count)
{
    int64_t elements[16];
    uint32_t size = 0;
    const struct inf_node *of = &inf_tfjs_case.graph->nodes[index];
    cr_assert(inf_graph_const_ints(inf_tfjs_case.graph, of->inputs[operand], elements, 16, &size));
    cr_assert_eq(size, count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(elements[i], wanted[i], "%u", i);
}

Test(tfjs_ops, unary_operators_have_their_kind)
{
    static const struct {
        const char *op;
        enum inf_unary_kind kind;
    } rows[] = {
        {"Abs", INF_UNARY_ABS},     {"Acos", INF_UNARY_ACOS},
        {"Acosh", INF_UNARY_ACOSH}, {"Asin", INF_UNARY_ASIN},
        {"Asinh", INF_UNARY_ASINH}, {"Atan", INF_UNARY_ATAN},
        {"Atanh", INF_UNARY_ATANH}, {"Ceil", INF_UNARY_CEIL},
        {"Cos", INF_UNARY_COS},     {"Cosh", INF_UNARY_COSH},
        {"Elu", INF_UNARY_ELU},     {"Erf", INF_UNARY_ERF},
        {"Exp", INF_UNARY_EXP},     {"Expm1", INF_UNARY_EXPM1},
        {"Floor", INF_UNARY_FLOOR}, {"LeakyRelu", INF_UNARY_LEAKY_RELU},
        {"Log", INF_UNARY_LOG},     {"Log1p", INF_UNARY_LOG1P},
        {"Neg", INF_UNARY_NEG},     {"Reciprocal", INF_UNARY_RECIPROCAL},
        {"Relu", INF_UNARY_RELU},   {"Relu6", INF_UNARY_RELU6},
        {"Round", INF_UNARY_ROUND}, {"Rsqrt", INF_UNARY_RSQRT},
        {"Selu", INF_UNARY_SELU},   {"Sigmoid", INF_UNARY_SIGMOID},
        {"Sign", INF_UNARY_SIGN},   {"Sin", INF_UNARY_SIN},
        {"Sinh", INF_UNARY_SINH},   {"Softplus", INF_UNARY_SOFTPLUS},
        {"Sqrt", INF_UNARY_SQRT},   {"Square", INF_UNARY_SQUARE},
        {"Tan", INF_UNARY_TAN},     {"Tanh", INF_UNARY_TANH},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(2, -1));
        node("n", rows[i].op, "x");
        cr_assert_str_eq(output_of("n"), "FP32 [2,?]");
        cr_assert_eq(attrs_of(0, INF_OP_UNARY)->unary.kind, rows[i].kind, "%s", rows[i].op);
    }
}

Test(tfjs_ops, slopes_have_tensorflows_defaults)
{
    begin();
    input("x", "DT_FLOAT", DIMS(2));
    node("a", "Elu", "x");
    node("b", "LeakyRelu", "a");
    node("c", "LeakyRelu", "b");
    inf_tfjs_writer_attr_float(w, "alpha", 0.125);
    output_of("c");
    cr_assert_eq(attrs_of(0, INF_OP_UNARY)->unary.alpha, 1.0f);
    cr_assert_eq(attrs_of(1, INF_OP_UNARY)->unary.alpha, 0.2f);
    cr_assert_eq(attrs_of(2, INF_OP_UNARY)->unary.alpha, 0.125f);
    begin();
    input("x", "DT_FLOAT", DIMS(2));
    node("c", "LeakyRelu", "x");
    inf_tfjs_writer_attr_float(w, "alpha", 1e39);
    refuse("c", INF_INVALID,
           "node[1 'c'].attr.alpha.f: has 1e+39, wanted a number that a float holds");
}

Test(tfjs_ops, binary_operators_broadcast_and_have_their_kind)
{
    static const struct {
        const char *op;
        enum inf_binary_kind kind;
    } rows[] = {
        {"Add", INF_BINARY_ADD},
        {"AddV2", INF_BINARY_ADD},
        {"Atan2", INF_BINARY_ATAN2},
        {"BiasAdd", INF_BINARY_ADD},
        {"Div", INF_BINARY_DIV},
        {"DivNoNan", INF_BINARY_DIV_NO_NAN},
        {"FloorDiv", INF_BINARY_FLOOR_DIV},
        {"FloorMod", INF_BINARY_FLOOR_MOD},
        {"Maximum", INF_BINARY_MAX},
        {"Minimum", INF_BINARY_MIN},
        {"Mod", INF_BINARY_FLOOR_MOD},
        {"Mul", INF_BINARY_MUL},
        {"Pow", INF_BINARY_POW},
        {"RealDiv", INF_BINARY_DIV},
        {"SquaredDifference", INF_BINARY_SQUARED_DIFFERENCE},
        {"Sub", INF_BINARY_SUB},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("a", "DT_FLOAT", DIMS(5, 1, 3));
        input("b", "DT_FLOAT", DIMS(3));
        node("n", rows[i].op, "a,b");
        cr_assert_str_eq(output_of("n"), "FP32 [5,1,3]");
        cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, rows[i].kind, "%s", rows[i].op);
        cr_assert_eq(inf_tfjs_case_node(0, INF_OP_BINARY)->inputs[0],
                     inf_tfjs_case.graph->inputs[0].value);
    }
    begin();
    input("a", "DT_FLOAT", DIMS(2, 3));
    input("b", "DT_FLOAT", DIMS(4));
    node("n", "AddV2", "a,b");
    refuse("n", INF_INVALID, "'n'");
}

Test(tfjs_ops, integers_divide_downwards)
{
    begin();
    input("a", "DT_INT32", DIMS(2));
    node("n", "RealDiv", "a,a");
    cr_assert_str_eq(output_of("n"), "INT32 [2]");
    cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, INF_BINARY_FLOOR_DIV);
}

Test(tfjs_ops, comparisons_logic_and_tests_of_numbers)
{
    static const struct {
        const char *op;
        enum inf_compare_kind kind;
    } rows[] = {
        {"Equal", INF_COMPARE_EQUAL},        {"Greater", INF_COMPARE_GREATER},
        {"Less", INF_COMPARE_LESS},          {"GreaterEqual", INF_COMPARE_GREATER_EQUAL},
        {"NotEqual", INF_COMPARE_NOT_EQUAL}, {"LessEqual", INF_COMPARE_LESS_EQUAL},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("a", "DT_FLOAT", DIMS(2, 1));
        input("b", "DT_FLOAT", DIMS(3));
        node("n", rows[i].op, "a,b");
        cr_assert_str_eq(output_of("n"), "BOOL [2,3]");
        cr_assert_eq(attrs_of(0, INF_OP_COMPARE)->compare.kind, rows[i].kind);
    }
    begin();
    input("a", "DT_BOOL", DIMS(2));
    node("and", "LogicalAnd", "a,a");
    node("or", "LogicalOr", "and,a");
    node("not", "LogicalNot", "or");
    cr_assert_str_eq(output_of("not"), "BOOL [2]");
    cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, INF_BINARY_LOGICAL_AND);
    cr_assert_eq(attrs_of(1, INF_OP_BINARY)->binary.kind, INF_BINARY_LOGICAL_OR);
    cr_assert_eq(attrs_of(2, INF_OP_UNARY)->unary.kind, INF_UNARY_LOGICAL_NOT);
    begin();
    input("a", "DT_FLOAT", DIMS(2));
    node("n", "IsNan", "a");
    cr_assert_str_eq(output_of("n"), "BOOL [2]");
    cr_assert_eq(attrs_of(0, INF_OP_COMPARE)->compare.kind, INF_COMPARE_NOT_EQUAL);
    begin();
    input("a", "DT_FLOAT", DIMS(2));
    node("n", "IsFinite", "a");
    cr_assert_str_eq(output_of("n"), "BOOL [2]");
    cr_assert_eq(attrs_of(0, INF_OP_UNARY)->unary.kind, INF_UNARY_ABS);
    cr_assert_eq(attrs_of(1, INF_OP_COMPARE)->compare.kind, INF_COMPARE_LESS);
    uint32_t bound = inf_tfjs_case_node(1, INF_OP_COMPARE)->inputs[1];
    cr_assert_eq(*(float *)inf_tfjs_case.graph->values[bound].data->data, INFINITY);
}

Test(tfjs_ops, reductions_take_their_axes_from_constants)
{
    static const struct {
        const char *op;
        enum inf_reduce_kind kind;
    } rows[] = {
        {"Max", INF_REDUCE_MAX},   {"Mean", INF_REDUCE_MEAN}, {"Min", INF_REDUCE_MIN},
        {"Prod", INF_REDUCE_PROD}, {"Sum", INF_REDUCE_SUM},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(2, 3, 5));
        ints("axes", (int32_t[]){-1, 0}, 2);
        node("same", "Identity", "axes");
        node("n", rows[i].op, "x,same");
        cr_assert_str_eq(output_of("n"), "FP32 [3]");
        cr_assert_eq(attrs_of(0, INF_OP_REDUCE)->reduce.kind, rows[i].kind);
    }
    begin();
    input("x", "DT_BOOL", DIMS(2, 3));
    scalar_int("axis", 1);
    node("n", "All", "x,axis");
    inf_tfjs_writer_attr_bool(w, "keep_dims", 1);
    cr_assert_str_eq(output_of("n"), "BOOL [2,1]");
    // TensorFlow reduces nothing where the list is empty.
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3));
    ints("axes", NULL, 0);
    node("n", "Sum", "x,axes");
    node("r", "Relu", "n");
    cr_assert_str_eq(output_of("r"), "FP32 [2,3]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3));
    input("axes", "DT_INT32", DIMS(1));
    node("n", "Sum", "x,axes");
    refuse("n", INF_UNSUPPORTED,
           "node 'n' (Sum): the list of axes is computed by other nodes, wanted a constant");
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3));
    scalar_int("axis", 2);
    node("n", "Sum", "x,axis");
    refuse("n", INF_INVALID, "'n'");
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3));
    scalar("axis", 1);
    node("n", "Sum", "x,axis");
    refuse("n", INF_INVALID, "the list of axes is FP32 [], wanted at most 16 integers");
}

Test(tfjs_ops, arg_softmax_norm_and_clip)
{
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3, 5));
    scalar_int("axis", -1);
    node("n", "ArgMax", "x,axis");
    inf_tfjs_writer_attr_type(w, "output_type", "DT_INT64");
    cr_assert_str_eq(output_of("n"), "INT32 [2,3]");
    cr_assert_eq(attrs_of(0, INF_OP_ARG)->arg.kind, INF_ARG_MAX);
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3));
    node("n", "Softmax", "x");
    node("m", "LogSoftmax", "n");
    output_of("m");
    cr_assert_not(attrs_of(0, INF_OP_SOFTMAX)->softmax.log);
    cr_assert(attrs_of(1, INF_OP_SOFTMAX)->softmax.log);
    cr_assert_eq(attrs_of(1, INF_OP_SOFTMAX)->softmax.axis, -1);
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3));
    scalar_int("axis", 1);
    node("n", "EuclideanNorm", "x,axis");
    cr_assert_str_eq(output_of("n"), "FP32 [2]");
    begin();
    input("x", "DT_FLOAT", DIMS(2));
    scalar("low", -1.5f);
    scalar("high", 6);
    node("n", "ClipByValue", "x,low,high");
    output_of("n");
    cr_assert_eq(attrs_of(0, INF_OP_CLIP)->clip.min, -1.5f);
    cr_assert_eq(attrs_of(0, INF_OP_CLIP)->clip.max, 6.0f);
    begin();
    input("x", "DT_FLOAT", DIMS(2));
    input("low", "DT_FLOAT", NULL, 0);
    scalar("high", 6);
    node("n", "ClipByValue", "x,low,high");
    output_of("n");
    cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, INF_BINARY_MAX);
    cr_assert_eq(attrs_of(1, INF_OP_BINARY)->binary.kind, INF_BINARY_MIN);
}

// A convolution of x [1,5,7,4] by a filter of the given dimensions.
static void conv(const char *op, const int64_t *filter, const char *inputs)
{
    static const float zeros[1024];
    begin();
    input("x", "DT_FLOAT", DIMS(1, 5, 7, 4));
    inf_tfjs_writer_floats(w, "f", zeros, filter, 4);
    inf_tfjs_writer_floats(w, "b", zeros, DIMS(6));
    inf_tfjs_writer_floats(w, "slope", (float[]){1, 2, 3, 4, 5, 6}, DIMS(1, 1, 6));
    inf_tfjs_writer_floats(w, "slopes", zeros, DIMS(5, 7, 6));
    node("n", op, inputs);
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 1, 1, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
}

Test(tfjs_ops, convolutions_read_windows_from_attributes)
{
    conv("Conv2D", (int64_t[]){3, 2, 4, 6}, "x,f");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 2, 3, 1));
    inf_tfjs_writer_attr_ints(w, "dilations", DIMS(1, 1, 1, 1));
    cr_assert_str_eq(output_of("n"), "FP32 [1,3,3,6]");
    conv("Conv2D", (int64_t[]){3, 2, 4, 6}, "x,f");
    inf_tfjs_writer_attr_ints(w, "dilations", DIMS(1, 2, 3, 1));
    inf_tfjs_writer_attr_text(w, "padding", "VALID");
    cr_assert_str_eq(output_of("n"), "FP32 [1,1,4,6]");
    conv("Conv2D", (int64_t[]){3, 2, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    inf_tfjs_writer_attr_ints(w, "explicit_paddings", DIMS(0, 0, 1, 2, 3, 4, 0, 0));
    cr_assert_str_eq(output_of("n"), "FP32 [1,6,13,6]");
    const struct inf_attrs_conv2d *attrs = &attrs_of(0, INF_OP_CONV2D)->conv2d;
    cr_assert(attrs->pad_top == 1 && attrs->pad_bottom == 2);
    cr_assert(attrs->pad_left == 3 && attrs->pad_right == 4);
    conv("Conv2D", (int64_t[]){1, 1, 2, 6}, "x,f");
    cr_assert_str_eq(output_of("n"), "FP32 [1,5,7,6]");
    cr_assert_eq(attrs_of(0, INF_OP_CONV2D)->conv2d.groups, 2);
    conv("DepthwiseConv2dNative", (int64_t[]){3, 3, 4, 2}, "x,f");
    cr_assert_str_eq(output_of("n"), "FP32 [1,5,7,8]");
    conv("Conv2D", (int64_t[]){1, 1, 3, 6}, "x,f");
    refuse("n", INF_INVALID, "'n'");
    conv("Conv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    refuse("n", INF_INVALID, "explicit_paddings has 0 elements, wanted 8");
    conv("Conv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "padding", "EXPLICIT");
    inf_tfjs_writer_attr_ints(w, "explicit_paddings", DIMS(0, 0, -1, 2, 3, 4, 0, 0));
    refuse("n", INF_INVALID, "explicit_paddings[2] is -1");
    conv("Conv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_text(w, "data_format", "CHWN");
    refuse("n", INF_UNSUPPORTED, "node 'n' (Conv2D): data_format 'chwn', wanted NHWC");
}

Test(tfjs_ops, fused_operators_hand_out_bias_and_slope)
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
        conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
        inf_tfjs_writer_attr_texts(w, "fused_ops", rows[i].fused);
        inf_tfjs_writer_attr_int(w, "num_args", 1);
        inf_tfjs_writer_attr_float(w, "leakyrelu_alpha", 0.25);
        output_of("n");
        const struct inf_node *fused = inf_tfjs_case_node(0, INF_OP_CONV2D);
        cr_assert_eq(fused->input_count, 3u);
        cr_assert_eq(fused->attrs.conv2d.activation, rows[i].activation);
        cr_assert_eq(fused->attrs.conv2d.activation_alpha, rows[i].alpha);
    }
    conv("FusedDepthwiseConv2dNative", (int64_t[]){3, 3, 3, 2}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu6");
    refuse("n", INF_INVALID, "'n'");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "Relu");
    output_of("n");
    cr_assert_eq(attrs_of(0, INF_OP_CONV2D)->conv2d.activation, INF_ACTIVATION_RELU);
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_CONV2D)->input_count, 2u);
}

Test(tfjs_ops, a_fused_prelu_is_a_vector_or_a_node_of_its_own)
{
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b,slope");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    inf_tfjs_writer_attr_int(w, "num_args", 2);
    output_of("n");
    const struct inf_node *fused = inf_tfjs_case_node(0, INF_OP_CONV2D);
    cr_assert_eq(fused->attrs.conv2d.activation, INF_ACTIVATION_PRELU);
    cr_assert_eq(fused->input_count, 4u);
    const struct inf_value *slope = &inf_tfjs_case.graph->values[fused->inputs[3]];
    cr_assert(inf_shape_equal(&slope->shape, &INF_SHAPE(6)));
    cr_assert_eq(((float *)slope->data->data)[5], 6.0f);

    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,slope");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "Prelu");
    output_of("n");
    fused = inf_tfjs_case_node(0, INF_OP_CONV2D);
    cr_assert_eq(fused->input_count, 4u);
    cr_assert_eq(fused->inputs[2], INF_VALUE_NONE);

    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b,slopes");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    cr_assert_str_eq(output_of("n"), "FP32 [1,5,7,6]");
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_CONV2D)->input_count, 3u);
    cr_assert_eq(attrs_of(0, INF_OP_CONV2D)->conv2d.activation, INF_ACTIVATION_NONE);
    inf_tfjs_case_node(1, INF_OP_PRELU);
}

Test(tfjs_ops, fused_operators_that_are_not_known_or_lack_inputs_are_refused)
{
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Gelu");
    refuse("n", INF_UNSUPPORTED, "node 'n' (_FusedConv2D): fused operator 'gelu'");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "FusedBatchNorm");
    refuse("n", INF_UNSUPPORTED, "fused operator 'fusedbatchnorm'");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu,Relu");
    refuse("n", INF_UNSUPPORTED, "fused operator 'relu' after 'relu'");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu");
    refuse("n", INF_INVALID, "has 2 inputs");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    refuse("n", INF_INVALID, "has 3 inputs");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Prelu");
    refuse("n", INF_INVALID, "has 3 inputs");
    conv("_FusedConv2D", (int64_t[]){1, 1, 4, 6}, "x,f,b");
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd");
    inf_tfjs_writer_attr_int(w, "num_args", 2);
    refuse("n", INF_INVALID, "num_args 2");
}

Test(tfjs_ops, transposed_convolution_matmul_and_batch_norm)
{
    begin();
    input("x", "DT_FLOAT", DIMS(1, 4, 5, 3));
    ints("sizes", (int32_t[]){1, 8, 10, 2}, 4);
    inf_tfjs_writer_floats(w, "f", (float[24]){0}, DIMS(2, 2, 2, 3));
    node("n", "Conv2DBackpropInput", "sizes,f,x");
    inf_tfjs_writer_attr_ints(w, "strides", DIMS(1, 2, 2, 1));
    inf_tfjs_writer_attr_text(w, "padding", "SAME");
    cr_assert_str_eq(output_of("n"), "FP32 [1,8,10,2]");
    cr_assert_eq(inf_tfjs_case_node(0, INF_OP_CONV2D_TRANSPOSE)->inputs[0],
                 inf_tfjs_case.graph->inputs[0].value);

    begin();
    input("a", "DT_FLOAT", DIMS(7, 2));
    inf_tfjs_writer_floats(w, "b", (float[35]){0}, DIMS(5, 7));
    inf_tfjs_writer_floats(w, "bias", (float[5]){0}, DIMS(5));
    node("n", "_FusedMatMul", "a,b,bias");
    inf_tfjs_writer_attr_bool(w, "transpose_a", 1);
    inf_tfjs_writer_attr_bool(w, "transpose_b", 1);
    inf_tfjs_writer_attr_texts(w, "fused_ops", "BiasAdd,Relu");
    inf_tfjs_writer_attr_int(w, "num_args", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [2,5]");
    cr_assert_eq(attrs_of(0, INF_OP_MATMUL)->matmul.activation, INF_ACTIVATION_RELU);

    begin();
    input("a", "DT_FLOAT", DIMS(3, 1, 2, 7));
    input("b", "DT_FLOAT", DIMS(4, 5, 7));
    node("n", "BatchMatMulV2", "a,b");
    inf_tfjs_writer_attr_bool(w, "adj_y", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [3,4,2,5]");

    begin();
    input("x", "DT_FLOAT", DIMS(-1, 3, 3, 2));
    inf_tfjs_writer_floats(w, "c", (float[2]){0}, DIMS(2));
    node("n", "FusedBatchNormV3", "x,c,c,c,c");
    inf_tfjs_writer_attr_float(w, "epsilon", 0.5);
    inf_tfjs_writer_attr_bool(w, "is_training", 0);
    cr_assert_str_eq(output_of("n:y:0"), "FP32 [?,3,3,2]");
    cr_assert_eq(attrs_of(0, INF_OP_BATCH_NORM)->batch_norm.epsilon, 0.5f);
    static const char *const others[] = {"n:1", "n:batch_mean:0"};
    for (size_t i = 0; i < 2; i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(-1, 3, 3, 2));
        inf_tfjs_writer_floats(w, "c", (float[2]){0}, DIMS(2));
        node("n", "FusedBatchNormV3", "x,c,c,c,c");
        refuse(others[i], i == 0 ? INF_INVALID : INF_UNSUPPORTED, "node 'n' (FusedBatchNormV3)");
    }
    begin();
    input("x", "DT_FLOAT", DIMS(-1, 3, 3, 2));
    inf_tfjs_writer_floats(w, "c", (float[2]){0}, DIMS(2));
    node("n", "FusedBatchNorm", "x,c,c,c,c");
    inf_tfjs_writer_attr_bool(w, "is_training", 1);
    refuse("n", INF_UNSUPPORTED, "is_training is set");
}

Test(tfjs_ops, shapes_change_as_told)
{
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3, 1, 5));
    scalar_int("last", -1);
    ints("perm", (int32_t[]){3, 0, 2, 1}, 4);
    ints("flat", (int32_t[]){-1, 6}, 2);
    node("e", "ExpandDims", "x,last");
    node("q", "Squeeze", "e");
    inf_tfjs_writer_attr_ints(w, "squeeze_dims", DIMS(-1));
    node("t", "Transpose", "q,perm");
    node("r", "Reshape", "t,flat");
    inf_tfjs_writer_output(w, "e", "e");
    inf_tfjs_writer_output(w, "q", "q");
    inf_tfjs_writer_output(w, "t", "t");
    cr_assert_str_eq(output_of("r"), "FP32 [2,3,1,5,1]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,3,1,5]");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [5,2,1,3]");
    cr_assert_str_eq(inf_tfjs_case_output(3), "FP32 [5,6]");
    begin();
    input("x", "DT_FLOAT", DIMS(1, 4, 6, 8));
    node("s", "SpaceToDepth", "x");
    inf_tfjs_writer_attr_int(w, "block_size", 2);
    node("d", "DepthToSpace", "s");
    inf_tfjs_writer_attr_int(w, "block_size", 4);
    inf_tfjs_writer_output(w, "s", "s");
    cr_assert_str_eq(output_of("d"), "FP32 [1,2,3,32]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [1,8,12,2]");
    static const int32_t blocks[] = {0, -1, 4097, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(blocks); i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(1, 4, 6, 8));
        node("s", "SpaceToDepth", "x");
        inf_tfjs_writer_attr_int(w, "block_size", blocks[i]);
        refuse("s", INF_INVALID, "wanted an integer from 1 to 4096");
    }
}

Test(tfjs_ops, pack_and_unpack_make_and_drop_an_axis)
{
    begin();
    input("a", "DT_FLOAT", DIMS(2, 3));
    input("b", "DT_FLOAT", DIMS(2, 3));
    node("p", "Pack", "a,b");
    inf_tfjs_writer_attr_int(w, "axis", -1);
    node("u", "Unpack", "p");
    inf_tfjs_writer_attr_int(w, "axis", 1);
    inf_tfjs_writer_attr_int(w, "num", 3);
    inf_tfjs_writer_output(w, "p", "p");
    cr_assert_str_eq(output_of("u:2"), "FP32 [2,3,2]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,2]");
    static const struct {
        int64_t axis, num;
        const char *part;
    } rows[] = {{2, 3, "axis is 2, and its input has 2 dimensions"},
                {-3, 3, "axis is -3"},
                {0, 3, "num is 3, and its input has 2 slices"},
                {0, 5000, "wanted an integer from 0 to 4096"},
                {0, -1, "wanted an integer from 0 to 4096"},
                {8, 2, "wanted an integer from -8 to 7"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("a", "DT_FLOAT", DIMS(2, 3));
        node("u", "Unpack", "a");
        inf_tfjs_writer_attr_int(w, "axis", rows[i].axis);
        inf_tfjs_writer_attr_int(w, "num", rows[i].num);
        refuse("u", INF_INVALID, rows[i].part);
    }
}

Test(tfjs_ops, questions_about_shapes_give_integers)
{
    begin();
    input("x", "DT_FLOAT", DIMS(-1, 3));
    node("s", "Shape", "x");
    node("r", "Rank", "x");
    node("n", "Size", "x");
    node("z", "ZerosLike", "x");
    inf_tfjs_writer_output(w, "s", "s");
    inf_tfjs_writer_output(w, "r", "r");
    inf_tfjs_writer_output(w, "n", "n");
    cr_assert_str_eq(output_of("z"), "INT32 [2]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "INT32 []");
    cr_assert_str_eq(inf_tfjs_case_output(2), "INT32 []");
    cr_assert_eq(inf_tfjs_case.graph->values[inf_tfjs_case.graph->outputs[3].value].dtype,
                 INF_DTYPE_F32);
    begin();
    ints("dims", (int32_t[]){2, 5}, 2);
    scalar("half", 0.5f);
    node("f", "Fill", "dims,half");
    cr_assert_str_eq(output_of("f"), "FP32 [2,5]");
    begin();
    scalar_int("from", 3);
    scalar_int("to", 18);
    scalar_int("by", 5);
    node("f", "Range", "from,to,by");
    cr_assert_str_eq(output_of("f"), "INT32 [3]");
}

Test(tfjs_ops, slices_take_sizes_and_begin_anywhere)
{
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    ints("begin", (int32_t[]){1, 2, 0}, 3);
    ints("size", (int32_t[]){2, -1, 0}, 3);
    node("n", "Slice", "x,begin,size");
    cr_assert_str_eq(output_of("n"), "FP32 [2,4,0]");
    static const struct {
        int32_t begin, size;
        const char *part;
    } rows[] = {{-1, 1, "begin[0] is -1"},
                {0, -2, "size[0] is -2"},
                {INT32_MAX, INT32_MAX, "begin[0] + size[0] is 4294967294"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(5));
        ints("begin", &rows[i].begin, 1);
        ints("size", &rows[i].size, 1);
        node("n", "Slice", "x,begin,size");
        refuse("n", INF_INVALID, rows[i].part);
    }
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6));
    ints("begin", (int32_t[]){0, 4}, 2);
    ints("end", (int32_t[]){0, 0}, 2);
    ints("step", (int32_t[]){2, -1}, 2);
    node("n", "StridedSlice", "x,begin,end,step");
    inf_tfjs_writer_attr_int(w, "end_mask", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [3,4]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6));
    ints("one", (int32_t[]){1, 1}, 2);
    ints("two", (int32_t[]){2, 2}, 2);
    node("n", "StridedSlice", "x,one,two,one");
    inf_tfjs_writer_attr_int(w, "shrink_axis_mask", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [1]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6));
    ints("axes", (int32_t[]){-1}, 1);
    node("n", "ReverseV2", "x,axes");
    cr_assert_str_eq(output_of("n"), "FP32 [5,6]");
    check_ints(0, 3, (int64_t[]){1, -1}, 2);
}

Test(tfjs_ops, joining_splitting_and_padding)
{
    begin();
    input("a", "DT_FLOAT", DIMS(2, 3));
    input("b", "DT_FLOAT", DIMS(2, 4));
    scalar_int("axis", 1);
    node("new", "ConcatV2", "a,b,axis");
    node("old", "Concat", "axis,a,b");
    ints("sizes", (int32_t[]){1, -1, 2}, 3);
    node("v", "SplitV", "new,sizes,axis");
    inf_tfjs_writer_attr_int(w, "num_split", 3);
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){1, 0, 2, 3}, DIMS(2, 2));
    node("p", "MirrorPad", "b,paddings");
    inf_tfjs_writer_attr_text(w, "mode", "REFLECT");
    inf_tfjs_writer_output(w, "old", "old");
    inf_tfjs_writer_output(w, "v", "v:1");
    inf_tfjs_writer_output(w, "p", "p");
    cr_assert_str_eq(output_of("new"), "FP32 [2,7]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,4]");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [3,9]");
    cr_assert_str_eq(inf_tfjs_case_output(3), "FP32 [2,7]");
    begin();
    input("a", "DT_FLOAT", DIMS(2));
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){1, 0}, DIMS(1, 2));
    node("p", "MirrorPad", "a,paddings");
    inf_tfjs_writer_attr_text(w, "mode", "AROUND");
    refuse("p", INF_INVALID, "mode is 'around'");
    begin();
    input("a", "DT_FLOAT", DIMS(4));
    scalar_int("axis", 0);
    node("s", "Split", "axis,a");
    refuse("s", INF_INVALID, "has no attribute num_split");
    begin();
    input("a", "DT_FLOAT", DIMS(4));
    scalar_int("axis", 0);
    node("s", "Split", "axis,a");
    inf_tfjs_writer_attr_int(w, "num_split", 3);
    refuse("s", INF_INVALID, "'s'");
}

Test(tfjs_ops, gathers_pick_slices_and_points)
{
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    input("i", "DT_INT64", DIMS(2, -1));
    scalar_int("axis", -2);
    node("n", "GatherV2", "x,i,axis");
    cr_assert_str_eq(output_of("n"), "FP32 [5,2,?,7]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    input("i", "DT_INT32", DIMS(4, 2));
    node("n", "GatherNd", "x,i");
    cr_assert_str_eq(output_of("n"), "FP32 [4,7]");
    inf_tfjs_case_node(0, INF_OP_GATHER_ND);
    begin();
    input("x", "DT_FLOAT", DIMS(-1, 6, 7));
    input("i", "DT_INT32", DIMS(4, 3));
    node("n", "GatherNd", "x,i");
    cr_assert_str_eq(output_of("n"), "FP32 [4]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    input("i", "DT_INT32", DIMS(4, 4));
    node("n", "GatherNd", "x,i");
    refuse("n", INF_INVALID, "node 'n' (gather_nd)");
}

Test(tfjs_ops, select_chooses_rows_by_a_vector)
{
    begin();
    input("c", "DT_BOOL", DIMS(5));
    input("a", "DT_FLOAT", DIMS(5, 3, 2));
    node("n", "Select", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3,2]");
    uint32_t value = inf_tfjs_case_node(0, INF_OP_EXPAND_DIMS)->outputs[0];
    cr_assert(inf_shape_equal(&inf_tfjs_case.graph->values[value].shape, &INF_SHAPE(5, 1, 1)));
    begin();
    input("c", "DT_BOOL", NULL, 0);
    input("a", "DT_FLOAT", DIMS(5, 3));
    node("n", "Select", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3]");
    begin();
    input("c", "DT_BOOL", DIMS(3));
    input("a", "DT_FLOAT", DIMS(5, 3));
    node("n", "SelectV2", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
}

Test(tfjs_ops, casts_between_types_that_are_one_here_vanish)
{
    begin();
    input("x", "DT_UINT8", DIMS(2));
    node("a", "Cast", "x");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_INT64");
    node("b", "Cast", "a");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_HALF");
    node("c", "StopGradient", "b");
    node("d", "FakeQuantWithMinMaxVars", "c,c,c");
    cr_assert_str_eq(output_of("d"), "FP32 [2]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
    cr_assert_eq(attrs_of(0, INF_OP_CAST)->cast.dtype, INF_DTYPE_F32);
    begin();
    input("x", "DT_UINT8", DIMS(2));
    node("a", "Cast", "x");
    refuse("a", INF_INVALID, "node 'a' (Cast): has no attribute DstT");
}

Test(tfjs_ops, sums_of_many_resizes_and_defaults)
{
    begin();
    input("a", "DT_FLOAT", DIMS(2));
    node("n", "AddN", "a,a,a");
    output_of("n");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 2u);
    begin();
    input("x", "DT_FLOAT", DIMS(1, 4, 4, 3));
    ints("size", (int32_t[]){7, 9}, 2);
    node("n", "ResizeBilinear", "x,size");
    inf_tfjs_writer_attr_bool(w, "half_pixel_centers", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [1,7,9,3]");
    cr_assert(attrs_of(0, INF_OP_RESIZE)->resize.half_pixel_centers);
    cr_assert_not(attrs_of(0, INF_OP_RESIZE)->resize.align_corners);
    begin();
    scalar("half", 0.5f);
    node("p", "PlaceholderWithDefault", "half");
    node("n", "Neg", "p");
    cr_assert_str_eq(output_of("n"), "FP32 []");
    cr_assert_eq(inf_tfjs_case.graph->input_count, 0u);
}
