// SPDX-License-Identifier: Apache-2.0
// Convolutions to which something is added, as around a residual block: the sum, the prelu behind it, and the
// channels of zeros that what is added may be padded with are computed by the convolution's dispatch.
#ifndef INF_BACKENDS_VULKAN_PROGRAM_RESIDUAL_H
#define INF_BACKENDS_VULKAN_PROGRAM_RESIDUAL_H

#include "backends/vulkan/lowering/lowering.h"
#include "backends/vulkan/ops/residual.h"

// The join that `node` is of; false where there is none. The same for any of its nodes.
bool vk_residual_find(struct vk_residual *residual, struct vk_gpu *gpu,
                      const struct inf_segment *segment, uint32_t node) INF_NODISCARD;

// Makes the dispatch of a join; the lowering is that of its end.
//
// INF_UNSUPPORTED  the driver cannot build its shader; nothing is joined on this GPU from then on.
enum inf_code vk_lower_residual(struct vk_lowering *lowering, const struct vk_residual *residual,
                                const struct inf_segment *segment,
                                struct inf_error *err) INF_NODISCARD;

#endif
