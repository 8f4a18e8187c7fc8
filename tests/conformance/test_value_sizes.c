// SPDX-License-Identifier: Apache-2.0
// Sizes that depend on values, built from TensorFlow.js nodes and compared with numbers worked out
// by hand. Each graph runs with all passes and without passes.
#include <criterion/criterion.h>
#include <math.h>

#include "tests/support/models/control_case.h"
#include "tests/support/models/tfjs_case.h"

TestSuite(value_sizes, .init = inf_control_init, .fini = inf_control_fini, .timeout = 60);

Test(value_sizes, where_lists_positions)
{
    inf_control_begin();
    inf_control_input("x", "DT_INT32", INF_DIMS(2, 3));
    inf_control_node("y", "Where", "x");
    inf_control_accept("y");
    const int32_t x[] = {0, 7, 0, -1, 0, 2};
    const struct inf_feed feed = {{x}, {INF_SHAPE(2, 3)}};
    INF_CONTROL_CHECK(&feed, 0, 0, 1, 1, 0, 1, 2);
    cr_assert(inf_shape_equal(&inf_control.results[0].shape, &INF_SHAPE(3, 2)));
    const int32_t zeros[6] = {0};
    const struct inf_feed none = {{zeros}, {INF_SHAPE(2, 3)}};
    inf_control_check(&none, 0, NULL, 0);
    cr_assert(inf_shape_equal(&inf_control.results[0].shape, &INF_SHAPE(0, 2)));
}

// The graph gathers the positive elements of x and sums their squares. The sizes of these values
// are known only during the run.
Test(value_sizes, what_follows_takes_the_size_it_gets)
{
    inf_control_begin();
    inf_control_input("x", "DT_FLOAT", INF_DIMS(-1));
    inf_control_scalar("zero", 0);
    inf_tfjs_writer_ints(inf_control.writer, "axis", (int32_t[]){0}, INF_DIMS(1));
    inf_tfjs_writer_ints(inf_control.writer, "flat", (int32_t[]){-1}, INF_DIMS(1));
    inf_control_node("positive", "Greater", "x,zero");
    inf_control_node("where", "Where", "positive");
    inf_control_node("places", "Reshape", "where,flat");
    inf_control_node("picked", "GatherV2", "x,places");
    inf_control_node("square", "Square", "picked");
    inf_control_node("sum", "Sum", "square,axis");
    inf_tfjs_writer_output(inf_control.writer, "p", "picked");
    inf_control_accept("sum");
    const float x[] = {-1, 3, 0, 4, -2};
    const struct inf_feed feed = {{x}, {INF_SHAPE(5)}};
    INF_CONTROL_CHECK(&feed, 0, 3, 4);
    INF_CONTROL_CHECK(&feed, 1, 25);
    const struct inf_feed none = {{x}, {INF_SHAPE(1)}};
    inf_control_check(&none, 0, NULL, 0);
    INF_CONTROL_CHECK(&none, 1, 0);
}

// The overlap of boxes 0 and 1 is 9/11 (intersection over union). Box 2 overlaps no other box. Box
// 3 is box 0 with swapped corners.
static const float boxes[] = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 5, 5, 6, 6, 1, 1, 0, 0};

static void nms_model(const char *op, const char *inputs, int pad)
{
    inf_control_begin();
    inf_control_input("boxes", "DT_FLOAT", INF_DIMS(-1, 4));
    inf_control_input("scores", "DT_FLOAT", INF_DIMS(-1));
    inf_control_scalar_int("most", 3);
    inf_control_scalar("overlap", 0.5f);
    inf_control_scalar("least", 0.15f);
    inf_control_scalar("sigma", 0.5f);
    inf_control_node("n", op, inputs);
    if (pad)
        inf_tfjs_writer_attr_bool(inf_control.writer, "pad_to_max_output_size", 1);
}

Test(value_sizes, nms_keeps_the_best_of_what_overlaps)
{
    const float scores[] = {0.6f, 0.9f, 0.3f, 0.9f};
    const struct inf_feed feed = {{boxes, scores}, {INF_SHAPE(4, 4), INF_SHAPE(4)}};
    nms_model("NonMaxSuppressionV2", "boxes,scores,most,overlap", 0);
    inf_control_accept("n");
    INF_CONTROL_CHECK(&feed, 0, 1, 2); // among boxes with equal scores, the first box wins
    nms_model("NonMaxSuppressionV3", "boxes,scores,most,overlap,sigma", 0);
    inf_control_accept("n");
    INF_CONTROL_CHECK(&feed, 0, 1); // the score of box 2 is below the threshold 0.5
    nms_model("NonMaxSuppressionV4", "boxes,scores,most,overlap,least", 1);
    inf_tfjs_writer_output(inf_control.writer, "count", "n:1");
    inf_control_accept("n");
    INF_CONTROL_CHECK(&feed, 0, 2);
    INF_CONTROL_CHECK(&feed, 1, 1, 2, 0);
    // the padded output has a known size, so no node is interpreted
    cr_assert_eq(inf_control.interpreted, 0);
}

// Soft suppression, worked out by hand: boxes 1 and 3 score 0.9, and box 1 is chosen first. Boxes 0
// and 3 overlap box 1 by 0.9 / 1.1 = 9/11. This is more than 0.5, so they are suppressed. Box 2
// overlaps no box, so it keeps its score.
Test(value_sizes, soft_nms_lowers_scores)
{
    const float scores[] = {0.6f, 0.9f, 0.3f, 0.9f};
    const struct inf_feed feed = {{boxes, scores}, {INF_SHAPE(4, 4), INF_SHAPE(4)}};
    nms_model("NonMaxSuppressionV5", "boxes,scores,most,overlap,least,sigma", 0);
    inf_tfjs_writer_output(inf_control.writer, "s", "n:1");
    inf_control_accept("n");
    INF_CONTROL_CHECK(&feed, 0, 0.9f, 0.3f);
    INF_CONTROL_CHECK(&feed, 1, 1, 2);
    // With a threshold above every overlap, no box is suppressed. Instead each overlap multiplies
    // the score by e^(-0.5 / 0.5 * (9/11)^2).
    inf_control_begin();
    inf_control_input("boxes", "DT_FLOAT", INF_DIMS(-1, 4));
    inf_control_input("scores", "DT_FLOAT", INF_DIMS(-1));
    inf_control_scalar_int("most", 2);
    inf_control_scalar("overlap", 1);
    inf_control_scalar("least", 0);
    inf_control_scalar("sigma", 0.5f);
    inf_control_node("n", "NonMaxSuppressionV5", "boxes,scores,most,overlap,least,sigma");
    inf_tfjs_writer_output(inf_control.writer, "s", "n:1");
    inf_control_accept("n");
    const struct inf_feed two = {{boxes, scores}, {INF_SHAPE(2, 4), INF_SHAPE(2)}};
    const double shared = 0.9 / 1.1;
    INF_CONTROL_CHECK(&two, 0, 0.9f, 0.6f * exp(-shared * shared));
    INF_CONTROL_CHECK(&two, 1, 1, 0);
}

Test(value_sizes, unique_numbers_and_differences)
{
    inf_control_begin();
    inf_control_input("x", "DT_INT32", INF_ANY_DIMS);
    inf_control_input("y", "DT_INT32", INF_ANY_DIMS);
    inf_control_node("u", "Unique", "x");
    inf_control_node("d", "ListDiff", "x,y");
    inf_tfjs_writer_output(inf_control.writer, "u", "u");
    inf_tfjs_writer_output(inf_control.writer, "i", "u:1");
    inf_tfjs_writer_output(inf_control.writer, "d", "d");
    inf_tfjs_writer_output(inf_control.writer, "at", "d:1");
    inf_tfjs_case_accept(inf_control.writer);
    const int32_t x[] = {1, 1, 2, 4, 4, 4, 7, 8, 8}, y[] = {8, 2, 3};
    const struct inf_feed feed = {{x, y}, {INF_SHAPE(9), INF_SHAPE(3)}};
    INF_CONTROL_CHECK(&feed, 0, 1, 2, 4, 7, 8);
    INF_CONTROL_CHECK(&feed, 1, 0, 0, 1, 2, 2, 2, 3, 4, 4);
    INF_CONTROL_CHECK(&feed, 2, 1, 1, 4, 4, 4, 7);
    INF_CONTROL_CHECK(&feed, 3, 0, 1, 3, 4, 5, 6);
}
