// SPDX-License-Identifier: Apache-2.0
// Helpers that the tests of the vulkan backend share.
#ifndef INF_TESTS_SUPPORT_DEVICE_VULKAN_KIT_H
#define INF_TESTS_SUPPORT_DEVICE_VULKAN_KIT_H

#include <criterion/criterion.h>

#include "backends/storage/race_results.h"
#include "backends/vulkan/device/device.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/vulkan.h"

// Opens the first Vulkan device. Skips the test if there is no driver.
static inline struct inf_device *vulkan_open_with(const struct inf_device_options *options)
{
    struct inf_device *device = NULL;
    struct inf_error err = {0};
    if (inf_vulkan_backend.probe() == 0)
        cr_skip_test("no Vulkan driver finds a device");
    cr_assert_eq(inf_device_open(&device, &inf_vulkan_backend, 0, options, &err), INF_OK, "%s",
                 err.text);
    return device;
}

static inline struct inf_device *vulkan_open(const char *cache_directory)
{
    const struct inf_device_options options = {.slots = 2, .cache_directory = cache_directory};
    return vulkan_open_with(&options);
}

// Gives a device records of races that hold no winners.
static inline void vulkan_reopen_races(struct inf_device *device)
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    inf_race_results_close(&gpu->races);
    cr_assert_eq(vk_gpu_open_races(gpu, NULL), INF_OK);
}

// A program that computes y [elements] = -x [elements], with the buffers for its runs.
struct negation {
    struct inf_graph *graph;
    struct inf_program *program;
    struct inf_buffer *x, *y;
    uint32_t x_value, y_value;
    int64_t elements;
};

static inline enum inf_code negation_init(struct negation *negation, struct inf_device *device,
                                          int64_t elements, struct inf_error *err)
{
    struct inf_shape shape = INF_SHAPE(elements);
    uint32_t node;
    *negation = (struct negation){.elements = elements};
    INF_TRY(inf_graph_create(&negation->graph, err));
    INF_TRY(
        inf_graph_add_value(negation->graph, "x", INF_DTYPE_F32, &shape, &negation->x_value, err));
    INF_TRY(inf_graph_add_node(negation->graph, INF_OP_UNARY, "negation", "", &negation->x_value, 1,
                               1, &node, err));
    negation->y_value = negation->graph->nodes[node].outputs[0];
    negation->graph->values[negation->y_value].dtype = INF_DTYPE_F32;
    negation->graph->values[negation->y_value].shape = shape;
    uint32_t nodes[] = {node};
    struct inf_segment segment = {
        .graph = negation->graph, .nodes = nodes, .node_count = 1, .slots = 2};
    size_t size = (size_t)elements * sizeof(float);
    INF_TRY(inf_buffer_alloc(&negation->x, device, size, INF_BUFFER_STAGING, err));
    INF_TRY(inf_buffer_alloc(&negation->y, device, size, INF_BUFFER_STAGING, err));
    return inf_program_compile(&negation->program, device, &segment, 0, err);
}

static inline void negation_fini(struct negation *negation)
{
    inf_program_destroy(&negation->program);
    inf_buffer_free(&negation->x);
    inf_buffer_free(&negation->y);
    inf_graph_destroy(&negation->graph);
}

// Runs the program in `slot` (one concurrent run) on x = first, first + 1, ... and waits for the
// result.
static inline enum inf_code negation_run(struct negation *negation, struct inf_device *device,
                                         uint32_t slot, float first, bool profile,
                                         struct inf_error *err)
{
    float *x = inf_buffer_host(negation->x);
    for (int64_t i = 0; i < negation->elements; i++)
        x[i] = first + (float)i;
    struct inf_binding bindings[2] = {0};
    bindings[negation->x_value].buffer = negation->x;
    bindings[negation->y_value].buffer = negation->y;
    struct inf_run run = {.bindings = bindings, .slot = slot, .profile = profile};
    struct inf_ticket ticket;
    INF_TRY(inf_program_run(negation->program, &run, &ticket, err));
    return inf_device_wait(device, ticket, UINT64_MAX, err);
}

// Returns true if y is the result of a run that started at `first`.
static inline bool negation_holds(const struct negation *negation, float first)
{
    const float *y = inf_buffer_host(negation->y);
    for (int64_t i = 0; i < negation->elements; i++)
        if (y[i] != -(first + (float)i))
            return false;
    return true;
}

#endif
