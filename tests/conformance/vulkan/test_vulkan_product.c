// SPDX-License-Identifier: Apache-2.0
// Every shader that can compute the product of two tensors on the vulkan backend must give the
// results of the reference device `ref`, whichever of them a race chooses.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/lowering/lowering.h"
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/sample.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/program.h"
#include "backends/vulkan/program/shader_race.h"
#include "tests/support/criterion/case_step.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

// How the batches of the operands are broadcast.
enum batch {
    ALIKE,    // a and b both have batch axes [2][3]
    ONE_B,    // a has batch axes [2][3], and b has none
    CROSSED,  // a has batch axes [2][1], and b has [3]
    CONSTANT, // as ALIKE, and a is a constant
};

// A product of [m][k] and [k][n] that is tested.
struct sample {
    const char *what;
    int64_t m, n, k;
    bool transpose_a, transpose_b, bias;
    enum batch batch;
    enum inf_activation activation;
    bool absent_bias; // true: the node has an input for a bias, which is absent
};

// Blocks have 8 to 64 rows and 32 to 128 columns, and slices have 16 or 32 terms. The samples have
// sizes below and above these, and sizes that are no multiples of four.
static const struct sample samples[] = {
    {"least", 8, 8, 1, false, false, false, ALIKE, INF_ACTIVATION_NONE},
    {"vectors", 36, 72, 20, false, false, false, ALIKE, INF_ACTIVATION_NONE},
    {"transposed b", 33, 40, 64, false, true, false, ALIKE, INF_ACTIVATION_NONE},
    {"transposed a", 40, 33, 17, true, false, true, ALIKE, INF_ACTIVATION_RELU6},
    {"both transposed", 28, 65, 36, true, true, false, ONE_B, INF_ACTIVATION_NONE},
    {"odd", 65, 31, 33, false, false, true, CROSSED, INF_ACTIVATION_RELU},
    {"odd, transposed b", 17, 129, 31, false, true, true, CROSSED, INF_ACTIVATION_SIGMOID},
    {"odd, transposed a", 19, 37, 47, true, false, false, ALIKE, INF_ACTIVATION_NONE},
    {"vectors of a alone", 24, 30, 32, false, false, false, ALIKE, INF_ACTIVATION_NONE},
    {"vectors of a alone, transposed", 36, 40, 30, true, true, false, ALIKE, INF_ACTIVATION_NONE},
    {"absent bias", 16, 16, 16, false, false, false, ALIKE, INF_ACTIVATION_NONE, true},
    {"constant a", 64, 32, 48, false, false, false, CONSTANT, INF_ACTIVATION_NONE},
};

static float draw_float(size_t i)
{
    return (float)(i * 7919 % 61) / 30 - 1;
}

static float *draw_floats(size_t count, size_t from)
{
    float *floats = malloc((count + 16) * sizeof *floats);
    cr_assert_not_null(floats);
    for (size_t i = 0; i < count; i++)
        floats[i] = draw_float(i + from);
    return floats;
}

static uint32_t add_floats(struct inf_graph *graph, struct inf_shape shape)
{
    float *floats = draw_floats(inf_shape_elements(&shape), 3);
    uint32_t value = add_constant(graph, INF_DTYPE_F32, shape, floats);
    free(floats);
    return value;
}

// The node of the graph that is the product. Node 0 negates b, which makes b an intermediate value
// that may be kept in 16 bits.
#define PRODUCT 1u

static struct inf_graph *make_graph(const struct sample *sample)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    int64_t rows = sample->transpose_a ? sample->k : sample->m;
    int64_t columns = sample->transpose_a ? sample->m : sample->k;
    int64_t b_rows = sample->transpose_b ? sample->n : sample->k;
    int64_t b_columns = sample->transpose_b ? sample->k : sample->n;
    struct inf_shape a =
        sample->batch == CROSSED ? INF_SHAPE(2, 1, rows, columns) : INF_SHAPE(2, 3, rows, columns);
    struct inf_shape b = sample->batch == CROSSED ? INF_SHAPE(3, b_rows, b_columns)
                                                  : INF_SHAPE(2, 3, b_rows, b_columns);
    if (sample->batch == ONE_B)
        b = INF_SHAPE(b_rows, b_columns);
    uint32_t first =
        sample->batch == CONSTANT ? add_floats(graph, a) : add_input(graph, "a", INF_DTYPE_F32, a);
    uint32_t second =
        node(graph, INF_OP_UNARY, "negation", add_input(graph, "b", INF_DTYPE_F32, b));
    last_attrs(graph)->unary.kind = INF_UNARY_NEG;
    uint32_t bias = sample->bias ? add_floats(graph, INF_SHAPE(sample->n)) : INF_VALUE_NONE;
    uint32_t y = sample->bias || sample->absent_bias
                     ? node(graph, INF_OP_MATMUL, "product", first, second, bias)
                     : node(graph, INF_OP_MATMUL, "product", first, second);
    struct inf_attrs_matmul *attrs = &last_attrs(graph)->matmul;
    attrs->transpose_a = sample->transpose_a;
    attrs->transpose_b = sample->transpose_b;
    attrs->activation = sample->activation;
    attrs->activation_max = 6;
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
    float *inputs[2] = {0};
    for (uint32_t i = 0; i < graph->input_count; i++)
        inputs[i] = draw_floats(inf_shape_elements(&graph->values[graph->inputs[i].value].shape),
                                7 + 11 * i);
    outcome->count = inf_shape_elements(&graph->values[graph->outputs[0].value].shape);
    outcome->y = calloc(outcome->count + 16, sizeof *outcome->y);
    cr_assert_not_null(outcome->y);
    outcome->run = run_beside_ref(graph, device, precision, (const void *[]){inputs[0], inputs[1]},
                                  (void *[]){outcome->y});
    free(inputs[0]);
    free(inputs[1]);
}

static void list_candidates(struct vk_shader_candidates *candidates, const struct sample *sample,
                            struct inf_device *device, enum inf_precision precision)
{
    struct inf_graph *graph = make_graph(sample);
    const uint32_t nodes[] = {PRODUCT};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1, .precision = precision};
    struct vk_lowering lowering = vk_lowering_of((struct vk_gpu *)device, &segment, PRODUCT);
    *candidates = (struct vk_shader_candidates){0};
    lowering.candidates = candidates;
    cr_assert_eq(vk_lower_node(&lowering, NULL), INF_OK);
    cr_assert_geq(candidates->count, 6, "%s has %u candidates", sample->what, candidates->count);
    inf_graph_destroy(&graph);
}

// Runs the sample with each candidate of the method, or with all candidates if `method` is
// VK_METHODS. Returns the number of candidates that ran.
static uint32_t check_sample(const struct sample *sample, struct inf_device *device,
                             enum inf_precision precision, enum vk_shader_method method)
{
    static const char *const shaders[VK_METHODS] = {
        [VK_BY_SQUARES] = "matmul ",
        [VK_BY_BLOCKS] = "conv_block_pair ",
        [VK_BY_BLOCKS_F16] = "conv_block_pair_f16 ",
        [VK_BY_MATRICES] = "conv_matrix_pair",
    };
    struct outcome wanted, outcome;
    struct vk_shader_candidates candidates;
    char name[INF_RACE_WINNER_TEXT], what[INF_RACE_WINNER_TEXT + 64];
    uint32_t tried = 0;
    run_sample(&wanted, sample, NULL, INF_PRECISION_FP32);
    vulkan_reopen_races(device);
    list_candidates(&candidates, sample, device, precision);
    for (uint32_t i = 0; i < candidates.count; i++) {
        enum vk_shader_method own = candidates.list[i].method;
        if (method != VK_METHODS && own != method)
            continue;
        tried++;
        vulkan_reopen_races(device);
        vk_shader_choice_print(&candidates.list[i], name);
        inf_race_results_fix(((struct vk_gpu *)device)->races, candidates.key, name);
        run_sample(&outcome, sample, device, precision);
        cr_assert_eq(outcome.count, wanted.count);
        snprintf(what, sizeof what, "%s, %s", sample->what, name);
        expect_near(outcome.y, wanted.y, wanted.count,
                    precision == INF_PRECISION_FP16 ? 0.05f : 1e-4f, what);
        cr_expect_not_null(strstr(outcome.run.kernels, shaders[own]), "%s: by %s", what,
                           outcome.run.kernels);
        free(outcome.y);
    }
    free(wanted.y);
    return tried;
}

TestSuite(vulkan_product, .timeout = 600);

Test(vulkan_product, has_candidates_that_agree_with_ref)
{
    struct inf_device *device = vulkan_open(NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += inf_case_step())
        cr_expect_eq(check_sample(&samples[i], device, INF_PRECISION_FP32, VK_METHODS), 6u);
    inf_device_unref(&device);
}

Test(vulkan_product, has_candidates_that_agree_with_ref_in_16_bits)
{
    struct inf_device *device = vulkan_open(NULL);
    const struct vk_gpu *gpu = (struct vk_gpu *)device;
    if (!gpu->half_storage || !gpu->half_arithmetic)
        cr_skip_test("the device has no 16-bit arithmetic");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += inf_case_step())
        cr_expect_eq(check_sample(&samples[i], device, INF_PRECISION_FP16, VK_BY_BLOCKS_F16), 3u);
    inf_device_unref(&device);
}

// If the device has no instructions that multiply matrices, this tests the shader with loops.
Test(vulkan_product, multiplies_matrices_as_ref_does)
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
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i++)
        cr_expect_geq(check_sample(&samples[i], device, INF_PRECISION_FP16, VK_BY_MATRICES), 1u);
    inf_device_unref(&device);
}

Test(vulkan_product, of_few_rows_or_columns_has_no_candidates)
{
    static const struct sample few[] = {
        {"rows", 7, 64, 64, false, false, false, ALIKE, INF_ACTIVATION_NONE},
        {"columns", 64, 7, 64, false, false, false, ALIKE, INF_ACTIVATION_NONE}};
    struct inf_device *device = vulkan_open(NULL);
    vulkan_reopen_races(device);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(few); i++) {
        struct inf_graph *graph = make_graph(&few[i]);
        const uint32_t nodes[] = {PRODUCT};
        const struct inf_segment segment = {
            .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1};
        cr_expect_eq(vk_shader_race_key(device, &segment, PRODUCT, false), 0u, "%s", few[i].what);
        inf_graph_destroy(&graph);
    }
    inf_device_unref(&device);
}

// Races all candidates of the sample, at least `wanted`, and expects errors below `error_most`.
static void expect_raced(struct inf_device *device, const struct sample *sample,
                         enum inf_precision precision, uint32_t wanted, double error_most)
{
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    struct inf_graph *graph = make_graph(sample);
    const uint32_t nodes[] = {PRODUCT};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1, .precision = precision};
    uint32_t count;
    uint64_t key;
    struct inf_error err = {0};
    cr_assert_eq(vk_shader_race_node(times, &count, &key, device, &segment, PRODUCT, false, &err),
                 INF_OK, "%s: %s", sample->what, err.text);
    cr_expect_geq(count, wanted);
    cr_expect_eq(key, vk_shader_race_key(device, &segment, PRODUCT, false));
    for (uint32_t k = 0; k < count; k++) {
        cr_expect_gt(times[k].least_ns, 0, "%s: %s has no time", sample->what, times[k].name);
        cr_expect_not(times[k].wrong);
        if (sample->activation == INF_ACTIVATION_SIGMOID)
            cr_expect_eq(times[k].error, -1);
        else
            cr_expect(times[k].error >= 0 && times[k].error < error_most, "%s: %s errs by %g",
                      sample->what, times[k].name, times[k].error);
    }
    inf_graph_destroy(&graph);
}

Test(vulkan_product, is_raced_and_checked)
{
    struct inf_device *device = vulkan_open(NULL);
    const struct vk_gpu *gpu = (struct vk_gpu *)device;
    vulkan_reopen_races(device);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i += inf_case_step())
        expect_raced(device, &samples[i], INF_PRECISION_FP32, 6, 1e-5);
    // One product of two tensors, and one of a tensor and a constant, which stays in 32 bits.
    if (gpu->half_storage && gpu->half_arithmetic) {
        expect_raced(device, &samples[1], INF_PRECISION_FP16, 9, 4e-3);
        expect_raced(device, &samples[INF_ARRAY_LENGTH(samples) - 1], INF_PRECISION_FP16, 9, 4e-3);
    }
    inf_device_unref(&device);
}

// Shaders that multiply in 16 bits can report a value that leaves the range of 16 bits only if an
// operand or the result is 16-bit. Otherwise they must not be chosen.
Test(vulkan_product, is_computed_in_32_bits_if_no_operand_is_16_bit)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    if (!gpu->half_storage || !gpu->half_arithmetic)
        cr_skip_test("the device has no 16-bit arithmetic");
    const struct sample *sample = &samples[1];
    struct vk_shader_candidates candidates;
    vulkan_reopen_races(device);
    list_candidates(&candidates, sample, device, INF_PRECISION_FP16);
    inf_race_results_fix(gpu->races, candidates.key, "blocksf16_4_1");
    struct inf_graph *graph = make_graph(sample);
    const uint32_t nodes[] = {PRODUCT};
    bool *lowered = calloc(graph->value_count, sizeof *lowered);
    cr_assert_not_null(lowered);
    for (uint32_t half = 0; half < 2; half++) {
        lowered[graph->nodes[PRODUCT].outputs[0]] = half != 0;
        const struct inf_segment segment = {.graph = graph,
                                            .nodes = nodes,
                                            .node_count = 1,
                                            .slots = 1,
                                            .precision = INF_PRECISION_FP16,
                                            .lowered = lowered};
        struct inf_program *program = NULL;
        cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
        const struct vk_variant *variant =
            &((const struct vk_program *)program)->list.dispatches[0].variant;
        cr_expect_eq(variant->shader,
                     half != 0 ? INF_SHADER_CONV_BLOCK_PAIR_F16 : INF_SHADER_MATMUL);
        inf_program_destroy(&program);
    }
    free(lowered);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}

Test(vulkan_product, finds_results_that_are_wrong)
{
    // y = [1 2; 3 4] * [5 6; 7 8]' + [0.5 0.25]
    const struct vk_product product = {
        .push = {.m = 2, .n = 2, .k = 2, .a_row = 2, .a_column = 1, .b_row = 1, .b_column = 2},
        .batch = 1,
        .function = FN_NONE,
        .bias = true};
    const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, bias[] = {0.5f, 0.25f};
    float y[] = {17.5f, 23.25f, 39.5f, 53.25f};
    cr_expect_eq(vk_product_sample_error(&product, a, b, bias, y, 1e37), 0);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(y); i++) {
        float right = y[i];
        y[i] = right + 0.1f;
        cr_expect_gt(vk_product_sample_error(&product, a, b, bias, y, 1e37), 1e-3, "%zu", i);
        y[i] = NAN;
        cr_expect(isinf(vk_product_sample_error(&product, a, b, bias, y, 1e37)));
        // Only results whose sums are at most 16 are checked, and there are none.
        cr_expect_eq(vk_product_sample_error(&product, a, b, bias, y, 16), 0);
        y[i] = right;
    }
}
