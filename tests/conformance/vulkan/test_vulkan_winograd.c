// SPDX-License-Identifier: Apache-2.0
// Convolutions that the vulkan backend computes with Winograd's algorithm, because the rule or a
// race chose it. Results must agree with those of the reference device `ref`.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "backends/graph/shape/infer.h"
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/winograd.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/shader_race.h"
#include "tests/support/criterion/case_step.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

// The sizes of a convolution.
struct size {
    int64_t images, height, width, in, out;
};

// Two pictures whose height and width are no multiples of the tile size. They have more tiles than
// fit in one batch.
static const struct size large = {2, 94, 101, 24, 28};
#define X_COUNT  ((size_t)2 * 94 * 101 * 24)
#define ELEMENTS ((size_t)2 * 94 * 101 * 28)

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
static struct inf_graph *make_graph(const struct size *size, enum inf_padding padding, bool summed)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    int64_t in = size->in, out = size->out;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32,
                           INF_SHAPE(size->images, size->height, size->width, in));
    uint32_t y =
        node(graph, INF_OP_CONV2D, "conv", x, add_weights(graph, INF_SHAPE(3, 3, in, out), 0.25f),
             add_weights(graph, INF_SHAPE(out), 1));
    last_attrs(graph)->conv2d.padding = padding;
    if (summed) {
        y = node(graph, INF_OP_BINARY, "sum", y,
                 node(graph, INF_OP_SOFTMAX, "other",
                      node(graph, INF_OP_CONV2D, "one", x,
                           add_weights(graph, INF_SHAPE(1, 1, in, out), 1),
                           add_weights(graph, INF_SHAPE(out), 1))));
        y = node(graph, INF_OP_PRELU, "prelu", y, add_weights(graph, INF_SHAPE(out), 0.5f));
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
    static float x[X_COUNT + 16];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(x); i++)
        x[i] = draw_float(i + 7);
    struct graph_run run =
        run_beside_ref(graph, device, INF_PRECISION_FP32, (const void *[]){x}, (void *[]){y});
    return strstr(run.kernels, "winograd") != NULL;
}

// Runs the large convolution, and compares with `ref`.
static void expect_agrees(struct inf_device *device, enum inf_padding padding, bool summed,
                          bool by_winograd)
{
    float *y = calloc(ELEMENTS + 16, sizeof(*y)), *wanted = calloc(ELEMENTS + 16, sizeof(*wanted));
    cr_assert(y != NULL && wanted != NULL);
    run_graph(make_graph(&large, padding, summed), NULL, wanted);
    cr_expect_eq(run_graph(make_graph(&large, padding, summed), device, y), by_winograd);
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

// Lists the candidates for the convolution of the graph, in 16 bits if `half` is true. Returns how
// many of them are by Winograd's algorithm.
static uint32_t list_candidates(struct vk_shader_candidates *candidates, struct inf_device *device,
                                const struct inf_graph *graph, bool half)
{
    struct vk_lowering lowering = {.gpu = (struct vk_gpu *)device,
                                   .graph = graph,
                                   .node = &graph->nodes[0],
                                   .candidates = candidates,
                                   .half_weights = half};
    struct inf_error err = {0};
    uint32_t by_winograd = 0;
    *candidates = (struct vk_shader_candidates){0};
    cr_assert_eq(vk_lower_node(&lowering, &err), INF_OK, "%s", err.text);
    for (uint32_t i = 0; i < candidates->count; i++)
        by_winograd += vk_is_winograd(candidates->list[i].method);
    return by_winograd;
}

// The products are computed in blocks, for several batches of tiles.
Test(vulkan_winograd, agrees_with_ref_if_a_race_chose_it)
{
    static const struct {
        const char *winner;
        enum inf_padding padding;
        bool summed;
    } cases[] = {{"winograd2_2_2", INF_PADDING_SAME, false},
                 {"winograd2_4_2", INF_PADDING_SAME, true},
                 {"winograd2_8_2", INF_PADDING_VALID, false},
                 {"winograd4_4_2", INF_PADDING_VALID, false},
                 {"winograd4_8_2", INF_PADDING_SAME, true}};
    struct vk_shader_candidates candidates;
    struct inf_device *device = vulkan_open(NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i += inf_case_step()) {
        vulkan_reopen_races(device);
        struct inf_graph *graph = make_graph(&large, cases[i].padding, cases[i].summed);
        list_candidates(&candidates, device, graph, false);
        inf_race_results_fix(((struct vk_gpu *)device)->races, candidates.key, cases[i].winner);
        inf_graph_destroy(&graph);
        expect_agrees(device, cases[i].padding, cases[i].summed, true);
    }
    inf_device_unref(&device);
}

// Opens a device that multiplies matrices in 16 bits, with loops if it has no instructions for it.
// Skips the test if it cannot.
static struct inf_device *open_with_16_bits(void)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    const struct vk_shader_choice sizes = {VK_BY_MATRICES, 2, 2};
    if (!gpu->half_storage || !gpu->half_arithmetic)
        cr_skip_test("the device has no 16-bit arithmetic");
    if (gpu->matrices.method == VK_MATRICES_NONE)
        gpu->matrices = (struct vk_matrices){VK_MATRICES_LOOPS, 16, 16, 16};
    if (!vk_can_use_matrices(gpu, &sizes))
        cr_skip_test("the device has no subgroups, or too little shared memory");
    return device;
}

static const struct size small = {2, 9, 10, 17, 32};
#define SMALL_ELEMENTS ((size_t)2 * 9 * 10 * 32)

// Runs the small convolution in 16 bits with the winner of a race. All pixels have the magnitude
// `scale` at most. Returns true if the run reports an overflow.
static bool run_in_16_bits(struct inf_device *device, const char *winner, float scale, float *y)
{
    float x[2 * 9 * 10 * 17 + 16];
    struct inf_device *devices[] = {device, open_ref()};
    const struct inf_run_options options = {.precision = INF_PRECISION_FP16};
    struct vk_shader_candidates candidates;
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    atomic_bool overflowed = false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(x); i++)
        x[i] = draw_float(i + 7) * scale;
    struct inf_graph *graph = make_graph(&small, INF_PADDING_SAME, false);
    vulkan_reopen_races(device);
    cr_expect_eq(list_candidates(&candidates, device, graph, true), 9);
    inf_race_results_fix(((struct vk_gpu *)device)->races, candidates.key, winner);
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, &options, &err),
                 INF_OK, "%s", err.text);
    struct inf_execution execution = {
        .inputs = (const void *[]){x}, .outputs = (void *[]){y}, .overflowed = &overflowed};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_executable_destroy(&executable);
    inf_device_unref(&devices[1]);
    return atomic_load(&overflowed);
}

Test(vulkan_winograd, agrees_with_ref_in_16_bits)
{
    static const char *const winners[] = {"winograd2f16_2_2", "winograd2f16_4_2",
                                          "winograd2f16_8_2", "winograd2matrices_2_2"};
    struct inf_device *device = open_with_16_bits();
    float wanted[SMALL_ELEMENTS + 16], y[SMALL_ELEMENTS + 16];
    run_graph(make_graph(&small, INF_PADDING_SAME, false), NULL, wanted);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(winners); i++) {
        cr_expect(!run_in_16_bits(device, winners[i], 1, y), "%s reports an overflow", winners[i]);
        expect_near(y, wanted, SMALL_ELEMENTS, 0.02f, winners[i]);
    }
    inf_device_unref(&device);
}

// The transform of x in F(2) adds four pixels. Their sum may leave the range of 16 bits.
Test(vulkan_winograd, reports_pixels_that_are_too_large_for_its_transform_in_16_bits)
{
    static const char *const winners[] = {"winograd2f16_4_2", "winograd2matrices_2_2"};
    struct inf_device *device = open_with_16_bits();
    float y[SMALL_ELEMENTS + 16];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(winners); i++)
        cr_expect(run_in_16_bits(device, winners[i], 60000, y), "%s", winners[i]);
    // This form has matrices in 32 bits.
    cr_expect(!run_in_16_bits(device, "winograd2_4_2", 60000, y));
    inf_device_unref(&device);
}

// Races the convolution of the graph. Returns the number of candidates by Winograd's algorithm.
static uint32_t race_graph(struct inf_device *device, const struct inf_graph *graph,
                           struct vk_shader_time times[VK_SHADER_CANDIDATES], uint32_t *out_count)
{
    const uint32_t nodes[] = {0};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1};
    struct inf_error err = {0};
    uint64_t key;
    uint32_t by_winograd = 0;
    cr_assert_eq(vk_shader_race_node(times, out_count, &key, device, &segment, 0, false, &err),
                 INF_OK, "%s", err.text);
    for (uint32_t i = 0; i < *out_count; i++)
        by_winograd += strncmp(times[i].name, "winograd", strlen("winograd")) == 0;
    return by_winograd;
}

// A convolution whose results are 0 in the first row, because all weights that are not 0 lie above
// the image. Winograd's algorithm computes rounding errors there.
Test(vulkan_winograd, may_err_by_rounding_beside_large_weights)
{
    enum {
        CHANNELS = 16
    };
    static float weights[9 * CHANNELS * CHANNELS];
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    struct inf_device *device = vulkan_open(NULL);
    struct inf_graph *graph = new_graph();
    uint32_t count;
    vulkan_reopen_races(device);
    for (size_t i = 0; i < 3 * CHANNELS * CHANNELS; i++)
        weights[i] = draw_float(i);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 40, CHANNELS));
    uint32_t y =
        node(graph, INF_OP_CONV2D, "conv", x,
             add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, CHANNELS, CHANNELS), weights));
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_expect_eq(race_graph(device, graph, times, &count), 4);
    for (uint32_t i = 0; i < count; i++) {
        cr_expect(!times[i].wrong, "%s errs by %g", times[i].name, times[i].error);
        cr_expect_lt(times[i].error, 1e-5);
    }
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

// Races of products check the shader that multiplies the matrices.
Test(vulkan_winograd, loses_only_its_transforms_if_it_computes_wrongly)
{
    const struct size size = {1, 9, 10, 20, 16};
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct inf_graph *graph = make_graph(&size, INF_PADDING_SAME, false);
    uint32_t count, transforms = 0;
    vulkan_reopen_races(device);
    gpu->race_error_max = -1e-30;
    cr_expect_eq(race_graph(device, graph, times, &count), 3);
    for (uint32_t i = 0; i < gpu->broken.count; i++) {
        uint32_t shader = gpu->broken.list[i].variant.shader;
        transforms += shader == INF_SHADER_WINOGRAD_IN || shader == INF_SHADER_WINOGRAD_OUT;
        cr_expect_neq(shader, INF_SHADER_CONV_BLOCK_PAIR);
    }
    cr_expect_eq(transforms, 4, "%u transforms are left out", transforms); // of F(2) and of F(4)
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

Test(vulkan_winograd, does_not_race_if_the_transforms_take_longer_than_the_products)
{
    const struct size enough = {1, 9, 10, 4, 64}, fewer = {1, 9, 10, 4, 63};
    struct vk_shader_candidates candidates;
    struct inf_device *device = vulkan_open(NULL);
    vulkan_reopen_races(device);
    struct inf_graph *graph = make_graph(&enough, INF_PADDING_SAME, false);
    cr_expect_eq(list_candidates(&candidates, device, graph, false), 3);
    inf_graph_destroy(&graph);
    graph = make_graph(&fewer, INF_PADDING_SAME, false);
    cr_expect_eq(list_candidates(&candidates, device, graph, false), 0);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

// The smallest block has 16 rows, the next one 32. F(2) has 16 and 17 tiles; F(4) has fewer.
Test(vulkan_winograd, races_in_blocks_of_which_more_than_half_is_used)
{
    const struct size few = {1, 2, 32, 16, 16}, more = {1, 2, 34, 16, 16};
    struct vk_shader_candidates candidates;
    struct inf_device *device = vulkan_open(NULL);
    vulkan_reopen_races(device);
    struct inf_graph *graph = make_graph(&few, INF_PADDING_SAME, false);
    cr_expect_eq(list_candidates(&candidates, device, graph, false), 2);
    inf_graph_destroy(&graph);
    graph = make_graph(&more, INF_PADDING_SAME, false);
    cr_expect_eq(list_candidates(&candidates, device, graph, false), 3);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

// The transformed weights of F(4) have four times the bytes of the weights. If the device cannot
// bind them, other shaders compute the convolution.
Test(vulkan_winograd, is_left_out_if_its_weights_cannot_be_bound)
{
    const struct size size = {1, 28, 28, 192, 192};
    const uint32_t weight_bytes = 36 * 192 * 192 * 4;
    struct vk_shader_candidates candidates;
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct inf_graph *graph = make_graph(&size, INF_PADDING_SAME, false);
    vulkan_reopen_races(device);
    gpu->properties.limits.maxStorageBufferRange = weight_bytes + 128;
    bool by_rule = gpu->subgroup_tiles;
    cr_expect_eq(list_candidates(&candidates, device, graph, false), by_rule ? 7 : 6);
    cr_expect_eq(candidates.list[0].method == VK_BY_WINOGRAD, by_rule);
    // conv_tile.comp may read 128 bytes behind the last weight.
    gpu->properties.limits.maxStorageBufferRange = weight_bytes + 127;
    cr_expect_eq(list_candidates(&candidates, device, graph, false), 6);
    gpu->properties.limits.maxStorageBufferRange = weight_bytes - 1;
    cr_expect_eq(list_candidates(&candidates, device, graph, false), 3);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}
