// SPDX-License-Identifier: Apache-2.0
// Walks over the plan of an executable, and counts the steps, the small nodes, the nodes that run
// on another device, and their multiply-adds.
#include "daemon/load/model_profile.h"

#include <stdio.h>
#include <string.h>

#include "backends/place/prior.h"
#include "proto/core/span.h"

// The name of the reference device.
#define REF "ref"
// A model is slow if more than one of this many multiply-adds runs on the reference device.
#define SLOW_SHARE 100u

// Returns the number of elements of the node's largest input that is not constant. Returns
// UINT64_MAX if the size of an input is not known before the run.
static uint64_t largest_input(const struct inf_graph *graph, const struct inf_node *node)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        size_t count;
        if (node->inputs[i] == INF_VALUE_NONE || inf_graph_is_const(graph, node->inputs[i]))
            continue;
        if (!inf_shape_count(&graph->values[node->inputs[i]].shape, &count))
            return UINT64_MAX;
        largest = INF_MAX(largest, (uint64_t)count);
    }
    return largest;
}

static void count_step(struct inf_model_profile *facts, const struct inf_graph *graph,
                       const struct inf_node *node)
{
    uint64_t elements = largest_input(graph, node);
    facts->small_webgl += elements < INF_PRIOR_HANDOFF_WEBGL;
    facts->small_webgpu += elements < INF_PRIOR_HANDOFF_WEBGPU;
}

static struct inf_device *find_host(const struct inf_device_info *info,
                                    struct inf_device *const *hosts, uint32_t host_count)
{
    for (uint32_t i = 0; i < host_count; i++)
        if (inf_device_info(hosts[i]) == info)
            return hosts[i];
    return NULL;
}

// Records that device `host` runs a node because `device` declines it, and the reason.
static void note_declined(struct inf_model_profile *facts, const struct inf_graph *graph,
                          uint32_t node, struct inf_device *device, struct inf_device *host)
{
    const char *op = inf_op_info(graph->nodes[node].op)->name;
    for (uint32_t i = 0; i < facts->declined_count; i++) {
        struct inf_declined *known = &facts->declined[i];
        if (known->op != op || known->device != host)
            continue;
        known->nodes++;
        return;
    }
    if (facts->declined_count == INF_PROFILE_DECLINED)
        return;
    struct inf_error why = {0};
    struct inf_declined *declined = &facts->declined[facts->declined_count++];
    *declined = (struct inf_declined){.op = op, .nodes = 1, .device = host};
    if (inf_device_supports(device, graph, node, &why) != INF_OK)
        snprintf(declined->reason, sizeof declined->reason, "%.159s", why.text);
}

void inf_model_profile_read(struct inf_model_profile *facts,
                            const struct inf_executable *executable, struct inf_device *device,
                            struct inf_device *const *hosts, uint32_t host_count)
{
    const struct inf_graph *graph = inf_executable_planned_graph(executable);
    const struct inf_plan *plan = inf_executable_plan(executable);
    const struct inf_graph_cost cost = inf_graph_cost(inf_executable_graph(executable));
    *facts =
        (struct inf_model_profile){.macs = cost.macs,
                                   .const_bytes = cost.const_bytes,
                                   .steps = plan->step_count,
                                   .interpreted = inf_executable_interpreted_nodes(executable)};
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct inf_plan_segment *segment = &plan->segments[s];
        const struct inf_device_info *info = inf_executable_device(executable, segment->device);
        struct inf_device *host =
            info != inf_device_info(device) ? find_host(info, hosts, host_count) : NULL;
        for (uint32_t i = 0; i < segment->count; i++) {
            uint32_t node = plan->steps[segment->first + i];
            uint64_t macs = inf_node_macs(graph, &graph->nodes[node]);
            count_step(facts, graph, &graph->nodes[node]);
            facts->planned_macs += macs;
            facts->ref_macs += host != NULL && strcmp(info->name, REF) == 0 ? macs : 0;
            if (host != NULL)
                note_declined(facts, graph, node, device, host);
        }
    }
}

bool inf_model_profile_is_slow(const struct inf_model_profile *facts, char *text, size_t size_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    if (facts->ref_macs <= facts->planned_macs / SLOW_SHARE)
        return false;
    for (uint32_t i = 0; i < facts->declined_count && used + 1 < size_bytes; i++) {
        const struct inf_declined *declined = &facts->declined[i];
        if (strcmp(inf_device_info(declined->device)->name, REF) != 0)
            continue;
        int length = snprintf(text + used, size_bytes - used, "%s%u %s: %s", used > 0 ? "; " : "",
                              declined->nodes, declined->op, declined->reason);
        used += length > 0 ? (size_t)length : 0;
    }
    return true;
}
