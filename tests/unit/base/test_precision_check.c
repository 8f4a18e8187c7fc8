// SPDX-License-Identifier: Apache-2.0
// The accuracy check for 16-bit precisions: which nodes it pins to fp32, and which models it
// admits.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "backends/graph/shape/infer.h"
#include "backends/precision/precision_check.h"
#include "backends/ref/ref.h"

static const struct inf_precision_limits limits = {INF_PRECISION_MACS_MAX,
                                                   INF_PRECISION_TIME_MAX_NS};

// Makes a graph that computes y = (x * scale) * back on 2 elements: with nodes `op`, which are
// binary or matmul.
static struct inf_graph *make_graph_of(enum inf_op op, float scale, float back)
{
    struct inf_graph *graph;
    struct inf_shape shape = INF_SHAPE(2, 1), one = INF_SHAPE(1, 1);
    uint32_t x, factors[2], nodes[2];
    const float values[2] = {scale, back};
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    for (int i = 0; i < 2; i++) {
        struct inf_blob *blob = inf_blob_create(sizeof(float));
        cr_assert_not_null(blob);
        memcpy(blob->data, &values[i], sizeof(float));
        cr_assert_eq(inf_graph_add_const(graph, i == 0 ? "scale" : "back", INF_DTYPE_F32, &one,
                                         blob, &factors[i], NULL),
                     INF_OK);
    }
    for (int i = 0; i < 2; i++) {
        uint32_t inputs[] = {i == 0 ? x : graph->nodes[nodes[0]].outputs[0], factors[i]};
        cr_assert_eq(inf_graph_add_node(graph, op, i == 0 ? "up" : "down", "", inputs, 2, 1,
                                        &nodes[i], NULL),
                     INF_OK);
        if (op == INF_OP_BINARY)
            graph->nodes[nodes[i]].attrs.binary.kind = INF_BINARY_MUL;
    }
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[nodes[1]].outputs[0], NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

static struct inf_graph *make_graph(float scale, float back)
{
    return make_graph_of(INF_OP_BINARY, scale, back);
}

// Checks the graph with x = (a, b).
static struct inf_precision_report judge_in(enum inf_precision precision, enum inf_op op,
                                            float scale, float back, float a, float b)
{
    struct inf_precision_report report;
    struct inf_graph *graph = make_graph_of(op, scale, back);
    struct inf_blob *x = inf_blob_create(2 * sizeof(float));
    struct inf_error err = {0};
    cr_assert_not_null(x);
    memcpy(x->data, (const float[]){a, b}, 2 * sizeof(float));
    cr_assert_eq(inf_precision_check(&report, precision, graph, inf_ref_evaluator(), &limits, &x,
                                     NULL, &err),
                 INF_OK, "%s", err.text);
    inf_blob_unref(&x);
    inf_graph_destroy(&graph);
    return report;
}

static struct inf_precision_report check_precision(float scale, float back, float a, float b)
{
    return judge_in(INF_PRECISION_FP16, INF_OP_BINARY, scale, back, a, b);
}

// Computes a node as `ref` does, and then cancels the check.
static enum inf_code evaluate_and_cancel(void *context, const struct inf_graph *graph,
                                         uint32_t node, struct inf_blob *const *outputs,
                                         const atomic_bool *cancelled, struct inf_error *err)
{
    enum inf_code code = inf_ref_evaluator()->run(NULL, graph, node, outputs, cancelled, err);
    atomic_store((atomic_bool *)context, true);
    return code;
}

Test(precision_check, ends_when_it_is_cancelled)
{
    atomic_bool cancelled = false;
    const struct inf_evaluator evaluator = {.run = evaluate_and_cancel, .context = &cancelled};
    struct inf_precision_report report;
    struct inf_graph *graph = make_graph(2, 0.5f);
    struct inf_blob *x = inf_blob_create(2 * sizeof(float));
    struct inf_error err = {0};
    cr_assert_eq(inf_precision_check(&report, INF_PRECISION_FP16, graph, &evaluator, &limits, &x,
                                     &cancelled, &err),
                 INF_CANCELLED);
    cr_expect_str_eq(err.text, "cancelled before node 'down'");
    inf_blob_unref(&x);
    inf_graph_destroy(&graph);
}

// Computes a node, counts it, and takes 2 ms.
static enum inf_code evaluate_slowly(void *context, const struct inf_graph *graph, uint32_t node,
                                     struct inf_blob *const *outputs, const atomic_bool *cancelled,
                                     struct inf_error *err)
{
    ++*(int *)context;
    usleep(2000);
    return inf_ref_evaluator()->run(NULL, graph, node, outputs, cancelled, err);
}

Test(precision_check, takes_no_longer_than_it_may)
{
    const struct {
        float scale;
        uint64_t time_ns;
        int nodes;
    } cases[] = {
        {2, INF_PRECISION_TIME_MAX_NS, 4},    // a run in fp32 and a rounded one
        {8e4f, INF_PRECISION_TIME_MAX_NS, 6}, // and one in which a value stays in fp32
        {2, 1000000, 1},                      // too slow after the first node
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int nodes = 0;
        const struct inf_evaluator evaluator = {.run = evaluate_slowly, .context = &nodes};
        const struct inf_precision_limits few = {INF_PRECISION_MACS_MAX, cases[i].time_ns};
        struct inf_precision_report report;
        struct inf_graph *graph = make_graph(cases[i].scale, 0.5f);
        struct inf_blob *x = inf_blob_create(2 * sizeof(float));
        struct inf_error err = {0};
        ((float *)x->data)[0] = 1;
        enum inf_code code = inf_precision_check(&report, INF_PRECISION_FP16, graph, &evaluator,
                                                 &few, &x, NULL, &err);
        cr_expect_eq(code, i == 2 ? INF_UNSUPPORTED : INF_OK, "case %zu: %s", i, err.text);
        cr_expect_eq(nodes, cases[i].nodes, "case %zu: %d nodes", i, nodes);
        if (i == 2)
            cr_expect_str_eq(err.text, "to try fp16 takes longer than 1 ms");
        inf_blob_unref(&x);
        inf_graph_destroy(&graph);
    }
}

Test(precision_check, admits_what_half_holds)
{
    struct inf_precision_report report = check_precision(2, 0.5f, 1, 0.25f);
    cr_expect_eq(report.values, 2u);
    cr_expect_eq(report.weights, 2u);
    cr_expect_eq(report.pinned + report.weights_pinned, 0u);
    cr_expect_eq(report.error, 0, "powers of two are exact");
    cr_expect(report.admissible);
    // 1/3 in half precision is 0.333251953125, which differs from 1/3 in single precision by
    // 8.139e-5.
    report = check_precision(1, 1, 1.f / 3, 0);
    cr_expect_float_eq(report.error, 8.139e-5, 1e-8);
    cr_expect(report.admissible);
}

Test(precision_check, keeps_what_overflows_in_fp32)
{
    char text[256];
    struct inf_precision_report report = check_precision(80000, 1e-4f, 1, 0.5f);
    cr_expect(isinf(report.error_unguarded));
    cr_expect_eq(report.weights_pinned, 1u);
    cr_expect_str_eq(report.pinned_weight, "scale");
    cr_expect_eq(report.weight_magnitude, 80000);
    cr_expect_eq(report.pinned, 1u);
    cr_expect_str_eq(report.pinned_node, "up");
    cr_expect_eq(report.pinned_magnitude, 80000);
    cr_expect_lt(report.error, 0.01);
    inf_precision_print(&report, text, sizeof text);
    cr_expect(strstr(text, "1 of 2 values would stay fp32 ('up' reaches 80000)") != NULL, "%s",
              text);
    cr_expect(strstr(text, "unguarded it would overflow") != NULL, "%s", text);
    // 20000 fits in half precision, but the safety factor of 4 does not: 80000 is too large.
    report = check_precision(20000, 1e-4f, 1, 0.5f);
    cr_expect_eq(report.pinned, 1u);
    cr_expect_eq(report.weights_pinned, 0u);
    report = check_precision(16000, 1e-4f, 1, 0.5f);
    cr_expect_eq(report.pinned, 0u);
}

Test(precision_check, refuses_what_vanishes)
{
    // 1e-8 becomes 0 in half precision, so the output is 0 instead of 1.
    struct inf_precision_report report = check_precision(1e-8f, 1e8f, 1, 1);
    cr_expect_gt(report.lost, 0u);
    cr_expect_gt(report.error, 0.9);
    cr_expect(!report.admissible);
}

// Both products of y = (x * 80000) * 1e-4 read or write a value that does not fit in half
// precision, so no node remains in half precision.
Test(precision_check, pins_nodes_that_make_or_read_what_does_not_fit)
{
    struct inf_precision_report report = check_precision(80000, 1e-4f, 1, 0.5f);
    cr_expect_eq(report.nodes, 2u);
    cr_expect_eq(report.pinned_nodes, 2u);
    cr_expect_neq(report.pins[0], report.pins[1]);
    cr_expect(!report.admissible, "all of it would be fp32");
    report = check_precision(2, 0.5f, 1, 0.25f);
    cr_expect_eq(report.pinned_nodes, 0u);
}

// bfloat16 has the range of single precision, but only 8 bits of precision. 1/3 becomes
// 0.333984375, an error of 6.51e-4.
Test(precision_check, knows_bfloat16)
{
    struct inf_precision_report report =
        judge_in(INF_PRECISION_BF16, INF_OP_MATMUL, 80000, 1e-4f, 1, 0.5f);
    cr_expect_eq(report.pinned + report.weights_pinned, 0u);
    cr_expect_lt(report.error, 0.03);
    cr_expect(report.admissible);
    report = judge_in(INF_PRECISION_BF16, INF_OP_MATMUL, 1, 1, 1.f / 3, 0);
    cr_expect_float_eq(report.error, 6.51e-4, 1e-6);
    report = judge_in(INF_PRECISION_BF16, INF_OP_MATMUL, 1e-8f, 1e8f, 1, 1);
    cr_expect_eq(report.lost, 0u);
}

// The largest FP32 rounds to infinity, 3.39e38 does not.
Test(precision_check, pins_products_whose_operands_bfloat16_does_not_hold)
{
    struct inf_precision_report report =
        judge_in(INF_PRECISION_BF16, INF_OP_MATMUL, -3.4028235e38f, 1e-38f, 0.5f, 0);
    cr_expect_eq(report.weights_pinned, 1u);
    cr_expect_eq(report.pinned, 1u);
    cr_expect(!report.admissible, "all of it would be fp32");
    report = judge_in(INF_PRECISION_BF16, INF_OP_MATMUL, -3.389e38f, 1e-38f, 1e-3f, 0);
    cr_expect_eq(report.weights_pinned + report.pinned, 0u);
    cr_expect(report.admissible);
}

// As masks of transformers have it.
Test(precision_check, what_no_product_reads_stays_as_it_is_in_bfloat16)
{
    struct inf_precision_report report =
        judge_in(INF_PRECISION_BF16, INF_OP_BINARY, -3.4028235e38f, 1e-38f, 1.f / 3, 0);
    cr_expect_eq(report.weights_pinned + report.pinned, 0u);
    cr_expect_eq(report.lost, 0u);
    cr_expect_eq(report.error_unguarded, 0);
    cr_expect_eq(report.error, 0);
    cr_expect(report.admissible);
}

// y = x * 1 - x: the product rounds its copy of x, and the difference reads x as it is.
Test(precision_check, products_round_copies_of_their_operands)
{
    struct inf_precision_report report;
    struct inf_graph *graph = make_graph_of(INF_OP_MATMUL, 1, 1);
    struct inf_blob *x = inf_blob_create(2 * sizeof(float));
    uint32_t node, inputs[] = {graph->nodes[0].outputs[0], graph->inputs[0].value};
    memcpy(x->data, (const float[]){1.f / 3, 0}, 2 * sizeof(float));
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_BINARY, "minus", "", inputs, 2, 1, &node, NULL),
                 INF_OK);
    graph->nodes[node].attrs.binary.kind = INF_BINARY_SUB;
    graph->outputs[0].value = graph->nodes[node].outputs[0];
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(inf_precision_check(&report, INF_PRECISION_BF16, graph, inf_ref_evaluator(),
                                     &limits, &x, NULL, NULL),
                 INF_OK);
    cr_expect_float_eq(report.error, 6.51e-4, 1e-6);
    inf_blob_unref(&x);
    inf_graph_destroy(&graph);
}

Test(precision_check, declines_what_it_does_not_know)
{
    struct inf_precision_report report;
    struct inf_graph *graph = make_graph(1, 1);
    struct inf_blob *x = inf_blob_create(2 * sizeof(float));
    struct inf_error err = {0};
    cr_expect_eq(inf_precision_check(&report, INF_PRECISION_INT8, graph, inf_ref_evaluator(),
                                     &limits, &x, NULL, &err),
                 INF_UNSUPPORTED);
    cr_expect_str_eq(err.text, "int8 is not tried on models of floats");
    inf_blob_unref(&x);
    inf_graph_destroy(&graph);
}
