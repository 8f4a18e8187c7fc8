// SPDX-License-Identifier: Apache-2.0
// Tests of operators whose axes are an input of the model, so that only a run knows them. Expected
// values were computed by hand. tests/tools/run/onnx_cases.jsonl has more, from ONNX Runtime.
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

TestSuite(onnx_axes, .init = set_up, .fini = tear_down);

// Loads a model of one node y = op(x, axes), x [2,3,2], with an attribute unless `attribute` is
// NULL.
static void load_node(const char *op, const char *attribute, int64_t value, int64_t axes,
                      uint32_t rank)
{
    struct inf_pb_writer writer = {0};
    const int64_t any[] = {-1, -1, -1, -1, -1};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    inf_onnx_open_node(&writer, op, "x", "axes", "y");
    if (attribute != NULL)
        inf_onnx_put_attr_int(&writer, attribute, value);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){2, 3, 2}, 3);
    inf_onnx_put_port(&writer, 11, "axes", INT64, &axes, 1);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, any, rank);
    inf_pb_close(&writer);
    load_model(&writer);
}

static enum inf_code run_axes(const int64_t *axes, int64_t count)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};
    const struct inf_shape shapes[] = {INF_SHAPE(2, 3, 2), INF_SHAPE(count)};
    return run_model(shapes, (const void *[]){x, axes});
}

Test(onnx_axes, of_one_loaded_model_differ_from_run_to_run)
{
    load_node("ReduceSum", "keepdims", 0, 1, 2);
    cr_assert_eq(run_axes((int64_t[]){1}, 1), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 2), (float[]){9, 12, -9, -12});
    cr_assert_eq(run_axes((int64_t[]){-3}, 1), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(3, 2), (float[]){0, 0, 0, 0, 0, 0});
    cr_assert_eq(run_axes((int64_t[]){2}, 1), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 3), (float[]){3, 7, 11, -3, -7, -11});
}

Test(onnx_axes, keep_the_rank_of_a_mean)
{
    load_node("ReduceMean", "keepdims", 1, 2, 3);
    cr_assert_eq(run_axes((int64_t[]){2, 0}, 2), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 3, 1), (float[]){0, 0, 0});
    cr_assert_eq(run_axes((int64_t[]){1, 2}, 2), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1, 1), (float[]){3.5f, -3.5f});
}

Test(onnx_axes, outside_of_the_rank_fail_the_run)
{
    load_node("ReduceMax", NULL, 0, 1, 3);
    cr_assert_eq(run_axes((int64_t[]){3}, 1), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "index 3"), "%s", err.text);
    cr_assert_eq(run_axes((int64_t[]){-4}, 1), INF_INVALID);
    load_node("Unsqueeze", NULL, 0, 2, 5);
    cr_assert_eq(run_axes((int64_t[]){0, 5}, 2), INF_INVALID);
}

Test(onnx_axes, put_ones_in)
{
    static const float x[] = {1, 2, 3, 4, 5, 6, -1, -2, -3, -4, -5, -6};
    load_node("Unsqueeze", NULL, 0, 2, 5);
    cr_assert_eq(run_axes((int64_t[]){-1, 1}, 2), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1, 3, 2, 1), x);
    cr_assert_eq(run_axes((int64_t[]){0, 2}, 2), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 2, 1, 3, 2), x);
}

Test(onnx_axes, that_are_not_of_size_1_cannot_be_taken_out)
{
    load_node("Squeeze", NULL, 0, 1, 2);
    cr_assert_eq(run_axes((int64_t[]){1}, 1), INF_INVALID);
}
