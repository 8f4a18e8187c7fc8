// SPDX-License-Identifier: Apache-2.0
// Looks up the level of fusion that won the timing comparison for a group of nodes.
#include "backends/cpu/program/fusion_select.h"

#include <string.h>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/program/device.h"
#include "backends/storage/record.h"

const char *inf_cpu_fusion_level_name(enum inf_cpu_fusion_level level)
{
    static const char *const names[] = {"nodes", "chains", "pipelines"};
    return names[level];
}

// --- keys of timing results ---

// Hashes an operand. If a node of the group produces the operand, hashes the index of that node,
// otherwise the operand's type and shape.
static uint64_t hash_operand(uint64_t key, const struct inf_graph *graph,
                             const struct inf_cpu_group *group, uint32_t value)
{
    uint32_t producer = value != INF_VALUE_NONE ? graph->values[value].producer : INF_NODE_NONE;
    for (uint32_t i = 0; producer != INF_NODE_NONE && i < group->count; i++)
        if (group->nodes[i] == producer)
            return inf_record_hash(key, &i, sizeof i);
    return inf_cpu_race_hash_value(key, graph, value);
}

// Returns the key under which the result for the group is recorded. It covers everything that the
// result depends on: the threads, the precision, and the nodes with their operands.
uint64_t inf_cpu_fusion_key(const struct inf_cpu_device *device, const struct inf_segment *segment,
                            const struct inf_cpu_group *group, enum inf_cpu_fusion_level level)
{
    const struct inf_graph *graph = segment->graph;
    uint64_t key = inf_cpu_race_key(device->race_results, inf_cpu_device_threads(device, segment));
    key = inf_record_hash(key, &segment->precision, sizeof segment->precision);
    key = inf_record_hash(key, &level, sizeof level);
    for (uint32_t i = 0; i < group->count; i++) {
        const struct inf_node *node = &graph->nodes[group->nodes[i]];
        bool pinned = segment->pinned != NULL && segment->pinned[group->nodes[i]];
        key = inf_record_hash(key, &pinned, sizeof pinned);
        key = inf_cpu_race_hash_node(key, graph, group->nodes[i]);
        for (uint32_t k = 0; k < node->input_count; k++)
            key = hash_operand(key, graph, group, node->inputs[k]);
    }
    return key;
}

// --- choosing the level of fusion of a node ---

bool inf_cpu_fusion_applies(const struct inf_cpu_device *device, const struct inf_segment *segment,
                            uint32_t node, enum inf_cpu_fusion_level level)
{
    struct inf_cpu_group group;
    char winner[INF_RACE_WINNER_TEXT];
    if (!inf_cpu_group_find(&group, segment->graph, node, segment, level))
        return false;
    return device->race_results == NULL ||
           !inf_race_results_find(device->race_results,
                                  inf_cpu_fusion_key(device, segment, &group, level),
                                  segment->races.known_until_ns, winner) ||
           strcmp(winner, inf_cpu_fusion_level_name(level)) == 0;
}

enum inf_cpu_fusion_level inf_cpu_fusion_level_of(const struct inf_cpu_device *device,
                                                  const struct inf_segment *segment, uint32_t node)
{
    if (inf_cpu_fusion_applies(device, segment, node, INF_CPU_FUSE_PIPELINES))
        return INF_CPU_FUSE_PIPELINES;
    return inf_cpu_fusion_applies(device, segment, node, INF_CPU_FUSE_CHAINS) ? INF_CPU_FUSE_CHAINS
                                                                              : INF_CPU_FUSE_NONE;
}

uint32_t inf_cpu_fusion_fused_into(struct inf_device *base, const struct inf_segment *segment,
                                   uint32_t node)
{
    const struct inf_cpu_device *device = (const struct inf_cpu_device *)base;
    uint32_t end = inf_attention_end(segment->graph, node, segment, INF_CPU_ATTENTION_LEAST);
    if (end != INF_NODE_NONE)
        return end;
    return inf_cpu_fused_into(segment->graph, node, segment,
                              inf_cpu_fusion_level_of(device, segment, node));
}
