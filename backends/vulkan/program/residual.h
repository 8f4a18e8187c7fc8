// SPDX-License-Identifier: Apache-2.0
// Residual convolutions: a convolution to whose result a value is added, as in a residual block.
// One dispatch computes the convolution, the sum, a prelu that follows it, and the padding of the
// added value's channels.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_RESIDUAL_H
#define INF_BACKENDS_VULKAN_PROGRAM_RESIDUAL_H

#include "backends/vulkan/lowering/lowering.h"
#include "backends/vulkan/ops/residual.h"

// Finds the residual convolution that contains `node`. Returns false if there is none. All nodes of
// a residual convolution find the same one.
bool vk_residual_find(struct vk_residual *residual, struct vk_gpu *gpu,
                      const struct inf_segment *segment, uint32_t node) INF_NODISCARD;

// Emits the dispatch of a residual convolution. `lowering` must be set up for its last node.
//
// INF_UNSUPPORTED  the driver cannot build the shader; from then on no residuals are fused on this
// GPU.
enum inf_code vk_lower_residual(struct vk_lowering *lowering, const struct vk_residual *residual,
                                const struct inf_segment *segment,
                                struct inf_error *err) INF_NODISCARD;

#endif
