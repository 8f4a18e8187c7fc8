// SPDX-License-Identifier: Apache-2.0
// The lowering of element-wise operators and reductions, compared with TensorFlow's definitions.
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/import/tfjs_ops_kit.h"

TestSuite(tfjs_ops, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

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
        begin_model();
        add_input("x", "DT_FLOAT", DIMS(2, -1));
        add_node("n", rows[i].op, "x");
        cr_assert_str_eq(output_of("n"), "FP32 [2,?]");
        cr_assert_eq(attrs_of(0, INF_OP_UNARY)->unary.kind, rows[i].kind, "%s", rows[i].op);
    }
}

Test(tfjs_ops, slopes_have_tensorflows_defaults)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2));
    add_node("a", "Elu", "x");
    add_node("b", "LeakyRelu", "a");
    add_node("c", "LeakyRelu", "b");
    inf_tfjs_writer_attr_float(w, "alpha", 0.125);
    output_of("c");
    cr_assert_eq(attrs_of(0, INF_OP_UNARY)->unary.alpha, 1.0f);
    cr_assert_eq(attrs_of(1, INF_OP_UNARY)->unary.alpha, 0.2f);
    cr_assert_eq(attrs_of(2, INF_OP_UNARY)->unary.alpha, 0.125f);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2));
    add_node("c", "LeakyRelu", "x");
    inf_tfjs_writer_attr_float(w, "alpha", 1e39);
    refuse_model("c", INF_INVALID,
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
        begin_model();
        add_input("a", "DT_FLOAT", DIMS(5, 1, 3));
        add_input("b", "DT_FLOAT", DIMS(3));
        add_node("n", rows[i].op, "a,b");
        cr_assert_str_eq(output_of("n"), "FP32 [5,1,3]");
        cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, rows[i].kind, "%s", rows[i].op);
        cr_assert_eq(inf_tfjs_case_node(0, INF_OP_BINARY)->inputs[0],
                     inf_tfjs_case.graph->inputs[0].value);
    }
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2, 3));
    add_input("b", "DT_FLOAT", DIMS(4));
    add_node("n", "AddV2", "a,b");
    refuse_model("n", INF_INVALID, "'n'");
}

Test(tfjs_ops, integers_divide_downwards)
{
    begin_model();
    add_input("a", "DT_INT32", DIMS(2));
    add_node("n", "RealDiv", "a,a");
    cr_assert_str_eq(output_of("n"), "INT32 [2]");
    cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, INF_BINARY_FLOOR_DIV);
}

Test(tfjs_ops, rounded_integers_stay_integers)
{
    begin_model();
    add_input("a", "DT_INT32", DIMS(2));
    add_node("n", "Round", "a");
    cr_assert_str_eq(output_of("n"), "INT32 [2]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1);
    cr_assert_not_null(inf_tfjs_case_node(0, INF_OP_IDENTITY));
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
        begin_model();
        add_input("a", "DT_FLOAT", DIMS(2, 1));
        add_input("b", "DT_FLOAT", DIMS(3));
        add_node("n", rows[i].op, "a,b");
        cr_assert_str_eq(output_of("n"), "BOOL [2,3]");
        cr_assert_eq(attrs_of(0, INF_OP_COMPARE)->compare.kind, rows[i].kind);
    }
    begin_model();
    add_input("a", "DT_BOOL", DIMS(2));
    add_node("and", "LogicalAnd", "a,a");
    add_node("or", "LogicalOr", "and,a");
    add_node("not", "LogicalNot", "or");
    cr_assert_str_eq(output_of("not"), "BOOL [2]");
    cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, INF_BINARY_LOGICAL_AND);
    cr_assert_eq(attrs_of(1, INF_OP_BINARY)->binary.kind, INF_BINARY_LOGICAL_OR);
    cr_assert_eq(attrs_of(2, INF_OP_UNARY)->unary.kind, INF_UNARY_LOGICAL_NOT);
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2));
    add_node("n", "IsNan", "a");
    cr_assert_str_eq(output_of("n"), "BOOL [2]");
    cr_assert_eq(attrs_of(0, INF_OP_COMPARE)->compare.kind, INF_COMPARE_NOT_EQUAL);
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2));
    add_node("n", "IsFinite", "a");
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
        begin_model();
        add_input("x", "DT_FLOAT", DIMS(2, 3, 5));
        add_ints("axes", (int32_t[]){-1, 0}, 2);
        add_node("same", "Identity", "axes");
        add_node("n", rows[i].op, "x,same");
        cr_assert_str_eq(output_of("n"), "FP32 [3]");
        cr_assert_eq(attrs_of(0, INF_OP_REDUCE)->reduce.kind, rows[i].kind);
    }
    begin_model();
    add_input("x", "DT_BOOL", DIMS(2, 3));
    add_scalar_int("axis", 1);
    add_node("n", "All", "x,axis");
    inf_tfjs_writer_attr_bool(w, "keep_dims", 1);
    cr_assert_str_eq(output_of("n"), "BOOL [2,1]");
    // If the list of axes is empty, TensorFlow reduces no axis.
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3));
    add_ints("axes", NULL, 0);
    add_node("n", "Sum", "x,axes");
    add_node("r", "Relu", "n");
    cr_assert_str_eq(output_of("r"), "FP32 [2,3]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3));
    add_input("axes", "DT_INT32", DIMS(1));
    add_node("n", "Sum", "x,axes");
    refuse_model("n", INF_UNSUPPORTED,
                 "node 'n' (Sum): the list of axes is computed by other nodes, wanted a constant");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3));
    add_scalar_int("axis", 2);
    add_node("n", "Sum", "x,axis");
    refuse_model("n", INF_INVALID, "'n'");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3));
    add_scalar("axis", 1);
    add_node("n", "Sum", "x,axis");
    refuse_model("n", INF_INVALID, "the list of axes is FP32 [], wanted at most 16 integers");
}

Test(tfjs_ops, arg_softmax_norm_and_clip)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3, 5));
    add_scalar_int("axis", -1);
    add_node("n", "ArgMax", "x,axis");
    inf_tfjs_writer_attr_type(w, "output_type", "DT_INT64");
    cr_assert_str_eq(output_of("n"), "INT32 [2,3]");
    cr_assert_eq(attrs_of(0, INF_OP_ARG)->arg.kind, INF_ARG_MAX);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3));
    add_node("n", "Softmax", "x");
    add_node("m", "LogSoftmax", "n");
    output_of("m");
    cr_assert_not(attrs_of(0, INF_OP_SOFTMAX)->softmax.log);
    cr_assert(attrs_of(1, INF_OP_SOFTMAX)->softmax.log);
    cr_assert_eq(attrs_of(1, INF_OP_SOFTMAX)->softmax.axis, -1);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3));
    add_scalar_int("axis", 1);
    add_node("n", "EuclideanNorm", "x,axis");
    cr_assert_str_eq(output_of("n"), "FP32 [2]");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2));
    add_scalar("low", -1.5f);
    add_scalar("high", 6);
    add_node("n", "ClipByValue", "x,low,high");
    output_of("n");
    cr_assert_eq(attrs_of(0, INF_OP_CLIP)->clip.min, -1.5f);
    cr_assert_eq(attrs_of(0, INF_OP_CLIP)->clip.max, 6.0f);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2));
    add_input("low", "DT_FLOAT", NULL, 0);
    add_scalar("high", 6);
    add_node("n", "ClipByValue", "x,low,high");
    output_of("n");
    cr_assert_eq(attrs_of(0, INF_OP_BINARY)->binary.kind, INF_BINARY_MAX);
    cr_assert_eq(attrs_of(1, INF_OP_BINARY)->binary.kind, INF_BINARY_MIN);
}
