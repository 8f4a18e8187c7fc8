// SPDX-License-Identifier: Apache-2.0
// Implements the buffers of struct inf_backend. Each buffer is a span (a part of a slab of device
// memory), or imported host memory.
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/device/device_create.h"
#include "backends/vulkan/device/host_import.h"
#include "backends/vulkan/device/transfer.h"

struct vk_buffer {
    struct inf_buffer base;
    // A counted reference; after a device loss the GPU gets another logical device.
    struct vk_device *device;
    struct vk_span span;
    // Empty if `span` is part of a slab, that is, if no host memory was imported.
    struct vk_host_import import;
};

const struct vk_span *vk_buffer_span(const struct inf_buffer *buffer)
{
    return &((const struct vk_buffer *)buffer)->span;
}

const struct vk_device *vk_buffer_device(const struct inf_buffer *buffer)
{
    return ((const struct vk_buffer *)buffer)->device;
}

enum inf_code vk_buffer_alloc(struct inf_buffer **out_buffer, struct inf_device *base,
                              size_t size_bytes, enum inf_buffer_usage usage, struct inf_error *err)
{
    struct vk_buffer *buffer = calloc(1, sizeof(*buffer));
    if (buffer == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a buffer", base->info.name);
    enum inf_code code = vk_gpu_acquire((struct vk_gpu *)base, &buffer->device, err);
    if (code == INF_OK)
        code = vk_span_alloc(&buffer->span, buffer->device, size_bytes,
                             usage == INF_BUFFER_STAGING ? VK_SPAN_HOST : VK_SPAN_ARENA, err);
    if (code != INF_OK) {
        vk_device_unref(&buffer->device);
        free(buffer);
        return code;
    }
    // Only staging buffers give their host address to the caller. Arenas do not, even if the host
    // can access their memory.
    if (usage == INF_BUFFER_STAGING) {
        buffer->base.host = buffer->span.host;
        memset(buffer->base.host, 0, buffer->span.size);
    }
    *out_buffer = &buffer->base;
    return INF_OK;
}

enum inf_code vk_buffer_import(struct inf_buffer **out_buffer, struct inf_device *device,
                               void *host, size_t size_bytes, struct inf_error *err)
{
    struct vk_buffer *buffer = calloc(1, sizeof(*buffer));
    if (buffer == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a buffer", device->info.name);
    enum inf_code code = vk_gpu_acquire((struct vk_gpu *)device, &buffer->device, err);
    if (code == INF_OK)
        code = vk_host_import_init(&buffer->import, &buffer->span, buffer->device, host, size_bytes,
                                   err);
    if (code != INF_OK) {
        vk_device_unref(&buffer->device);
        free(buffer);
        return code;
    }
    buffer->base.host = host;
    *out_buffer = &buffer->base;
    return INF_OK;
}

bool vk_buffer_lost(const struct inf_buffer *buffer)
{
    return vk_device_lost(vk_buffer_device(buffer));
}

enum inf_code vk_buffer_copy(struct inf_buffer *to, size_t to_offset, struct inf_buffer *from,
                             size_t from_offset, size_t size, struct inf_error *err)
{
    const struct vk_span *source = vk_buffer_span(from), *target = vk_buffer_span(to);
    if (vk_buffer_device(from) != vk_buffer_device(to))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                               "device '%s' was lost between the making of two buffers",
                               to->device->info.name);
    if (source->host != NULL && target->host != NULL) {
        memmove((char *)target->host + to_offset, (const char *)source->host + from_offset, size);
        return INF_OK;
    }
    VkBufferCopy region = {.srcOffset = source->offset + from_offset,
                           .dstOffset = target->offset + to_offset,
                           .size = size};
    return vk_span_copy(((struct vk_buffer *)to)->device, &region, target->buffer, source->buffer,
                        err);
}

void vk_buffer_free(struct inf_buffer *base)
{
    struct vk_buffer *buffer = (struct vk_buffer *)base;
    vk_span_free(buffer->device, &buffer->span);
    vk_host_import_fini(&buffer->import, buffer->device);
    vk_device_unref(&buffer->device);
    free(buffer);
}
