// SPDX-License-Identifier: Apache-2.0
// The kernel of gather on the cpu device: which slices it copies, and indices that are out of
// range.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/device/device.h"
#include "backends/graph/shape/infer.h"

#define BATCH 2
#define OUTER 3
#define BOUND 5
#define MOST  (BATCH * OUTER * BOUND * 40000)

static struct inf_device *device;
static struct inf_graph *graph;
static struct inf_program *program;
static uint32_t operands[2];
static int32_t *x, *y;

static void open_device(void)
{
    const struct inf_device_options options = {.slots = 1, .threads = 2};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
    x = malloc(MOST * sizeof(*x));
    y = malloc(MOST * sizeof(*y));
    cr_assert(x != NULL && y != NULL);
    for (int32_t i = 0; i < MOST; i++)
        x[i] = i;
}

static void close_device(void)
{
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
    free(x);
    free(y);
}

TestSuite(gather, .init = open_device, .fini = close_device, .timeout = 60);

// Makes gather of x [2,3,5,slice] along axis 2 with indices of the given type and shape.
static void make_program(enum inf_dtype dtype, int64_t slice, const struct inf_shape *picked,
                         int32_t batch_dims)
{
    uint32_t node = 0;
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_I32,
                                     &INF_SHAPE(BATCH, OUTER, BOUND, slice), &operands[0], NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "i", dtype, picked, &operands[1], NULL), INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_GATHER, "pick", "", operands, 2, 1, &node, NULL),
                 INF_OK);
    graph->nodes[0].attrs.gather.axis = -2;
    graph->nodes[0].attrs.gather.batch_dims = batch_dims;
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(inf_device_supports(device, graph, 0, NULL), INF_OK);
    const struct inf_segment segment = {
        .graph = graph, .nodes = &node, .node_count = 1, .slots = 1};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
}

static enum inf_code run_program(void *indices, struct inf_error *err)
{
    struct inf_binding bindings[4] = {0};
    struct inf_ticket ticket;
    bindings[operands[0]].host = x;
    bindings[operands[1]].host = indices;
    bindings[graph->nodes[0].outputs[0]].host = y;
    const struct inf_run run = {.bindings = bindings};
    return inf_program_run(program, &run, &ticket, err);
}

Test(gather, copies_the_slices_in_the_order_of_the_indices)
{
    int64_t indices[4] = {4, 0, 2, 2};
    static const int64_t slices[] = {1, 2, 3, 17, 40000};
    for (size_t s = 0; s < sizeof slices / sizeof slices[0]; s++) {
        int32_t slice = (int32_t)slices[s];
        make_program(INF_DTYPE_I64, slice, &INF_SHAPE(4), 0);
        cr_assert_eq(run_program(indices, NULL), INF_OK);
        for (int32_t row = 0; row < BATCH * OUTER; row++)
            for (int32_t i = 0; i < 4; i++)
                for (int32_t k = 0; k < slice; k++)
                    cr_assert_eq(y[(row * 4 + i) * slice + k],
                                 (row * BOUND + (int32_t)indices[i]) * slice + k);
    }
}

Test(gather, batches_have_indices_of_their_own)
{
    int32_t indices[BATCH * 2] = {4, 1, 0, 3};
    make_program(INF_DTYPE_I32, 7, &INF_SHAPE(BATCH, 2), 1);
    cr_assert_eq(run_program(indices, NULL), INF_OK);
    for (int32_t row = 0; row < BATCH * OUTER; row++)
        for (int32_t i = 0; i < 2; i++)
            cr_assert_eq(y[(row * 2 + i) * 7], (row * BOUND + indices[row / OUTER * 2 + i]) * 7);
}

Test(gather, an_index_out_of_range_fails_the_run_and_writes_nothing)
{
    static const int64_t wrong[] = {-1, BOUND, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t wide[3] = {0, 4, wrong[i]};
        struct inf_error err = {0};
        char text[128];
        make_program(INF_DTYPE_I64, 2, &INF_SHAPE(3), 0);
        y[0] = -7;
        cr_assert_eq(run_program(wide, &err), INF_INVALID);
        snprintf(text, sizeof text,
                 "node 'pick' (gather): index %lld (element 2 of the indices) is outside [0, 5)",
                 (long long)wrong[i]);
        cr_assert_str_eq(err.text, text);
        cr_assert_eq(y[0], -7);
        wide[2] = 1;
        cr_assert_eq(run_program(wide, NULL), INF_OK);
    }
    int32_t narrow[3] = {0, -1, 0};
    make_program(INF_DTYPE_I32, 2, &INF_SHAPE(3), 0);
    cr_assert_eq(run_program(narrow, NULL), INF_INVALID);
}

// --- gather_nd and scatter_nd ---

// Makes gather_nd or scatter_nd of x [5,3], with three rows of one index.
static union inf_attrs *start_nd_node(enum inf_op op)
{
    static uint32_t values[3];
    uint32_t node;
    inf_program_destroy(&program);
    inf_graph_destroy(&graph);
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    const struct inf_shape shapes[] = {INF_SHAPE(5, 3), INF_SHAPE(3, 1), INF_SHAPE(3, 3)};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(inf_graph_add_value(graph, "v", i == 1 ? INF_DTYPE_I64 : INF_DTYPE_I32,
                                         &shapes[i], &values[i], NULL),
                     INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, op, "pick", "", values, op == INF_OP_GATHER_ND ? 2 : 3,
                                    1, &node, NULL),
                 INF_OK);
    return &graph->nodes[0].attrs;
}

static enum inf_code run_nd_node(int64_t *indices, int32_t *updates, struct inf_error *err)
{
    uint32_t node = 0;
    struct inf_ticket ticket;
    const struct inf_segment segment = {
        .graph = graph, .nodes = &node, .node_count = 1, .slots = 1};
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    struct inf_binding bindings[4] = {{.host = x}, {.host = indices}, {.host = updates}};
    bindings[graph->nodes[0].outputs[0]].host = y;
    const struct inf_run run = {.bindings = bindings};
    return inf_program_run(program, &run, &ticket, err);
}

Test(gather, negative_indices_count_from_the_end_if_wanted)
{
    int64_t indices[3] = {-1, 0, -5};
    start_nd_node(INF_OP_GATHER_ND)->gather_nd.from_end = true;
    cr_assert_eq(run_nd_node(indices, NULL, NULL), INF_OK);
    static const int32_t wanted[9] = {12, 13, 14, 0, 1, 2, 0, 1, 2};
    cr_assert_eq(memcmp(y, wanted, sizeof wanted), 0);

    struct inf_error err = {0};
    start_nd_node(INF_OP_GATHER_ND);
    y[0] = -7;
    cr_assert_eq(run_nd_node(indices, NULL, &err), INF_INVALID);
    cr_assert_str_eq(err.text,
                     "node 'pick' (gather_nd): index -1 (element 0 of the indices) is "
                     "outside [0, 5)");
    cr_assert_eq(y[0], -7);

    int64_t below[3] = {0, 0, -6};
    start_nd_node(INF_OP_GATHER_ND)->gather_nd.from_end = true;
    cr_assert_eq(run_nd_node(below, NULL, NULL), INF_INVALID);
}

Test(gather, updates_out_of_range_are_dropped_if_wanted)
{
    int64_t indices[3] = {-1, 1, 5};
    int32_t updates[9] = {100, 200, 300, 400, 500, 600, 700, 800, 900};
    start_nd_node(INF_OP_SCATTER_ND)->scatter_nd.drop = true;
    cr_assert_eq(run_nd_node(indices, updates, NULL), INF_OK);
    for (int32_t i = 0; i < 15; i++)
        cr_expect_eq(y[i], i / 3 == 1 ? (i + 1) * 100 : i, "element %d", i);

    start_nd_node(INF_OP_SCATTER_ND)->scatter_nd.from_end = true;
    indices[2] = -1;
    graph->nodes[0].attrs.scatter_nd.kind = INF_SCATTER_ADD;
    cr_assert_eq(run_nd_node(indices, updates, NULL), INF_OK);
    for (int32_t i = 0; i < 3; i++) // two updates go to the last row
        cr_expect_eq(y[12 + i], 12 + i + 800 + 200 * i);

    start_nd_node(INF_OP_SCATTER_ND);
    cr_assert_eq(run_nd_node(indices, updates, NULL), INF_INVALID);
}
