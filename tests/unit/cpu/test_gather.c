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
