// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/compare_kernels.h"

#include <stdio.h>
#include <string.h>

#include "backends/cpu/kernel_race.h"

enum inf_code tool_compare_kernels(struct inf_device *device,
                                   const struct inf_executable *executable, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_planned_graph(executable);
    const struct inf_plan *plan = inf_executable_plan(executable);
    if (strcmp(inf_device_info(device)->backend, "cpu") != 0)
        return inf_fail(err, INF_UNSUPPORTED, "kernels of '%s' have no others to be compared with",
                        inf_device_info(device)->name);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
        const struct inf_node *node = &graph->nodes[plan->steps[i]];
        uint32_t count = inf_cpu_kernel_list(candidates, graph, node);
        if (count < 2)
            continue;
        INF_TRY(
            inf_cpu_race_node(candidates, &count, device, graph, (uint32_t)plan->steps[i], err));
        printf("  %-16s", inf_op_info(node->op)->name);
        for (uint32_t c = 0; c < count; c++)
            printf(" %s %.1f", candidates[c].family, (double)candidates[c].least_ns / 1000);
        printf("  %s\n", node->name);
    }
    return INF_OK;
}
