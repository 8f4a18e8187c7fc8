// SPDX-License-Identifier: Apache-2.0
// Chains of nodes that one step computes without writing what lies between them:
//     [depthwise_conv2d] -> conv2d -> [binary add, of what may have been a pad] -> [prelu]
#ifndef INF_BACKENDS_CPU_FUSE_H
#define INF_BACKENDS_CPU_FUSE_H

#include "backends/device/device.h"

// Nodes of a chain; INF_NODE_NONE where it has no such part. The last one is the chain's step.
struct inf_cpu_chain {
    uint32_t depthwise, conv, add, prelu;
    uint32_t residual; // the value that is added; INF_VALUE_NONE
    uint32_t pad;      // the node that fills its channels up with zeros
};

// The chain that ends at `node`, of nodes of `segment` only (NULL: of the whole graph). False where
// `node` is not the end of one.
bool inf_cpu_chain_find(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment);

// The node whose step computes `node` on the way to its own result; INF_NODE_NONE where it has a step
// of its own. As above for `segment`.
uint32_t inf_cpu_chain_next(const struct inf_graph *graph, uint32_t node,
                            const struct inf_segment *segment);

#endif
