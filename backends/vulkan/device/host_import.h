// SPDX-License-Identifier: Apache-2.0
// Host memory that a device reads and writes in place (VK_EXT_external_memory_host).
#ifndef INF_BACKENDS_VULKAN_DEVICE_HOST_IMPORT_H
#define INF_BACKENDS_VULKAN_DEVICE_HOST_IMPORT_H

#include "backends/vulkan/device/memory.h"

// Imported host memory. A zeroed struct stands for "nothing imported".
struct vk_host_import {
    VkBuffer buffer;
    VkDeviceMemory memory;
};

// Sets the import_alignment of the GPU if the driver supports imports. Called once for each GPU,
// when it is opened.
void vk_host_import_probe(struct vk_gpu *gpu, bool extension);

// Imports `size_bytes` at `host`, and sets *span to the whole import. The caller must keep the
// memory until vk_host_import_fini().
//
// INF_UNSUPPORTED  the driver cannot import this memory.
enum inf_code vk_host_import_init(struct vk_host_import *import, struct vk_span *span,
                                  struct vk_device *device, void *host, size_t size_bytes,
                                  struct inf_error *err) INF_NODISCARD;

// Ends the import. The device must not be using the memory. A zeroed struct is allowed.
void vk_host_import_fini(struct vk_host_import *import, struct vk_device *device);

#endif
