// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/program/form_choice.h"

#include <string.h>

#include "backends/base/clock.h"
#include "backends/cpu/program/form_race.h"
#include "backends/storage/record.h"
#include "proto/core/span.h"

// --- keys ---

// An operand: which node of the group makes it, or what it is like.
static uint64_t hash_operand(uint64_t key, const struct inf_graph *graph,
                             const struct inf_cpu_group *group, uint32_t value)
{
    uint32_t producer = value != INF_VALUE_NONE ? graph->values[value].producer : INF_NODE_NONE;
    for (uint32_t i = 0; producer != INF_NODE_NONE && i < group->count; i++)
        if (group->nodes[i] == producer)
            return inf_record_hash(key, &i, sizeof i);
    return inf_cpu_choices_hash_value(key, graph, value);
}

// What a choice hangs on: threads, precision, and how the nodes of the group hang together.
static uint64_t key_of(const struct inf_cpu_device *device, const struct inf_segment *segment,
                       const struct inf_cpu_group *group, enum inf_cpu_fusing most)
{
    const struct inf_graph *graph = segment->graph;
    uint64_t key = inf_cpu_choices_key(device->choices, inf_cpu_pool_of(device, segment, 0));
    key = inf_record_hash(key, &segment->precision, sizeof segment->precision);
    key = inf_record_hash(key, &most, sizeof most);
    for (uint32_t i = 0; i < group->count; i++) {
        const struct inf_node *node = &graph->nodes[group->nodes[i]];
        bool pinned = segment->pinned != NULL && segment->pinned[group->nodes[i]];
        key = inf_record_hash(key, &pinned, sizeof pinned);
        key = inf_cpu_choices_hash_node(key, graph, group->nodes[i]);
        for (uint32_t k = 0; k < node->input_count; k++)
            key = hash_operand(key, graph, group, node->inputs[k]);
    }
    return key;
}

// --- choices ---

// Whether there is a group that `node` is part of, and it is one step.
static bool is_whole(const struct inf_cpu_device *device, const struct inf_segment *segment,
                     uint32_t node, enum inf_cpu_fusing most)
{
    struct inf_cpu_group group;
    char winner[INF_CPU_WINNER_TEXT];
    if (!inf_cpu_group_find(&group, segment->graph, node, segment, most))
        return false;
    return device->choices == NULL ||
           !inf_cpu_choices_find(device->choices, key_of(device, segment, &group, most), winner) ||
           strcmp(winner, inf_cpu_form_name(most)) == 0;
}

enum inf_cpu_fusing inf_cpu_form_of(const struct inf_cpu_device *device,
                                    const struct inf_segment *segment, uint32_t node)
{
    if (is_whole(device, segment, node, INF_CPU_ROW_PIPELINES))
        return INF_CPU_ROW_PIPELINES;
    return is_whole(device, segment, node, INF_CPU_CHAINS) ? INF_CPU_CHAINS : INF_CPU_NODES;
}

uint32_t inf_cpu_fused_into_chosen(struct inf_device *base, const struct inf_segment *segment,
                                   uint32_t node)
{
    const struct inf_cpu_device *device = (const struct inf_cpu_device *)base;
    return inf_cpu_fused_into(segment->graph, node, segment,
                              inf_cpu_form_of(device, segment, node));
}

// --- races ---

static void race(struct inf_cpu_device *device, const struct inf_segment *segment,
                 const struct inf_cpu_group *group, enum inf_cpu_fusing most,
                 uint64_t key) INF_MAY_BLOCK
{
    struct inf_cpu_candidate forms[INF_CPU_FORMS];
    const struct inf_node *last = &segment->graph->nodes[group->nodes[group->count - 1]];
    uint64_t start_ns = inf_clock_ns();
    if (inf_cpu_choices_may_race(device->choices) &&
        inf_cpu_race_forms(forms, device, segment, group, most, NULL) == INF_OK &&
        forms[0].least_ns > 0)
        inf_cpu_choices_judge(device->choices, key, start_ns, last, forms, INF_CPU_FORMS);
    // By rule from now on, or what a plan was made for would change before it is compiled.
    inf_cpu_choices_settle(device->choices, key, inf_cpu_form_name(most));
}

// Settles the group that ends with `node`.
static void settle(struct inf_cpu_device *device, const struct inf_segment *segment, uint32_t node,
                   enum inf_cpu_fusing most) INF_MAY_BLOCK
{
    struct inf_cpu_group group;
    char winner[INF_CPU_WINNER_TEXT];
    if (!inf_cpu_group_find(&group, segment->graph, node, segment, most) ||
        group.nodes[group.count - 1] != node)
        return;
    uint64_t key = key_of(device, segment, &group, most);
    if (!inf_cpu_choices_find(device->choices, key, winner))
        race(device, segment, &group, most, key);
}

void inf_cpu_settle(struct inf_device *base, const struct inf_segment *segment)
{
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    if (device->choices == NULL)
        return;
    for (uint32_t i = 0; i < segment->node_count; i++)
        settle(device, segment, segment->nodes[i], INF_CPU_ROW_PIPELINES);
    for (uint32_t i = 0; i < segment->node_count; i++)
        if (!is_whole(device, segment, segment->nodes[i], INF_CPU_ROW_PIPELINES))
            settle(device, segment, segment->nodes[i], INF_CPU_CHAINS);
}
