// SPDX-License-Identifier: Apache-2.0
// Host memory as the device's: VK_EXT_external_memory_host.
#ifndef INF_BACKENDS_VULKAN_DEVICE_HOST_IMPORT_H
#define INF_BACKENDS_VULKAN_DEVICE_HOST_IMPORT_H

#include "backends/vulkan/device/memory.h"

// Host memory that a device reads as it is.
struct vk_host_import {
    VkBuffer buffer;
    VkDeviceMemory memory;
};

// Finds out whether the GPU can and sets its `import_alignment`. Once, when it is opened.
void vk_host_import_probe(struct vk_gpu *gpu, bool extension);

// Makes the device read `size_bytes` at `host`, of which *span is then all. The memory must stay until
// vk_host_import_fini().
//
// INF_UNSUPPORTED  the driver cannot, or not this memory.
enum inf_code vk_host_import_init(struct vk_host_import *import, struct vk_span *span,
                                  struct vk_device *device, void *host, size_t size_bytes,
                                  struct inf_error *err) INF_NODISCARD;

// Takes it back; nothing may still use it. All zero is fine.
void vk_host_import_fini(struct vk_host_import *import, struct vk_device *device);

#endif
