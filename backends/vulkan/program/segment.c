// SPDX-License-Identifier: Apache-2.0
// Finds nodes and their readers in a segment.
#include "backends/vulkan/program/segment.h"

#include "backends/base/sorted.h"

bool vk_segment_has_node(const struct inf_segment *segment, uint32_t node)
{
    return inf_sorted_has(segment->nodes, segment->node_count, node);
}

uint32_t vk_segment_sole_reader(const struct inf_segment *segment, uint32_t node)
{
    uint32_t reader =
        segment->readers != NULL ? inf_readers_sole(&segment->readers[node]) : INF_NODE_NONE;
    return reader != INF_NODE_NONE && vk_segment_has_node(segment, reader) ? reader : INF_NODE_NONE;
}
