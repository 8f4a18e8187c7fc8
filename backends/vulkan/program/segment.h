// SPDX-License-Identifier: Apache-2.0
// Queries on a segment: which nodes it has, and which nodes read their results.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_SEGMENT_H
#define INF_BACKENDS_VULKAN_PROGRAM_SEGMENT_H

#include "backends/device/device.h"

// Returns true if node `node` of the graph belongs to the segment.
bool vk_segment_has_node(const struct inf_segment *segment, uint32_t node);

// Returns the only node that reads the result of `node`, if that reader belongs to the segment.
// Otherwise, and if the segment does not list readers, returns INF_NODE_NONE.
uint32_t vk_segment_sole_reader(const struct inf_segment *segment, uint32_t node);

#endif
