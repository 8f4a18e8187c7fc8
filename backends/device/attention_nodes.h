// SPDX-License-Identifier: Apache-2.0
// Finds attention in a graph: the nodes that compute
//
//     softmax(q * keys * scale + mask) * values
//
// with the scale and the mask as optional parts. One step computes them together, so that the
// matrix of scores is never stored.
#ifndef INF_BACKENDS_DEVICE_ATTENTION_NODES_H
#define INF_BACKENDS_DEVICE_ATTENTION_NODES_H

#include "backends/device/device.h"

#define INF_ATTENTION_NODES 8 // most nodes of one attention, besides reshapes

// The nodes of an attention, and what they compute. All tensors are f32.
struct inf_attention {
    uint32_t nodes[INF_ATTENTION_NODES]; // from the last node, the product with the values, back
    uint32_t count;
    uint32_t q, keys, values; // [products][rows][depth], keys below, [products][count][width]
    bool keys_by_row;         // true: keys are [products][count][depth], else [.][depth][count]
    float scale;              // 1 if there is no scale
    uint32_t mask;            // broadcast to `scores`; INF_VALUE_NONE: there is none
    struct inf_shape scores;  // shape of the scores where the mask is added; last axis: keys
    size_t products, rows, key_count, depth, width;
};

// Finds the attention whose last node is `node`, if all its nodes are in `segment` (NULL: any node
// of the graph) and no other node reads its intermediate results. Returns false if there is none,
// or if it has fewer than `least` rows or keys.
bool inf_attention_find(struct inf_attention *attention, const struct inf_graph *graph,
                        uint32_t node, const struct inf_segment *segment, size_t least);

// Returns the last node of the attention that `node` is part of; INF_NODE_NONE if it is in none, or
// is itself the last node.
uint32_t inf_attention_end(const struct inf_graph *graph, uint32_t node,
                           const struct inf_segment *segment, size_t least);

#endif
