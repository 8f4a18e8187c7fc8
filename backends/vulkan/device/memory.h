// SPDX-License-Identifier: Apache-2.0
// Device memory: a few large slabs, which are divided into spans. Each slab is one VkBuffer, so a
// span is a buffer, an offset and a size.
#ifndef INF_BACKENDS_VULKAN_DEVICE_MEMORY_H
#define INF_BACKENDS_VULKAN_DEVICE_MEMORY_H

#include "backends/vulkan/device/device.h"

// A part of a slab. A zeroed struct is an empty span.
struct vk_span {
    struct vk_slab *slab;
    // Serial number of the buffer; needed because drivers may reuse the handle of a destroyed
    // buffer.
    uint64_t serial;
    VkBuffer buffer;
    VkDeviceSize offset; // offset in the buffer, a multiple of VK_SPAN_ALIGNMENT
    VkDeviceSize size;
    void *host; // address in host memory; NULL if the host cannot see it
};

// The alignment of spans. At least as large as any driver requires for the offset of a storage
// buffer.
#define VK_SPAN_ALIGNMENT 256

// Vulkan usage flags for the buffers of slabs.
#define VK_SPAN_USAGE                                                                              \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |               \
     VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

// Returns a serial number for a new buffer of the device. Any thread.
uint64_t vk_buffer_serial(struct vk_device *device);

// What a span is used for. Spans for different uses are in different slabs, so that all spans of a
// slab tend to be freed at about the same time.
enum vk_span_use {
    VK_SPAN_ARENA,   // device memory for arenas
    VK_SPAN_HOST,    // memory that the host reads and writes
    VK_SPAN_WEIGHTS, // device memory for weights, which live long
};

// Returns how many bytes a span for `size_bytes` occupies.
uint64_t vk_span_bytes(size_t size_bytes);

// Allocates a span. Evicts weights of idle programs if memory is exhausted.
//
// INF_EXHAUSTED  (DEVICE_OOM)
enum inf_code vk_span_alloc(struct vk_span *span, struct vk_device *device, size_t size_bytes,
                            enum vk_span_use use, struct inf_error *err) INF_NODISCARD;

// Frees the span and zeroes it. The device must not be using it.
void vk_span_free(struct vk_device *device, struct vk_span *span);

// Chooses the memory types of the GPU. Returns false if the GPU has no suitable types.
bool vk_choose_memory_types(struct vk_gpu *gpu) INF_NODISCARD;

// Frees all slabs of the device.
void vk_free_slabs(struct vk_device *device);

// --- buffer functions of struct inf_backend ---
enum inf_code vk_buffer_alloc(struct inf_buffer **out_buffer, struct inf_device *device,
                              size_t size_bytes, enum inf_buffer_usage usage,
                              struct inf_error *err);
enum inf_code vk_buffer_import(struct inf_buffer **out_buffer, struct inf_device *device,
                               void *host, size_t size_bytes, struct inf_error *err);
enum inf_code vk_buffer_copy(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                             size_t from_offset, size_t size, struct inf_error *err);
bool vk_buffer_lost(const struct inf_buffer *buffer);
void vk_buffer_free(struct inf_buffer *buffer);

// Returns the span of a buffer that vk_buffer_alloc() or vk_buffer_import() created.
const struct vk_span *vk_buffer_span(const struct inf_buffer *buffer);

// Returns the logical device to which the buffer belongs.
const struct vk_device *vk_buffer_device(const struct inf_buffer *buffer);

#endif
