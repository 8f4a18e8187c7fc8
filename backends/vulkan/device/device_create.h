// SPDX-License-Identifier: Apache-2.0
// Creates and frees the logical device of a GPU.
#ifndef INF_BACKENDS_VULKAN_DEVICE_DEVICE_CREATE_H
#define INF_BACKENDS_VULKAN_DEVICE_DEVICE_CREATE_H

#include "backends/vulkan/device/device.h"

// Creates a logical device; the caller owns the one reference. For vk_gpu_acquire().
//
// INF_UNAVAILABLE  (DEVICE_LOST) the driver refuses.
enum inf_code vk_device_create(struct vk_device **out_device, struct vk_gpu *gpu,
                               uint32_t generation,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Drops a reference and sets the pointer to NULL; the last one frees the device. NULL is allowed.
void vk_device_unref(struct vk_device **device);

#endif
