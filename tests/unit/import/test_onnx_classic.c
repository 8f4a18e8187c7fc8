// SPDX-License-Identifier: Apache-2.0
// Tests of operators of ai.onnx.ml. Expected values were computed by hand from the specification.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

TestSuite(onnx_classic, .init = set_up, .fini = tear_down);

// --- helpers that write models of one node from x to y ---

static struct inf_pb_writer open_node(const char *op)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, op, "x", NULL, "y");
    inf_pb_put_text(&writer, 7, "ai.onnx.ml");
    return writer;
}

static void close_node(struct inf_pb_writer *writer, int32_t type, struct inf_shape shape)
{
    inf_pb_close(writer);
    inf_onnx_put_port(writer, 11, "x", type, shape.dims, (uint32_t)shape.rank);
    inf_onnx_put_port(writer, 12, "y", FLOAT, (int64_t[]){-1, -1}, 2);
    inf_pb_close(writer);
}

// Closes the node and loads the model, with an unknown number of rows of x. Runs the model with x
// of shape `from`, and expects the output y of shape `to`.
static void expect_rows(struct inf_pb_writer writer, struct inf_shape from, const float *x,
                        struct inf_shape to, const float *y)
{
    close_node(&writer, FLOAT, INF_SHAPE(-1, from.dims[1]));
    load_model(&writer);
    cr_assert_eq(run_model(&from, (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &to, y);
}

static void expect_refused(struct inf_pb_writer writer, const char *part)
{
    struct inf_graph *graph = NULL;
    close_node(&writer, FLOAT, INF_SHAPE(-1, 2));
    cr_assert_neq(import_model(&writer, &graph), INF_OK);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
}

// Opens a node with two trees. Tree 0: x[1] <= 5 ? node 1 : (x[0] <= 3 ? node 3 : node 4). Tree 1:
// x[0] <= 0 ? node 1 : node 2. A NaN goes to the true node in tree 1 and to the false node in tree
// 0. `child` is the id of the true node of node 2 in tree 0; it is 3 in a valid tree.
static struct inf_pb_writer open_trees(const char *op, int64_t child)
{
    const char *const modes[] = {"BRANCH_LEQ", "LEAF",       "BRANCH_LEQ", "LEAF",
                                 "LEAF",       "BRANCH_LEQ", "LEAF",       "LEAF"};
    struct inf_pb_writer writer = open_node(op);
    inf_onnx_put_attr_texts(&writer, "nodes_modes", modes, 8);
    INF_ONNX_INTS(&writer, "nodes_treeids", 0, 0, 0, 0, 0, 1, 1, 1);
    INF_ONNX_INTS(&writer, "nodes_nodeids", 0, 1, 2, 3, 4, 0, 1, 2);
    INF_ONNX_INTS(&writer, "nodes_featureids", 1, 0, 0, 0, 0, 0, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_truenodeids", 1, 0, child, 0, 0, 1, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_falsenodeids", 2, 0, 4, 0, 0, 2, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_missing_value_tracks_true", 0, 0, 0, 0, 0, 1, 0, 0);
    INF_ONNX_FLOATS(&writer, "nodes_values", 5, 0, 3, 0, 0, 0, 0, 0);
    return writer;
}

static void put_targets(struct inf_pb_writer *writer)
{
    INF_ONNX_INTS(writer, "target_treeids", 0, 0, 0, 1, 1);
    INF_ONNX_INTS(writer, "target_nodeids", 1, 3, 4, 1, 2);
    INF_ONNX_INTS(writer, "target_ids", 0, 0, 0, 0, 0);
    INF_ONNX_FLOATS(writer, "target_weights", 1, 2, 4, 10, 20);
}

// --- tests ---

Test(onnx_classic, scaler_subtracts_then_multiplies)
{
    struct inf_pb_writer writer = open_node("Scaler");
    INF_ONNX_FLOATS(&writer, "offset", 1, 2);
    INF_ONNX_FLOATS(&writer, "scale", 0.5f, 4);
    expect_rows(writer, INF_SHAPE(2, 2), (float[]){3, 2, 1, 3}, INF_SHAPE(2, 2),
                (float[]){1, 0, 0, 4});
}

Test(onnx_classic, normalizer_divides_each_row)
{
    const float x[] = {3, -4, 0, 0};
    struct inf_pb_writer writer = open_node("Normalizer");
    inf_onnx_put_attr_text(&writer, "norm", "L2");
    expect_rows(writer, INF_SHAPE(2, 2), x, INF_SHAPE(2, 2), (float[]){3 / 5.f, -4 / 5.f, 0, 0});
    writer = open_node("Normalizer");
    inf_onnx_put_attr_text(&writer, "norm", "L1");
    expect_rows(writer, INF_SHAPE(2, 2), x, INF_SHAPE(2, 2), (float[]){3 / 7.f, -4 / 7.f, 0, 0});
    writer = open_node("Normalizer");
    inf_onnx_put_attr_text(&writer, "norm", "MAX");
    expect_rows(writer, INF_SHAPE(2, 2), x, INF_SHAPE(2, 2), (float[]){1, -4 / 3.f, 0, 0});
    writer = open_node("Normalizer");
    inf_onnx_put_attr_text(&writer, "norm", "L3");
    expect_refused(writer, "norm is 'L3'");
}

Test(onnx_classic, binarizer_is_0_at_the_threshold)
{
    struct inf_pb_writer writer = open_node("Binarizer");
    inf_onnx_put_attr_float(&writer, "threshold", 1);
    expect_rows(writer, INF_SHAPE(1, 3), (float[]){0, 1, 2}, INF_SHAPE(1, 3), (float[]){0, 0, 1});
}

Test(onnx_classic, imputer_replaces_nan_or_a_number)
{
    struct inf_pb_writer writer = open_node("Imputer");
    INF_ONNX_FLOATS(&writer, "imputed_value_floats", 7, 8);
    inf_onnx_put_attr_float(&writer, "replaced_value_float", NAN);
    expect_rows(writer, INF_SHAPE(2, 2), (float[]){NAN, 1, 2, NAN}, INF_SHAPE(2, 2),
                (float[]){7, 1, 2, 8});
    writer = open_node("Imputer");
    INF_ONNX_FLOATS(&writer, "imputed_value_floats", 7);
    inf_onnx_put_attr_float(&writer, "replaced_value_float", -1);
    expect_rows(writer, INF_SHAPE(1, 2), (float[]){-1, 3}, INF_SHAPE(1, 2), (float[]){7, 3});
}

Test(onnx_classic, one_hot_encoder_adds_an_axis)
{
    struct inf_pb_writer writer = open_node("OneHotEncoder");
    inf_onnx_put_attr_ints(&writer, "cats_int64s", (int64_t[]){5, -2, 9}, 3);
    close_node(&writer, INT64, INF_SHAPE(-1));
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(3), (const void *[]){(int64_t[]){9, 5, 6}}), INF_OK);
    expect_output(0, &INF_SHAPE(3, 3), (float[]){0, 0, 1, 1, 0, 0, 0, 0, 0});
}

Test(onnx_classic, linear_regressor_has_a_row_of_coefficients_for_each_target)
{
    struct inf_pb_writer writer = open_node("LinearRegressor");
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 2, 3, 4);
    INF_ONNX_FLOATS(&writer, "intercepts", 10, 20);
    inf_onnx_put_attr_int(&writer, "targets", 2);
    expect_rows(writer, INF_SHAPE(2, 2), (float[]){1, 1, 2, 0}, INF_SHAPE(2, 2),
                (float[]){13, 27, 12, 26});
    writer = open_node("LinearRegressor");
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 2, 3);
    expect_refused(writer, "3 coefficients");
    writer = open_node("LinearRegressor");
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 2, 3, 4);
    expect_refused(writer, "targets is 1");
}

Test(onnx_classic, linear_classifier_names_the_class_of_the_largest_score)
{
    struct inf_pb_writer writer = open_node("LinearClassifier");
    inf_pb_put_text(&writer, 2, "scores");
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 0, 0, 1, 1, 1);
    INF_ONNX_FLOATS(&writer, "intercepts", 0, 0, -3);
    inf_onnx_put_attr_ints(&writer, "classlabels_ints", (int64_t[]){4, 7, 9}, 3);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){-1, 2}, 2);
    inf_onnx_put_port(&writer, 12, "scores", FLOAT, (int64_t[]){-1, -1}, 2);
    inf_onnx_put_port(&writer, 12, "y", INT64, (int64_t[]){-1}, 1);
    inf_pb_close(&writer);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(3, 2), (const void *[]){(float[]){2, 1, 0, 1, 4, 4}}),
                 INF_OK);
    expect_output(0, &INF_SHAPE(3, 3), (float[]){2, 1, 0, 0, 1, -2, 4, 4, 5});
    const int64_t labels[] = {4, 7, 9};
    cr_assert_arr_eq(buffers[1], labels, sizeof labels);
    writer = open_node("LinearClassifier");
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 0);
    expect_refused(writer, "has neither classlabels_ints nor classlabels_strings");
}

Test(onnx_classic, trees_add_the_weights_of_the_leaves_that_are_reached)
{
    const float x[] = {0, 5, 3, 6, 4, 6, NAN, 6, -1, NAN};
    struct inf_pb_writer writer = open_trees("TreeEnsembleRegressor", 3);
    put_targets(&writer);
    INF_ONNX_FLOATS(&writer, "base_values", 0.5f);
    expect_rows(writer, INF_SHAPE(5, 2), x, INF_SHAPE(5, 1),
                (float[]){11.5f, 22.5f, 24.5f, 14.5f, 12.5f});
    writer = open_trees("TreeEnsembleRegressor", 3);
    put_targets(&writer);
    inf_onnx_put_attr_text(&writer, "aggregate_function", "AVERAGE");
    expect_rows(writer, INF_SHAPE(2, 2), x, INF_SHAPE(2, 1), (float[]){5.5f, 11});
}

Test(onnx_classic, trees_choose_the_class_of_the_largest_sum)
{
    struct inf_pb_writer writer = open_trees("TreeEnsembleClassifier", 3);
    inf_pb_put_text(&writer, 2, "scores");
    INF_ONNX_INTS(&writer, "class_treeids", 0, 0, 0, 1, 1);
    INF_ONNX_INTS(&writer, "class_nodeids", 1, 3, 4, 1, 2);
    INF_ONNX_INTS(&writer, "class_ids", 0, 1, 2, 0, 2);
    INF_ONNX_FLOATS(&writer, "class_weights", 1, 5, 2, 3, 1);
    INF_ONNX_INTS(&writer, "classlabels_int64s", 7, 8, 9);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){-1, 2}, 2);
    inf_onnx_put_port(&writer, 12, "scores", FLOAT, (int64_t[]){-1, -1}, 2);
    inf_onnx_put_port(&writer, 12, "y", INT64, (int64_t[]){-1}, 1);
    inf_pb_close(&writer);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(3, 2), (const void *[]){(float[]){0, 5, 3, 6, 4, 6}}), INF_OK,
                 "%s", err.text);
    expect_output(0, &INF_SHAPE(3, 3), (float[]){4, 0, 0, 0, 5, 1, 0, 0, 3});
    const int64_t labels[] = {7, 8, 9};
    cr_assert_arr_eq(buffers[1], labels, sizeof labels);
}

Test(onnx_classic, refuses_trees_whose_nodes_are_no_tree)
{
    struct inf_pb_writer writer;
    // Invalid true nodes of node 2: a node that does not exist, node 2 itself, its parent, and a
    // child of node 0.
    const int64_t children[] = {5, 2, 0, 1};
    for (size_t i = 0; i < 4; i++) {
        writer = open_trees("TreeEnsembleRegressor", children[i]);
        put_targets(&writer);
        expect_refused(writer, "");
    }
    writer = open_trees("TreeEnsembleRegressor", 3);
    expect_refused(writer, "target_ids has 0 numbers");
    writer = open_trees("TreeEnsembleRegressor", 3);
    put_targets(&writer);
    inf_onnx_put_attr_int(&writer, "n_targets", 0);
    expect_refused(writer, "has 0 outputs");
    writer = open_node("TreeEnsembleRegressor");
    expect_refused(writer, "nodes_treeids has 0 numbers");
}
