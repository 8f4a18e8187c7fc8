// SPDX-License-Identifier: Apache-2.0
// Creates and frees the logical device of a GPU.
#ifndef INF_BACKENDS_VULKAN_DEVICE_DEVICE_CREATE_H
#define INF_BACKENDS_VULKAN_DEVICE_DEVICE_CREATE_H

#include "backends/vulkan/device/device.h"

// Creates a logical device with one reference, which the caller owns. Used by vk_gpu_acquire().
//
// INF_UNAVAILABLE  (DEVICE_LOST) the driver refuses to create it.
enum inf_code vk_device_create(struct vk_device **out_device, struct vk_gpu *gpu,
                               uint32_t generation,
                               struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Drops a reference and sets the pointer to NULL. Dropping the last reference frees the device.
// NULL is allowed.
void vk_device_unref(struct vk_device **device);

#endif
