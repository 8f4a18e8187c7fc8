// SPDX-License-Identifier: Apache-2.0
// Networks of consecutive convolutions, compared with the reference device `ref`. The networks are
// so large that the cpu device computes a few rows of each convolution in turn (row pipelines).
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/shape/infer.h"
#include "backends/registry.h"

#define NETS     12u
#define FEW_NETS 3u // further nets, with few pixels and many weights

struct net {
    uint32_t random;
    struct inf_graph *graph;
    uint32_t value;           // the result of the last node added
    int64_t height, width, c; // the dimensions of `value`
    // second input, with the shape of the first result, for sums; INF_VALUE_NONE if there is none
    uint32_t aside;
};

static uint32_t draw_below(struct net *net, uint32_t count)
{
    net->random = net->random * 1664525u + 1013904223u;
    return (net->random >> 10) % count;
}

static uint32_t add_constant(struct net *net, const struct inf_shape *shape, float scale)
{
    uint32_t value;
    size_t count = inf_shape_elements(shape);
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    float *data = blob->data;
    for (size_t i = 0; i < count; i++)
        data[i] = ((float)draw_below(net, 2001) / 1000 - 1) * scale;
    cr_assert_eq(inf_graph_add_const(net->graph, "c", INF_DTYPE_F32, shape, blob, &value, NULL),
                 INF_OK);
    return value;
}

static struct inf_node *add_node(struct net *net, enum inf_op op, const uint32_t *inputs,
                                 uint32_t count)
{
    uint32_t index;
    cr_assert_eq(inf_graph_add_node(net->graph, op, "n", "", inputs, count, 1, &index, NULL),
                 INF_OK);
    net->value = net->graph->nodes[index].outputs[0];
    return &net->graph->nodes[index];
}

static void draw_activation(struct net *net, enum inf_activation *kind, float *min, float *max,
                            float *alpha)
{
    static const enum inf_activation kinds[] = {INF_ACTIVATION_NONE, INF_ACTIVATION_RELU6,
                                                INF_ACTIVATION_CLIP, INF_ACTIVATION_LEAKY_RELU,
                                                INF_ACTIVATION_TANH, INF_ACTIVATION_SILU};
    *kind = kinds[draw_below(net, INF_ARRAY_LENGTH(kinds))];
    *min = -0.5f;
    *max = 2;
    *alpha = 0.25f;
}

static void add_convolution(struct net *net, int64_t outputs, int32_t taps, int32_t stride,
                            bool plain)
{
    uint32_t inputs[] = {net->value,
                         add_constant(net, &INF_SHAPE(taps, taps, net->c, outputs),
                                      1 / sqrtf((float)(taps * taps) * (float)net->c)),
                         add_constant(net, &INF_SHAPE(outputs), 0.5f)};
    struct inf_attrs_conv2d *attrs =
        &add_node(net, INF_OP_CONV2D, inputs, draw_below(net, 4) ? 3 : 2)->attrs.conv2d;
    attrs->padding = INF_PADDING_SAME;
    attrs->stride_h = attrs->stride_w = stride;
    if (!plain)
        draw_activation(net, &attrs->activation, &attrs->activation_min, &attrs->activation_max,
                        &attrs->activation_alpha);
    net->c = outputs;
    net->height = (net->height + stride - 1) / stride;
    net->width = (net->width + stride - 1) / stride;
}

static void add_depthwise(struct net *net, int32_t taps, int32_t stride)
{
    uint32_t inputs[] = {net->value,
                         add_constant(net, &INF_SHAPE(taps, taps, net->c, 1), 1 / (float)taps),
                         add_constant(net, &INF_SHAPE(net->c), 0.5f)};
    struct inf_attrs_depthwise_conv2d *attrs =
        &add_node(net, INF_OP_DEPTHWISE_CONV2D, inputs, 3)->attrs.depthwise_conv2d;
    attrs->padding = INF_PADDING_SAME;
    attrs->stride_h = attrs->stride_w = stride;
    if (stride == 1 && draw_below(net, 4) == 0)
        attrs->dilation_h = attrs->dilation_w = (int32_t)(2 + draw_below(net, 2));
    draw_activation(net, &attrs->activation, &attrs->activation_min, &attrs->activation_max,
                    &attrs->activation_alpha);
    net->height = (net->height + stride - 1) / stride;
    net->width = (net->width + stride - 1) / stride;
}

static void add_sum(struct net *net, uint32_t other, int64_t channels)
{
    if (channels < net->c) {
        uint32_t result = net->value;
        uint32_t inputs[2] = {other};
        struct inf_blob *paddings = inf_blob_create(8 * sizeof(int32_t));
        ((int32_t *)paddings->data)[7] = (int32_t)(net->c - channels);
        cr_assert_eq(inf_graph_add_const(net->graph, "p", INF_DTYPE_I32, &INF_SHAPE(4, 2), paddings,
                                         &inputs[1], NULL),
                     INF_OK);
        add_node(net, INF_OP_PAD, inputs, 2);
        other = net->value;
        net->value = result;
    }
    uint32_t inputs[] = {net->value, other};
    if (draw_below(net, 2)) {
        inputs[0] = other;
        inputs[1] = net->value;
    }
    struct inf_attrs_binary *attrs = &add_node(net, INF_OP_BINARY, inputs, 2)->attrs.binary;
    attrs->kind = INF_BINARY_ADD;
    if (draw_below(net, 3) == 0) {
        uint32_t with_slopes[] = {net->value, add_constant(net, &INF_SHAPE(net->c), 0.5f)};
        add_node(net, INF_OP_PRELU, with_slopes, 2);
    } else if (draw_below(net, 2)) {
        attrs->activation = INF_ACTIVATION_RELU;
    }
}

// Adds a block of layers as found in mobile networks.
static void add_block(struct net *net)
{
    uint32_t before = net->value;
    int64_t channels = net->c;
    int32_t stride = net->height > 40 && draw_below(net, 5) == 0 ? 2 : 1;
    int32_t taps = draw_below(net, 2) ? 3 : 5;
    bool adds = stride == 1 && draw_below(net, 3) > 0;
    int64_t outputs = adds ? channels + (draw_below(net, 3) ? 0 : 4) : 8 + draw_below(net, 30);
    switch (draw_below(net, 4)) {
    case 0: // a block of an expansion, a depthwise convolution and a projection
        add_convolution(net, channels * 3 + draw_below(net, 5), 1, 1, false);
        add_depthwise(net, taps, stride);
        add_convolution(net, outputs, 1, 1, adds);
        break;
    case 1:
        add_convolution(net, outputs, 3, stride, adds);
        break;
    default:
        add_depthwise(net, taps, stride);
        add_convolution(net, outputs, 1, 1, adds);
        break;
    }
    if (adds && net->aside != INF_VALUE_NONE && net->c == channels && draw_below(net, 3) == 0) {
        add_sum(net, net->aside, channels);
        net->aside = INF_VALUE_NONE;
    } else if (adds) {
        add_sum(net, before, channels);
    }
}

static void build_net(struct net *net, uint32_t seed)
{
    *net = (struct net){.random = seed * 2654435761u + 1, .aside = INF_VALUE_NONE};
    cr_assert_eq(inf_graph_create(&net->graph, NULL), INF_OK);
    int64_t batch = 1 + (int64_t)draw_below(net, 2);
    net->height = 65 + (int64_t)draw_below(net, 60);
    net->width = 65 + (int64_t)draw_below(net, 60);
    net->c = 16 + (int64_t)draw_below(net, 24);
    cr_assert_eq(inf_graph_add_value(net->graph, "x", INF_DTYPE_F32,
                                     &INF_SHAPE(batch, net->height, net->width, net->c),
                                     &net->value, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(net->graph, "x", net->value, NULL), INF_OK);
    if (draw_below(net, 2)) {
        cr_assert_eq(inf_graph_add_value(net->graph, "aside", INF_DTYPE_F32,
                                         &INF_SHAPE(batch, net->height, net->width, net->c),
                                         &net->aside, NULL),
                     INF_OK);
        cr_assert_eq(inf_graph_add_input(net->graph, "aside", net->aside, NULL), INF_OK);
    }
    int64_t height = net->height;
    int64_t c = net->c;
    for (uint32_t i = 0; i < 5; i++) {
        add_block(net);
        if (net->height != height || net->c != c)
            net->aside = INF_VALUE_NONE;
        // An intermediate result that is also an output must be written to memory.
        char name[16];
        snprintf(name, sizeof(name), "y%u", i);
        if (draw_below(net, 8) == 0)
            cr_assert_eq(inf_graph_add_output(net->graph, name, net->value, NULL), INF_OK);
    }
    cr_assert_eq(inf_graph_add_output(net->graph, "y", net->value, NULL), INF_OK);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(net->graph, &err), INF_OK, "%s", err.text);
}

// Adds a transposed convolution with windows that overlap, which several threads compute in strips.
static void add_transposed(struct net *net, int64_t outputs)
{
    const int32_t size[] = {2, (int32_t)net->height * 2, (int32_t)net->width * 2, (int32_t)outputs};
    struct inf_blob *blob = inf_blob_create(sizeof size);
    memcpy(blob->data, size, sizeof size);
    uint32_t inputs[] = {
        net->value,
        add_constant(net, &INF_SHAPE(5, 3, outputs, net->c), 1 / sqrtf(8 * (float)net->c)), 0,
        add_constant(net, &INF_SHAPE(outputs), 0.5f)};
    cr_assert_eq(
        inf_graph_add_const(net->graph, "s", INF_DTYPE_I32, &INF_SHAPE(4), blob, &inputs[2], NULL),
        INF_OK);
    struct inf_attrs_conv2d_transpose *attrs =
        &add_node(net, INF_OP_CONV2D_TRANSPOSE, inputs, 4)->attrs.conv2d_transpose;
    attrs->padding = INF_PADDING_SAME;
    attrs->stride_h = attrs->stride_w = 2;
    attrs->activation = INF_ACTIVATION_RELU;
}

// Builds a net whose convolutions have few pixels and weights of more than 1 MiB, so that the cpu
// device copies the pixels under their windows.
static void build_few_pixels(struct net *net, uint32_t seed)
{
    *net = (struct net){.random = seed * 2654435761u + 1, .aside = INF_VALUE_NONE};
    cr_assert_eq(inf_graph_create(&net->graph, NULL), INF_OK);
    net->height = 13;
    net->width = 9 + (int64_t)draw_below(net, 6);
    net->c = 128;
    cr_assert_eq(inf_graph_add_value(net->graph, "x", INF_DTYPE_F32,
                                     &INF_SHAPE(2, net->height, net->width, net->c), &net->value,
                                     NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(net->graph, "x", net->value, NULL), INF_OK);
    add_convolution(net, 256, 3, 2, false);
    uint32_t before = net->value;
    add_convolution(net, 256, 3, 1, true);
    add_sum(net, before, 256);
    add_convolution(net, 1100, 1, 2, false);
    add_transposed(net, 20);
    cr_assert_eq(inf_graph_add_output(net->graph, "y", net->value, NULL), INF_OK);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(net->graph, &err), INF_OK, "%s", err.text);
}

struct result {
    struct inf_blob *outputs[8];
    uint32_t count;
    uint32_t streams; // number of steps that computed several chains
    bool wide;        // the device has vectors wide enough for the project's own convolutions
};

static void run_net(struct result *result, uint32_t seed, const char *backend, uint32_t threads)
{
    struct net net;
    struct inf_device *devices[2] = {NULL, NULL};
    struct inf_device_options options = {.slots = 1, .threads = threads};
    struct inf_error err = {0};
    if (seed < NETS)
        build_net(&net, seed);
    else
        build_few_pixels(&net, seed);
    *result = (struct result){.count = net.graph->output_count};
    cr_assert_eq(inf_device_open(&devices[0], inf_registry_find(backend), 0, &options, NULL),
                 INF_OK);
    cr_assert_eq(inf_device_open(&devices[1], inf_registry_find("ref"), 0, &options, NULL), INF_OK);
    struct inf_blob *inputs[2] = {NULL, NULL};
    const void *input_data[2];
    void *output_data[8];
    for (uint32_t i = 0; i < net.graph->input_count; i++) {
        size_t count = inf_shape_elements(&net.graph->values[net.graph->inputs[i].value].shape);
        inputs[i] = inf_blob_create(count * sizeof(float));
        float *data = inputs[i]->data;
        for (size_t k = 0; k < count; k++)
            data[k] = (float)((k * 7919 + i * 31) % 255) / 127 - 1;
        input_data[i] = data;
    }
    for (uint32_t i = 0; i < result->count; i++) {
        size_t count = inf_shape_elements(&net.graph->values[net.graph->outputs[i].value].shape);
        result->outputs[i] = inf_blob_create(count * sizeof(float));
        output_data[i] = result->outputs[i]->data;
    }
    result->wide = strstr(inf_device_info(devices[0])->description, "AVX") != NULL;
    struct inf_executable *executable = NULL;
    cr_assert_eq(inf_static_executable_create(&executable, &net.graph, devices, 2, NULL, &err),
                 INF_OK, "%s", err.text);
    struct inf_execution execution = {
        .inputs = input_data, .outputs = output_data, .profile = true};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    struct inf_node_profile steps[64];
    uint32_t count = inf_executable_profile(executable, 0, steps, 64);
    for (uint32_t i = 0; i < count && i < 64; i++)
        result->streams +=
            steps[i].kernel != NULL && strcmp(steps[i].kernel, "rows of chains") == 0;
    inf_executable_destroy(&executable);
    for (uint32_t i = 0; i < 2; i++) {
        inf_blob_unref(&inputs[i]);
        inf_device_unref(&devices[i]);
    }
}

static void free_result(struct result *result)
{
    for (uint32_t i = 0; i < result->count; i++)
        inf_blob_unref(&result->outputs[i]);
}

static void compare_results(const struct result *got, const struct result *wanted, uint32_t seed,
                            uint32_t threads)
{
    for (uint32_t i = 0; i < wanted->count; i++) {
        const float *y = got->outputs[i]->data;
        const float *exact = wanted->outputs[i]->data;
        float largest = 1;
        for (size_t k = 0; k < wanted->outputs[i]->size_bytes / sizeof(float); k++)
            largest = fmaxf(largest, fabsf(exact[k]));
        for (size_t k = 0; k < wanted->outputs[i]->size_bytes / sizeof(float); k++)
            cr_assert_float_eq(y[k], exact[k], 2e-5f * largest,
                               "net %u, %u threads, output %u, element %zu", seed, threads, i, k);
    }
}

Test(chains, rows_in_turn_give_what_layers_one_by_one_give)
{
    uint32_t streams = 0;
    bool wide = false;
    if (inf_registry_find("cpu") == NULL)
        return;
    for (uint32_t seed = 0; seed < NETS + FEW_NETS; seed++) {
        struct result wanted;
        run_net(&wanted, seed, "ref", 1);
        for (uint32_t threads = 1; threads <= 3; threads++) {
            struct result got;
            run_net(&got, seed, "cpu", threads);
            compare_results(&got, &wanted, seed, threads);
            streams += got.streams;
            wide = got.wide;
            free_result(&got);
        }
        free_result(&wanted);
    }
    // The cpu device forms no chains if its vectors are too narrow for the project's own
    // convolutions.
    if (wide)
        cr_assert_gt(streams, 0u);
}
