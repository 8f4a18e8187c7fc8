// SPDX-License-Identifier: Apache-2.0
// Convolutions and products of the cpu device whose weights fit 8 or 16 bits: the device keeps the
// weights in that form, and results equal, bit by bit, those with weights in fp32. The fp32 form is
// forced by one weight that does not fit; it belongs to column 0 of the result, which is only near.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/shape/infer.h"
#include "backends/registry.h"
#include "proto/core/span.h"

#define OUTPUTS_MAX (40 * 41 * 70)

// How the weights are drawn.
enum weights {
    BYTES,
    HALVES,
    KINDS
};

// A graph of one node.
struct net {
    enum inf_op op;
    struct inf_shape x, w;
    bool transposed; // w is stored as [columns][rows]
    int32_t stride;
};

static float draw_float(size_t i)
{
    return (float)((i * 2654435761u >> 8) % 65521) / 32760 - 1;
}

static float draw_weight(enum weights kind, size_t i, size_t column)
{
    if (kind == HALVES)
        return inf_half_to_float(inf_half_from_float(draw_float(i)));
    int number = (int)(draw_float(i) * 127.9f); // an integer, because a negative zero does not fit
    return (float)number * (0.01f + 0.0003f * (float)(column % 7));
}

// Returns the number of columns of the weights.
static size_t columns_of(const struct net *net)
{
    return (size_t)net->w.dims[net->transposed ? 0 : net->w.rank - 1];
}

// If `spoiled`, the first weight of column 0 fits neither form.
static struct inf_graph *build_graph(const struct net *net, enum weights kind, bool spoiled)
{
    struct inf_graph *graph;
    struct inf_error err = {0};
    uint32_t inputs[2], node;
    size_t count = inf_shape_elements(&net->w), columns = columns_of(net);
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    float *weights = blob->data;
    for (size_t i = 0; i < count; i++)
        weights[i] = draw_weight(kind, i, net->transposed ? i / (count / columns) : i % columns);
    if (spoiled)
        weights[0] += 0.00001f;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &net->x, &inputs[0], NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", inputs[0], NULL), INF_OK);
    cr_assert_eq(inf_graph_add_const(graph, "w", INF_DTYPE_F32, &net->w, blob, &inputs[1], NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, net->op, "node", "", inputs, 2, 1, &node, NULL), INF_OK);
    if (net->op == INF_OP_CONV2D) {
        graph->nodes[node].attrs.conv2d.padding = INF_PADDING_SAME;
        graph->nodes[node].attrs.conv2d.stride_h = net->stride;
        graph->nodes[node].attrs.conv2d.stride_w = net->stride;
    } else {
        graph->nodes[node].attrs.matmul.transpose_b = net->transposed;
    }
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[node].outputs[0], NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// Runs the graph on the cpu device, or on ref alone if `isa` is NULL. Returns the number of
// results, and the bytes of the packs in *out_bytes.
static size_t run_graph(struct inf_graph *graph, const char *isa, uint32_t threads, float *y,
                        uint64_t *out_bytes)
{
    struct inf_device *devices[2] = {NULL};
    size_t count = 0;
    struct inf_error err = {0};
    const struct inf_device_options options = {.slots = 1, .threads = threads, .isa_max = isa};
    const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};
    const struct inf_value *result = &graph->values[graph->outputs[0].value];
    size_t results = inf_shape_elements(&result->shape);
    size_t x_count = inf_shape_elements(&graph->values[graph->inputs[0].value].shape);
    cr_assert_leq(results, OUTPUTS_MAX);
    if (isa != NULL)
        cr_assert_eq(
            inf_device_open(&devices[count++], inf_registry_find("cpu"), 0, &options, NULL),
            INF_OK);
    cr_assert_eq(inf_device_open(&devices[count++], inf_registry_find("ref"), 0, NULL, NULL),
                 INF_OK);
    struct inf_blob *x = inf_blob_create(x_count * sizeof(float));
    for (size_t i = 0; i < x_count; i++)
        ((float *)x->data)[i] = draw_float(i * 31 + 7);
    struct inf_executable *executable = NULL;
    cr_assert_eq(
        inf_static_executable_create(&executable, &graph, devices, (uint32_t)count, &fp32, &err),
        INF_OK, "%s", err.text);
    const struct inf_execution execution = {.inputs = (const void *[]){x->data},
                                            .outputs = (void *[]){y}};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    *out_bytes = inf_device_memory(devices[0]).weight_bytes;
    inf_executable_destroy(&executable);
    inf_blob_unref(&x);
    for (size_t i = 0; i < count; i++)
        inf_device_unref(&devices[i]);
    return results;
}

static void check_net(const struct net *net, enum weights kind, const char *isa, uint32_t threads)
{
    static float narrow[OUTPUTS_MAX], wide[OUTPUTS_MAX], exact[OUTPUTS_MAX];
    uint64_t narrow_bytes, wide_bytes, none;
    size_t columns = columns_of(net);
    size_t count = run_graph(build_graph(net, kind, false), isa, threads, narrow, &narrow_bytes);
    run_graph(build_graph(net, kind, true), isa, threads, wide, &wide_bytes);
    run_graph(build_graph(net, kind, false), NULL, 1, exact, &none);
    for (size_t i = 0; i < count; i++) {
        cr_assert_float_eq(narrow[i], exact[i], 1e-4, "%s: result %zu", isa, i);
        if (i % columns != 0)
            cr_assert_eq(narrow[i], wide[i], "%s, %u threads: result %zu", isa, threads, i);
    }
    if (strcmp(isa, "baseline") == 0)
        return; // XNNPACK computes these nodes
    // Units take one float for each column, and biases are counted too.
    uint64_t most = (kind == HALVES ? wide_bytes / 2 : wide_bytes / 4) + 2048;
    cr_assert_leq(narrow_bytes, most, "%s, %d: %llu of %llu bytes", isa, (int)kind,
                  (unsigned long long)narrow_bytes, (unsigned long long)wide_bytes);
}

Test(narrow_weights, give_the_results_of_fp32_in_fewer_bytes)
{
    static const struct net nets[] = {
        // One strip of pixels, several, and several that threads share.
        {INF_OP_CONV2D, INF_SHAPE(1, 7, 9, 64), INF_SHAPE(1, 1, 64, 70), false, 1},
        {INF_OP_CONV2D, INF_SHAPE(1, 40, 41, 67), INF_SHAPE(1, 1, 67, 65), false, 1},
        {INF_OP_CONV2D, INF_SHAPE(2, 9, 7, 37), INF_SHAPE(3, 3, 37, 21), false, 2},
        {INF_OP_CONV2D, INF_SHAPE(1, 13, 11, 33), INF_SHAPE(5, 5, 33, 9), false, 1},
        // Few rows, so that threads share the columns.
        {INF_OP_MATMUL, INF_SHAPE(1, 130), INF_SHAPE(70, 130), true, 1},
        {INF_OP_MATMUL, INF_SHAPE(5, 70), INF_SHAPE(70, 201), false, 1},
        {INF_OP_MATMUL, INF_SHAPE(300, 130), INF_SHAPE(70, 130), true, 1},
    };
    static const char *const levels[] = {"baseline", "avx2", "avx512", "amx"};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        for (size_t level = 0; level < sizeof levels / sizeof *levels; level++)
            for (enum weights kind = BYTES; kind < KINDS; kind++)
                for (uint32_t threads = 1; threads <= 3; threads += 2)
                    check_net(&nets[i], kind, levels[level], threads);
}
