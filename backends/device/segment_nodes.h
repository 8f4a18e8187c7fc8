// SPDX-License-Identifier: Apache-2.0
// Queries about the nodes of a segment, for finding nodes that one step may compute together.
#ifndef INF_BACKENDS_DEVICE_SEGMENT_NODES_H
#define INF_BACKENDS_DEVICE_SEGMENT_NODES_H

#include "backends/device/device.h"

// Returns true if the segment has the node, or if `segment` is NULL.
bool inf_segment_has(const struct inf_segment *segment, uint32_t node);

// Returns the only node that reads `value`; the node may be outside of the segment. Returns
// INF_NODE_NONE if no node or several nodes read it, or if it is an output of the graph. Walks
// through the whole graph only if the segment has no list of readers.
uint32_t inf_segment_sole_reader(const struct inf_graph *graph, uint32_t value,
                                 const struct inf_segment *segment);

#endif
