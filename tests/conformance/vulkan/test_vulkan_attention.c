// SPDX-License-Identifier: Apache-2.0
// Attention in one dispatch of the vulkan backend gives the results of `ref`, with every form of
// scale, mask and keys, and with sizes at the ends of tiles. Software devices compute the nodes one
// by one, so that the tests switch the dispatch on.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/vulkan/device/gpu.h"
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
};

static const struct sample samples[] = {
    {1, 8, 8, 4, 4, true, 0, NONE},         {2, 9, 33, 5, 7, false, 0.5f, NONE},
    {3, 17, 32, 16, 16, true, 0.25f, FULL}, {2, 16, 65, 64, 64, true, 0.125f, BY_KEY},
    {2, 31, 31, 8, 128, false, 0, BY_ROW},  {1, 8, 100, 128, 9, true, 0.1f, BY_BATCH},
    {2, 12, 70, 6, 6, true, 1.5f, HIDES},
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
    uint32_t values = add_input(graph, "values", INF_DTYPE_F32,
                                INF_SHAPE(BATCH, heads, sample->keys, sample->width));
    uint32_t scores = node(graph, INF_OP_MATMUL, "scores", q, keys);
    last_attrs(graph)->matmul.transpose_b = sample->by_row;
    if (sample->scale != 0) {
        scores = node(graph, INF_OP_BINARY, "scale", scores,
                      add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1), &sample->scale));
        last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    }
    if (sample->mask != NONE)
        scores = node(graph, INF_OP_BINARY, "mask", scores, add_mask(graph, sample));
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
