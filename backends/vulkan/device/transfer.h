// SPDX-License-Identifier: Apache-2.0
// Transfers between host memory and spans of device memory, which the host may not be able to
// access.
#ifndef INF_BACKENDS_VULKAN_DEVICE_TRANSFER_H
#define INF_BACKENDS_VULKAN_DEVICE_TRANSFER_H

#include "backends/vulkan/device/memory.h"

// Copies between two buffers on the device, and waits until the copy is done.
enum inf_code vk_span_copy(struct vk_device *device, const VkBufferCopy *region, VkBuffer to,
                           VkBuffer from, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// A transfer between `bytes` on the host and the start of the span.
struct vk_transfer {
    const struct vk_span *span;
    void *bytes; // host memory; only read if the transfer goes to the device
    size_t size;
};

// Write all transfers to the device, or read all of them from it. If the host cannot see the spans,
// the bytes go through a ring of two staging buffers of 4 MB. A submission has as many transfers as
// fit into one of these buffers.
enum inf_code vk_transfer_write(struct vk_device *device, const struct vk_transfer *transfers,
                                uint32_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;
enum inf_code vk_transfer_read(struct vk_device *device, const struct vk_transfer *transfers,
                               uint32_t count, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
