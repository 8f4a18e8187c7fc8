// SPDX-License-Identifier: Apache-2.0
// Fused chains and row pipelines: nodes that one step computes without writing the tensors between
// them.
//
// A chain is, with optional parts in brackets:
//
//     [depthwise_conv2d] -> conv2d -> [binary add] -> [prelu]
//                                       ^
//                            residual, maybe behind a [pad] of its channels
//
// The add of a residual block reads the result of the convolution while it is in registers; the
// depthwise convolution writes a few rows that the 1x1 convolution behind it reads from the cache.
//
// A row pipeline is several chains of which each reads the result of the one before. It is computed
// depth-first: a few rows of the last chain at a time, and for them the rows of the earlier chains
// that they need (row_pipeline.c).
#ifndef INF_BACKENDS_CPU_NATIVE_FUSION_H
#define INF_BACKENDS_CPU_NATIVE_FUSION_H

#include "backends/device/device.h"

#define INF_CPU_ROW_PIPELINE_MAX 24 // chains in one step

// The nodes of a chain; INF_NODE_NONE for a missing part. The last node is the one that has the
// step.
struct inf_cpu_chain {
    uint32_t depthwise, conv, add, prelu;
    uint32_t residual; // the value that is added; INF_VALUE_NONE if none
    uint32_t pad;      // the node that appends channels of zeros to the residual
};

// Finds the chain that ends at `node`, made of nodes of `segment` only (NULL: of the whole graph).
// Returns false if no chain ends there.
bool inf_cpu_chain_find(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment);

// Returns true if the chain is a single conv2d node.
bool inf_cpu_chain_is_node(const struct inf_cpu_chain *chain);

// Returns the value that the first node of the chain reads.
uint32_t inf_cpu_chain_input(const struct inf_cpu_chain *chain, const struct inf_graph *graph);

// Chains of which each reads the result of the previous one. Nothing else reads that result, except
// additions at the ends of later chains.
struct inf_cpu_row_pipeline {
    struct inf_cpu_chain chains[INF_CPU_ROW_PIPELINE_MAX];
    uint32_t results[INF_CPU_ROW_PIPELINE_MAX]; // the result of each chain
    uint32_t count;
};

// Finds the pipeline whose last chain ends at `node`. Returns false if there is none of at least
// two chains, if another step computes `node`, or if it would not be faster: values between the
// chains must be large and weights small.
bool inf_cpu_row_pipeline_find(struct inf_cpu_row_pipeline *pipeline, const struct inf_graph *graph,
                               uint32_t node, const struct inf_segment *segment);

// How many nodes one step may compute.
enum inf_cpu_fusion_level {
    INF_CPU_FUSE_NONE,     // one node
    INF_CPU_FUSE_CHAINS,   // a chain
    INF_CPU_FUSE_PIPELINES // a row pipeline
};

// Returns the node whose step also computes `node`, if steps are as large as `most` allows;
// INF_NODE_NONE if `node` has a step of its own. `segment` as above.
uint32_t inf_cpu_fused_into(const struct inf_graph *graph, uint32_t node,
                            const struct inf_segment *segment, enum inf_cpu_fusion_level most);

#define INF_CPU_GROUP_NODES (5 * INF_CPU_ROW_PIPELINE_MAX)

// Nodes that one step may compute, in the order of the graph.
struct inf_cpu_group {
    uint32_t nodes[INF_CPU_GROUP_NODES];
    uint32_t count;
};

// Finds the chain or row pipeline, as `most` says, of at least two nodes that `node` belongs to.
// Returns false if there is none.
bool inf_cpu_group_find(struct inf_cpu_group *group, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment, enum inf_cpu_fusion_level most);

#endif
