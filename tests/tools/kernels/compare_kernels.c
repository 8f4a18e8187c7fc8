// SPDX-License-Identifier: Apache-2.0
// Times all kernels that the cpu device could choose for a plan, and prints the times.
#include "tests/tools/kernels/compare_kernels.h"

#include <stdio.h>
#include <string.h>

#include "backends/cpu/program/device.h"
#include "backends/cpu/program/fusion_race.h"
#include "backends/cpu/program/kernel_race.h"

static void print_line(const char *what, const struct inf_cpu_candidate *candidates, uint32_t count,
                       const struct inf_node *node)
{
    printf("  %-16s", what);
    for (uint32_t i = 0; i < count; i++)
        printf(" %s %.1f", candidates[i].family, (double)candidates[i].least_ns / 1000);
    printf("  %s\n", node->name);
}

// If a group of fused nodes ends with `node`, prints the time of the group at each fusion level.
static enum inf_code compare_forms(struct inf_device *device, const struct inf_segment *segment,
                                   uint32_t node, enum inf_cpu_fusion_level most,
                                   struct inf_error *err)
{
    struct inf_cpu_group group;
    struct inf_cpu_candidate forms[INF_CPU_FUSION_CANDIDATES];
    char what[32];
    if (!inf_cpu_group_find(&group, segment->graph, node, segment, most) ||
        group.nodes[group.count - 1] != node)
        return INF_OK;
    INF_TRY(inf_cpu_fusion_race_levels(forms, (struct inf_cpu_device *)device, segment, &group,
                                       most, err));
    snprintf(what, sizeof what, "%u nodes", group.count);
    print_line(what, forms, INF_CPU_FUSION_CANDIDATES, &segment->graph->nodes[node]);
    return INF_OK;
}

enum inf_code tool_compare_kernels(struct inf_device *device,
                                   const struct inf_executable *executable, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_planned_graph(executable);
    const struct inf_plan *plan = inf_executable_plan(executable);
    if (strcmp(inf_device_info(device)->backend, "cpu") != 0)
        return inf_fail(err, INF_UNSUPPORTED, "kernels of '%s' have no others to be compared with",
                        inf_device_info(device)->name);
    const struct inf_segment whole = {
        .graph = graph, .nodes = plan->steps, .node_count = plan->step_count, .slots = 1};
    for (uint32_t i = 0; i < plan->step_count; i++) {
        INF_TRY(compare_forms(device, &whole, plan->steps[i], INF_CPU_FUSE_PIPELINES, err));
        INF_TRY(compare_forms(device, &whole, plan->steps[i], INF_CPU_FUSE_CHAINS, err));
        struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
        const struct inf_node *node = &graph->nodes[plan->steps[i]];
        uint32_t count = inf_cpu_kernel_list(candidates, graph, node);
        if (count < 2)
            continue;
        INF_TRY(inf_cpu_kernel_race_node(candidates, &count, device, graph,
                                         (uint32_t)plan->steps[i], err));
        print_line(inf_op_info(node->op)->name, candidates, count, node);
    }
    return INF_OK;
}
