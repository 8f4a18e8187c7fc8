// SPDX-License-Identifier: Apache-2.0
// Inspection of a model: run times of nodes, values that are not finite, devices whose results
// differ.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/device/backend.h"
#include "backends/exec/model/inspection.h"
#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "proto/core/span.h"

// value index of the last output of the part of the graph (segment) that the faulty device compiled
// last
static uint32_t last_output;

static enum inf_code compile_noting(struct inf_program **program, struct inf_device *device,
                                    const struct inf_segment *segment, uint32_t flags,
                                    struct inf_error *err)
{
    last_output = segment->graph->nodes[segment->nodes[segment->node_count - 2]].outputs[0];
    return inf_ref_backend.compile(program, device, segment, flags, err);
}

static enum inf_code run_wrongly(struct inf_program *program, const struct inf_run *run,
                                 struct inf_ticket *ticket, struct inf_error *err)
{
    INF_TRY(inf_ref_backend.run(program, run, ticket, err));
    ((float *)run->bindings[last_output].host)[1] += 0.25f;
    return INF_OK;
}

static struct inf_device *open_device(bool wrong)
{
    static struct inf_backend backend;
    struct inf_device *device;
    backend = inf_ref_backend;
    if (wrong) {
        backend.compile = compile_noting;
        backend.run = run_wrongly;
    }
    cr_assert_eq(inf_device_open(&device, wrong ? &backend : &inf_ref_backend, 0, NULL, NULL),
                 INF_OK);
    return device;
}

static uint32_t add_node(struct inf_graph *graph, enum inf_op op, const char *name,
                         const uint32_t *inputs, uint32_t count)
{
    uint32_t node;
    cr_assert_eq(inf_graph_add_node(graph, op, name, "", inputs, count, 1, &node, NULL), INF_OK);
    return node;
}

// Makes a model of [4] values: double = x + x, log = ln(double), sum = log + x.
static struct inf_model *make_model(struct inf_device *host)
{
    struct inf_graph *graph;
    struct inf_model *model;
    struct inf_shape shape = INF_SHAPE(4);
    uint32_t x;
    const struct inf_pass_options passes = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    uint32_t twice = add_node(graph, INF_OP_BINARY, "double", (uint32_t[]){x, x}, 2);
    uint32_t log = add_node(graph, INF_OP_UNARY, "log", graph->nodes[twice].outputs, 1);
    graph->nodes[log].attrs.unary.kind = INF_UNARY_LOG;
    uint32_t sum =
        add_node(graph, INF_OP_BINARY, "sum", (uint32_t[]){graph->nodes[log].outputs[0], x}, 2);
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[sum].outputs[0], NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(inf_model_create(&model, &graph, &host, 1, &passes, NULL), INF_OK);
    return model;
}

static struct inf_inspection *run_inspection(struct inf_model *model, struct inf_device *device,
                                             bool keep, const float x[4])
{
    struct inf_inspection *inspection;
    struct inf_shape shape = INF_SHAPE(4);
    size_t bytes;
    struct inf_error err = {0};
    cr_assert_eq(
        inf_inspection_create(
            &inspection, model,
            &(struct inf_private_request){.device = device, .shapes = &shape, .keep = keep}, &err),
        INF_OK, "%s", err.text);
    float *input = inf_inspection_input(inspection, 0, &bytes);
    cr_assert_eq(bytes, 16u);
    memcpy(input, x, bytes);
    cr_assert_eq(inf_inspection_run(inspection, 2, &err), INF_OK, "%s", err.text);
    return inspection;
}

Test(inspect, sees_what_each_node_makes)
{
    struct inf_device *device = open_device(false);
    struct inf_model *model = make_model(device);
    struct inf_inspection *inspection =
        run_inspection(model, device, true, (const float[]){1, -1, 0, 3});
    const struct inf_graph *graph = inf_inspection_graph(inspection);
    struct inf_node_report report;
    cr_assert_eq(graph->node_count, 3u);
    inf_inspection_report_node(inspection, 0, &report);
    cr_expect_eq(report.least, -2);
    cr_expect_eq(report.largest, 6);
    cr_expect_eq(report.magnitude, 6);
    cr_expect_eq(report.nan_count + report.inf_count, 0u);
    cr_expect_str_eq(report.device, "ref");
    cr_expect_str_not_empty(report.kernel);
    inf_inspection_report_node(inspection, 1, &report);
    cr_expect_eq(report.nan_count, 1u, "the logarithm of -2");
    cr_expect_eq(report.inf_count, 1u, "that of 0");
    cr_expect_float_eq(report.least, log(2), 1e-6);
    cr_expect_float_eq(report.largest, log(6), 1e-6);
    // Given a non-finite result of the second node, expect that it is not attributed to the first.
    cr_expect_eq(inf_inspection_count_non_finite(inspection, graph->nodes[1].inputs[0]), 0u);
    cr_expect_eq(inf_inspection_count_non_finite(inspection, graph->nodes[2].inputs[0]), 2u);
    cr_expect_gt(inf_inspection_run_ns(inspection), 0u);
    inf_inspection_destroy(&inspection);
    inf_model_unref(&model);
    inf_device_unref(&device);
}

Test(inspect, finds_where_two_devices_part)
{
    struct inf_device *device = open_device(false), *wrong = open_device(true);
    struct inf_model *model = make_model(device);
    const float x[4] = {1, 2, 3, 4};
    struct inf_inspection *right = run_inspection(model, device, true, x),
                          *other = run_inspection(model, wrong, true, x);
    struct inf_node_difference difference;
    cr_expect(inf_inspection_compare_node(other, right, 0, 1e-3, &difference));
    cr_expect(difference.within);
    cr_expect_eq(difference.max_abs, 0);
    cr_expect(inf_inspection_compare_node(other, right, 1, 1e-3, &difference));
    cr_expect(!difference.within);
    cr_expect_float_eq(difference.max_abs, 0.25, 1e-6);
    cr_expect_float_eq(difference.max_rel, 0.25 / log(4), 1e-6);
    cr_expect(inf_inspection_compare_node(other, right, 1, 1, &difference));
    cr_expect(difference.within);
    inf_inspection_destroy(&right);
    inf_inspection_destroy(&other);
    inf_model_unref(&model);
    inf_device_unref(&device);
    inf_device_unref(&wrong);
}

Test(inspect, refuses_shapes_that_are_not_the_models)
{
    struct inf_device *device = open_device(false);
    struct inf_model *model = make_model(device);
    struct inf_inspection *inspection = NULL;
    struct inf_shape shape = INF_SHAPE(5);
    cr_assert_eq(
        inf_inspection_create(
            &inspection, model,
            &(struct inf_private_request){.device = device, .shapes = &shape, .keep = true}, NULL),
        INF_INVALID);
    cr_assert_null(inspection);
    inf_inspection_destroy(&inspection);
    inf_model_unref(&model);
    inf_device_unref(&device);
}
