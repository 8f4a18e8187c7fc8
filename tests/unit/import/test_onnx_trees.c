// SPDX-License-Identifier: Apache-2.0
// Tests of tree ensembles and support vector machines of ai.onnx.ml: what the specification says
// where ONNX Runtime differs from it, and what is refused. Expected values were computed by hand.
// tests/tools/run/onnx_cases.jsonl has further cases, from ONNX Runtime.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

TestSuite(onnx_trees, .init = set_up, .fini = tear_down);

static struct inf_pb_writer open_node(const char *op)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 8);
    inf_pb_put_text(&writer, 1, "ai.onnx.ml");
    inf_pb_put_int(&writer, 2, 5);
    inf_pb_close(&writer);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, op, "x", NULL, "y");
    inf_pb_put_text(&writer, 7, "ai.onnx.ml");
    return writer;
}

// Adds an attribute that is a tensor of `count` elements of `type`.
static void put_tensor(struct inf_pb_writer *writer, const char *name, int32_t type,
                       const void *data, size_t count)
{
    inf_pb_open(writer, 5);
    inf_pb_put_text(writer, 1, name);
    inf_pb_put_int(writer, 20, 4);
    inf_pb_open(writer, 5);
    inf_pb_put_int(writer, 1, (int64_t)count);
    inf_pb_put_int(writer, 2, type);
    inf_pb_put_bytes(writer, 9, data, count * (type == UINT8 ? 1 : sizeof(float)));
    inf_pb_close(writer);
    inf_pb_close(writer);
}

// Closes the node of a model with the outputs "scores" (if the node has it) and "y".
static void close_node(struct inf_pb_writer *writer, bool has_scores)
{
    inf_pb_close(writer);
    inf_onnx_put_port(writer, 11, "x", FLOAT, (int64_t[]){-1, 2}, 2);
    if (has_scores)
        inf_onnx_put_port(writer, 12, "scores", FLOAT, (int64_t[]){-1, -1}, 2);
    inf_onnx_put_port(writer, 12, "y", has_scores ? INT64 : FLOAT, (int64_t[]){-1, -1},
                      has_scores ? 1 : 2);
    inf_pb_close(writer);
}

static void expect_scores(struct inf_pb_writer writer, int64_t rows, const float *x,
                          int64_t columns, const float *wanted)
{
    close_node(&writer, false);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(rows, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    for (int64_t i = 0; i < rows * columns; i++)
        cr_assert_float_eq(buffers[0][i], wanted[i], 1e-6f, "score %d is %g, wanted %g", (int)i,
                           (double)buffers[0][i], (double)wanted[i]);
}

static void expect_classes(struct inf_pb_writer writer, int64_t rows, const float *x,
                           const int64_t *labels, const float *scores)
{
    close_node(&writer, true);
    load_model(&writer);
    cr_assert_eq(run_model(&INF_SHAPE(rows, 2), (const void *[]){x}), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(rows, 2), scores);
    cr_assert_arr_eq(buffers[1], labels, (size_t)rows * sizeof *labels);
}

static void expect_refused(struct inf_pb_writer writer, const char *part)
{
    struct inf_graph *graph = NULL;
    close_node(&writer, false);
    cr_assert_neq(import_model(&writer, &graph), INF_OK, "wanted: %s", part);
    cr_assert_not_null(strstr(err.text, part), "%s", err.text);
}

// --- TreeEnsembleRegressor and TreeEnsembleClassifier ---

// Opens a node with one tree: x[0] <= 0 ? node 1 : node 2.
static struct inf_pb_writer open_stump(const char *op, const char *mode)
{
    struct inf_pb_writer writer = open_node(op);
    inf_onnx_put_attr_texts(&writer, "nodes_modes", (const char *const[]){mode, "LEAF", "LEAF"}, 3);
    INF_ONNX_INTS(&writer, "nodes_treeids", 0, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_nodeids", 0, 1, 2);
    INF_ONNX_INTS(&writer, "nodes_featureids", 0, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_truenodeids", 1, 0, 0);
    INF_ONNX_INTS(&writer, "nodes_falsenodeids", 2, 0, 0);
    INF_ONNX_FLOATS(&writer, "nodes_values", 0, 0, 0);
    return writer;
}

static void put_weights(struct inf_pb_writer *writer, const char *prefix, const int64_t *ids,
                        const float *weights, uint32_t count)
{
    static const int64_t nodes[] = {1, 1, 2, 2}, trees[4] = {0};
    char name[32];
    snprintf(name, sizeof name, "%s_treeids", prefix);
    inf_onnx_put_attr_ints(writer, name, trees, count);
    snprintf(name, sizeof name, "%s_nodeids", prefix);
    inf_onnx_put_attr_ints(writer, name, count == 4 ? nodes : nodes + 1, count);
    snprintf(name, sizeof name, "%s_ids", prefix);
    inf_onnx_put_attr_ints(writer, name, ids, count);
    snprintf(name, sizeof name, "%s_weights", prefix);
    inf_onnx_put_attr_floats(writer, name, weights, count);
}

Test(onnx_trees, two_classes_with_weights_for_both_have_the_label_of_the_larger_score)
{
    struct inf_pb_writer writer = open_stump("TreeEnsembleClassifier", "BRANCH_LEQ");
    inf_pb_put_text(&writer, 2, "scores");
    INF_ONNX_INTS(&writer, "classlabels_int64s", 5, 6);
    put_weights(&writer, "class", (int64_t[]){0, 1, 0, 1}, (float[]){0.75f, 0.25f, 0.125f, 0.5f},
                4);
    expect_classes(writer, 2, (float[]){-1, 0, 1, 0}, (int64_t[]){5, 6},
                   (float[]){0.75f, 0.25f, 0.125f, 0.5f});
}

Test(onnx_trees, one_class_with_weights_decides_at_a_half_or_at_0)
{
    struct inf_pb_writer writer = open_stump("TreeEnsembleClassifier", "BRANCH_LEQ");
    inf_pb_put_text(&writer, 2, "scores");
    INF_ONNX_INTS(&writer, "classlabels_int64s", 5, 6);
    put_weights(&writer, "class", (int64_t[]){0, 0}, (float[]){0.5f, 0.75f}, 2);
    expect_classes(writer, 2, (float[]){-1, 0, 1, 0}, (int64_t[]){5, 6},
                   (float[]){0.5f, 0.5f, 0.25f, 0.75f});
    writer = open_stump("TreeEnsembleClassifier", "BRANCH_LEQ");
    inf_pb_put_text(&writer, 2, "scores");
    INF_ONNX_INTS(&writer, "classlabels_int64s", 5, 6);
    put_weights(&writer, "class", (int64_t[]){1, 1}, (float[]){-0.5f, 0.25f}, 2);
    expect_classes(writer, 2, (float[]){-1, 0, 1, 0}, (int64_t[]){5, 6},
                   (float[]){0, -0.5f, 0, 0.25f});
}

Test(onnx_trees, refuse_what_onnx_runtime_makes_no_sense_of)
{
    struct inf_pb_writer writer = open_stump("TreeEnsembleClassifier", "BRANCH_LEQ");
    INF_ONNX_INTS(&writer, "classlabels_int64s", 5, 6);
    INF_ONNX_FLOATS(&writer, "base_values", 1);
    put_weights(&writer, "class", (int64_t[]){1, 1}, (float[]){-0.5f, 0.25f}, 2);
    expect_refused(writer, "base_values beside weights of the second class alone");
    writer = open_stump("TreeEnsembleClassifier", "BRANCH_LEQ");
    INF_ONNX_INTS(&writer, "classlabels_int64s", 5, 6);
    inf_onnx_put_attr_text(&writer, "post_transform", "PROBIT");
    put_weights(&writer, "class", (int64_t[]){0, 0}, (float[]){0.5f, 0.25f}, 2);
    expect_refused(writer, "PROBIT");
    writer = open_stump("TreeEnsembleRegressor", "BRANCH_MEMBER");
    put_weights(&writer, "target", (int64_t[]){0, 0}, (float[]){1, 2}, 2);
    expect_refused(writer, "nodes compare by BRANCH_MEMBER");
    writer = open_stump("TreeEnsembleRegressor", "BRANCH_LEQ");
    INF_ONNX_FLOATS(&writer, "base_values", 1, 2, 3);
    put_weights(&writer, "target", (int64_t[]){0, 0}, (float[]){1, 2}, 2);
    expect_refused(writer, "base_values is not one number for each of 1");
    writer = open_stump("TreeEnsembleRegressor", "BRANCH_LEQ");
    inf_onnx_put_attr_text(&writer, "aggregate_function", "MEDIAN");
    put_weights(&writer, "target", (int64_t[]){0, 0}, (float[]){1, 2}, 2);
    expect_refused(writer, "aggregate_function is 'MEDIAN'");
}

Test(onnx_trees, the_score_of_an_output_that_no_leaf_has_is_its_base)
{
    static const char *const functions[] = {"MIN", "MAX", "SUM"};
    for (int i = 0; i < 3; i++) {
        struct inf_pb_writer writer = open_stump("TreeEnsembleRegressor", "BRANCH_LEQ");
        inf_onnx_put_attr_text(&writer, "aggregate_function", functions[i]);
        inf_onnx_put_attr_int(&writer, "n_targets", 2);
        INF_ONNX_FLOATS(&writer, "base_values", 10, 20);
        put_weights(&writer, "target", (int64_t[]){0, 1}, (float[]){3, -4}, 2);
        expect_scores(writer, 2, (float[]){-1, 0, 1, 0}, 2, (float[]){13, 20, 10, 16});
    }
}

Test(onnx_trees, leaves_with_two_weights_for_one_output_combine_them)
{
    static const struct {
        const char *function;
        float left, right;
    } cases[] = {{"SUM", 4, 1}, {"MIN", 1, -1}, {"MAX", 3, 2}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_pb_writer writer = open_stump("TreeEnsembleRegressor", "BRANCH_LEQ");
        inf_onnx_put_attr_text(&writer, "aggregate_function", cases[i].function);
        put_weights(&writer, "target", (int64_t[]){0, 0, 0, 0}, (float[]){1, 3, 2, -1}, 4);
        expect_scores(writer, 2, (float[]){-1, 0, 1, 0}, 1,
                      (float[]){cases[i].left, cases[i].right});
    }
}

// --- TreeEnsemble ---

// What a test adds to the numbers of a valid node.
struct change {
    int64_t root, child, feature, target, transform, aggregate, modes;
    uint8_t mode;
    bool no_members;
};

// Opens a node with two inner nodes. Node 0: x[1] in {2, 3} ? leaf 0 : node 1. Node 1: x[0] < 1 ?
// leaf 1 : leaf 2.
static struct inf_pb_writer open_flat(const struct change *change)
{
    const uint8_t modes[] = {6, (uint8_t)(1 + change->mode)};
    const float splits[] = {0, 1}, weights[] = {1, 2, -3}, members[] = {2, 3, NAN};
    struct inf_pb_writer writer = open_node("TreeEnsemble");
    INF_ONNX_INTS(&writer, "tree_roots", change->root);
    put_tensor(&writer, "nodes_modes", UINT8, modes, (size_t)(2 + change->modes));
    put_tensor(&writer, "nodes_splits", FLOAT, splits, 2);
    put_tensor(&writer, "leaf_weights", FLOAT, weights, 3);
    if (!change->no_members)
        put_tensor(&writer, "membership_values", FLOAT, members, 3);
    INF_ONNX_INTS(&writer, "nodes_featureids", 1, change->feature);
    INF_ONNX_INTS(&writer, "nodes_truenodeids", 0, 1);
    INF_ONNX_INTS(&writer, "nodes_trueleafs", 1, 1);
    INF_ONNX_INTS(&writer, "nodes_falsenodeids", 1 + change->child, 2);
    INF_ONNX_INTS(&writer, "nodes_falseleafs", 0, 1);
    INF_ONNX_INTS(&writer, "leaf_targetids", 0, 0, 1 + change->target);
    inf_onnx_put_attr_int(&writer, "n_targets", 2);
    inf_onnx_put_attr_int(&writer, "post_transform", change->transform);
    inf_onnx_put_attr_int(&writer, "aggregate_function", 1 + change->aggregate);
    return writer;
}

Test(onnx_trees, flat_trees_look_values_up_in_sets)
{
    const float x[] = {0, 2, 0, 3, 0, 2.5f, 1, 0, NAN, NAN};
    expect_scores(open_flat(&(struct change){0}), 5, x, 2,
                  (float[]){1, 0, 1, 0, 2, 0, 0, -3, 0, -3});
}

// The numbers are those of the specification: ONNX Runtime takes 1 for LOGISTIC and 2 for SOFTMAX.
Test(onnx_trees, flat_trees_transform_scores_as_their_numbers_say)
{
    const float x[] = {0, 2}, e = 2.7182818f;
    struct change change = {.transform = 1};
    expect_scores(open_flat(&change), 1, x, 2, (float[]){e / (e + 1), 1 / (e + 1)});
    change.transform = 2;
    expect_scores(open_flat(&change), 1, x, 2, (float[]){e / (e + 1), 0.5f});
    change.transform = 3;
    expect_scores(open_flat(&change), 1, x, 2, (float[]){1, 0});
}

Test(onnx_trees, flat_trees_that_are_no_trees_are_refused)
{
    expect_refused(open_flat(&(struct change){.root = 2}), "tree_roots[0] is 2 of 2");
    expect_refused(open_flat(&(struct change){.root = -1}), "tree_roots[0] is -1");
    expect_refused(open_flat(&(struct change){.child = 1}), "is 2 of 2");
    expect_refused(open_flat(&(struct change){.child = -2}), "is -1 of 2");
    expect_refused(open_flat(&(struct change){.child = -1}), "has a cycle");
    expect_refused(open_flat(&(struct change){.feature = 2}), "reads feature 2 of 2");
    expect_refused(open_flat(&(struct change){.feature = -1}), "reads feature -1");
    expect_refused(open_flat(&(struct change){.mode = 6}), "has mode 7");
    expect_refused(open_flat(&(struct change){.mode = 5}), "has no set for node 1");
    expect_refused(open_flat(&(struct change){.modes = -1}), "nodes_modes is not one UINT8");
    expect_refused(open_flat(&(struct change){.target = 1}), "leaf_targetids[2] is 2 of 2");
    expect_refused(open_flat(&(struct change){.no_members = true}), "membership_values");
    expect_refused(open_flat(&(struct change){.transform = 5}), "post_transform is 5");
    expect_refused(open_flat(&(struct change){.aggregate = 3}), "aggregate_function is 4");
}

// --- support vector machines ---

static struct inf_pb_writer open_machine(int64_t per_class, uint32_t coefficients)
{
    static const float numbers[8] = {1, -1, 0.5f, 2, 1, 1, 1, 1};
    struct inf_pb_writer writer = open_node("SVMClassifier");
    INF_ONNX_INTS(&writer, "classlabels_ints", 1, 2);
    INF_ONNX_INTS(&writer, "vectors_per_class", 1, per_class);
    INF_ONNX_FLOATS(&writer, "support_vectors", 1, 2, 3, 4);
    INF_ONNX_FLOATS(&writer, "kernel_params", 0.5f, 0, 0);
    inf_onnx_put_attr_floats(&writer, "coefficients", numbers, coefficients);
    return writer;
}

Test(onnx_trees, machines_whose_lists_do_not_fit_are_refused)
{
    struct inf_pb_writer writer = open_machine(1, 2);
    expect_refused(writer, "lacks coefficients or rho");
    writer = open_machine(2, 3);
    INF_ONNX_FLOATS(&writer, "rho", 1);
    expect_refused(writer, "support_vectors has 4 numbers, wanted 3 vectors of 2");
    writer = open_machine(-1, 2);
    INF_ONNX_FLOATS(&writer, "rho", 1);
    expect_refused(writer, "class 1 has -1 vectors");
    writer = open_machine(1, 3);
    INF_ONNX_FLOATS(&writer, "rho", 1);
    expect_refused(writer, "3 coefficients for 2 vectors");
    writer = open_machine(1, 2);
    INF_ONNX_FLOATS(&writer, "rho", 1, 2);
    expect_refused(writer, "rho has 2 numbers, wanted 1");
    writer = open_machine(1, 2);
    INF_ONNX_FLOATS(&writer, "rho", 1);
    INF_ONNX_FLOATS(&writer, "prob_a", 1);
    expect_refused(writer, "prob_a has 1 numbers and prob_b 0");
    writer = open_machine(1, 2);
    INF_ONNX_FLOATS(&writer, "rho", 1);
    inf_onnx_put_attr_text(&writer, "kernel_type", "WAVE");
    expect_refused(writer, "kernel_type is 'WAVE'");
    writer = open_node("SVMRegressor");
    INF_ONNX_FLOATS(&writer, "support_vectors", 1, 2, 3, 4);
    INF_ONNX_FLOATS(&writer, "coefficients", 1, 2, 3);
    INF_ONNX_FLOATS(&writer, "rho", 1);
    inf_onnx_put_attr_int(&writer, "n_supports", 2);
    expect_refused(writer, "3 coefficients for 2 vectors");
}
