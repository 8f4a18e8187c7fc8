// SPDX-License-Identifier: Apache-2.0
// Attention in one dispatch of the vulkan backend gives the results of `ref`, with every form of
// scale, mask and keys, and with sizes at the ends of tiles. Software devices compute the nodes one
// by one, so that the tests switch the dispatch on.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/graph/shape/infer.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/program/attention.h"
#include "backends/vulkan/program/shader_race.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

// How the mask is broadcast to the scores [2][heads][rows][keys].
enum mask {
    NONE,
    FULL,
    BY_KEY,
    BY_ROW,
    BY_BATCH,
    HIDES
};

struct sample {
    int64_t heads, rows, keys, depth, width;
    bool by_row;
    float scale; // 0: none
    enum mask mask;
    bool reshaped; // true: the scores are reshaped to one batch axis before the softmax
};

static const struct sample samples[] = {
    {1, 8, 8, 4, 4, true, 0, NONE},         {2, 9, 33, 5, 7, false, 0.5f, NONE},
    {3, 17, 32, 16, 16, true, 0.25f, FULL}, {2, 16, 65, 64, 64, true, 0.125f, BY_KEY},
    {2, 31, 31, 8, 128, false, 0, BY_ROW},  {1, 8, 100, 128, 9, true, 0.1f, BY_BATCH},
    {2, 12, 70, 6, 6, true, 1.5f, HIDES},   {2, 10, 24, 12, 20, true, 0.5f, FULL, true},
};

#define BATCH 2

static float draw_float(size_t i)
{
    return (float)(i * 7919 % 61) / 15 - 2;
}

static struct inf_shape mask_shape(const struct sample *sample)
{
    switch (sample->mask) {
    case BY_KEY:
        return INF_SHAPE(sample->keys);
    case BY_ROW:
        return INF_SHAPE(sample->rows, 1);
    case BY_BATCH:
        return INF_SHAPE(BATCH, 1, 1, sample->keys);
    case HIDES:
        return INF_SHAPE(sample->rows, sample->keys);
    default:
        return INF_SHAPE(BATCH, sample->heads, sample->rows, sample->keys);
    }
}

// Adds a mask of moderate numbers. HIDES hides the first 40 keys of each row but the first, so that
// a whole tile has no finite score.
static uint32_t add_mask(struct inf_graph *graph, const struct sample *sample)
{
    struct inf_shape shape = mask_shape(sample);
    size_t count = inf_shape_elements(&shape);
    float *data = malloc(count * sizeof *data);
    cr_assert_not_null(data);
    for (size_t i = 0; i < count; i++) {
        size_t key = i % (size_t)sample->keys;
        bool hidden = sample->mask == HIDES && i >= (size_t)sample->keys && key < 40;
        data[i] = hidden ? -INFINITY : draw_float(i + 3);
    }
    uint32_t value = add_constant(graph, INF_DTYPE_F32, shape, data);
    free(data);
    return value;
}

static struct inf_graph *make_graph(const struct sample *sample)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    int64_t heads = sample->heads;
    uint32_t q =
        add_input(graph, "q", INF_DTYPE_F32, INF_SHAPE(BATCH, heads, sample->rows, sample->depth));
    uint32_t keys =
        add_input(graph, "keys", INF_DTYPE_F32,
                  sample->by_row ? INF_SHAPE(BATCH, heads, sample->keys, sample->depth)
                                 : INF_SHAPE(BATCH, heads, sample->depth, sample->keys));
    uint32_t values =
        add_input(graph, "values", INF_DTYPE_F32,
                  sample->reshaped ? INF_SHAPE(BATCH * heads, sample->keys, sample->width)
                                   : INF_SHAPE(BATCH, heads, sample->keys, sample->width));
    uint32_t scores = node(graph, INF_OP_MATMUL, "scores", q, keys);
    last_attrs(graph)->matmul.transpose_b = sample->by_row;
    if (sample->scale != 0) {
        scores = node(graph, INF_OP_BINARY, "scale", scores,
                      add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1), &sample->scale));
        last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    }
    if (sample->mask != NONE)
        scores = node(graph, INF_OP_BINARY, "mask", scores, add_mask(graph, sample));
    if (sample->reshaped) {
        const int64_t dims[] = {BATCH * heads, sample->rows, sample->keys};
        scores = node(graph, INF_OP_RESHAPE, "reshape", scores,
                      add_constant(graph, INF_DTYPE_I64, INF_SHAPE(3), dims));
    }
    uint32_t weights = node(graph, INF_OP_SOFTMAX, "weights", scores);
    last_attrs(graph)->softmax.axis = -1;
    add_output(graph, "y", node(graph, INF_OP_MATMUL, "y", weights, values));
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// Runs the sample on a device and `ref`, or on `ref` alone if `device` is NULL. Returns the number
// of steps; the caller frees *out_y. *out_fused: a step was computed by attention.comp.
static uint32_t run_sample(const struct sample *sample, struct inf_device *device,
                           enum inf_precision precision, float **out_y, size_t *out_count,
                           bool *out_fused)
{
    struct inf_graph *graph = make_graph(sample);
    const void *inputs[3];
    float *inputs_memory[3];
    for (uint32_t i = 0; i < 3; i++) {
        size_t count = inf_shape_elements(&graph->values[graph->inputs[i].value].shape);
        float *x = malloc((count + 16) * sizeof *x);
        cr_assert_not_null(x);
        for (size_t k = 0; k < count; k++)
            x[k] = draw_float(k + 17 * i);
        inputs[i] = inputs_memory[i] = x;
    }
    *out_count = inf_shape_elements(&graph->values[graph->outputs[0].value].shape);
    *out_y = calloc(*out_count + 16, sizeof **out_y);
    cr_assert_not_null(*out_y);
    struct graph_run run = run_beside_ref(graph, device, precision, inputs, (void *[]){*out_y});
    *out_fused = strstr(run.kernels, "attention") != NULL;
    for (uint32_t i = 0; i < 3; i++)
        free(inputs_memory[i]);
    return run.steps;
}

static void check_samples(enum inf_precision precision, float tolerance)
{
    struct inf_device *device = vulkan_open(NULL);
    if (precision == INF_PRECISION_FP16 && !((struct vk_gpu *)device)->half_storage)
        cr_skip_test("the device has no 16-bit storage");
    ((struct vk_gpu *)device)->attention_off = false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i++) {
        float *y, *wanted;
        size_t count;
        bool fused;
        char what[32];
        (void)run_sample(&samples[i], NULL, INF_PRECISION_FP32, &wanted, &count, &fused);
        cr_expect_eq(run_sample(&samples[i], device, precision, &y, &count, &fused), 1u);
        cr_expect(fused, "sample %zu is computed node by node", i);
        snprintf(what, sizeof what, "sample %zu", i);
        expect_near(y, wanted, count, tolerance, what);
        free(y);
        free(wanted);
    }
    inf_device_unref(&device);
}

TestSuite(vulkan_attention, .timeout = 300);

Test(vulkan_attention, in_one_dispatch_agrees_with_ref)
{
    check_samples(INF_PRECISION_FP32, 2e-5f);
}

Test(vulkan_attention, in_one_dispatch_agrees_with_ref_in_16_bits)
{
    check_samples(INF_PRECISION_FP16, 0.01f);
}

Test(vulkan_attention, is_computed_node_by_node_on_software_devices)
{
    struct inf_device *device = vulkan_open(NULL);
    float *y;
    size_t count;
    bool fused;
    if (inf_device_info(device)->kind != INF_DEVICE_SOFTWARE)
        cr_skip_test("the device is a GPU");
    cr_expect_gt(run_sample(&samples[2], device, INF_PRECISION_FP32, &y, &count, &fused), 1u);
    cr_expect_not(fused);
    free(y);
    inf_device_unref(&device);
}

Test(vulkan_attention, of_more_columns_than_the_shader_keeps_is_computed_node_by_node)
{
    static const struct sample wide[] = {{1, 8, 8, 129, 4, true, 0, NONE},
                                         {1, 8, 8, 4, 129, true, 0, NONE},
                                         {1, 7, 8, 4, 4, true, 0, NONE}};
    struct inf_device *device = vulkan_open(NULL);
    ((struct vk_gpu *)device)->attention_off = false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wide); i++) {
        float *y;
        size_t count;
        bool fused;
        (void)run_sample(&wide[i], device, INF_PRECISION_FP32, &y, &count, &fused);
        cr_expect_not(fused, "sample %zu", i);
        free(y);
    }
    inf_device_unref(&device);
}

// Opens a device that computes attentions in one dispatch and has races without winners.
static struct inf_device *open_with_races(void)
{
    struct inf_device *device = vulkan_open(NULL);
    ((struct vk_gpu *)device)->attention_off = false;
    vulkan_reopen_races(device);
    return device;
}

// The whole graph of a sample, as a segment.
struct whole {
    struct inf_graph *graph;
    struct inf_readers *readers;
    uint32_t nodes[16];
    uint32_t last; // the last node
    struct inf_segment segment;
};

static void whole_init(struct whole *whole, const struct sample *sample,
                       enum inf_precision precision)
{
    whole->graph = make_graph(sample);
    cr_assert_leq(whole->graph->node_count, INF_ARRAY_LENGTH(whole->nodes));
    whole->readers = calloc(whole->graph->node_count, sizeof *whole->readers);
    cr_assert_not_null(whole->readers);
    inf_graph_list_readers(whole->graph, whole->readers);
    uint32_t count = 0;
    // As in a plan, reshapes have no step.
    for (uint32_t i = 0; i < whole->graph->node_count; i++)
        if (whole->graph->nodes[i].op != INF_OP_RESHAPE)
            whole->nodes[count++] = i;
    whole->last = whole->nodes[count - 1];
    whole->segment = (struct inf_segment){.graph = whole->graph,
                                          .nodes = whole->nodes,
                                          .node_count = count,
                                          .readers = whole->readers,
                                          .slots = 1,
                                          .precision = precision};
}

static void whole_fini(struct whole *whole)
{
    free(whole->readers);
    inf_graph_destroy(&whole->graph);
}

static void expect_raced(struct inf_device *device, const struct sample *sample,
                         enum inf_precision precision, double error_most)
{
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    struct whole whole;
    uint32_t count;
    uint64_t key;
    struct inf_error err = {0};
    whole_init(&whole, sample, precision);
    cr_assert_eq(
        vk_shader_race_node(times, &count, &key, device, &whole.segment, whole.last, true, &err),
        INF_OK, "%s", err.text);
    cr_assert_eq(count, 2u);
    cr_expect_neq(key, 0u);
    cr_expect_eq(key, vk_shader_race_key(device, &whole.segment, whole.last, true));
    cr_expect_eq(vk_shader_race_key(device, &whole.segment, whole.nodes[0], true), 0u);
    cr_expect_str_eq(times[0].name, "attention");
    cr_expect_str_eq(times[1].name, "nodes");
    for (uint32_t i = 0; i < count; i++) {
        cr_expect_gt(times[i].least_ns, 0u, "%s has no time", times[i].name);
        cr_expect_not(times[i].wrong);
        cr_expect(times[i].error >= 0 && times[i].error < error_most, "%s of %d keys errs by %g",
                  times[i].name, (int)sample->keys, times[i].error);
    }
    whole_fini(&whole);
}

Test(vulkan_attention, is_raced_against_its_nodes_and_checked)
{
    struct inf_device *device = open_with_races();
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i++)
        if (samples[i].mask != HIDES)
            expect_raced(device, &samples[i], INF_PRECISION_FP32, 1e-5);
    if (((struct vk_gpu *)device)->half_storage)
        expect_raced(device, &samples[3], INF_PRECISION_FP16, 4e-3);
    inf_device_unref(&device);
}

Test(vulkan_attention, excludes_its_own_shader_but_not_those_of_its_nodes_if_results_are_wrong)
{
    struct inf_device *device = open_with_races();
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct vk_shader_time times[VK_SHADER_CANDIDATES];
    struct whole whole;
    uint32_t count;
    uint64_t key;
    whole_init(&whole, &samples[2], INF_PRECISION_FP32);
    // No result is this exact, so that both candidates count as wrong.
    gpu->race_error_max = -1e-30;
    cr_assert_eq(
        vk_shader_race_node(times, &count, &key, device, &whole.segment, whole.last, true, NULL),
        INF_OK);
    cr_assert_eq(count, 2u);
    for (uint32_t i = 0; i < count; i++) {
        cr_expect(times[i].wrong, "%s", times[i].name);
        cr_expect_eq(times[i].least_ns, 0u);
    }
    cr_assert_eq(gpu->broken.count, 1u);
    cr_expect_eq(gpu->broken.list[0].variant.shader, INF_SHADER_ATTENTION);
    whole_fini(&whole);
    inf_device_unref(&device);
}

Test(vulkan_attention, is_computed_as_its_race_found)
{
    struct inf_device *device = open_with_races();
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    for (size_t i = 2; i < INF_ARRAY_LENGTH(samples); i += 5) {
        struct whole whole;
        float *y, *wanted;
        size_t count;
        bool fused;
        whole_init(&whole, &samples[i], INF_PRECISION_FP32);
        uint64_t key = vk_shader_race_key(device, &whole.segment, whole.last, true);
        whole_fini(&whole);
        (void)run_sample(&samples[i], NULL, INF_PRECISION_FP32, &wanted, &count, &fused);
        for (uint32_t nodes = 0; nodes < 2; nodes++) {
            vulkan_reopen_races(device);
            inf_race_results_fix(gpu->races, key, nodes != 0 ? "nodes" : "attention");
            (void)run_sample(&samples[i], device, INF_PRECISION_FP32, &y, &count, &fused);
            cr_expect_eq(fused, nodes == 0);
            expect_near(y, wanted, count, 2e-5f, nodes != 0 ? "nodes" : "attention");
            free(y);
        }
        free(wanted);
    }
    inf_device_unref(&device);
}

// Another thread may record a winner between the plan of a model and the compilation of its
// program, which must fuse the same nodes.
Test(vulkan_attention, is_chosen_by_the_winners_that_were_known_when_the_compilation_began)
{
    struct inf_device *device = open_with_races();
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct whole whole;
    struct inf_attention attention;
    struct inf_kernel_choices choices;
    whole_init(&whole, &samples[2], INF_PRECISION_FP32);
    const uint64_t key = vk_shader_race_key(device, &whole.segment, whole.last, true);
    whole.segment.races.known_until_ns = inf_clock_ns() - 1;
    inf_race_results_fix(gpu->races, key, "nodes");
    cr_expect_eq(inf_device_fused_into(device, &whole.segment, whole.nodes[0]), whole.last);
    cr_expect(vk_attention_find(&attention, gpu, &whole.segment, whole.last, NULL));
    inf_device_choose_kernels(device, &whole.segment);
    cr_assert(inf_device_kernel_choices(device, &choices));
    cr_expect_eq(choices.known, 0);
    cr_expect_eq(choices.later, 3);
    whole.segment.races.known_until_ns = inf_clock_ns();
    cr_expect_eq(inf_device_fused_into(device, &whole.segment, whole.nodes[0]), INF_NODE_NONE);
    cr_expect_not(vk_attention_find(&attention, gpu, &whole.segment, whole.last, NULL));
    whole_fini(&whole);
    inf_device_unref(&device);
}

// The segment has three races: one for each of the two products, and one for the attention.
Test(vulkan_attention, is_raced_when_a_segment_is)
{
    struct inf_device *device = open_with_races();
    struct inf_kernel_choices choices;
    struct whole whole;
    whole_init(&whole, &samples[2], INF_PRECISION_FP32);
    inf_device_choose_kernels(device, &whole.segment);
    cr_assert(inf_device_kernel_choices(device, &choices));
    cr_expect_eq(choices.measured, 3);
    inf_device_choose_kernels(device, &whole.segment);
    cr_assert(inf_device_kernel_choices(device, &choices));
    cr_expect_eq(choices.measured, 3);
    cr_expect_eq(choices.known, 3);
    whole_fini(&whole);
    inf_device_unref(&device);
}

Test(vulkan_attention, finds_results_that_are_wrong)
{
    struct inf_device *device = open_with_races();
    const struct sample *sample = &samples[1];
    struct whole whole;
    struct inf_attention attention;
    float *y, *operands[4] = {0};
    size_t count;
    bool fused;
    (void)run_sample(sample, NULL, INF_PRECISION_FP32, &y, &count, &fused);
    whole_init(&whole, sample, INF_PRECISION_FP32);
    cr_assert(
        vk_attention_find(&attention, (struct vk_gpu *)device, &whole.segment, whole.last, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        size_t size = inf_shape_elements(&whole.graph->values[whole.graph->inputs[i].value].shape);
        operands[i] = malloc(size * sizeof(float));
        cr_assert_not_null(operands[i]);
        for (size_t k = 0; k < size; k++)
            operands[i][k] = draw_float(k + 17 * i);
    }
    const float *const read[4] = {operands[0], operands[1], operands[2], NULL};
    double error = vk_attention_sample_error(&attention, whole.graph, read, y, 1e37);
    cr_expect(error >= 0 && error < 1e-6, "ref errs by %g", error);
    for (size_t i = 0; i < count; i += 3)
        y[i] += 0.01f;
    cr_expect_gt(vk_attention_sample_error(&attention, whole.graph, read, y, 1e37), 1e-3);
    for (size_t i = 0; i < count; i++)
        y[i] = NAN;
    cr_expect(isinf(vk_attention_sample_error(&attention, whole.graph, read, y, 1e37)));
    cr_expect_eq(vk_attention_sample_error(&attention, whole.graph, read, y, 1e-6), 0);
    for (uint32_t i = 0; i < 3; i++)
        free(operands[i]);
    free(y);
    whole_fini(&whole);
    inf_device_unref(&device);
}
