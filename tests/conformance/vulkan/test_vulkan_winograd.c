// SPDX-License-Identifier: Apache-2.0
// Convolutions that the vulkan backend computes with Winograd's algorithm if that is faster.
// Results must equal the results of the reference device `ref`.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "backends/graph/shape/infer.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

// Two pictures whose height and width are no multiples of the tile size. They have more tiles than
// fit in one batch.
#define IMAGES   2
#define HEIGHT   94
#define WIDTH    101
#define IN       24
#define OUT      28
#define ELEMENTS ((size_t)IMAGES * HEIGHT * WIDTH * OUT)

static float draw_float(size_t i)
{
    return (float)(i * 7919 % 61) / 30 - 1;
}

static uint32_t add_weights(struct inf_graph *graph, struct inf_shape shape, float scale)
{
    size_t count = inf_shape_elements(&shape);
    float *data = malloc(count * sizeof(*data));
    cr_assert_not_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = draw_float(i) * scale;
    uint32_t value = add_constant(graph, INF_DTYPE_F32, shape, data);
    free(data);
    return value;
}

// Makes a convolution, either alone or followed by a sum and a prelu.
static struct inf_graph *make_graph(enum inf_padding padding, bool summed)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(IMAGES, HEIGHT, WIDTH, IN));
    uint32_t y =
        node(graph, INF_OP_CONV2D, "conv", x, add_weights(graph, INF_SHAPE(3, 3, IN, OUT), 0.25f),
             add_weights(graph, INF_SHAPE(OUT), 1));
    last_attrs(graph)->conv2d.padding = padding;
    if (summed) {
        y = node(graph, INF_OP_BINARY, "sum", y,
                 node(graph, INF_OP_SOFTMAX, "other",
                      node(graph, INF_OP_CONV2D, "one", x,
                           add_weights(graph, INF_SHAPE(1, 1, IN, OUT), 1),
                           add_weights(graph, INF_SHAPE(OUT), 1))));
        y = node(graph, INF_OP_PRELU, "prelu", y, add_weights(graph, INF_SHAPE(OUT), 0.5f));
    } else {
        last_attrs(graph)->conv2d.activation = INF_ACTIVATION_RELU;
    }
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// Runs the graph and destroys it. Returns true if a step of the run used Winograd's algorithm.
static bool run_graph(struct inf_graph *graph, struct inf_device *device, float *y)
{
    static float x[IMAGES * HEIGHT * WIDTH * IN + 16];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(x); i++)
        x[i] = draw_float(i + 7);
    struct graph_run run =
        run_beside_ref(graph, device, INF_PRECISION_FP32, (const void *[]){x}, (void *[]){y});
    return strstr(run.kernels, "winograd") != NULL;
}

static void expect_agrees(struct inf_device *device, enum inf_padding padding, bool summed,
                          bool by_winograd)
{
    float *y = calloc(ELEMENTS + 16, sizeof(*y)), *wanted = calloc(ELEMENTS + 16, sizeof(*wanted));
    cr_assert(y != NULL && wanted != NULL);
    run_graph(make_graph(padding, summed), NULL, wanted);
    cr_expect_eq(run_graph(make_graph(padding, summed), device, y), by_winograd);
    expect_near(y, wanted, ELEMENTS, 1e-4f, "winograd");
    free(y);
    free(wanted);
}

TestSuite(vulkan_winograd, .timeout = 120);

Test(vulkan_winograd, agrees_with_ref)
{
    struct inf_device *device = vulkan_open(NULL);
    bool chosen = ((struct vk_gpu *)device)->subgroup_tiles;
    expect_agrees(device, INF_PADDING_SAME, false, chosen);
    expect_agrees(device, INF_PADDING_VALID, false, chosen);
    expect_agrees(device, INF_PADDING_SAME, true, chosen);
    inf_device_unref(&device);
}

Test(vulkan_winograd, is_left_out_where_the_driver_cannot_build_it)
{
    if (getenv("VULKAN_FAULT_LAYER") == NULL)
        cr_skip_test("another layer is tested");
    struct vulkan_faults *faults = vulkan_faults_install();
    cr_assert_not_null(faults);
    struct inf_device *device = vulkan_open(NULL);
    // The driver refuses pipelines whose specialisation constant 10, BY_ROW of conv_tile.comp, is
    // 1.
    faults->pipeline_word = 10;
    faults->pipeline_value = 1;
    faults->pipeline = VK_ERROR_UNKNOWN;
    expect_agrees(device, INF_PADDING_SAME, false, false);
    inf_device_unref(&device);
}
