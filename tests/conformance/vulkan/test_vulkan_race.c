// SPDX-License-Identifier: Apache-2.0
// Every shader that can compute a convolution on the vulkan backend must give the results of the
// reference device `ref`, whichever of them a race chooses. Races keep what they found, and exclude
// shaders that compute wrongly.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/lowering/lowering.h"
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/sample.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/shader_race.h"
#include "tests/support/criterion/case_step.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

// A convolution that is tested.
struct sample {
    const char *what;
    enum inf_op op;
    int64_t images, height, width, in, out; // for depthwise: `out` is in * multiplier
    int64_t kernel, stride, dilation, groups;
    enum inf_padding padding;
    enum inf_activation activation;
    bool summed; // followed by the addition of a residual, and prelu
};

static const struct sample samples[] = {
    {"few channels", INF_OP_CONV2D, 1, 19, 23, 3, 18, 3, 2, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_RELU6, false},
    {"one tap", INF_OP_CONV2D, 2, 9, 7, 20, 36, 1, 1, 1, 1, INF_PADDING_VALID, INF_ACTIVATION_NONE,
     false},
    {"one tap, a channel more", INF_OP_CONV2D, 1, 11, 13, 17, 65, 1, 1, 1, 1, INF_PADDING_VALID,
     INF_ACTIVATION_SIGMOID, false},
    {"one tap, strided", INF_OP_CONV2D, 1, 15, 14, 8, 16, 1, 2, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"window, two images", INF_OP_CONV2D, 2, 17, 13, 12, 33, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_RELU, false},
    {"dilated window", INF_OP_CONV2D, 1, 21, 18, 16, 24, 3, 1, 2, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"wide window", INF_OP_CONV2D, 1, 16, 31, 5, 17, 5, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"residual and prelu", INF_OP_CONV2D, 1, 13, 12, 24, 28, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, true},
    {"groups", INF_OP_CONV2D, 1, 9, 9, 8, 24, 3, 1, 1, 2, INF_PADDING_SAME, INF_ACTIVATION_NONE,
     false},
    {"few pixels", INF_OP_CONV2D, 1, 3, 3, 32, 48, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"one row", INF_OP_CONV2D, 1, 1, 1, 301, 37, 1, 1, 1, 1, INF_PADDING_VALID,
     INF_ACTIVATION_RELU6, false},
    {"five rows", INF_OP_CONV2D, 5, 1, 1, 128, 64, 1, 1, 1, 1, INF_PADDING_VALID,
     INF_ACTIVATION_NONE, true},
    {"depthwise", INF_OP_DEPTHWISE_CONV2D, 1, 19, 21, 12, 12, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_RELU6, false},
    {"depthwise, strided", INF_OP_DEPTHWISE_CONV2D, 2, 19, 22, 7, 7, 3, 2, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"depthwise, dilated", INF_OP_DEPTHWISE_CONV2D, 1, 18, 17, 8, 8, 3, 1, 2, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"depthwise, multiplied", INF_OP_DEPTHWISE_CONV2D, 1, 10, 11, 4, 8, 3, 1, 1, 1,
     INF_PADDING_SAME, INF_ACTIVATION_NONE, false},
    {"window over one row", INF_OP_CONV2D, 1, 1, 37, 5, 64, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, false},
    {"uneven pads, two images", INF_OP_CONV2D, 2, 11, 6, 33, 20, 3, 1, 1, 1, INF_PADDING_EXPLICIT,
     INF_ACTIVATION_RELU6, false},
    {"residual, a channel more", INF_OP_CONV2D, 1, 9, 10, 20, 33, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_NONE, true},
    {"long sums", INF_OP_CONV2D, 1, 5, 7, 36, 45, 3, 1, 1, 1, INF_PADDING_SAME,
     INF_ACTIVATION_RELU6, false},
    {"long sums, two images, one tap", INF_OP_CONV2D, 2, 4, 5, 301, 70, 1, 1, 1, 1,
     INF_PADDING_VALID, INF_ACTIVATION_NONE, false},
    {"long sums and residual", INF_OP_CONV2D, 1, 6, 6, 260, 32, 1, 1, 1, 1, INF_PADDING_VALID,
     INF_ACTIVATION_NONE, true},
};

static const struct sample *find_sample(const char *what)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i++)
        if (strcmp(samples[i].what, what) == 0)
            return &samples[i];
    cr_assert_fail("no sample '%s'", what);
    return NULL;
}

static float draw_float(size_t i)
{
    return (float)(i * 7919 % 61) / 30 - 1;
}

static uint32_t add_weights(struct inf_graph *graph, struct inf_shape shape)
{
    size_t count = inf_shape_elements(&shape);
    float *data = malloc(count * sizeof(*data));
    cr_assert_not_null(data);
    for (size_t i = 0; i < count; i++)
        data[i] = draw_float(i);
    uint32_t value = add_constant(graph, INF_DTYPE_F32, shape, data);
    free(data);
    return value;
}

// Sets the attributes that both operators have.
#define SET_WINDOW(op)                                                                             \
    do {                                                                                           \
        struct inf_attrs_##op *attrs = &last_attrs(graph)->op;                                     \
        attrs->stride_h = attrs->stride_w = (int32_t)sample->stride;                               \
        attrs->dilation_h = attrs->dilation_w = (int32_t)sample->dilation;                         \
        attrs->padding = sample->padding;                                                          \
        attrs->activation = sample->activation;                                                    \
        attrs->activation_max = 6;                                                                 \
    } while (0)

static struct inf_graph *make_graph(const struct sample *sample)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    bool depthwise = sample->op == INF_OP_DEPTHWISE_CONV2D;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32,
                           INF_SHAPE(sample->images, sample->height, sample->width, sample->in));
    int64_t inner = depthwise ? sample->in : sample->in / sample->groups;
    int64_t outer = depthwise ? sample->out / sample->in : sample->out;
    uint32_t y = node(graph, sample->op, "conv", x,
                      add_weights(graph, INF_SHAPE(sample->kernel, sample->kernel, inner, outer)),
                      add_weights(graph, INF_SHAPE(sample->out)));
    if (depthwise) {
        SET_WINDOW(depthwise_conv2d);
    } else {
        SET_WINDOW(conv2d);
        struct inf_attrs_conv2d *attrs = &last_attrs(graph)->conv2d;
        attrs->groups = (int32_t)sample->groups;
        // These have an effect if the padding is explicit.
        attrs->pad_top = 2;
        attrs->pad_bottom = 1;
        attrs->pad_right = 3;
    }
    if (sample->summed) {
        y = node(graph, INF_OP_BINARY, "sum", y,
                 node(graph, INF_OP_SOFTMAX, "other",
                      node(graph, INF_OP_CONV2D, "one", x,
                           add_weights(graph, INF_SHAPE(1, 1, sample->in, sample->out)),
                           add_weights(graph, INF_SHAPE(sample->out)))));
        y = node(graph, INF_OP_PRELU, "prelu", y, add_weights(graph, INF_SHAPE(sample->out)));
    }
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s: %s", sample->what, err.text);
    return graph;
}

// The results of one run, and the kernels of its steps.
struct outcome {
    float *y;
    size_t count;
    struct graph_run run;
};

// Runs the sample on a device and `ref`, or on `ref` alone if `device` is NULL. The caller frees
// outcome->y.
static void run_sample(struct outcome *outcome, const struct sample *sample,
                       struct inf_device *device, enum inf_precision precision)
{
    struct inf_graph *graph = make_graph(sample);
    outcome->count = inf_shape_elements(&graph->values[graph->outputs[0].value].shape);
    outcome->y = calloc(outcome->count + 16, sizeof *outcome->y);
    size_t x_count = (size_t)(sample->images * sample->height * sample->width * sample->in);
    float *x = malloc((x_count + 16) * sizeof *x);
    cr_assert(outcome->y != NULL && x != NULL);
    for (size_t i = 0; i < x_count; i++)
        x[i] = draw_float(i + 7);
    outcome->run =
        run_beside_ref(graph, device, precision, (const void *[]){x}, (void *[]){outcome->y});
    free(x);
}

// Runs the sample, in which the choice of the convolution is fixed, and compares with ref.
static void expect_agrees(const struct sample *sample, const char *choice,
                          struct inf_device *device, const struct outcome *wanted, float tolerance)
{
    struct outcome outcome;
    char what[INF_RACE_WINNER_TEXT + 64];
    run_sample(&outcome, sample, device,
               tolerance > 1e-3f ? INF_PRECISION_FP16 : INF_PRECISION_FP32);
    cr_assert_eq(outcome.count, wanted->count);
    snprintf(what, sizeof what, "%s, %s", sample->what, choice);
    expect_near(outcome.y, wanted->y, wanted->count, tolerance, what);
    static const char *const shaders[][2] = {{"blocks_", "conv_block"},
                                             {"blocksf16", "conv_block_f16"},
                                             {"matrices", "conv_matrix"},
                                             {"split", "conv_split"},
                                             {"winograd", "winograd_in"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(shaders); i++)
        if (strncmp(choice, shaders[i][0], strlen(shaders[i][0])) == 0)
            cr_expect_not_null(strstr(outcome.run.kernels, shaders[i][1]), "%s: %s, not by %s",
                               sample->what, outcome.run.kernels, shaders[i][0]);
    free(outcome.y);
}

// Lists the candidates of the first convolution of the sample.
static void list_candidates(struct vk_shader_candidates *candidates, const struct sample *sample,
                            struct inf_device *device, enum inf_precision precision)
{
    struct inf_graph *graph = make_graph(sample);
    const uint32_t nodes[] = {0};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1, .precision = precision};
    struct vk_lowering lowering = vk_lowering_of((struct vk_gpu *)device, &segment, 0);
    *candidates = (struct vk_shader_candidates){0};
    lowering.candidates = candidates;
    cr_assert_eq(vk_lower_node(&lowering, NULL), INF_OK);
    cr_assert_geq(candidates->count, 2, "%s has %u candidates", sample->what, candidates->count);
    inf_graph_destroy(&graph);
}

static void check_sample(const struct sample *sample, struct inf_device *device,
                         enum inf_precision precision)
{
    struct outcome wanted;
    struct vk_shader_candidates candidates;
    char name[INF_RACE_WINNER_TEXT];
    run_sample(&wanted, sample, NULL, INF_PRECISION_FP32);
    vulkan_reopen_races(device);
    list_candidates(&candidates, sample, device, precision);
    for (uint32_t i = 0; i < candidates.count; i++) {
        vulkan_reopen_races(device);
        vk_shader_choice_print(&candidates.list[i], name);
        inf_race_results_fix(((struct vk_gpu *)device)->races, candidates.key, name);
        expect_agrees(sample, name, device, &wanted,
                      precision == INF_PRECISION_FP16 ? 0.1f : 2e-4f);
    }
    free(wanted.y);
}

TestSuite(vulkan_race, .timeout = 600);

Test(vulkan_race, has_candidates_that_agree_with_ref)
{
    struct inf_device *device = vulkan_open(NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += inf_case_step())
        check_sample(&samples[i], device, INF_PRECISION_FP32);
    inf_device_unref(&device);
}

Test(vulkan_race, has_candidates_that_agree_with_ref_in_16_bits)
{
    struct inf_device *device = vulkan_open(NULL);
    if ((inf_device_info(device)->precisions & INF_PRECISION_BIT(INF_PRECISION_FP16)) == 0)
        cr_skip_test("the device has no 16-bit storage");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += 3 * inf_case_step())
        check_sample(&samples[i], device, INF_PRECISION_FP16);
    inf_device_unref(&device);
}

// Returns how many candidates of a convolution with one tap share the sums of a block.
static uint32_t count_shared(struct inf_device *device, int64_t pixels, int64_t in, int64_t out,
                             enum inf_precision precision)
{
    const struct sample sample = {
        "one tap",         INF_OP_CONV2D,       1,    1, pixels, in, out, 1, 1, 1, 1,
        INF_PADDING_VALID, INF_ACTIVATION_NONE, false};
    struct vk_shader_candidates candidates;
    uint32_t count = 0;
    list_candidates(&candidates, &sample, device, precision);
    for (uint32_t i = 0; i < candidates.count; i++)
        count += candidates.list[i].splits > 1;
    return count;
}

// A block has 32 pixels and 64 channels.
Test(vulkan_race, shares_sums_if_blocks_are_few_and_sums_are_long)
{
    struct inf_device *device = vulkan_open(NULL);
    bool half = ((struct vk_gpu *)device)->half_arithmetic;
    vulkan_reopen_races(device);
    cr_expect_eq(count_shared(device, 127 * 32, 256, 64, INF_PRECISION_FP32), 2);
    cr_expect_eq(count_shared(device, 127 * 32, 256, 64, INF_PRECISION_FP16), half ? 3 : 2);
    cr_expect_eq(count_shared(device, 127 * 32 + 1, 256, 64, INF_PRECISION_FP32), 0);
    cr_expect_eq(count_shared(device, 127 * 32, 256, 65, INF_PRECISION_FP32), 0);
    cr_expect_eq(count_shared(device, 127 * 32, 255, 64, INF_PRECISION_FP32), 0);
    inf_device_unref(&device);
}

// If the device has no instructions that multiply matrices, this tests the shader with loops.
Test(vulkan_race, multiplies_matrices_as_ref_does)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    const struct vk_shader_choice least = {VK_BY_MATRICES, 1, 1};
    if (!gpu->half_storage || !gpu->half_arithmetic)
        cr_skip_test("the device has no 16-bit arithmetic");
    if (gpu->matrices.method == VK_MATRICES_NONE)
        gpu->matrices = (struct vk_matrices){VK_MATRICES_LOOPS, 16, 16, 16};
    if (!vk_can_use_matrices(gpu, &least))
        cr_skip_test("the device has no subgroups, or too little shared memory");
    uint32_t tested = 0;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += inf_case_step()) {
        struct vk_shader_candidates candidates;
        struct outcome wanted;
        char name[INF_RACE_WINNER_TEXT];
        vulkan_reopen_races(device);
        list_candidates(&candidates, &samples[i], device, INF_PRECISION_FP16);
        run_sample(&wanted, &samples[i], NULL, INF_PRECISION_FP32);
        // Test one size for each sample, because llvmpipe takes a second to compile one.
        uint32_t size = 0;
        for (uint32_t k = 0; k < candidates.count; k++) {
            if (candidates.list[k].method != VK_BY_MATRICES || size++ != tested % 3)
                continue;
            vulkan_reopen_races(device);
            vk_shader_choice_print(&candidates.list[k], name);
            inf_race_results_fix(gpu->races, candidates.key, name);
            expect_agrees(&samples[i], name, device, &wanted, 0.1f);
            tested++;
            break;
        }
        free(wanted.y);
    }
    cr_expect_geq(tested, 8 / inf_case_step());
    inf_device_unref(&device);
}

// 32 values of 32 + 8 pixels and of 32 + 8 channels in 16 bits, and 32 x (32 + 8) sums in 32 bits.
#define LEAST_MATRIX_BYTES (2u * 32 * 80 + 4u * 32 * 40)

Test(vulkan_race, multiplies_matrices_only_within_the_limits_of_the_device)
{
    struct vk_gpu gpu = {.matrices = {VK_MATRICES_NV, 16, 16, 16}, .subgroup_size = 32};
    VkPhysicalDeviceLimits *limits = &gpu.properties.limits;
    const struct vk_shader_choice least = {VK_BY_MATRICES, 1, 1}, more = {VK_BY_MATRICES, 2, 1};
    limits->maxComputeSharedMemorySize = LEAST_MATRIX_BYTES;
    limits->maxComputeWorkGroupInvocations = 128;
    cr_expect(vk_can_use_matrices(&gpu, &least));
    cr_expect_not(vk_can_use_matrices(&gpu, &more));
    limits->maxComputeSharedMemorySize--;
    cr_expect_not(vk_can_use_matrices(&gpu, &least));
    limits->maxComputeSharedMemorySize++;
    limits->maxComputeWorkGroupInvocations--;
    cr_expect_not(vk_can_use_matrices(&gpu, &least));
    limits->maxComputeWorkGroupInvocations++;
    gpu.subgroup_size = 24; // does not divide a matrix
    cr_expect_not(vk_can_use_matrices(&gpu, &least));
    gpu.matrices.m = 8; // half of the invocations would have nothing to copy
    gpu.subgroup_size = 64;
    limits->maxComputeWorkGroupInvocations = 256;
    cr_expect_not(vk_can_use_matrices(&gpu, &least));
    cr_expect(vk_can_use_matrices(&gpu, &more));
    gpu.subgroup_size = 0; // no subgroups
    cr_expect_not(vk_can_use_matrices(&gpu, &least));
    gpu.subgroup_size = 32;
    gpu.matrices = (struct vk_matrices){VK_MATRICES_NONE, 0, 0, 0};
    cr_expect_not(vk_can_use_matrices(&gpu, &least));
}

// Races the convolution of the sample as the compilation of a model does. The race waits for
// `gate`, which may be NULL.
static void race_sample_behind(struct inf_race_gate *gate, struct inf_device *device,
                               const struct sample *sample)
{
    struct inf_graph *graph = make_graph(sample);
    const uint32_t nodes[] = {0};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1, .races.gate = gate};
    inf_device_choose_kernels(device, &segment);
    inf_graph_destroy(&graph);
}

static void race_sample(struct inf_device *device, const struct sample *sample)
{
    race_sample_behind(NULL, device, sample);
}

Test(vulkan_race, times_and_checks_every_candidate)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    vulkan_reopen_races(device);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += inf_case_step()) {
        struct inf_graph *graph = make_graph(&samples[i]);
        const uint32_t nodes[] = {0};
        const struct inf_segment segment = {
            .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1};
        uint32_t count;
        uint64_t key;
        struct inf_error err = {0};
        cr_assert_eq(vk_shader_race_node(times, &count, &key, device, &segment, 0, false, &err),
                     INF_OK, "%s: %s", samples[i].what, err.text);
        cr_expect_geq(count, 2);
        for (uint32_t k = 0; k < count; k++) {
            cr_expect_gt(times[k].least_ns, 0, "%s: %s has no time", samples[i].what,
                         times[k].name);
            cr_expect(!times[k].wrong);
            if (samples[i].activation == INF_ACTIVATION_SIGMOID)
                cr_expect_eq(times[k].error, -1);
            else
                cr_expect(times[k].error >= 0 && times[k].error < 1e-5, "%s: %s errs by %g",
                          samples[i].what, times[k].name, times[k].error);
        }
        inf_graph_destroy(&graph);
    }
    inf_device_unref(&device);
}

// One shader computes such products, so there is nothing to race.
Test(vulkan_race, leaves_out_products_with_weights_in_blocks)
{
    struct inf_device *device = vulkan_open(NULL);
    struct inf_graph *graph = new_graph();
    vulkan_reopen_races(device);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(20, 32));
    uint32_t numbers = add_constant(graph, INF_DTYPE_U8, INF_SHAPE(16, 1, 16), NULL);
    uint32_t scales = add_weights(graph, INF_SHAPE(16, 1));
    add_output(graph, "y", node(graph, INF_OP_MATMUL_BLOCKS, "product", x, numbers, scales));
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    const uint32_t nodes[] = {0};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1};
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    uint32_t count = 1;
    uint64_t key = 1;
    cr_expect_eq(vk_shader_race_key(device, &segment, 0, false), 0u);
    cr_assert_eq(vk_shader_race_node(times, &count, &key, device, &segment, 0, false, NULL),
                 INF_OK);
    cr_expect_eq(count, 0u);
    cr_expect_eq(key, 0u);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

// A rule that no race has confirmed. llvmpipe plays the GPU.
Test(vulkan_race, is_not_needed_for_one_row_on_a_gpu)
{
    if (getenv("VULKAN_FAULT_LAYER") == NULL)
        cr_skip_test("another layer is tested");
    struct vulkan_faults *faults = vulkan_faults_install();
    cr_assert_not_null(faults);
    faults->discrete = true;
    struct inf_device *device = vulkan_open(NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i++) {
        struct outcome outcome, wanted;
        bool row = strcmp(samples[i].what, "one row") == 0;
        if (!row && strcmp(samples[i].what, "five rows") != 0)
            continue;
        run_sample(&wanted, &samples[i], NULL, INF_PRECISION_FP32);
        run_sample(&outcome, &samples[i], device, INF_PRECISION_FP32);
        expect_near(outcome.y, wanted.y, wanted.count, 2e-4f, samples[i].what);
        cr_expect_eq(strstr(outcome.run.kernels, "conv_split") != NULL, row, "%s",
                     outcome.run.kernels);
        free(outcome.y);
        free(wanted.y);
    }
    inf_device_unref(&device);
}

Test(vulkan_race, is_run_once_for_a_shape)
{
    struct inf_device *device = vulkan_open(NULL);
    struct inf_kernel_choices choices;
    cr_expect_not(inf_device_kernel_choices(device, &choices), "races without having been opened");
    vulkan_reopen_races(device);
    // A sample with few candidates comes first: all races together have a limit of time, and on a
    // slow machine many candidates would exhaust it.
    const struct sample *few = find_sample("groups");
    race_sample(device, few);
    race_sample(device, few);
    race_sample(device, find_sample("few pixels"));
    cr_assert(inf_device_kernel_choices(device, &choices));
    cr_expect_eq(choices.measured, 2);
    cr_expect_eq(choices.known, 1);
    inf_device_unref(&device);
}

Test(vulkan_race, waits_until_no_request_is_served)
{
    struct inf_device *device = vulkan_open(NULL);
    struct inf_kernel_choices choices;
    struct inf_idle_gate idle_gate = {0};
    atomic_bool stop = true;
    struct inf_race_gate gate = {.idle_gate = &idle_gate, .stop = &stop};
    vulkan_reopen_races(device);
    inf_idle_gate_begin_request(&idle_gate);
    race_sample_behind(&gate, device, &samples[0]);
    cr_expect(atomic_load(&gate.gave_up));
    cr_assert(inf_device_kernel_choices(device, &choices));
    cr_expect_eq(choices.measured, 0);
    inf_idle_gate_end_request(&idle_gate);
    atomic_store(&stop, false);
    atomic_store(&gate.gave_up, false);
    race_sample_behind(&gate, device, &samples[0]);
    cr_assert(inf_device_kernel_choices(device, &choices));
    cr_expect_eq(choices.measured, 1);
    inf_device_unref(&device);
}

Test(vulkan_race, leaves_out_shaders_that_compute_wrongly)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    const struct sample *sample = &samples[3];
    vulkan_reopen_races(device);
    // No result is this exact, so that every shader that is tried counts as wrong.
    gpu->race_error_max = -1e-30;
    race_sample(device, sample);
    cr_expect_geq(gpu->broken.count, 2, "%u variants are left out", gpu->broken.count);
    // The model is computed by another device, or by shaders that were not tried.
    struct outcome wanted;
    run_sample(&wanted, sample, NULL, INF_PRECISION_FP32);
    expect_agrees(sample, "what is left", device, &wanted, 2e-4f);
    free(wanted.y);
    inf_device_unref(&device);
}

Test(vulkan_race, finds_results_that_are_wrong)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_shader_candidates candidates;
    vulkan_reopen_races(device);
    const struct sample *sample = &samples[0];
    struct inf_graph *graph = make_graph(sample);
    const uint32_t nodes[] = {0};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1};
    struct vk_lowering lowering = vk_lowering_of((struct vk_gpu *)device, &segment, 0);
    lowering.candidates = &candidates;
    cr_assert_eq(vk_lower_node(&lowering, NULL), INF_OK);
    struct outcome right;
    run_sample(&right, sample, NULL, INF_PRECISION_FP32);
    size_t x_count = (size_t)(sample->images * sample->height * sample->width * sample->in);
    float *x = malloc(x_count * sizeof *x);
    for (size_t i = 0; i < x_count; i++)
        x[i] = draw_float(i + 7);
    const float *bias = graph->values[graph->nodes[0].inputs[2]].data->data;
    double error = vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e37, 0);
    cr_expect(error >= 0 && error < 1e-6, "ref errs by %g", error);
    // A shader that leaves out a tap at the edges, or computes one channel in four, must be found.
    for (size_t i = 0; i < right.count; i += 4)
        right.y[i] += 0.01f;
    cr_expect_gt(vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e37, 0), 1e-4);
    cr_expect_gt(vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e37, 0.5), 1e-4);
    for (size_t i = 0; i < right.count; i++)
        right.y[i] = NAN;
    cr_expect(isinf(vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e37, 0)));
    // What a shader cannot store is no error.
    cr_expect_eq(vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e-3, 0), 0);
    x[0] = INFINITY;
    cr_expect(isinf(vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e37, 0)));
    for (size_t i = 0; i < x_count; i++)
        x[i] = NAN;
    cr_expect_eq(vk_conv_sample_error(&candidates.conv, bias, x, right.y, 1e37, 0), 0);
    free(x);
    free(right.y);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}
