// SPDX-License-Identifier: Apache-2.0
// Chains of nodes that one step computes without writing what lies between them:
//     [depthwise_conv2d] -> conv2d -> [binary add, of what may have been a pad] -> [prelu]
// and streams of such chains.
#ifndef INF_BACKENDS_CPU_NATIVE_FUSION_H
#define INF_BACKENDS_CPU_NATIVE_FUSION_H

#include "backends/device/device.h"

#define INF_CPU_ROW_PIPELINE_MAX 24 // chains of one step

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

// Whether the chain is one conv2d node alone.
bool inf_cpu_chain_is_node(const struct inf_cpu_chain *chain);

// The value that a chain starts from.
uint32_t inf_cpu_chain_input(const struct inf_cpu_chain *chain, const struct inf_graph *graph);

// Chains of which each starts from the result of the one before it, which nothing else reads but
// additions at the ends of later ones.
struct inf_cpu_row_pipeline {
    struct inf_cpu_chain chains[INF_CPU_ROW_PIPELINE_MAX];
    uint32_t results[INF_CPU_ROW_PIPELINE_MAX]; // the value that each chain gives
    uint32_t count;
};

// The stream whose last chain ends at `node`, worth to be computed in turn: what lies between its chains
// is large, their weights are small. False where there is none of two chains or more, or another step
// computes `node` too.
bool inf_cpu_row_pipeline_find(struct inf_cpu_row_pipeline *stream, const struct inf_graph *graph,
                               uint32_t node, const struct inf_segment *segment);

// How much one step may compute.
enum inf_cpu_fusion_level {
    INF_CPU_FUSE_NONE,     // a node
    INF_CPU_FUSE_CHAINS,   // a chain
    INF_CPU_FUSE_PIPELINES // a stream
};

// The node whose step computes `node` on the way to its own result, where steps are as large as they
// may be; INF_NODE_NONE where it has a step of its own. As above for `segment`.
uint32_t inf_cpu_fused_into(const struct inf_graph *graph, uint32_t node,
                            const struct inf_segment *segment, enum inf_cpu_fusion_level most);

#define INF_CPU_GROUP_NODES (5 * INF_CPU_ROW_PIPELINE_MAX)

// Nodes that one step may compute, as they stand in the graph.
struct inf_cpu_group {
    uint32_t nodes[INF_CPU_GROUP_NODES];
    uint32_t count;
};

// The chain (as `most` says) or stream of two nodes or more that `node` is part of. False where there is
// none.
bool inf_cpu_group_find(struct inf_cpu_group *group, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment, enum inf_cpu_fusion_level most);

#endif
