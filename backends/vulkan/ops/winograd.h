// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 by Winograd's algorithm.
#ifndef INF_BACKENDS_VULKAN_OPS_WINOGRAD_H
#define INF_BACKENDS_VULKAN_OPS_WINOGRAD_H

#include "backends/vulkan/ops/shader_choice.h"

// Returns true if the method is a form of Winograd's algorithm.
bool vk_is_winograd(enum vk_shader_method method);

// Returns true if the choice, a form of Winograd's algorithm, can compute the convolution in the
// precision of the node and within the limits of the device.
bool vk_can_use_winograd(const struct vk_lowering *lowering, const struct vk_conv *conv,
                         const struct vk_shader_choice *choice);

// Returns true if the rule chooses VK_BY_WINOGRAD for the convolution on this device.
bool vk_winograd_is_rule(const struct vk_lowering *lowering, const struct vk_conv *conv);

// Emits the dispatches of Winograd's algorithm, for which vk_can_use_winograd() is true. If the
// driver cannot build them, emits nothing and sets *out_built to false.
enum inf_code vk_emit_winograd(struct vk_lowering *lowering, const struct vk_conv *conv,
                               const struct vk_shader_choice *choice, bool *out_built,
                               struct inf_error *err) INF_NODISCARD;

#endif
