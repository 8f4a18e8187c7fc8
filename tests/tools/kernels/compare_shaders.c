// SPDX-License-Identifier: Apache-2.0
// Times all shaders that a vulkan device could choose for the nodes of a plan, and prints their
// times.
#include "tests/tools/kernels/compare_shaders.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/program/shader_race.h"

static void print_times(const struct vk_shader_time *times, uint32_t count,
                        const struct inf_graph *graph, uint32_t index)
{
    const struct inf_node *node = &graph->nodes[index];
    const struct inf_shape *x = &graph->values[node->inputs[0]].shape;
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    uint64_t best_ns = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
        if (times[i].least_ns > 0)
            best_ns = INF_MIN(best_ns, times[i].least_ns);
    printf("  %s [", inf_op_info(node->op)->name);
    for (int32_t i = 0; i < x->rank; i++)
        printf("%s%" PRId64, i > 0 ? "x" : "", x->dims[i]);
    printf("]->%" PRId64, y->rank > 0 ? y->dims[y->rank - 1] : 1);
    for (uint32_t i = 0; i < count; i++) {
        if (times[i].wrong)
            printf(" %s wrong", times[i].name);
        else if (times[i].least_ns == 0)
            printf(" %s -", times[i].name);
        else
            printf(" %s %.1f%s", times[i].name, (double)times[i].least_ns / 1000,
                   times[i].least_ns == best_ns ? "*" : "");
    }
    printf("  %s\n", node->name);
}

// Returns true if the key is among the first `count` ones.
static bool is_seen(const uint64_t *keys, uint32_t count, uint64_t key)
{
    for (uint32_t i = 0; i < count; i++)
        if (keys[i] == key)
            return true;
    return false;
}

// Races each node twice: by itself, and as the last node of an attention. keys[] has room for two
// keys of each node.
static enum inf_code compare_steps(struct inf_device *device, const struct inf_graph *graph,
                                   const struct inf_plan *plan, uint64_t *keys,
                                   struct inf_error *err)
{
    const struct inf_segment whole = {
        .graph = graph, .nodes = plan->steps, .node_count = plan->step_count, .slots = 1};
    for (uint32_t i = 0; i < 2 * plan->step_count; i++) {
        struct vk_shader_time times[VK_SHADER_CANDIDATES];
        uint32_t count, node = plan->steps[i / 2];
        bool attention = i % 2 != 0;
        keys[i] = vk_shader_race_key(device, &whole, node, attention);
        if (keys[i] == 0 || is_seen(keys, i, keys[i]))
            continue;
        INF_TRY(vk_shader_race_node(times, &count, &keys[i], device, &whole, node, attention, err));
        print_times(times, count, graph, node);
        fflush(stdout);
    }
    return INF_OK;
}

enum inf_code tool_compare_shaders(struct inf_device *device,
                                   const struct inf_executable *executable, struct inf_error *err)
{
    const struct inf_plan *plan = inf_executable_plan(executable);
    if (strcmp(inf_device_info(device)->backend, "vulkan") != 0)
        return inf_fail(err, INF_UNSUPPORTED, "'%s' has no shaders", inf_device_info(device)->name);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    // Without races the device lists no candidates.
    if (gpu->races == NULL)
        INF_TRY(vk_gpu_open_races(gpu, err));
    uint64_t *keys = calloc(2 * (size_t)plan->step_count + 1, sizeof *keys);
    if (keys == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    enum inf_code code =
        compare_steps(device, inf_executable_planned_graph(executable), plan, keys, err);
    free(keys);
    return code;
}
