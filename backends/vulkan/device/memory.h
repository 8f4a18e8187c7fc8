// SPDX-License-Identifier: Apache-2.0
// Device memory: a few large slabs, cut into spans. Each slab is one VkBuffer, so that a span is a
// buffer, an offset and a size.
#ifndef INF_BACKENDS_VULKAN_DEVICE_MEMORY_H
#define INF_BACKENDS_VULKAN_DEVICE_MEMORY_H

#include "backends/vulkan/device/device.h"

// A stretch of a slab. All zero: nothing.
struct vk_span {
    struct vk_slab *slab;
    uint64_t serial; // of the buffer: drivers give a new one the handle of one that is gone
    VkBuffer buffer;
    VkDeviceSize offset; // in the buffer, a multiple of VK_SPAN_ALIGNMENT
    VkDeviceSize size;
    void *host; // where the host sees it; NULL where it does not
};

// More than any driver wants of the offset of a storage buffer.
#define VK_SPAN_ALIGNMENT 256

// What the buffers behind spans are used for.
#define VK_SPAN_USAGE                                                                              \
    (VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |               \
     VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

// A serial number for a new buffer of the device. Any thread.
uint64_t vk_buffer_serial(struct vk_device *device);

// What a span is for. Spans of different uses share no slab, so that one that is given back as a whole can go.
enum vk_span_use {
    VK_SPAN_ARENA,   // the device's own memory
    VK_SPAN_HOST,    // memory that the host reads and writes
    VK_SPAN_WEIGHTS, // the device's own, for long
};

// Bytes that a span for `size_bytes` takes.
uint64_t vk_span_bytes(size_t size_bytes);

// Allocates a span. Where there is no room, the weights of idle programs make some.
//
// INF_EXHAUSTED  (DEVICE_OOM)
enum inf_code vk_span_alloc(struct vk_span *span, struct vk_device *device, size_t size_bytes,
                            enum vk_span_use use, struct inf_error *err) INF_NODISCARD;

// Gives the span back and makes it empty; nothing may still use it.
void vk_span_free(struct vk_device *device, struct vk_span *span);

// Chooses memory types; false where there is none that suits.
bool vk_choose_memory_types(struct vk_gpu *gpu) INF_NODISCARD;

// Frees all slabs.
void vk_free_slabs(struct vk_device *device);

// --- the backend's buffer entries ---
enum inf_code vk_buffer_alloc(struct inf_buffer **out_buffer, struct inf_device *device,
                              size_t size_bytes, enum inf_buffer_usage usage,
                              struct inf_error *err);
enum inf_code vk_buffer_import(struct inf_buffer **out_buffer, struct inf_device *device,
                               void *host, size_t size_bytes, struct inf_error *err);
enum inf_code vk_buffer_copy(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                             size_t from_offset, size_t size, struct inf_error *err);
bool vk_buffer_lost(const struct inf_buffer *buffer);
void vk_buffer_free(struct inf_buffer *buffer);

// The span behind a buffer that vk_buffer_alloc() made.
const struct vk_span *vk_buffer_span(const struct inf_buffer *buffer);

// The logical device that the buffer lies on.
const struct vk_device *vk_buffer_device(const struct inf_buffer *buffer);

#endif
