// SPDX-License-Identifier: Apache-2.0
// Reductions and softmax over few but long rows. On devices that support it, one subgroup
// computes each row. Results must equal the results of the reference device `ref`.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

// COLUMNS exceeds the number of lanes of any subgroup and is no multiple of one. CHANNELS is a
// multiple of 4, because channels are computed in groups of four.
#define ROWS     3
#define COLUMNS  1501
#define CHANNELS 8
#define ELEMENTS ((size_t)ROWS * COLUMNS * CHANNELS)

#define NOTHING (-1)

// A test case: the operator and its attributes. Its operand x has the shape [ROWS, COLUMNS,
// CHANNELS] unless `rows` is set.
struct made {
    enum inf_op op;
    int32_t kind; // the kind of reduction; for softmax, 1 means log-softmax
    // if true, x is [ROWS, COLUMNS * CHANNELS]; otherwise the columns of each channel are reduced
    bool rows;
};

static struct inf_graph *make_graph(const struct made *made)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    struct inf_shape shape =
        made->rows ? INF_SHAPE(ROWS, COLUMNS * CHANNELS) : INF_SHAPE(ROWS, COLUMNS, CHANNELS);
    uint32_t y = node(graph, made->op, "y", add_input(graph, "x", INF_DTYPE_F32, shape));
    if (made->op == INF_OP_SOFTMAX) {
        last_attrs(graph)->softmax.axis = 1;
        last_attrs(graph)->softmax.log = made->kind != 0;
    } else {
        last_attrs(graph)->reduce.kind = (enum inf_reduce_kind)made->kind;
        last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 1, .values = {1}};
    }
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// Runs the graph on an x whose second row has a NaN in column `nan`. Returns true if a subgroup
// computed each row.
static bool run_graph(const struct made *made, struct inf_device *device, int32_t nan, float *y)
{
    float *x = malloc((ELEMENTS + 16) * sizeof(*x));
    cr_assert_not_null(x);
    // Elements are near 1, so that their product stays in range.
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] = 1 + ((float)(i * 7919 % 61) - 30) / 6000;
    if (nan != NOTHING)
        x[(size_t)(COLUMNS + nan) * CHANNELS] = NAN;
    struct graph_run run = run_beside_ref(make_graph(made), device, INF_PRECISION_FP32,
                                          (const void *[]){x}, (void *[]){y});
    free(x);
    return strstr(run.kernels, "_rows") != NULL;
}

static void expect_agrees(const struct made *made, struct inf_device *device, int32_t nan,
                          bool by_rows)
{
    size_t count =
        made->op == INF_OP_SOFTMAX ? ELEMENTS : (size_t)ROWS * (made->rows ? 1 : CHANNELS);
    float *y = calloc(ELEMENTS + 16, sizeof(*y)), *wanted = calloc(ELEMENTS + 16, sizeof(*wanted));
    cr_assert(y != NULL && wanted != NULL);
    run_graph(made, NULL, nan, wanted);
    cr_expect_eq(run_graph(made, device, nan, y), by_rows, "op %d, kind %d", (int)made->op,
                 made->kind);
    for (size_t i = 0; i < count; i++)
        cr_assert((isnan(y[i]) && isnan(wanted[i])) ||
                      fabsf(y[i] - wanted[i]) <= 2e-5f * fabsf(wanted[i]),
                  "op %d, kind %d: element %zu is %g, ref has %g", (int)made->op, made->kind, i,
                  (double)y[i], (double)wanted[i]);
    free(y);
    free(wanted);
}

static const struct made all[] = {
    {INF_OP_REDUCE, INF_REDUCE_SUM, true},  {INF_OP_REDUCE, INF_REDUCE_SUM, false},
    {INF_OP_REDUCE, INF_REDUCE_MEAN, true}, {INF_OP_REDUCE, INF_REDUCE_MEAN, false},
    {INF_OP_REDUCE, INF_REDUCE_MAX, true},  {INF_OP_REDUCE, INF_REDUCE_MAX, false},
    {INF_OP_REDUCE, INF_REDUCE_MIN, true},  {INF_OP_REDUCE, INF_REDUCE_MIN, false},
    {INF_OP_REDUCE, INF_REDUCE_PROD, true}, {INF_OP_REDUCE, INF_REDUCE_PROD, false},
    {INF_OP_SOFTMAX, false, true},          {INF_OP_SOFTMAX, true, true},
};

TestSuite(vulkan_rows, .timeout = 120);

Test(vulkan_rows, agree_with_ref)
{
    struct inf_device *device = vulkan_open(NULL);
    bool chosen = ((struct vk_gpu *)device)->subgroup_size > 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(all); i++)
        expect_agrees(&all[i], device, NOTHING, chosen);
    inf_device_unref(&device);
}

Test(vulkan_rows, have_an_extreme_of_nan_where_one_element_is)
{
    struct inf_device *device = vulkan_open(NULL);
    bool chosen = ((struct vk_gpu *)device)->subgroup_size > 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(all); i++)
        if (all[i].op == INF_OP_REDUCE &&
            (all[i].kind == INF_REDUCE_MAX || all[i].kind == INF_REDUCE_MIN))
            expect_agrees(&all[i], device, COLUMNS / 2, chosen);
    inf_device_unref(&device);
}

Test(vulkan_rows, are_made_by_one_invocation_where_subgroups_cannot_add)
{
    struct inf_device *device = vulkan_open(NULL);
    ((struct vk_gpu *)device)->subgroup_size = 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(all); i++)
        expect_agrees(&all[i], device, NOTHING, false);
    inf_device_unref(&device);
}

// --- sums of many terms ---

// Numbers of terms. A normalization takes three iterations for each term. llvmpipe runs at most
// 65,535 iterations of an invocation, which is enough for the first length. It would compute rows
// of the second length wrongly, so the backend leaves them to another device.
static const int64_t lengths[] = {21001, 100003};

// y = op(x) along the axis of `terms` elements of x [1, terms, 4].
static struct inf_graph *make_long_graph(enum inf_op op, enum inf_reduce_kind kind, int64_t terms)
{
    const struct inf_ints axes = {.count = 1, .values = {1}};
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t y = node(graph, op, "y", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, terms, 4)));
    if (op == INF_OP_NORMALIZE) {
        last_attrs(graph)->normalize.axes = axes;
        last_attrs(graph)->normalize.epsilon = 1e-5f;
    } else {
        last_attrs(graph)->reduce.kind = kind;
        last_attrs(graph)->reduce.axes = axes;
    }
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// All terms but the first one are equal, so that a plain sum rounds all of them in one direction.
static void expect_digits(struct inf_device *device, enum inf_op op, enum inf_reduce_kind kind,
                          int64_t terms, float last)
{
    size_t size = (size_t)terms * 4;
    float *x = calloc(size, sizeof *x), *y = calloc(size, sizeof *y);
    float *wanted = calloc(size, sizeof *wanted);
    cr_assert(x != NULL && y != NULL && wanted != NULL);
    for (size_t i = 4; i < size; i++)
        x[i] = 300.7f + (float)(i % 4) / 8;
    x[size - 1] = last;
    run_beside_ref(make_long_graph(op, kind, terms), NULL, INF_PRECISION_FP32, (const void *[]){x},
                   (void *[]){wanted});
    run_beside_ref(make_long_graph(op, kind, terms), device, INF_PRECISION_FP32,
                   (const void *[]){x}, (void *[]){y});
    for (size_t i = 0; i < (op == INF_OP_NORMALIZE ? size : 4); i++)
        cr_assert(y[i] == wanted[i] || fabsf(y[i] - wanted[i]) <= 5e-5f * (1 + fabsf(wanted[i])),
                  "op %d, kind %d: element %zu is %g, ref has %g", (int)op, (int)kind, i,
                  (double)y[i], (double)wanted[i]);
    free(x);
    free(y);
    free(wanted);
}

Test(vulkan_rows, sums_of_many_terms_keep_their_digits)
{
    struct inf_device *device = vulkan_open(NULL);
    for (int i = 0; i < 4; i++) {
        int64_t terms = lengths[i % 2];
        ((struct vk_gpu *)device)->subgroup_size *= i < 2;
        expect_digits(device, INF_OP_NORMALIZE, INF_REDUCE_SUM, terms, 300);
        expect_digits(device, INF_OP_REDUCE, INF_REDUCE_SUM, terms, 300);
        expect_digits(device, INF_OP_REDUCE, INF_REDUCE_MEAN, terms, 300);
        expect_digits(device, INF_OP_REDUCE, INF_REDUCE_SUM, terms, INFINITY);
    }
    inf_device_unref(&device);
}
