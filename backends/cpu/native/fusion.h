// SPDX-License-Identifier: Apache-2.0
// Fused chains and row pipelines: nodes that one step computes without writing the tensors between
// them.
//
// A chain has this form, with optional parts in brackets:
//
//     [depthwise_conv2d] -> conv2d -> [binary add] -> [prelu]
//                                         ^
//                                     residual, maybe after a [pad] of its channels
//
// The add of a residual block reads the result of the convolution while the result is in registers.
// The depthwise convolution writes a few rows, which the following 1x1 convolution reads from the
// cache.
//
// A row pipeline is several chains; each chain reads the result of the previous one. A pipeline is
// computed depth-first: a few rows of the last chain at a time, and first the rows of the earlier
// chains that these rows need (row_pipeline.c).
#ifndef INF_BACKENDS_CPU_NATIVE_FUSION_H
#define INF_BACKENDS_CPU_NATIVE_FUSION_H

#include "backends/device/device.h"

#define INF_CPU_ROW_PIPELINE_MAX 24 // most chains in one step

// The nodes of a fused chain; INF_NODE_NONE for an optional node that is absent. The step of the
// chain belongs to its last node.
struct inf_cpu_chain {
    uint32_t depthwise, conv, add, prelu;
    // the value that is added to the convolution's result; INF_VALUE_NONE: none is added
    uint32_t residual;
    uint32_t pad; // the node that appends channels of zeros to the residual
};

// Finds the chain that ends at `node` and has only nodes of `segment` (NULL: any node of the
// graph). Returns false if no chain ends at `node`.
bool inf_cpu_chain_find(struct inf_cpu_chain *chain, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment);

// Returns true if the chain is a single conv2d node.
bool inf_cpu_chain_is_node(const struct inf_cpu_chain *chain);

// Returns the value that the first node of the chain reads.
uint32_t inf_cpu_chain_input(const struct inf_cpu_chain *chain, const struct inf_graph *graph);

// A row pipeline: several chains, each of which reads the result of the previous one. No other node
// reads such a result, except additions at the ends of later chains.
struct inf_cpu_row_pipeline {
    struct inf_cpu_chain chains[INF_CPU_ROW_PIPELINE_MAX];
    uint32_t results[INF_CPU_ROW_PIPELINE_MAX]; // the result of each chain
    uint32_t count;
};

// Finds the pipeline whose last chain ends at `node`. Returns false if there is no pipeline of at
// least two chains, if another step computes `node`, or if the pipeline would not be faster. A
// pipeline is faster only if the values between its chains are large and its weights are small.
bool inf_cpu_row_pipeline_find(struct inf_cpu_row_pipeline *pipeline, const struct inf_graph *graph,
                               uint32_t node, const struct inf_segment *segment);

// The largest group of nodes that one step may compute.
enum inf_cpu_fusion_level {
    INF_CPU_FUSE_NONE,     // a single node
    INF_CPU_FUSE_CHAINS,   // a chain
    INF_CPU_FUSE_PIPELINES // a row pipeline
};

// Returns the last node of the step that computes `node` if fusion up to level `most` is allowed;
// INF_NODE_NONE if `node` has a step of its own. Only nodes of `segment` are fused (NULL: all nodes
// of the graph).
uint32_t inf_cpu_fused_into(const struct inf_graph *graph, uint32_t node,
                            const struct inf_segment *segment, enum inf_cpu_fusion_level most);

#define INF_CPU_GROUP_NODES (5 * INF_CPU_ROW_PIPELINE_MAX)

// The nodes that one step computes together (a chain or the chains of a row pipeline), in the order
// of the graph.
struct inf_cpu_group {
    uint32_t nodes[INF_CPU_GROUP_NODES];
    uint32_t count;
};

// Finds the chain or row pipeline (depending on the level `most`) that contains `node` and at least
// one other node. Returns false if there is none.
bool inf_cpu_group_find(struct inf_cpu_group *group, const struct inf_graph *graph, uint32_t node,
                        const struct inf_segment *segment, enum inf_cpu_fusion_level most);

#endif
