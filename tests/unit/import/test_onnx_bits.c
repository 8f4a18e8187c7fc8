// SPDX-License-Identifier: Apache-2.0
// Tests of random numbers: range, mean, and that a seed repeats them; of the borders of volumes;
// and of what BitCast, LinearAttention and GridSample of volumes refuse. The tool run_onnx compares
// the results of those operators.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/import/onnx_run_kit.h"

#define COUNT 64

TestSuite(onnx_bits, .init = set_up, .fini = tear_down);

// --- helpers ---

static struct inf_pb_writer open_model(int32_t from, int32_t to, const int64_t *dims, uint32_t rank)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 27);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", from, dims, rank);
    inf_onnx_put_port(&writer, 12, "y", to, dims, rank);
    return writer;
}

static void close_model(struct inf_pb_writer *writer)
{
    inf_pb_close(writer);
    inf_pb_close(writer);
}

// Loads y = op(x) with a seed and two more attributes, unless their names are NULL.
static void load_random(const char *op, bool seeded, const char *first, float a, const char *second,
                        float b)
{
    struct inf_pb_writer writer = open_model(FLOAT, FLOAT, (int64_t[]){COUNT}, 1);
    inf_onnx_open_node(&writer, op, "x", NULL, "y");
    if (seeded)
        inf_onnx_put_attr_float(&writer, "seed", 42);
    if (first != NULL)
        inf_onnx_put_attr_float(&writer, first, a);
    if (second != NULL)
        inf_onnx_put_attr_float(&writer, second, b);
    close_model(&writer);
    load_model(&writer);
}

static const float *run_random(const float *x)
{
    cr_assert_eq(run_model(&INF_SHAPE(COUNT), (const void *[]){x}), INF_OK, "%s", err.text);
    return buffers[0];
}

// --- random numbers ---

Test(onnx_bits, uniform_numbers_are_in_range_and_repeat_with_a_seed)
{
    static const float x[COUNT + 16];
    float before[COUNT];
    for (int seeded = 0; seeded < 2; seeded++) {
        load_random("RandomUniformLike", seeded, "low", -3, "high", -1);
        memcpy(before, run_random(x), sizeof before);
        double sum = 0;
        for (int i = 0; i < COUNT; i++) {
            cr_assert(before[i] >= -3 && before[i] < -1, "%g", before[i]);
            sum += (double)before[i];
        }
        // The deviation of a mean of 64 numbers is 0.07.
        cr_assert(fabs(sum / COUNT + 2) < 0.5, "mean %g", sum / COUNT);
        cr_assert_eq(memcmp(before, run_random(x), sizeof before) == 0, seeded);
    }
}

Test(onnx_bits, normal_numbers_have_the_mean_and_the_scale)
{
    static const float x[COUNT + 16];
    double sum = 0, squares = 0;
    load_random("RandomNormalLike", true, "mean", 10, "scale", 2);
    const float *y = run_random(x);
    for (int i = 0; i < COUNT; i++) {
        sum += (double)y[i];
        squares += ((double)y[i] - 10) * ((double)y[i] - 10);
    }
    cr_assert(fabs(sum / COUNT - 10) < 1.25, "mean %g", sum / COUNT);
    cr_assert(squares / COUNT > 1.5 && squares / COUNT < 8, "variance %g", squares / COUNT);
}

Test(onnx_bits, bernoulli_draws_ones_with_the_probability)
{
    float x[COUNT + 16] = {0};
    int ones = 0;
    for (int i = 0; i < COUNT; i++)
        x[i] = i < 8 ? 0 : i < 16 ? 1 : 0.5f;
    load_random("Bernoulli", true, NULL, 0, NULL, 0);
    const float *y = run_random(x);
    for (int i = 0; i < COUNT; i++) {
        cr_assert(y[i] == 0 || y[i] == 1);
        if (i < 16)
            cr_assert_eq(y[i], x[i]);
        else
            ones += y[i] == 1;
    }
    cr_assert(ones > 8 && ones < 40, "%d of 48", ones);
}

// Attribute `shape` decides the shape. Seed 0 is a seed.
Test(onnx_bits, uniform_numbers_have_the_shape_of_the_attribute)
{
    struct inf_pb_writer writer = open_model(FLOAT, FLOAT, (int64_t[]){2, 3}, 2);
    inf_pb_open(&writer, 1);
    inf_pb_put_text(&writer, 2, "r");
    inf_pb_put_text(&writer, 4, "RandomUniform");
    inf_onnx_put_attr_ints(&writer, "shape", (int64_t[]){2, 3}, 2);
    inf_onnx_put_attr_float(&writer, "seed", 0);
    inf_pb_close(&writer);
    inf_onnx_open_node(&writer, "Add", "x", "r", "y");
    close_model(&writer);
    load_model(&writer);
    static const float x[6 + 16];
    float before[6];
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    memcpy(before, buffers[0], sizeof before);
    cr_assert_eq(run_model(&INF_SHAPE(2, 3), (const void *[]){x}), INF_OK, "%s", err.text);
    cr_assert_eq(memcmp(before, buffers[0], sizeof before), 0);
}

// --- volumes ---

static struct inf_pb_writer open_volume(const char *border, const char *mode)
{
    struct inf_pb_writer writer = {0};
    inf_onnx_put_head(&writer, 22);
    inf_pb_open(&writer, 7);
    inf_onnx_put_port(&writer, 11, "x", FLOAT, (int64_t[]){1, 1, 1, 1, 2}, 5);
    inf_onnx_put_port(&writer, 11, "g", FLOAT, (int64_t[]){1, 1, 1, 3, 3}, 5);
    inf_onnx_put_port(&writer, 12, "y", FLOAT, (int64_t[]){1, 1, 1, 1, 3}, 5);
    inf_onnx_open_node(&writer, "GridSample", "x", "g", "y");
    inf_onnx_put_attr_text(&writer, "padding_mode", border);
    inf_onnx_put_attr_text(&writer, "mode", mode);
    close_model(&writer);
    return writer;
}

// The positions are far beyond the right edge, NaN, and the middle between both elements.
Test(onnx_bits, volumes_have_zeros_or_their_border_outside)
{
    const struct inf_shape shapes[] = {INF_SHAPE(1, 1, 1, 1, 2), INF_SHAPE(1, 1, 1, 3, 3)};
    static const float x[2 + 16] = {10, 20};
    static const float grid[9 + 16] = {5, 0, 0, NAN, 0, 0, 0, 0, 0};
    struct inf_pb_writer writer = open_volume("zeros", "nearest");
    load_model(&writer);
    cr_assert_eq(run_model(shapes, (const void *[]){x, grid}), INF_OK, "%s", err.text);
    // Half of the distance between 0 and 1 rounds to the even element.
    expect_output(0, &INF_SHAPE(1, 1, 1, 1, 3), (float[]){0, 0, 10});
    writer = open_volume("border", "linear");
    load_model(&writer);
    cr_assert_eq(run_model(shapes, (const void *[]){x, grid}), INF_OK, "%s", err.text);
    cr_assert_eq(buffers[0][0], 20);
    cr_assert_eq(buffers[0][2], 15);
}

Test(onnx_bits, volumes_refuse_cubic_and_reflection)
{
    struct inf_graph *graph = NULL;
    struct inf_pb_writer writer = open_volume("reflection", "linear");
    cr_assert_eq(import_model(&writer, &graph), INF_UNSUPPORTED);
    writer = open_volume("zeros", "cubic");
    cr_assert_eq(import_model(&writer, &graph), INF_UNSUPPORTED);
}

// --- refusals ---

Test(onnx_bits, bitcast_refuses_16_bit_floats_and_other_sizes)
{
    static const int32_t pairs[][2] = {{FLOAT16, UINT16}, {FLOAT, UINT16}, {INT64, STRING}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(pairs); i++) {
        struct inf_graph *graph = NULL;
        struct inf_pb_writer writer = open_model(pairs[i][0], pairs[i][1], (int64_t[]){2}, 1);
        inf_onnx_open_node(&writer, "BitCast", "x", NULL, "y");
        inf_onnx_put_attr_int(&writer, "to", pairs[i][1]);
        close_model(&writer);
        cr_assert_eq(import_model(&writer, &graph), i == 0 ? INF_UNSUPPORTED : INF_INVALID, "%s",
                     err.text);
    }
}

// Imports a LinearAttention of q, k and v = x [1, length, 4]. *has_loop becomes true if a loop of
// the graph computes it.
static enum inf_code import_linear(int64_t length, int64_t q_heads, int64_t heads, bool *has_loop)
{
    struct inf_graph *graph = NULL;
    struct inf_pb_writer writer = open_model(FLOAT, FLOAT, (int64_t[]){1, length, 4}, 3);
    inf_pb_open(&writer, 1);
    for (int i = 0; i < 3; i++)
        inf_pb_put_text(&writer, 1, "x");
    inf_pb_put_text(&writer, 2, "y");
    inf_pb_put_text(&writer, 4, "LinearAttention");
    inf_onnx_put_attr_int(&writer, "q_num_heads", q_heads);
    inf_onnx_put_attr_int(&writer, "kv_num_heads", heads);
    inf_onnx_put_attr_text(&writer, "update_rule", "linear");
    close_model(&writer);
    enum inf_code code = import_model(&writer, &graph);
    *has_loop = false;
    for (uint32_t i = 0; code == INF_OK && i < graph->node_count; i++)
        *has_loop |= graph->nodes[i].op == INF_OP_LOOP;
    inf_graph_destroy(&graph);
    return code;
}

Test(onnx_bits, linear_attention_over_a_long_or_an_open_sequence_is_a_loop)
{
    bool has_loop;
    cr_assert_eq(import_linear(1, 2, 2, &has_loop), INF_OK, "%s", err.text);
    cr_assert_not(has_loop);
    cr_assert_eq(import_linear(256, 2, 2, &has_loop), INF_OK, "%s", err.text);
    cr_assert_not(has_loop);
    cr_assert_eq(import_linear(257, 2, 2, &has_loop), INF_OK, "%s", err.text);
    cr_assert(has_loop);
    cr_assert_eq(import_linear(-1, 2, 2, &has_loop), INF_OK, "%s", err.text);
    cr_assert(has_loop);
}

Test(onnx_bits, linear_attention_refuses_heads_that_do_not_fit)
{
    bool has_loop;
    cr_assert_eq(import_linear(3, 3, 2, &has_loop), INF_INVALID);
    cr_assert_eq(import_linear(3, 0, 0, &has_loop), INF_INVALID);
    cr_assert_eq(import_linear(3, 8, 8, &has_loop), INF_INVALID);
}
