// SPDX-License-Identifier: Apache-2.0
// Tests of operators whose operands have sizes that are unknown when the model is imported.
// Expected values were computed by hand from the specification.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

TestSuite(onnx_sizes, .init = set_up, .fini = tear_down);

// --- helpers that write models of one node from x, and the input k if there is one, to y ---

static struct inf_pb_writer open_node(const char *domain, const char *op, const char *second)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 22);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, op, "x", second, "y");
    if (domain != NULL)
        inf_pb_put_text(&writer, 7, domain);
    return writer;
}

// Closes the node and loads the model. x has `rank` dimensions of unknown size.
static void load_node(struct inf_pb_writer *writer, int32_t type, uint32_t rank, bool has_k,
                      int32_t result)
{
    const int64_t any[] = {-1, -1, -1, -1};
    inf_pb_close(writer);
    inf_onnx_put_port(writer, 11, "x", type, any, rank);
    if (has_k)
        inf_onnx_put_port(writer, 11, "k", INT64, NULL, 0);
    inf_onnx_put_port(writer, 12, "y", result, any, rank);
    inf_pb_close(writer);
    load_model(writer);
}

// Asserts that the last run made I64 numbers of this shape.
static void expect_integers(const struct inf_shape *shape, const int64_t *wanted)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    const struct inf_value *value = &graph->values[graph->outputs[0].value];
    cr_assert_eq(value->dtype, INF_DTYPE_I64);
    cr_assert(inf_shape_equal(&value->shape, shape));
    cr_assert_arr_eq(buffers[0], wanted, inf_shape_elements(shape) * sizeof *wanted);
}

// --- triangles ---

Test(onnx_sizes, a_triangle_is_of_the_matrices_that_a_run_brings)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    struct inf_pb_writer writer = open_node(NULL, "Trilu", NULL);
    load_node(&writer, FLOAT, 3, false, FLOAT);
    cr_assert_eq(run_model(&INF_SHAPE(2, 2, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 2, 3), (float[]){1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 11, 12});
    cr_assert_eq(run_model(&INF_SHAPE(1, 4, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 4, 3), (float[]){1, 2, 3, 0, 5, 6, 0, 0, 9, 0, 0, 0});
}

Test(onnx_sizes, a_run_says_where_the_triangle_begins)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const struct {
        int64_t k;
        float wanted[6];
    } cases[] = {
        {0, {1, 0, 0, 4, 5, 0}},         {1, {1, 2, 0, 4, 5, 6}},         {-1, {0, 0, 0, 4, 0, 0}},
        {INT64_MAX, {1, 2, 3, 4, 5, 6}}, {INT64_MIN, {0, 0, 0, 0, 0, 0}},
    };
    struct inf_pb_writer writer = open_node(NULL, "Trilu", "k");
    inf_onnx_put_attr_int(&writer, "upper", 0);
    load_node(&writer, FLOAT, 2, true, FLOAT);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        const struct inf_shape shapes[] = {INF_SHAPE(2, 3), {.rank = 0}};
        cr_assert_eq(run_model(shapes, (const void *[]){x, &cases[i].k}), INF_OK, "%s", err.text);
        expect_output(0, &INF_SHAPE(2, 3), cases[i].wanted);
    }
}

Test(onnx_sizes, a_triangle_needs_a_matrix)
{
    struct inf_graph *graph = NULL;
    struct inf_pb_writer writer = open_node(NULL, "Trilu", NULL);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){3}, 1);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){3}, 1);
    inf_pb_close(&writer);
    cr_assert_eq(import_model(&writer, &graph), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "rank 1, wanted 2 or more"), "%s", err.text);
}

// --- classes and positions ---

Test(onnx_sizes, a_run_says_how_many_classes_one_hot_has)
{
    static const int64_t x[] = {1, -1};
    static const int64_t two = 2, three = 3;
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 22);
    inf_pb_open(&writer, 7);
    inf_pb_open(&writer, 1);
    for (int i = 0; i < 3; i++)
        inf_pb_put_text(&writer, 1, (const char *[]){"x", "k", "values"}[i]);
    inf_pb_put_text(&writer, 2, "y");
    inf_pb_put_text(&writer, 4, "OneHot");
    inf_pb_close(&writer);
    inf_onnx_put_floats(&writer, "values", (int64_t[]){2}, 1, (float[]){5, 7});
    inf_onnx_put_port(&writer, 11, "x", INT64, (int64_t[]){-1}, 1);
    inf_onnx_put_port(&writer, 11, "k", INT64, NULL, 0);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){-1, -1}, 2);
    inf_pb_close(&writer);
    load_model(&writer);
    const struct inf_shape shapes[] = {INF_SHAPE(2), {.rank = 0}};
    cr_assert_eq(run_model(shapes, (const void *[]){x, &two}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 2), (float[]){5, 7, 5, 7});
    cr_assert_eq(run_model(shapes, (const void *[]){x, &three}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 3), (float[]){5, 7, 5, 5, 5, 7});
}

Test(onnx_sizes, the_last_of_several_largest_counts_from_the_end_of_any_axis)
{
    static const float x[] = {3, 1, 3, 2, 2, 2, 2, 1};
    struct inf_pb_writer writer = open_node(NULL, "ArgMax", NULL);
    inf_onnx_put_attr_int(&writer, "axis", 1);
    inf_onnx_put_attr_int(&writer, "select_last_index", 1);
    load_node(&writer, FLOAT, 2, false, INT64);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_integers(&INF_SHAPE(2, 1), (int64_t[]){2, 2});
    cr_assert_eq(run_model(&INF_SHAPE(2, 4), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_integers(&INF_SHAPE(2, 1), (int64_t[]){2, 2});
    cr_assert_eq(run_model(&INF_SHAPE(4, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_integers(&INF_SHAPE(4, 1), (int64_t[]){0, 0, 1, 0});
}

Test(onnx_sizes, hardmax_is_along_any_axis)
{
    static const float x[] = {1, 4, 4, 3, 0, 2};
    struct inf_pb_writer writer = open_node(NULL, "Hardmax", NULL);
    inf_onnx_put_attr_int(&writer, "axis", 0);
    load_node(&writer, FLOAT, 2, false, FLOAT);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 3), (float[]){0, 1, 1, 1, 0, 0});
    cr_assert_eq(run_model(&INF_SHAPE(3, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(3, 2), (float[]){0, 1, 1, 0, 0, 0});
}

Test(onnx_sizes, a_run_says_how_large_the_parts_of_a_split_are)
{
    static const float x[] = {1, 2, 3, 4, 5};
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 22);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, "Split", "x", "sizes", "y");
    inf_pb_put_text(&writer, 2, "z");
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){-1}, 1);
    inf_onnx_put_port(&writer, 11, "sizes", INT64, (int64_t[]){2}, 1);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){-1}, 1);
    inf_onnx_put_port(&writer, 12, "z", FLOAT, (int64_t[]){-1}, 1);
    inf_pb_close(&writer);
    load_model(&writer);
    const struct inf_shape shapes[] = {INF_SHAPE(5), INF_SHAPE(2)};
    cr_assert_eq(run_model(shapes, (const void *[]){x, (int64_t[]){2, 3}}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2), (float[]){1, 2});
    expect_output(1, &INF_SHAPE(3), (float[]){3, 4, 5});
    cr_assert_eq(run_model(shapes, (const void *[]){x, (int64_t[]){5, 0}}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(5), x);
    cr_assert_eq(run_model(shapes, (const void *[]){x, (int64_t[]){2, 2}}), INF_INVALID);
    cr_assert_eq(run_model(shapes, (const void *[]){x, (int64_t[]){6, -1}}), INF_INVALID);
}

Test(onnx_sizes, ones_are_on_the_diagonal_of_any_matrix)
{
    static const float x[6];
    struct inf_pb_writer writer = open_node(NULL, "EyeLike", NULL);
    inf_onnx_put_attr_int(&writer, "k", 1);
    load_node(&writer, FLOAT, 2, false, FLOAT);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 3), (float[]){0, 1, 0, 0, 0, 1});
    cr_assert_eq(run_model(&INF_SHAPE(3, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(3, 2), (float[]){0, 1, 0, 0, 0, 0});
}

// --- normalisation and convolution ---

Test(onnx_sizes, groups_are_normalised_in_batches_of_any_size)
{
    static const float x[] = {1, 3, 0, 2, 5, 5, 7, 9};
    for (int64_t opset = 18; opset <= 21; opset += 3) {
        struct inf_pb_writer writer = {0};
        inf_onnx_put_head(&writer, opset);
        inf_pb_open(&writer, 7);
        inf_onnx_put_floats(&writer, "scale", (int64_t[]){2}, 1, (float[]){2, 3});
        inf_onnx_put_floats(&writer, "bias", (int64_t[]){2}, 1, (float[]){0, 1});
        inf_pb_open(&writer, 1);
        for (int i = 0; i < 3; i++)
            inf_pb_put_text(&writer, 1, (const char *[]){"x", "scale", "bias"}[i]);
        inf_pb_put_text(&writer, 2, "y");
        inf_pb_put_text(&writer, 4, "GroupNormalization");
        inf_onnx_put_attr_int(&writer, "num_groups", 2);
        inf_onnx_put_attr_float(&writer, "epsilon", 0);
        load_node(&writer, FLOAT, 3, false, FLOAT);
        cr_assert_eq(run_model(&INF_SHAPE(1, 2, 2), (const void *[]){x}), INF_OK, "%s", err.text);
        expect_output(0, &INF_SHAPE(1, 2, 2), (float[]){-2, 2, -2, 4});
        cr_assert_neq(run_model(&INF_SHAPE(1, 1, 3), (const void *[]){x}), INF_OK);
    }
}

Test(onnx_sizes, volumes_of_any_size_are_convolved)
{
    static const float x[] = {1, 2, 3, 4, 5, 6};
    struct inf_pb_writer writer = open_node(NULL, "Conv", "w");
    INF_ONNX_INTS(&writer, "strides", 2, 1, 1);
    inf_pb_close(&writer);
    inf_onnx_put_floats(&writer, "w", (int64_t[]){1, 1, 2, 1, 1}, 5, (float[]){1, 10});
    const int64_t any[] = {-1, -1, -1, -1, -1};
    inf_onnx_put_port(&writer, 11, "x", FLOAT, any, 5);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, any, 5);
    inf_pb_close(&writer);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(2, 1, 3, 1, 1), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1, 1, 1, 1), (float[]){21, 54});
    cr_assert_eq(run_model(&INF_SHAPE(1, 1, 6, 1, 1), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 1, 3, 1, 1), (float[]){21, 43, 65});
    cr_assert_eq(run_model(&INF_SHAPE(1, 1, 2, 1, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 1, 1, 1, 3), (float[]){41, 52, 63});
    // No window fits.
    cr_assert_eq(run_model(&INF_SHAPE(1, 1, 1, 1, 1), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 1, 0, 1, 1), NULL);
}

// --- pooling ---

// Loads a pool of windows of 2 with a step of 2 and one element of padding in front, in ceil_mode,
// over x [1, 1, width].
static void load_pool(const char *op, int64_t kernel, int64_t after)
{
    struct inf_pb_writer writer = open_node(NULL, op, NULL);
    INF_ONNX_INTS(&writer, "kernel_shape", kernel);
    INF_ONNX_INTS(&writer, "strides", 2);
    INF_ONNX_INTS(&writer, "pads", 1, after);
    inf_onnx_put_attr_int(&writer, "ceil_mode", 1);
    load_node(&writer, FLOAT, 3, false, FLOAT);
}

static void expect_pool(int64_t width, const float *wanted, int64_t count)
{
    static const float x[] = {-1, -2, -3, -4, -5, -6};
    cr_assert_eq(run_model(&INF_SHAPE(1, 1, width), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 1, count), wanted);
}

Test(onnx_sizes, the_last_window_of_a_maximum_may_be_incomplete)
{
    load_pool("MaxPool", 2, 0);
    expect_pool(3, (float[]){-1, -2}, 2);
    expect_pool(4, (float[]){-1, -2, -4}, 3);
    load_pool("MaxPool", 3, 0);
    expect_pool(1, (float[]){-1}, 1);
    expect_pool(4, (float[]){-1, -2}, 2);
    expect_pool(5, (float[]){-1, -2, -4}, 3);
    // A window that begins in the padding behind x does not count.
    load_pool("MaxPool", 2, 1);
    expect_pool(3, (float[]){-1, -2}, 2);
}

Test(onnx_sizes, the_last_window_of_an_average_counts_what_is_there)
{
    load_pool("AveragePool", 3, 0);
    expect_pool(4, (float[]){-1.5f, -3}, 2);
    expect_pool(5, (float[]){-1.5f, -3, -4.5f}, 3);
}

// --- models of scikit-learn whose number of features is not in the file ---

static const float rows[] = {1, 2, 3, -1, 0, 4, 0, 0, 0, 0, 0, 0};

static void load_classic(struct inf_pb_writer *writer)
{
    load_node(writer, FLOAT, 2, false, FLOAT);
}

Test(onnx_sizes, linear_models_know_their_features)
{
    struct inf_pb_writer writer = open_node("ai.onnx.ml", "LinearRegressor", NULL);
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 2, 3, 0, 1, 0);
    inf_onnx_put_attr_int(&writer, "targets", 2);
    load_classic(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){rows}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 2), (float[]){14, 2, 11, 0});
    cr_assert_neq(run_model(&INF_SHAPE(2, 2), (const void *[]){rows}), INF_OK);
    cr_assert_neq(run_model(&INF_SHAPE(2, 6), (const void *[]){rows}), INF_OK);
}

Test(onnx_sizes, the_intercepts_count_the_classes)
{
    struct inf_pb_writer writer = open_node("ai.onnx.ml", "LinearClassifier", NULL);
    inf_pb_put_text(&writer, 2, "scores");
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 0, 0, 0, 1, 0);
    INF_ONNX_FLOATS(&writer, "intercepts", 0.5f, 0.25f);
    INF_ONNX_INTS(&writer, "classlabels_ints", 7, 9);
    load_node(&writer, FLOAT, 2, false, INT64);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){rows}), INF_OK, "%s", err.text);
    expect_integers(&INF_SHAPE(2), (int64_t[]){9, 9});
}

Test(onnx_sizes, trees_read_the_features_that_a_run_brings)
{
    const char *const modes[] = {"BRANCH_LEQ", "LEAF", "LEAF"};
    struct inf_pb_writer writer = open_node("ai.onnx.ml", "TreeEnsembleRegressor", NULL);
    inf_onnx_put_attr_texts(&writer, "nodes_modes", modes, 3);
    INF_ONNX_INTS(&writer, "nodes_treeids", 0, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_nodeids", 0, 1, 2);
    INF_ONNX_INTS(&writer, "nodes_featureids", 2, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_truenodeids", 1, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_falsenodeids", 2, 0, 0);
    INF_ONNX_FLOATS(&writer, "nodes_values", 3.5f, 0, 0);
    INF_ONNX_INTS(&writer, "target_treeids", 0, 0);
    INF_ONNX_INTS(&writer, "target_nodeids", 1, 2);
    INF_ONNX_INTS(&writer, "target_ids", 0, 0);
    INF_ONNX_FLOATS(&writer, "target_weights", 10, 20);
    inf_onnx_put_attr_int(&writer, "n_targets", 1);
    load_classic(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){rows}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1), (float[]){10, 20});
    cr_assert_eq(run_model(&INF_SHAPE(2, 2), (const void *[]){rows}), INF_INVALID);
}

// Loads a machine with the support vectors (1, 0) and (0, 1), or a linear one without vectors.
static void load_machine(const char *kernel, int64_t vectors)
{
    struct inf_pb_writer writer = open_node("ai.onnx.ml", "SVMRegressor", NULL);
    inf_onnx_put_attr_text(&writer, "kernel_type", kernel);
    INF_ONNX_FLOATS(&writer, "kernel_params", 1, 0, 3);
    INF_ONNX_FLOATS(&writer, "coefficients", 2, 3);
    INF_ONNX_FLOATS(&writer, "rho", 0.5f);
    if (vectors > 0)
        INF_ONNX_FLOATS(&writer, "support_vectors", 1, 0, 0, 1);
    inf_onnx_put_attr_int(&writer, "n_supports", vectors);
    load_classic(&writer);
}

Test(onnx_sizes, support_vectors_say_how_many_features_there_are)
{
    static const float x[] = {4, 5, 1, 0};
    load_machine("LINEAR", 2);
    cr_assert_eq(run_model(&INF_SHAPE(2, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1), (float[]){23.5f, 2.5f});
    load_machine("LINEAR", 0);
    cr_assert_eq(run_model(&INF_SHAPE(2, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1), (float[]){23.5f, 2.5f});
    load_machine("RBF", 2);
    cr_assert_eq(run_model(&INF_SHAPE(2, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    cr_assert_neq(run_model(&INF_SHAPE(2, 1), (const void *[]){x}), INF_OK);
}

// --- NonMaxSuppression ---

// Loads a NonMaxSuppression of at most one box for each class. All sizes are open.
static void load_suppression(void)
{
    const int64_t any[] = {-1, -1, -1};
    struct inf_pb_writer writer = open_node(NULL, "NonMaxSuppression", NULL);
    inf_pb_put_text(&writer, 1, "scores");
    inf_pb_put_text(&writer, 1, "most");
    inf_pb_close(&writer);
    inf_onnx_put_int64s(&writer, "most", (int64_t[]){1}, 1);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, any, 3);
    inf_onnx_put_port(&writer, 11, "scores", FLOAT, any, 3);
    inf_onnx_put_port(&writer, 12, "y", INT64, any, 2);
    inf_pb_close(&writer);
    load_model(&writer);
}

Test(onnx_sizes, boxes_and_scores_are_of_the_same_pictures)
{
    static const float boxes[24] = {0, 0, 1, 1}, scores[12] = {0};
    const void *const inputs[] = {boxes, scores};
    // One box for each of three classes of each picture.
    load_suppression();
    const struct inf_shape fits[] = {INF_SHAPE(2, 2, 4), INF_SHAPE(2, 3, 2)};
    cr_assert_eq(run_model(fits, inputs), INF_OK, "%s", err.text);
    const struct inf_shape none[] = {INF_SHAPE(2, 0, 4), INF_SHAPE(2, 3, 0)};
    cr_assert_eq(run_model(none, inputs), INF_OK, "%s", err.text);
    const struct inf_shape wrong[][2] = {{INF_SHAPE(2, 2, 4), INF_SHAPE(1, 3, 2)},
                                         {INF_SHAPE(2, 2, 4), INF_SHAPE(2, 3, 1)},
                                         {INF_SHAPE(2, 2, 3), INF_SHAPE(2, 3, 2)}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wrong); i++)
        cr_assert_eq(run_model(wrong[i], inputs), INF_INVALID, "%zu", i);
}

// --- transforms ---

// As numpy.fft.irfft() does: four points follow from the first three terms, whatever the fourth is.
Test(onnx_sizes, terms_beyond_the_points_of_a_real_signal_do_not_count)
{
    static const float x[] = {2, 0, 0, 0, 4, 0, 5, 7};
    struct inf_pb_writer writer = open_node(NULL, "DFT", "n");
    inf_pb_put_text(&writer, 1, "axis");
    inf_onnx_put_attr_int(&writer, "inverse", 1);
    inf_onnx_put_attr_int(&writer, "onesided", 1);
    inf_pb_close(&writer);
    inf_onnx_put_int64s(&writer, "n", (int64_t[]){4}, 1);
    inf_onnx_put_int64s(&writer, "axis", (int64_t[]){1}, 1);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){-1, -1, -1}, 3);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){-1, -1, -1}, 3);
    inf_pb_close(&writer);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(1, 4, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 4, 1), (float[]){1.5f, -0.5f, 1.5f, -0.5f});
}
