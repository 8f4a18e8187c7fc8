// SPDX-License-Identifier: Apache-2.0
// Products that the precision check computes on the cpu device: the same as those of the reference
// kernels up to rounding, and models that are too large for the reference kernels alone.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/exec/dynamic/product_evaluator.h"
#include "backends/graph/shape/infer.h"
#include "backends/precision/precision_check.h"
#include "backends/registry.h"

struct hosts {
    struct inf_device *devices[2];
    uint32_t count;
};

static struct hosts open_hosts(void)
{
    static const char *const names[] = {"cpu", "ref"};
    struct hosts hosts = {.count = 0};
    const struct inf_device_options options = {.slots = 1, .threads = 1, .kernel_races = true};
    for (int i = 0; i < 2; i++)
        if (inf_registry_find(names[i]) != NULL)
            cr_assert_eq(inf_device_open(&hosts.devices[hosts.count++], inf_registry_find(names[i]),
                                         0, &options, NULL),
                         INF_OK);
    return hosts;
}

static void close_hosts(struct hosts *hosts)
{
    while (hosts->count > 0)
        inf_device_unref(&hosts->devices[--hosts->count]);
}

static struct inf_blob *make_noise(size_t count, uint32_t seed)
{
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        ((float *)blob->data)[i] = (float)(seed >> 8) / 8388608.0f - 1;
    }
    return blob;
}

// Makes the graph of one node, `op` of x and w. The data of x is that of a value during a check.
static struct inf_graph *make_product(enum inf_op op, struct inf_shape x, struct inf_shape w)
{
    struct inf_graph *graph;
    uint32_t inputs[2], node;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &x, &inputs[0], NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", inputs[0], NULL), INF_OK);
    cr_assert_eq(inf_graph_add_const(graph, "w", INF_DTYPE_F32, &w,
                                     make_noise(inf_shape_elements(&w), 7), &inputs[1], NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, op, "product", "", inputs, 2, 1, &node, NULL), INF_OK);
    if (op == INF_OP_CONV2D) {
        graph->nodes[node].attrs.conv2d.stride_h = graph->nodes[node].attrs.conv2d.stride_w = 1;
        graph->nodes[node].attrs.conv2d.dilation_h = 1;
        graph->nodes[node].attrs.conv2d.dilation_w = 1;
        graph->nodes[node].attrs.conv2d.groups = 1;
    }
    uint32_t y = graph->nodes[node].outputs[0];
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

static struct inf_blob *evaluate_graph(const struct inf_evaluator *evaluator,
                                       struct inf_graph *graph)
{
    const struct inf_shape *shape = &graph->values[graph->outputs[0].value].shape;
    struct inf_blob *y = inf_blob_create(inf_shape_elements(shape) * sizeof(float));
    struct inf_error err = {0};
    cr_assert_eq(evaluator->run(evaluator->context, graph, 0, &y, NULL, &err), INF_OK, "%s",
                 err.text);
    return y;
}

// Compares the evaluator with the reference kernels. Returns true if a bit differs.
static bool compare_products(enum inf_op op, struct inf_shape x, struct inf_shape w)
{
    struct hosts hosts = open_hosts();
    struct inf_product_evaluator products;
    struct inf_graph *graph = make_product(op, x, w);
    graph->values[graph->inputs[0].value].data = make_noise(inf_shape_elements(&x), 1);
    inf_product_evaluator_init(&products, inf_registry_evaluator(), hosts.devices, hosts.count);
    struct inf_blob *y = evaluate_graph(&products.evaluator, graph);
    struct inf_blob *wanted = evaluate_graph(inf_registry_evaluator(), graph);
    for (size_t i = 0; i < wanted->size_bytes / sizeof(float); i++)
        cr_assert_float_eq(((float *)y->data)[i], ((float *)wanted->data)[i], 1e-4, "%zu", i);
    bool any = memcmp(y->data, wanted->data, wanted->size_bytes) != 0;
    struct inf_kernel_choices choices;
    if (inf_device_kernel_choices(hosts.devices[0], &choices))
        cr_expect_eq(choices.measured, 0u, "kernels raced while the check ran");
    inf_blob_unref(&y);
    inf_blob_unref(&wanted);
    inf_graph_destroy(&graph);
    close_hosts(&hosts);
    return any;
}

// The device adds in fp32 and the reference kernels in double, so some results differ in a bit.
Test(product_evaluator, computes_large_products_on_the_device)
{
    bool has_cpu = inf_registry_find("cpu") != NULL;
    cr_expect_eq(compare_products(INF_OP_MATMUL, INF_SHAPE(1, 65, 256), INF_SHAPE(256, 300)),
                 has_cpu);
    cr_expect_eq(compare_products(INF_OP_CONV2D, INF_SHAPE(1, 20, 21, 32), INF_SHAPE(3, 3, 32, 48)),
                 has_cpu);
    cr_expect_not(compare_products(INF_OP_MATMUL, INF_SHAPE(3, 64), INF_SHAPE(64, 64)),
                  "it is small");
}

Test(product_evaluator, reference_kernels_compute_all_without_another_device)
{
    struct inf_product_evaluator products;
    struct inf_graph *graph = make_product(INF_OP_MATMUL, INF_SHAPE(65, 256), INF_SHAPE(256, 300));
    graph->values[graph->inputs[0].value].data = make_noise(65 * 256, 1);
    inf_product_evaluator_init(&products, inf_registry_evaluator(), NULL, 0);
    struct inf_blob *y = evaluate_graph(&products.evaluator, graph);
    struct inf_blob *wanted = evaluate_graph(inf_registry_evaluator(), graph);
    cr_expect_eq(memcmp(y->data, wanted->data, wanted->size_bytes), 0);
    inf_blob_unref(&y);
    inf_blob_unref(&wanted);
    inf_graph_destroy(&graph);
}

// 65 * 256 * 300 multiply-adds.
Test(product_evaluator, a_check_knows_its_bound)
{
    struct hosts hosts = open_hosts();
    struct inf_product_evaluator products;
    struct inf_precision_report report;
    struct inf_error err = {0};
    struct inf_graph *graph = make_product(INF_OP_MATMUL, INF_SHAPE(65, 256), INF_SHAPE(256, 300));
    struct inf_blob *x = make_noise(65 * 256, 1);
    struct inf_precision_limits limits = {4991999, INF_PRECISION_TIME_MAX_NS};
    inf_product_evaluator_init(&products, inf_registry_evaluator(), hosts.devices, hosts.count);
    cr_expect_eq(inf_precision_check(&report, INF_PRECISION_BF16, graph, &products.evaluator,
                                     &limits, &x, NULL, &err),
                 INF_UNSUPPORTED);
    cr_expect_str_eq(err.text,
                     "4992000 multiply-adds are too many to try bf16, wanted at most 4991999");
    limits.macs = 4992000;
    cr_expect_eq(inf_precision_check(&report, INF_PRECISION_BF16, graph, &products.evaluator,
                                     &limits, &x, NULL, &err),
                 INF_OK);
    // 256 products of numbers up to 1, with errors of up to 2^-8 that mostly cancel.
    cr_expect_gt(report.error, 1e-3);
    cr_expect_lt(report.error, 0.1);
    inf_blob_unref(&x);
    inf_graph_destroy(&graph);
    close_hosts(&hosts);
}
