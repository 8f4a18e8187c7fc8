// SPDX-License-Identifier: Apache-2.0
// What a convolution adds to its result.
#ifndef INF_BACKENDS_VULKAN_OPS_RESIDUAL_H
#define INF_BACKENDS_VULKAN_OPS_RESIDUAL_H

#include <stdint.h>

// Nodes that are one step, that of `end`.
struct vk_residual {
    uint32_t conv, add;
    uint32_t pad, prelu; // INF_NODE_NONE: there is none
    uint32_t end;        // the last of them: `prelu` or `add`
    uint32_t added;      // the value that is added, before the pad
};

#endif
