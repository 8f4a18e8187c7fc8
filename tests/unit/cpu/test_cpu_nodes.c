// SPDX-License-Identifier: Apache-2.0
// Nodes that the cpu device declines, with which reason, and NaN in those that it computes.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "tests/unit/cpu/single_node.h"

// --- nodes that the cpu device declines ---

// Asserts that the device declines the node with an error text that contains `reason`.
static void expect_declined(struct single *single, const char *reason)
{
    struct inf_device *device = device_of(1, 1);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(single->graph, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_device_supports(device, single->graph, single->node, &err), INF_UNSUPPORTED,
                 "%s", reason);
    cr_assert(strstr(err.text, reason) != NULL, "'%s' lacks '%s'", err.text, reason);
    struct inf_segment segment = {
        .graph = single->graph, .nodes = &single->node, .node_count = 1, .slots = 1};
    struct inf_program *program = NULL;
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_UNSUPPORTED);
    inf_device_unref(&device);
    inf_graph_destroy(&single->graph);
}

Test(cpu_nodes, leaves_no_error_if_a_later_kernel_computes_the_node)
{
    struct single single;
    struct inf_device *device = device_of(1, 1);
    struct inf_error err = {0};
    struct inf_program *program = NULL;
    start_graph(&single);
    add_operand(&single, INF_DTYPE_I64, &INF_SHAPE(3));
    add_operand(&single, INF_DTYPE_I64, &INF_SHAPE(3));
    add_node(&single, INF_OP_BINARY); // the first kernel of BINARY takes FP32 only
    cr_assert_eq(inf_shape_infer(single.graph, &err), INF_OK, "%s", err.text);
    struct inf_segment segment = {
        .graph = single.graph, .nodes = &single.node, .node_count = 1, .slots = 1};
    cr_assert_eq(inf_device_supports(device, single.graph, single.node, &err), INF_OK);
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_OK);
    cr_expect_eq(err.code, INF_OK, "%s", err.text);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

static void make_image_node(struct single *single, int64_t size)
{
    start_graph(single);
    add_operand(single, INF_DTYPE_F32, &INF_SHAPE(1, size, size, 1));
}

Test(cpu_nodes, declines_operands_that_it_has_no_kernel_for)
{
    struct single single;
    make_image_node(&single, 4);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 1, 1, 1));
    add_node(&single, INF_OP_CONV2D);
    expect_declined(&single, "no constant");

    start_graph(&single);
    add_operand(&single, INF_DTYPE_I32, &INF_SHAPE(3));
    add_node(&single, INF_OP_UNARY);
    expect_declined(&single, "INT32");

    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(0, 3));
    add_node(&single, INF_OP_UNARY);
    expect_declined(&single, "no elements");

    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(INF_DIM_UNKNOWN, 3));
    add_node(&single, INF_OP_UNARY);
    expect_declined(&single, "not known");

    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 2, 2, 1));
    add_node(&single, INF_OP_BAND);
    expect_declined(&single, "no kernel for band");
}

Test(cpu_nodes, declines_attributes_that_xnnpack_refuses_or_computes_wrongly)
{
    struct single single;
    const float one[1] = {1};
    make_image_node(&single, 4);
    add_constant(&single, &INF_SHAPE(1, 1, 1, 1), one, NULL);
    union inf_attrs *attrs = add_node(&single, INF_OP_CONV2D);
    attrs->conv2d.activation = INF_ACTIVATION_CLIP;
    attrs->conv2d.activation_min = 2;
    attrs->conv2d.activation_max = 2;
    expect_declined(&single, "clip from 2 to 2");

    make_image_node(&single, 4);
    add_node(&single, INF_OP_POOL2D);
    expect_declined(&single, "1x1");

    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(2, 3));
    add_node(&single, INF_OP_SOFTMAX)->softmax.axis = 0;
    expect_declined(&single, "axis 0");

    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(2, 3));
    add_node(&single, INF_OP_UNARY)->unary.kind = INF_UNARY_ELU;
    expect_declined(&single, "alpha 0");
}

// --- numeric results of nodes ---

static void compute_once(struct single *single, const float *x, float *y, size_t count)
{
    struct inf_device *device = device_of(1, 1);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(single->graph, &err), INF_OK, "%s", err.text);
    struct inf_program *program = program_of(device, single, 1);
    struct buffer from = {0};
    struct buffer to = {0};
    memcpy(from.data, x, count * sizeof(*x));
    cr_assert_eq(run_program(program, single, &from, &to, (struct inf_run){0}), INF_OK);
    memcpy(y, to.data, count * sizeof(*y));
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single->graph);
}

Test(cpu_nodes, keeps_nan_in_element_wise_operators)
{
    const float x[4] = {NAN, -1, INFINITY, -INFINITY};
    float y[4];
    struct single single;
    const float two[1] = {2};
    static const enum inf_unary_kind kinds[] = {INF_UNARY_RELU, INF_UNARY_RELU6, INF_UNARY_TANH,
                                                INF_UNARY_SIGMOID};
    const float expected[][4] = {
        {NAN, 0, INFINITY, 0}, {NAN, 0, 6, 0}, {NAN, -0.7615942f, 1, -1}, {NAN, 0.2689414f, 1, 0}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        start_graph(&single);
        add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(4));
        add_node(&single, INF_OP_UNARY)->unary.kind = kinds[i];
        compute_once(&single, x, y, 4);
        cr_assert(isnan(y[0]), "%s", inf_unary_name(kinds[i]));
        for (int k = 1; k < 4; k++)
            cr_assert(y[k] == expected[i][k] || fabsf(y[k] - expected[i][k]) < 1e-6f,
                      "%s of %g: %g", inf_unary_name(kinds[i]), (double)x[k], (double)y[k]);
    }
    static const enum inf_binary_kind pairs[] = {INF_BINARY_MIN, INF_BINARY_MAX, INF_BINARY_ADD};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(pairs); i++) {
        start_graph(&single);
        add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(4));
        add_constant(&single, &INF_SHAPE(1), two, NULL);
        union inf_attrs *attrs = add_node(&single, INF_OP_BINARY);
        attrs->binary.kind = pairs[i];
        attrs->binary.activation = INF_ACTIVATION_RELU;
        compute_once(&single, x, y, 4);
        cr_assert(isnan(y[0]), "%s", inf_binary_name(pairs[i]));
    }
}

// --- rows of x that have no digits (cpu/quantized/blocks.c) ---

Test(cpu_nodes, multiplies_rows_without_digits_as_floats)
{
    enum {
        DEPTH = 32,
        COLUMNS = 40
    };
    static const float firsts[] = {INFINITY, -1e38f, 0, 3, 1e-30f};
    struct inf_blob *w = inf_blob_create(DEPTH * COLUMNS);
    struct inf_blob *x = inf_blob_create(2 * DEPTH * sizeof(float));
    struct inf_blob *y = inf_blob_create(2 * COLUMNS * sizeof(float));
    float scales[COLUMNS];
    struct single single;
    struct inf_device *device = device_of(1, 1);
    memset(w->data, 128 + 2, DEPTH * COLUMNS); // all weights are 2 * 0.5
    for (size_t c = 0; c < COLUMNS; c++)
        scales[c] = 0.5f;
    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(2, DEPTH));
    cr_assert_eq(inf_graph_add_const(single.graph, "w", INF_DTYPE_U8, &INF_SHAPE(COLUMNS, 1, DEPTH),
                                     w, &single.operands[single.count++], NULL),
                 INF_OK);
    add_constant(&single, &INF_SHAPE(COLUMNS), scales, NULL);
    union inf_attrs *attrs = add_node(&single, INF_OP_MATMUL_BLOCKS);
    attrs->matmul_blocks.bits = 8;
    attrs->matmul_blocks.block = DEPTH;
    attrs->matmul_blocks.rounds_x = true;
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    struct inf_program *program = program_of(device, &single, 1);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(firsts); i++) {
        float *rows = x->data;
        const float *results = y->data;
        memset(rows, 0, 2 * DEPTH * sizeof(float));
        rows[0] = firsts[i];
        rows[DEPTH] = 5;
        cr_assert_eq(run_program(program, &single, rows, y->data, (struct inf_run){0}), INF_OK);
        for (size_t c = 0; c < COLUMNS; c++) {
            cr_expect_eq(results[c], firsts[i], "column %zu of %g is %g", c, (double)firsts[i],
                         (double)results[c]);
            cr_expect_eq(results[COLUMNS + c], 5, "column %zu is %g", c,
                         (double)results[COLUMNS + c]);
        }
    }
    inf_blob_unref(&x);
    inf_blob_unref(&y);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}
