// SPDX-License-Identifier: Apache-2.0
// Whether a GPU has instructions that multiply whole matrices of 16-bit floats.
#ifndef INF_BACKENDS_VULKAN_DEVICE_MATRICES_H
#define INF_BACKENDS_VULKAN_DEVICE_MATRICES_H

#include "backends/vulkan/device/gpu.h"

// Returns how shaders multiply matrices of MATRIX_SIDE * MATRIX_SIDE 16-bit floats and add the
// products in 32 bits: VK_MATRICES_NV if the driver has the extension, its feature and this size,
// else VK_MATRICES_NONE. `has_extension`: the GPU has VK_NV_cooperative_matrix. Calls the driver.
enum vk_matrices vk_find_matrices(const struct vk_gpu *gpu, bool has_extension);

#endif
