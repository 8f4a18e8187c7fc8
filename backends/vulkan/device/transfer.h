// SPDX-License-Identifier: Apache-2.0
// Bytes on their way between the host, which does not see all memory of a device, and spans.
#ifndef INF_BACKENDS_VULKAN_DEVICE_TRANSFER_H
#define INF_BACKENDS_VULKAN_DEVICE_TRANSFER_H

#include "backends/vulkan/device/memory.h"

// Copies between spans on the device and waits for it.
enum inf_code vk_span_copy(struct vk_device *device, const VkBufferCopy *region, VkBuffer to,
                           VkBuffer from, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Bytes of the host and the span whose first they are.
struct vk_transfer {
    const struct vk_span *span;
    void *bytes; // only read where they go to the device
    size_t size;
};

// Writes all of them to the device, or reads them from there. Where the host does not see the spans, they go
// by pieces of memory that it sees, as many together in one submit as fit.
enum inf_code vk_transfer_write(struct vk_device *device, const struct vk_transfer *transfers,
                                uint32_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;
enum inf_code vk_transfer_read(struct vk_device *device, const struct vk_transfer *transfers,
                               uint32_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
