// SPDX-License-Identifier: Apache-2.0
// Transfers of bytes between the host and spans, which the host may not see.
#ifndef INF_BACKENDS_VULKAN_DEVICE_TRANSFER_H
#define INF_BACKENDS_VULKAN_DEVICE_TRANSFER_H

#include "backends/vulkan/device/memory.h"

// Copies between two buffers on the device, and waits until it is done.
enum inf_code vk_span_copy(struct vk_device *device, const VkBufferCopy *region, VkBuffer to,
                           VkBuffer from, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// A transfer between `bytes` of the host and the start of the span.
struct vk_transfer {
    const struct vk_span *span;
    void *bytes; // only read if they are written to the device
    size_t size;
};

// Write all transfers to the device, or read them from it. If the host cannot see the spans, they
// go through a staging buffer, with as many transfers in one submission as fit.
enum inf_code vk_transfer_write(struct vk_device *device, const struct vk_transfer *transfers,
                                uint32_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;
enum inf_code vk_transfer_read(struct vk_device *device, const struct vk_transfer *transfers,
                               uint32_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
