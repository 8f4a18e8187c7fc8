// SPDX-License-Identifier: Apache-2.0
// The residual that a convolution adds to its result, and the nodes that are computed together with
// the convolution.
#ifndef INF_BACKENDS_VULKAN_OPS_RESIDUAL_H
#define INF_BACKENDS_VULKAN_OPS_RESIDUAL_H

#include <stdint.h>

// The nodes of one residual convolution (a convolution, the addition of a residual, and optionally
// a prelu), which one step computes. The step belongs to node `end`.
struct vk_residual {
    uint32_t conv, add;
    uint32_t pad, prelu; // INF_NODE_NONE if there is no such node
    uint32_t end;        // the last node: `prelu`, or `add` if there is no prelu
    uint32_t added;      // the value that is added, before it is padded
};

#endif
