// SPDX-License-Identifier: Apache-2.0
// Which nodes a segment has, and who reads what they make.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_SEGMENT_H
#define INF_BACKENDS_VULKAN_PROGRAM_SEGMENT_H

#include "backends/device/device.h"

// Whether node `node` of the graph is one of the segment's.
bool vk_segment_has_node(const struct inf_segment *segment, uint32_t node);

// The one node of the segment that reads what `node` makes, however often, if nothing else does; INF_NODE_NONE too where
// the segment does not tell readers.
uint32_t vk_segment_sole_reader(const struct inf_segment *segment, uint32_t node);

#endif
