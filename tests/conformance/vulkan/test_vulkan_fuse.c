// SPDX-License-Identifier: Apache-2.0
// Trees of element-wise nodes, which the vulkan backend computes with generated shaders, and sums
// that are fused into convolutions. Results must equal the results of the reference device `ref`
// however the nodes are divided into trees. Without shaderc the backend generates no trees, and the
// results are the same.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/graph/shape/infer.h"
#include "backends/jit/glsl.h"
#include "backends/vulkan/program/element_tree.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

#define ROWS     5
#define CHANNELS 12
#define ELEMENTS (ROWS * CHANNELS)

static uint32_t add_binary(struct inf_graph *graph, enum inf_binary_kind kind, uint32_t a,
                           uint32_t b)
{
    uint32_t value = node(graph, INF_OP_BINARY, "binary", a, b);
    last_attrs(graph)->binary.kind = kind;
    return value;
}

static uint32_t add_unary(struct inf_graph *graph, enum inf_unary_kind kind, uint32_t a)
{
    uint32_t value = node(graph, INF_OP_UNARY, "unary", a);
    last_attrs(graph)->unary.kind = kind;
    return value;
}

// Adds a constant row with one element for each channel.
static uint32_t add_row(struct inf_graph *graph, float first)
{
    float elements[CHANNELS];
    for (int i = 0; i < CHANNELS; i++)
        elements[i] = first + 0.125f * (float)i;
    return add_constant(graph, INF_DTYPE_F32, INF_SHAPE(CHANNELS), elements);
}

static struct inf_graph *finish_graph(struct inf_graph *graph, uint32_t y)
{
    add_output(graph, "y", y);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// Runs the graph on x = -3, -2.9, ... and destroys the graph. `device` is NULL for `ref`. Returns
// the number of steps of the run.
static uint32_t run_graph(struct inf_graph *graph, struct inf_device *device,
                          enum inf_precision precision, float y[ELEMENTS])
{
    float x[ELEMENTS + 16] = {0};
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = -3 + 0.1f * (float)i;
    return run_beside_ref(graph, device, precision, (const void *[]){x}, (void *[]){y}).steps;
}

// Makes clip(swish(neg(x) * row + row)). It becomes one tree, which reads x once and reads one
// intermediate value twice.
static struct inf_graph *make_swish(void)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(ROWS, CHANNELS));
    uint32_t scaled =
        add_binary(graph, INF_BINARY_MUL, add_unary(graph, INF_UNARY_NEG, x), add_row(graph, 1));
    uint32_t moved = add_binary(graph, INF_BINARY_ADD, scaled, add_row(graph, -0.5f));
    uint32_t abs = add_unary(graph, INF_UNARY_ABS, moved);
    uint32_t swish = add_binary(graph, INF_BINARY_MUL, abs, add_unary(graph, INF_UNARY_SIGMOID, x));
    uint32_t y = node(graph, INF_OP_CLIP, "clip", swish);
    last_attrs(graph)->clip.min = 0.25f;
    last_attrs(graph)->clip.max = 2;
    return finish_graph(graph, y);
}

Test(vulkan_fuse, computes_a_tree_in_one_step)
{
    struct inf_device *device = vulkan_open(NULL);
    float y[ELEMENTS], wanted[ELEMENTS];
    run_graph(make_swish(), NULL, INF_PRECISION_FP32, wanted);
    uint32_t steps = run_graph(make_swish(), device, INF_PRECISION_FP32, y);
    expect_near(y, wanted, ELEMENTS, 1e-6f, "y");
    // Worked out by hand for x = -3: |3 * 1 - 0.5| / (1 + e^3).
    cr_assert_float_eq(y[0], 0.25f, 1e-6, "clipped from 0.1186: %g", (double)y[0]);
    cr_assert_eq(steps, inf_glsl_available() ? 1u : 7u);
    inf_device_unref(&device);
}

Test(vulkan_fuse, computes_between_values_of_16_bits)
{
    struct inf_device *device = vulkan_open(NULL);
    float y[ELEMENTS], wanted[ELEMENTS];
    for (int i = 0; i < 2; i++) {
        // The Vulkan backend does not fuse softmax with its neighbours, so that its operand and
        // its result are stored, in 16 bits.
        struct inf_graph *graph = new_graph();
        uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(ROWS, CHANNELS));
        uint32_t before = add_binary(graph, INF_BINARY_MUL, add_unary(graph, INF_UNARY_TANH, x),
                                     add_row(graph, 1));
        uint32_t soft = node(graph, INF_OP_SOFTMAX, "softmax", before);
        uint32_t y_value =
            add_binary(graph, INF_BINARY_SUB, add_unary(graph, INF_UNARY_SQUARE, soft), soft);
        finish_graph(graph, y_value);
        run_graph(graph, i == 0 ? NULL : device, i == 0 ? INF_PRECISION_FP32 : INF_PRECISION_FP16,
                  i == 0 ? wanted : y);
    }
    expect_near(y, wanted, ELEMENTS, 2e-3f, "y");
    inf_device_unref(&device);
}

// Makes a chain of `nodes` nodes. Every second node reads its own constant row.
static struct inf_graph *make_chain(int nodes)
{
    struct inf_graph *graph = new_graph();
    uint32_t value = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(ROWS, CHANNELS));
    for (int i = 0; i < nodes; i++)
        value = i % 2 == 0
                    ? add_binary(graph, INF_BINARY_ADD, value, add_row(graph, (float)i * 0.01f))
                    : add_unary(graph, INF_UNARY_TANH, value);
    return finish_graph(graph, value);
}

Test(vulkan_fuse, cuts_what_has_no_room_in_one_shader)
{
    struct inf_device *device = vulkan_open(NULL);
    float y[ELEMENTS], wanted[ELEMENTS];
    for (int nodes = 1; nodes <= 40; nodes += 13) {
        run_graph(make_chain(nodes), NULL, INF_PRECISION_FP32, wanted);
        uint32_t steps = run_graph(make_chain(nodes), device, INF_PRECISION_FP32, y);
        expect_near(y, wanted, ELEMENTS, 1e-5f, "y");
        cr_assert_leq(steps, inf_glsl_available() ? (uint32_t)nodes / 8 + 1 : (uint32_t)nodes);
    }
    inf_device_unref(&device);
}

// Returns a number below `limit` from Knuth's linear congruential generator.
static uint32_t draw_below(uint64_t *state, uint32_t limit)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % limit;
}

// Makes random nodes that read earlier results. Several nodes may read the same result. All results
// are bounded.
static struct inf_graph *make_random(uint64_t seed)
{
    static const enum inf_unary_kind unaries[] = {INF_UNARY_NEG, INF_UNARY_ABS, INF_UNARY_SIGMOID,
                                                  INF_UNARY_TANH, INF_UNARY_RELU6};
    static const enum inf_binary_kind binaries[] = {INF_BINARY_ADD, INF_BINARY_SUB, INF_BINARY_MIN,
                                                    INF_BINARY_MAX};
    struct inf_graph *graph = new_graph();
    uint32_t values[16], count = 0;
    values[count++] = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(ROWS, CHANNELS));
    while (count < 14) {
        uint32_t a = values[count - 1 - draw_below(&seed, count < 3 ? count : 3)];
        uint32_t b = values[draw_below(&seed, count)];
        uint32_t what = draw_below(&seed, 4);
        enum inf_binary_kind kind = binaries[draw_below(&seed, INF_ARRAY_LENGTH(binaries))];
        values[count] =
            what == 0   ? add_unary(graph, unaries[draw_below(&seed, INF_ARRAY_LENGTH(unaries))], a)
            : what == 1 ? add_binary(graph, kind, a, add_row(graph, 0.5f))
            : what == 2 ? add_binary(graph, kind, floats(graph, INF_SHAPE(1), 0.75f), a)
                        : add_binary(graph, kind, a, b);
        count++;
    }
    return finish_graph(graph, values[count - 1]);
}

Test(vulkan_fuse, agrees_with_ref_on_random_trees)
{
    struct inf_device *device = vulkan_open(NULL);
    float y[ELEMENTS], wanted[ELEMENTS];
    for (uint64_t seed = 1; seed <= 6; seed++) {
        run_graph(make_random(seed), NULL, INF_PRECISION_FP32, wanted);
        run_graph(make_random(seed), device, INF_PRECISION_FP32, y);
        expect_near(y, wanted, ELEMENTS, 1e-5f, "y");
    }
    inf_device_unref(&device);
}

Test(vulkan_fuse, compiles_nothing_at_a_second_start)
{
    char directory[] = "/tmp/inferd-fuse-XXXXXX", command[64];
    float y[ELEMENTS], wanted[ELEMENTS];
    if (!inf_glsl_available())
        cr_skip_test("built without shaderc");
    cr_assert_not_null(mkdtemp(directory));
    for (int start = 0; start < 3; start++) {
        struct inf_device *device = vulkan_open(directory);
        run_graph(make_swish(), device, INF_PRECISION_FP32, start == 0 ? wanted : y);
        cr_assert_eq(inf_device_get_count(device, INF_COUNT_SHADERS_COMPILED),
                     start == 1 ? 0u : 1u);
        // The shader that the third start compiles equals the one of the second start, so the
        // cache has its pipeline.
        cr_assert_eq(inf_device_get_count(device, INF_COUNT_PIPELINES), 1u);
        cr_assert_eq(inf_device_get_count(device, INF_COUNT_PIPELINES_KNOWN), start == 0 ? 0u : 1u);
        if (start > 0)
            expect_near(y, wanted, ELEMENTS, 0, "y");
        inf_device_unref(&device);
        // Change one byte of the shader file, so that the third start must reject it and compile
        // again.
        snprintf(command, sizeof(command),
                 "printf x | dd conv=notrunc status=none bs=1 seek=999 of=");
        if (start == 1) {
            char line[160];
            snprintf(line, sizeof(line), "for f in %s/fused-*.spv; do %s$f; done", directory,
                     command);
            cr_assert_eq(system(line), 0);
        }
    }
    char line[96];
    snprintf(line, sizeof(line), "rm -r %s", directory);
    cr_assert_eq(system(line), 0);
}

Test(vulkan_fuse, fuses_nothing_where_the_driver_cannot_build_it)
{
    if (getenv("VULKAN_FAULT_LAYER") == NULL || !inf_glsl_available())
        cr_skip_test("another layer is tested, or there is nothing to fail");
    struct vulkan_faults *faults = vulkan_faults_install();
    cr_assert_not_null(faults);
    float y[ELEMENTS], wanted[ELEMENTS];
    struct inf_device *device = vulkan_open(NULL);
    run_graph(make_swish(), NULL, INF_PRECISION_FP32, wanted);
    cr_assert_eq(run_graph(make_swish(), device, INF_PRECISION_FP32, y), 1u);
    uint64_t hash = ((struct vk_gpu *)device)->fused_shaders.list->hash;
    inf_device_unref(&device);
    device = vulkan_open(NULL);
    // The driver refuses the pipeline whose specialisation constant 1, the lower half of the
    // shader's hash, has this value.
    faults->pipeline_word = 1;
    faults->pipeline_value = (uint32_t)hash;
    faults->pipeline = VK_ERROR_UNKNOWN;
    cr_assert_eq(run_graph(make_swish(), device, INF_PRECISION_FP32, y), 7u);
    expect_near(y, wanted, ELEMENTS, 1e-6f, "y");
    inf_device_unref(&device);
}

// --- sums fused into convolutions ---

// Selects the nodes that a test case adds before and after a convolution of x.
struct around {
    bool swapped; // the convolution is the second operand of the sum; otherwise the first
    bool padded;  // the other operand has fewer channels and is padded with zeros
    bool prelu, relu;
    bool read_twice; // two nodes read the convolution's result, so the pass must not fuse the sum
    uint32_t steps;  // the expected number of steps
};

static uint32_t add_convolution(struct inf_graph *graph, uint32_t x, int64_t channels, float first)
{
    float filter[3 * CHANNELS * CHANNELS], bias[CHANNELS];
    for (int i = 0; i < 3 * CHANNELS * CHANNELS; i++)
        filter[i] = (float)(i * 7919 % 31 - 15) / 64;
    for (int i = 0; i < CHANNELS; i++)
        bias[i] = first - 0.25f * (float)i;
    uint32_t value =
        node(graph, INF_OP_CONV2D, "conv", x,
             add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 1, CHANNELS, channels), filter),
             add_constant(graph, INF_DTYPE_F32, INF_SHAPE(channels), bias));
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    return value;
}

static struct inf_graph *make_sum(const struct around *around)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, ROWS, 1, CHANNELS));
    uint32_t other = x;
    static const int32_t behind[8] = {[7] = CHANNELS - 8};
    if (around->padded)
        other = node(graph, INF_OP_PAD, "pad", add_convolution(graph, x, 8, 2),
                     add_constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), behind));
    uint32_t conv = add_convolution(graph, x, CHANNELS, 1);
    uint32_t sum = around->swapped ? add_binary(graph, INF_BINARY_ADD, other, conv)
                                   : add_binary(graph, INF_BINARY_ADD, conv, other);
    if (around->relu)
        last_attrs(graph)->binary.activation = INF_ACTIVATION_RELU;
    if (around->prelu)
        sum = node(graph, INF_OP_PRELU, "prelu", sum, add_row(graph, -0.5f));
    if (around->read_twice)
        sum = add_binary(graph, INF_BINARY_SUB, node(graph, INF_OP_SOFTMAX, "soft", conv), sum);
    return finish_graph(graph, sum);
}

static const struct around arounds[] = {
    {.steps = 1},
    {.swapped = true, .relu = true, .steps = 1},
    {.swapped = true, .padded = true, .prelu = true, .steps = 2},
    {.padded = true, .relu = true, .steps = 2},
    {.read_twice = true, .steps = 3}, // the sum and the difference form one tree
};

Test(vulkan_fuse, adds_to_a_convolution_in_its_step)
{
    struct inf_device *device = vulkan_open(NULL);
    float y[ELEMENTS], wanted[ELEMENTS];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(arounds); i++) {
        run_graph(make_sum(&arounds[i]), NULL, INF_PRECISION_FP32, wanted);
        uint32_t steps = run_graph(make_sum(&arounds[i]), device, INF_PRECISION_FP32, y);
        expect_near(y, wanted, ELEMENTS, 1e-5f, "y");
        if (inf_glsl_available())
            cr_assert_eq(steps, arounds[i].steps, "sum %zu took %u steps", i, steps);
        run_graph(make_sum(&arounds[i]), device, INF_PRECISION_FP16, y);
        expect_near(y, wanted, ELEMENTS, 5e-3f, "y");
    }
    inf_device_unref(&device);
}

Test(vulkan_fuse, adds_apart_where_the_driver_cannot_build_it)
{
    if (getenv("VULKAN_FAULT_LAYER") == NULL)
        cr_skip_test("another layer is tested");
    struct vulkan_faults *faults = vulkan_faults_install();
    cr_assert_not_null(faults);
    float y[ELEMENTS], wanted[ELEMENTS];
    struct inf_device *device = vulkan_open(NULL);
    const struct around *around = &arounds[1];
    run_graph(make_sum(around), NULL, INF_PRECISION_FP32, wanted);
    // The driver refuses pipelines whose specialisation constant 8, ADDS of conv.comp, is 1.
    faults->pipeline_word = 8;
    faults->pipeline_value = 1;
    faults->pipeline = VK_ERROR_UNKNOWN;
    cr_assert_eq(run_graph(make_sum(around), device, INF_PRECISION_FP32, y), 2u);
    expect_near(y, wanted, ELEMENTS, 1e-5f, "y");
    inf_device_unref(&device);
}
