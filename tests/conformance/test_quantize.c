// SPDX-License-Identifier: Apache-2.0
// The pass that replaces operators between dequantize and quantize by operators on bytes, run on
// the reference device `ref`. Matrix products and convolutions may differ by one quantisation step
// of y. All other results must be equal.
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/device/device.h"
#include "backends/graph/pass/pass.h"
#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "backends/registry.h"

#define CHANNELS 5
#define Y_SCALE  0.05f

static uint32_t state;

static uint32_t draw_bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static uint32_t add_constant(struct inf_graph *graph, enum inf_dtype dtype,
                             const struct inf_shape *shape, const void *data)
{
    uint32_t value;
    struct inf_blob *blob = inf_blob_create(inf_shape_elements(shape) * inf_dtype_size(dtype));
    memcpy(blob->data, data, blob->size_bytes);
    cr_assert_eq(inf_graph_add_const(graph, "c", dtype, shape, blob, &value, NULL), INF_OK);
    return value;
}

static uint32_t add_node(struct inf_graph *graph, enum inf_op op, const uint32_t *inputs,
                         uint32_t count, uint32_t *node)
{
    cr_assert_eq(inf_graph_add_node(graph, op, "n", "", inputs, count, 1, node, NULL), INF_OK);
    return graph->nodes[*node].outputs[0];
}

// Adds nodes that quantise x to bytes with this scale and zero point, and dequantise the bytes
// again.
static uint32_t there_and_back(struct inf_graph *graph, uint32_t x, float scale, uint8_t zero)
{
    const struct inf_shape one = {0};
    uint32_t node;
    uint32_t inputs[] = {x, add_constant(graph, INF_DTYPE_F32, &one, &scale),
                         add_constant(graph, INF_DTYPE_U8, &one, &zero)};
    inputs[0] = add_node(graph, INF_OP_QUANTIZE, inputs, 3, &node);
    return add_node(graph, INF_OP_DEQUANTIZE, inputs, 3, &node);
}

// Number of scales of the filter that add_convolution() added last.
static size_t scale_count;

// Adds a convolution of x with a filter of bytes that are dequantised per channel, or with one
// scale. If `depthwise`, each channel has its own filter.
static uint32_t add_convolution(struct inf_graph *graph, uint32_t x, bool depthwise, bool relu)
{
    const struct inf_shape each = INF_SHAPE(CHANNELS);
    struct inf_shape shape = INF_SHAPE(3, 3, CHANNELS, depthwise ? 1 : CHANNELS);
    int8_t w[3 * 3 * CHANNELS * CHANNELS];
    float scales[CHANNELS];
    float bias[CHANNELS];
    uint32_t node;
    for (size_t i = 0; i < sizeof(w); i++)
        w[i] = (int8_t)draw_bits();
    for (size_t i = 0; i < CHANNELS; i++) {
        scales[i] = (float)(1 + draw_bits() % 100) * 1e-4f;
        bias[i] = (float)(draw_bits() % 100) * 0.01f - 0.5f;
    }
    scale_count = draw_bits() % 2 == 0 ? 1 : CHANNELS;
    const struct inf_shape one = {0};
    const uint32_t of_w[] = {
        add_constant(graph, INF_DTYPE_I8, &shape, w),
        add_constant(graph, INF_DTYPE_F32, scale_count == 1 ? &one : &each, scales)};
    uint32_t filter = add_node(graph, INF_OP_DEQUANTIZE, of_w, 2, &node);
    graph->nodes[node].attrs.dequantize.axis = depthwise ? 2 : 3;
    const uint32_t inputs[] = {x, filter, add_constant(graph, INF_DTYPE_F32, &each, bias)};
    uint32_t y =
        add_node(graph, depthwise ? INF_OP_DEPTHWISE_CONV2D : INF_OP_CONV2D, inputs, 3, &node);
    if (depthwise)
        graph->nodes[node].attrs.depthwise_conv2d.padding = INF_PADDING_SAME;
    else
        graph->nodes[node].attrs.conv2d.padding = INF_PADDING_SAME;
    if (!relu)
        return y;
    y = add_node(graph, INF_OP_UNARY, &y, 1, &node);
    graph->nodes[node].attrs.unary.kind = INF_UNARY_RELU6;
    return y;
}

enum form {
    FORM_CONV,
    FORM_DEPTHWISE,
    FORM_ADD,
    FORM_TRANSPOSED, // a transpose is between dequantize and the convolution
    FORM_RESHAPED,   // a reshape is between dequantize and the convolution
    FORM_FUNCTION,
    FORM_COUNT
};

static struct inf_graph *make_graph(enum form form, bool relu)
{
    struct inf_graph *graph;
    struct inf_shape shape = INF_SHAPE(1, 6, 5, CHANNELS);
    uint32_t x;
    uint32_t node;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    uint32_t a = there_and_back(graph, x, 0.03f, 120);
    uint32_t y = a;
    if (form == FORM_ADD) {
        const uint32_t inputs[] = {a, there_and_back(graph, x, 0.011f, 7)};
        y = add_node(graph, INF_OP_BINARY, inputs, 2, &node);
    } else if (form == FORM_FUNCTION) {
        y = add_node(graph, INF_OP_UNARY, &a, 1, &node);
        graph->nodes[node].attrs.unary.kind = relu ? INF_UNARY_TANH : INF_UNARY_SIGMOID;
        if (relu)
            y = add_node(graph, INF_OP_CLIP, &y, 1, &node);
        if (relu)
            graph->nodes[node].attrs.clip.min = -0.25f;
        a = there_and_back(graph, y, 1 / 200.0f, 50);
        // The bytes of x have a second reader.
        const uint32_t inputs[] = {a, there_and_back(graph, x, 0.03f, 120)};
        y = add_node(graph, INF_OP_BINARY, inputs, 2, &node);
        graph->nodes[node].attrs.binary.kind = INF_BINARY_MUL;
    } else if (form == FORM_TRANSPOSED) {
        y = add_node(graph, INF_OP_TRANSPOSE, &a, 1, &node);
        graph->nodes[node].attrs.transpose.perm =
            (struct inf_ints){.count = 4, .values = {0, 2, 1, 3}};
        y = add_convolution(graph, y, false, relu);
    } else if (form == FORM_RESHAPED) {
        static const int32_t dims[] = {1, 5, 6, CHANNELS};
        const struct inf_shape four = INF_SHAPE(4);
        const uint32_t inputs[] = {a, add_constant(graph, INF_DTYPE_I32, &four, dims)};
        y = add_convolution(graph, add_node(graph, INF_OP_RESHAPE, inputs, 2, &node), false, relu);
    } else {
        y = add_convolution(graph, a, form == FORM_DEPTHWISE, relu);
    }
    y = there_and_back(graph, y, Y_SCALE, 100);
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    return graph;
}

static bool has_op(const struct inf_graph *graph, enum inf_op op)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == op)
            return true;
    return false;
}

// Runs all passes except those in `disabled`, then runs the graph. Sets *fused to whether the
// rewritten graph contains `op`.
static void run_passes(struct inf_device *ref, struct inf_graph *graph, uint32_t disabled,
                       enum inf_op op, float *y, bool *fused)
{
    const struct inf_pass_options options = {.disabled = disabled,
                                             .evaluator = inf_registry_evaluator()};
    struct inf_binding bindings[64] = {0};
    uint32_t nodes[32];
    struct inf_program *program;
    struct inf_error err = {0};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
    *fused = has_op(graph, op);
    cr_assert_lt(graph->value_count, 64);
    for (uint32_t i = 0; i < graph->value_count; i++)
        bindings[i].host = graph->values[i].data == NULL ? calloc(1, 4096) : NULL;
    float *x = bindings[graph->inputs[0].value].host;
    state = 99;
    for (size_t i = 0; i < (size_t)6 * 5 * CHANNELS; i++)
        x[i] = (float)(draw_bits() % 1000) * 0.01f - 5;
    for (uint32_t i = 0; i < graph->node_count; i++)
        nodes[i] = i;
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = graph->node_count, .slots = 1};
    cr_assert_eq(inf_program_compile(&program, ref, &segment, 0, &err), INF_OK, "%s", err.text);
    struct inf_ticket ticket = {0};
    const struct inf_run go = {.bindings = bindings};
    cr_assert_eq(inf_program_run(program, &go, &ticket, &err), INF_OK, "%s", err.text);
    memcpy(y, bindings[graph->outputs[0].value].host, (size_t)6 * 5 * CHANNELS * sizeof(*y));
    inf_program_destroy(&program);
    for (uint32_t i = 0; i < graph->value_count; i++)
        free(bindings[i].host);
}

Test(quantize, bytes_give_what_floats_gave_but_for_a_step)
{
    static const enum inf_op ops[] = {INF_OP_QCONV2D, INF_OP_QCONV2D, INF_OP_QBINARY,
                                      INF_OP_QCONV2D, INF_OP_QCONV2D, INF_OP_LOOKUP};
    struct inf_device *ref;
    float was[6 * 5 * CHANNELS];
    float is[6 * 5 * CHANNELS];
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, NULL, NULL), INF_OK);
    for (uint32_t seed = 0; seed < 20 * FORM_COUNT; seed++) {
        enum form form = (enum form)(seed % FORM_COUNT);
        bool fused;
        state = seed;
        struct inf_graph *before = make_graph(form, seed % 2 == 0);
        state = seed;
        struct inf_graph *after = make_graph(form, seed % 2 == 0);
        run_passes(ref, before, 1u << INF_PASS_QUANTIZE, ops[form], was, &fused);
        cr_assert_not(fused);
        run_passes(ref, after, 0, ops[form], is, &fused);
        cr_assert(fused, "form %d", form);
        for (uint32_t i = 0; i < after->node_count && ops[form] == INF_OP_QCONV2D; i++)
            if (after->nodes[i].op == INF_OP_QCONV2D)
                cr_expect_eq(inf_shape_elements(&after->values[after->nodes[i].inputs[5]].shape),
                             scale_count);
        for (size_t i = 0; i < INF_ARRAY_LENGTH(was); i++) {
            float steps = fabsf(was[i] - is[i]) / Y_SCALE;
            bool exact = form == FORM_ADD || form == FORM_FUNCTION;
            cr_assert_lt(steps, exact ? 0.01f : 1.01f, "form %d, element %zu: %g, %g", form, i,
                         (double)was[i], (double)is[i]);
        }
        inf_graph_destroy(&before);
        inf_graph_destroy(&after);
    }
    inf_device_unref(&ref);
}

// Pads are between dequantize and quantize of equal scales. Returns whether the graph, run through
// the passes, pads bytes. The output must be that of the floats.
static bool pads_bytes(struct inf_device *ref, enum inf_pad_mode mode, float value, uint8_t zero,
                       float y_scale, bool has_value)
{
    static const int32_t paddings[] = {0, 0, 0, 0, 0, 0, 0, 2};
    const struct inf_shape each = INF_SHAPE(4, 2), one = {0};
    float was[6 * 5 * CHANNELS], is[6 * 5 * CHANNELS];
    bool fused, is_first = true;
    for (uint32_t disabled = 1u << INF_PASS_QUANTIZE;; disabled = 0, is_first = false) {
        struct inf_graph *graph;
        struct inf_shape shape = INF_SHAPE(1, 6, 5, CHANNELS - 2);
        uint32_t x, node;
        cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
        const uint32_t inputs[] = {there_and_back(graph, x, 0.05f, zero),
                                   add_constant(graph, INF_DTYPE_I32, &each, paddings),
                                   add_constant(graph, INF_DTYPE_F32, &one, &value)};
        uint32_t y = add_node(graph, INF_OP_PAD, inputs, has_value ? 3 : 2, &node);
        graph->nodes[node].attrs.pad.mode = mode;
        y = there_and_back(graph, y, y_scale, zero);
        cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
        run_passes(ref, graph, disabled, INF_OP_PAD, is_first ? was : is, &fused);
        cr_assert(fused);
        uint32_t floats = 0;
        for (uint32_t i = 0; i < graph->node_count; i++)
            if (graph->nodes[i].op == INF_OP_PAD)
                floats += graph->values[graph->nodes[i].outputs[0]].dtype == INF_DTYPE_F32;
        inf_graph_destroy(&graph);
        cr_assert(!is_first || floats == 1);
        if (is_first)
            continue;
        for (size_t i = 0; i < INF_ARRAY_LENGTH(was); i++)
            cr_assert_eq(was[i], is[i], "element %zu: %g, %g", i, (double)was[i], (double)is[i]);
        return floats == 0;
    }
}

Test(quantize, pads_with_zeros_are_pads_of_bytes_with_zero_points)
{
    struct inf_device *ref;
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, NULL, NULL), INF_OK);
    cr_expect(pads_bytes(ref, INF_PAD_CONSTANT, 0, 100, 0.05f, true));
    cr_expect(pads_bytes(ref, INF_PAD_CONSTANT, 0, 0, 0.05f, true));
    cr_expect(pads_bytes(ref, INF_PAD_CONSTANT, 0, 77, 0.05f, false));
    cr_expect_not(pads_bytes(ref, INF_PAD_CONSTANT, 1, 100, 0.05f, true));
    cr_expect_not(pads_bytes(ref, INF_PAD_CONSTANT, 0, 100, 0.04f, true));
    cr_expect_not(pads_bytes(ref, INF_PAD_REFLECT, 0, 100, 0.05f, false));
    inf_device_unref(&ref);
}
