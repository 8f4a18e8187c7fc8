// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan of ONNX whose outcome is known only at run time. The models run on the
// reference device `ref`.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

TestSuite(onnx_control, .init = set_up, .fini = tear_down);

// --- helpers that write models ---

static struct inf_pb_writer open_model(void)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 18);
    inf_pb_open(&writer, 7);
    return writer;
}

static void put_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                     const char *output)
{
    inf_onnx_open_node(writer, op, a, b, output);
    inf_pb_close(writer);
}

static void open_graph(struct inf_pb_writer *writer, const char *name)
{
    inf_pb_open(writer, 5);
    inf_pb_put_text(writer, 1, name);
    inf_pb_put_int(writer, 20, 5);
    inf_pb_open(writer, 6);
}

static void close_graph(struct inf_pb_writer *writer)
{
    inf_pb_close(writer);
    inf_pb_close(writer);
}

// --- weights of integer types with fewer than 8 bits ---

static void put_narrow(struct inf_pb_writer *writer, const char *name, int32_t type, int64_t count,
                       const void *data, size_t size)
{
    inf_pb_open(writer, 5);
    inf_pb_put_int(writer, 1, count);
    inf_pb_put_int(writer, 2, type);
    inf_pb_put_text(writer, 8, name);
    inf_pb_put_bytes(writer, 9, data, size);
    inf_pb_close(writer);
}

// Writes a model of y = x + (w - zero) * 0.5, in which w has this type. Unless `op` is NULL, node
// `op` is applied to w first.
static struct inf_pb_writer narrow_weights(int32_t type, const void *data, size_t size,
                                           const char *op)
{
    static const int64_t dims[] = {5};
    struct inf_pb_writer writer = open_model();
    if (op != NULL)
        put_node(&writer, op, "w", NULL, "v");
    inf_pb_open(&writer, 1);
    for (int i = 0; i < 3; i++)
        inf_pb_put_text(&writer, 1, (const char *[]){op != NULL ? "v" : "w", "s", "z"}[i]);
    inf_pb_put_text(&writer, 2, "d");
    inf_pb_put_text(&writer, 4, "DequantizeLinear");
    inf_pb_close(&writer);
    put_node(&writer, "Add", "x", "d", "y");
    put_narrow(&writer, "w", type, 5, data, size);
    put_narrow(&writer, "z", type, 1, "\x01", 1);
    inf_onnx_put_floats(&writer, "s", (int64_t[]){1}, 1, (float[]){0.5f});
    inf_onnx_put_port(&writer, 11, "x", FLOAT, dims, 1);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, dims, 1);
    inf_pb_close(&writer);
    return writer;
}

// ONNX stores the first element in the lowest bits.
Test(onnx_control, narrow_weights_are_dequantised)
{
    static const struct {
        int32_t type;
        uint8_t data[3];
        size_t size;
        float wanted[5]; // expected values of (w - 1) / 2
    } cases[] = {
        // bytes of type UINT4 (21): 15 0 1 8 7
        {21, {0x0f, 0x81, 0x07}, 3, {7, -0.5f, 0, 3.5f, 3}},
        // bytes of type INT4 (22): -1 0 1 -8 7
        {22, {0x0f, 0x81, 0x07}, 3, {-1, -0.5f, 0, -4.5f, 3}},
        // bytes of type UINT2 (25): 0 1 2 3 2
        {25, {0xe4, 0x02}, 2, {-0.5f, 0, 0.5f, 1, 0.5f}},
        // bytes of type INT2 (26): 0 1 -2 -1 -2
        {26, {0xe4, 0x02}, 2, {-0.5f, 0, -1.5f, -1, -1.5f}},
    };
    const float x[5 + 16] = {0};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_pb_writer writer =
            narrow_weights(cases[i].type, cases[i].data, cases[i].size, NULL);
        load_model(&writer);
        cr_assert_eq(run_model(&INF_SHAPE(5), (const void *[]){x}), INF_OK, "%s", err.text);
        expect_output(0, &INF_SHAPE(5), cases[i].wanted);
    }
}

Test(onnx_control, narrow_weights_are_for_nothing_else)
{
    static const uint8_t data[3] = {0};
    struct inf_graph *graph = NULL;
    for (int i = 0; i < 2; i++) {
        // The first model passes w through another node. The data of the second model is one byte
        // too short.
        struct inf_pb_writer writer =
            narrow_weights(22, data, i == 0 ? 3 : 2, i == 0 ? "Neg" : NULL);
        int fd = openat(folder_fd, "model.onnx", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        cr_assert_eq(write(fd, writer.data, writer.size), (ssize_t)writer.size);
        close(fd);
        inf_pb_writer_fini(&writer);
        enum inf_code code = inf_model_import(&graph, NULL, folder_fd, "model.onnx", &err);
        cr_assert_eq(code, i == 0 ? INF_UNSUPPORTED : INF_INVALID, "%s", err.text);
        cr_assert_not_null(strstr(err.text, i == 0
                                                ? "node 'v' (Neg): input 0 is INT4, which it does"
                                                : "tensor 'w': raw_data has 2 bytes"),
                           "%s", err.text);
    }
}

// --- the ONNX operator If ---

// The model computes y = go ? x without its first axis : x, and z = the sums of the rows of y,
// which depend on the rank. Exporters write this pattern to squeeze an axis that may be 1.
static struct inf_pb_writer open_squeezing_model(const char *op, int64_t axis)
{
    static const int64_t dims[] = {-1, -1, -1}, zero[] = {0};
    struct inf_pb_writer writer = open_model();
    const int64_t axes[] = {axis};
    inf_onnx_put_port(&writer, 11, "x", FLOAT, dims, 3);
    inf_onnx_put_port(&writer, 11, "go", BOOL, NULL, 0);
    inf_onnx_put_int64s(&writer, "first", zero, 1);
    inf_onnx_put_int64s(&writer, "axes", axes, 1);
    inf_onnx_open_node(&writer, "If", "go", NULL, "y");
    open_graph(&writer, "then_branch");
    put_node(&writer, "Squeeze", "x", "first", "side");
    inf_onnx_put_port(&writer, 12, "side", FLOAT, NULL, 0);
    close_graph(&writer);
    open_graph(&writer, "else_branch");
    put_node(&writer, "Identity", "x", NULL, "side");
    inf_onnx_put_port(&writer, 12, "side", FLOAT, NULL, 0);
    close_graph(&writer);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, op, "y", "axes", "z");
    inf_onnx_put_attr_int(&writer, "keepdims", 0);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 12, "z", FLOAT, NULL, 0);
    inf_pb_close(&writer);
    return writer;
}

Test(onnx_control, what_is_behind_branches_of_different_rank_is_in_both)
{
    static const float x[] = {1, 2, 3, 4, 5, 6}, columns[] = {5, 7, 9}, rows[] = {6, 15};
    static const struct inf_shape shapes[] = {INF_SHAPE(1, 2, 3), {.rank = 0}};
    uint8_t go = 1;
    const void *inputs[] = {x, &go};
    struct inf_pb_writer writer = open_squeezing_model("ReduceSum", 0);
    load_model(&writer);
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(3), columns);
    go = 0;
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 3), x);
    writer = open_squeezing_model("ReduceSum", -1);
    load_model(&writer);
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 2), rows);
}

// Axis 2 of y exists only if the else branch runs.
Test(onnx_control, a_branch_that_makes_no_sense_fails_the_run_that_takes_it)
{
    static const float x[] = {1, 2, 3, 4, 5, 6}, rows[] = {6, 15};
    static const struct inf_shape shapes[] = {INF_SHAPE(1, 2, 3), {.rank = 0}};
    uint8_t go = 0;
    const void *inputs[] = {x, &go};
    struct inf_pb_writer writer = open_squeezing_model("ReduceSum", 2);
    load_model(&writer);
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1, 2), rows);
    go = 1;
    cr_assert_neq(run_model(shapes, inputs), INF_OK);
    cr_assert_not_null(strstr(err.text, "axis 2"), "%s", err.text);
}

// The input shapes fit only the else branch. Squeezing an axis of size 2 is an error only if a run
// takes the then branch.
Test(onnx_control, shapes_that_fit_one_branch_do_for_it)
{
    static const float x[] = {1, 2, 3, 4, 5, 6}, rows[] = {6, 15};
    static const struct inf_shape shapes[] = {INF_SHAPE(2, 1, 3), {.rank = 0}};
    uint8_t go = 0;
    const void *inputs[] = {x, &go};
    struct inf_pb_writer writer = open_squeezing_model("ReduceSum", -1);
    load_model(&writer);
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(2, 1), rows);
    go = 1;
    cr_assert_neq(run_model(shapes, inputs), INF_OK);
}

// --- the ONNX operator Loop ---

// The number of iterations and the condition are inputs. Each iteration does sum += x, and the sums
// are stacked. The loop continues while the sum is below 10.
Test(onnx_control, a_run_counts_the_rounds_of_a_loop)
{
    static const int64_t one[] = {1};
    static const float ten[] = {10}, x[] = {3}, start[] = {0};
    static const struct inf_shape shapes[] = {{.rank = 0}, {.rank = 0}, INF_SHAPE(1), INF_SHAPE(1)};
    struct inf_pb_writer writer = open_model();
    inf_onnx_put_port(&writer, 11, "rounds", INT64, NULL, 0);
    inf_onnx_put_port(&writer, 11, "go", BOOL, NULL, 0);
    inf_onnx_put_port(&writer, 11, "start", FLOAT, one, 1);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, one, 1);
    inf_onnx_put_floats(&writer, "ten", one, 1, ten);
    inf_onnx_open_node(&writer, "Loop", "rounds", "go", "sum");
    inf_pb_put_text(&writer, 1, "start");
    inf_pb_put_text(&writer, 2, "sums");
    open_graph(&writer, "body");
    inf_onnx_put_port(&writer, 11, "round", INT64, NULL, 0);
    inf_onnx_put_port(&writer, 11, "was", BOOL, NULL, 0);
    inf_onnx_put_port(&writer, 11, "before", FLOAT, one, 1);
    put_node(&writer, "Add", "before", "x", "after");
    put_node(&writer, "Less", "after", "ten", "on");
    put_node(&writer, "Identity", "after", NULL, "copy");
    inf_onnx_put_port(&writer, 12, "on", BOOL, one, 1);
    inf_onnx_put_port(&writer, 12, "after", FLOAT, one, 1);
    inf_onnx_put_port(&writer, 12, "copy", FLOAT, one, 1);
    close_graph(&writer);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 12, "sum", FLOAT, NULL, 0);
    inf_onnx_put_port(&writer, 12, "sums", FLOAT, NULL, 0);
    inf_pb_close(&writer);
    load_model(&writer);

    static const float sums[] = {3, 6, 9, 12};
    int64_t rounds = 2;
    uint8_t go = 1;
    const void *inputs[] = {&rounds, &go, start, x};
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1), &sums[1]);
    expect_output(1, &INF_SHAPE(2, 1), sums);
    rounds = 100; // more iterations than the condition allows
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1), &sums[3]);
    expect_output(1, &INF_SHAPE(4, 1), sums);
    go = 0;
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(1), start);
    expect_output(1, &INF_SHAPE(0, 1), NULL);
}

// The loop-carried value grows by one element in each iteration, so its shape is unknown.
Test(onnx_control, a_loop_may_change_the_shape_of_what_it_carries)
{
    static const int64_t one[] = {1};
    static const float start[] = {7};
    static const struct inf_shape shapes[] = {{.rank = 0}, INF_SHAPE(1)};
    struct inf_pb_writer writer = open_model();
    inf_onnx_put_port(&writer, 11, "rounds", INT64, NULL, 0);
    inf_onnx_put_port(&writer, 11, "start", FLOAT, one, 1);
    inf_onnx_open_node(&writer, "Loop", "rounds", "", "all");
    inf_pb_put_text(&writer, 1, "start");
    open_graph(&writer, "body");
    inf_onnx_put_port(&writer, 11, "round", INT64, NULL, 0);
    inf_onnx_put_port(&writer, 11, "go", BOOL, NULL, 0);
    inf_onnx_put_port(&writer, 11, "before", FLOAT, NULL, 0);
    inf_onnx_open_node(&writer, "Concat", "before", "start", "after");
    inf_onnx_put_attr_int(&writer, "axis", 0);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 12, "go", BOOL, NULL, 0);
    inf_onnx_put_port(&writer, 12, "after", FLOAT, NULL, 0);
    close_graph(&writer);
    inf_pb_close(&writer);
    inf_onnx_put_port(&writer, 12, "all", FLOAT, NULL, 0);
    inf_pb_close(&writer);
    load_model(&writer);

    static const float sevens[] = {7, 7, 7, 7};
    int64_t rounds = 3;
    const void *inputs[] = {&rounds, start};
    cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
    expect_output(0, &INF_SHAPE(4), sevens);
}

// --- the ONNX operator Scan ---

// Computes running sums along an axis of unknown size, forwards and backwards.
Test(onnx_control, a_scan_goes_through_as_many_slices_as_there_are)
{
    static const int64_t one[] = {1}, rows[] = {-1, 2}, row[] = {2}, backwards[] = {1};
    static const float zero[] = {0, 0}, x[] = {1, 10, 2, 20, 3, 30};
    static const float forward[] = {1, 10, 3, 30, 6, 60}, backward[] = {6, 60, 5, 50, 3, 30};
    static const struct inf_shape shapes[] = {INF_SHAPE(3, 2)};
    for (int way = 0; way < 2; way++) {
        struct inf_pb_writer writer = open_model();
        inf_onnx_put_port(&writer, 11, "x", FLOAT, rows, 2);
        inf_onnx_put_floats(&writer, "zero", row, 1, zero);
        inf_onnx_open_node(&writer, "Scan", "zero", "x", "sum");
        inf_pb_put_text(&writer, 2, "sums");
        inf_onnx_put_attr_int(&writer, "num_scan_inputs", 1);
        if (way == 1) {
            inf_onnx_put_attr_ints(&writer, "scan_input_directions", backwards, 1);
            inf_onnx_put_attr_ints(&writer, "scan_output_directions", backwards, 1);
        }
        open_graph(&writer, "body");
        inf_onnx_put_port(&writer, 11, "before", FLOAT, row, 1);
        inf_onnx_put_port(&writer, 11, "slice", FLOAT, row, 1);
        put_node(&writer, "Add", "before", "slice", "after");
        put_node(&writer, "Identity", "after", NULL, "copy");
        inf_onnx_put_port(&writer, 12, "after", FLOAT, one, 1);
        inf_onnx_put_port(&writer, 12, "copy", FLOAT, one, 1);
        close_graph(&writer);
        inf_pb_close(&writer);
        inf_onnx_put_port(&writer, 12, "sums", FLOAT, rows, 2);
        inf_pb_close(&writer);
        load_model(&writer);
        const void *inputs[] = {x};
        cr_assert_eq(run_model(shapes, inputs), INF_OK, "%s", err.text);
        expect_output(0, &INF_SHAPE(3, 2), way == 0 ? forward : backward);
    }
}
