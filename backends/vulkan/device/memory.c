// SPDX-License-Identifier: Apache-2.0
// Spans of device memory.
//
// The problem: drivers limit the number of allocations, and allocating is slow.
//
// The idea: memory is allocated in slabs of 16 MiB (4 MiB for weights), each with one VkBuffer. A
// span is a part of a slab. Each slab lists its holes by offset; allocation takes the first hole
// that is large enough, and a freed span is merged with the holes that it touches:
//
// span A
// hole
// span B
// hole
//     freeing B:
//
// span A
// hole
//
// A request of more than a quarter of a slab gets a slab of its own, which is freed with it. If the
// heap or the configured limit is exhausted, weights of idle programs are evicted and the
// allocation is retried.
#include "backends/vulkan/device/memory.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

// The size of a slab. Small enough for small systems, and large enough that the number of slabs
// stays far below a driver's limit of allocations.
#define SLAB_BYTES ((VkDeviceSize)16 << 20)
// Slabs of weights are smaller, because each program allocates its weights once.
#define WEIGHTS_SLAB_BYTES ((VkDeviceSize)4 << 20)

// A free part of a slab.
struct hole {
    struct hole *next; // next hole of the slab, ordered by offset
    VkDeviceSize offset, size;
};

struct vk_slab {
    struct vk_slab *next;
    VkDeviceMemory memory;
    VkBuffer buffer;
    uint64_t serial; // serial number of the buffer
    VkDeviceSize size;
    uint32_t type;
    enum vk_span_use use;
    uint32_t spans; // number of spans in use
    void *host;
    struct hole *holes;
};

// --- choosing the memory types of the GPU ---

// Returns the first memory type that has all flags of `wanted`; UINT32_MAX if there is none.
static uint32_t find_type(const VkPhysicalDeviceMemoryProperties *memory,
                          VkMemoryPropertyFlags wanted)
{
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++)
        if ((memory->memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    return UINT32_MAX;
}

// Returns the size of the heap of a memory type.
static uint64_t heap_bytes(const VkPhysicalDeviceMemoryProperties *memory, uint32_t type)
{
    return memory->memoryHeaps[memory->memoryTypes[type].heapIndex].size;
}

// Chooses the memory type of weights. If the host can see all memory of a discrete GPU (resizable
// BAR), weights lie in visible memory, and the host writes them without a staging buffer. Without
// resizable BAR, the visible memory of the GPU is a heap of usually 256 MB, which is left to other
// programs.
static uint32_t choose_weights_type(const struct vk_gpu *gpu, VkMemoryPropertyFlags visible)
{
    uint32_t type = find_type(&gpu->memory, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | visible);
    return type != UINT32_MAX &&
                   heap_bytes(&gpu->memory, type) >= heap_bytes(&gpu->memory, gpu->local_type)
               ? type
               : gpu->local_type;
}

bool vk_choose_memory_types(struct vk_gpu *gpu)
{
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkMemoryPropertyFlags cached = visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
    gpu->host_type = find_type(&gpu->memory, cached);
    if (gpu->host_type == UINT32_MAX)
        gpu->host_type = find_type(&gpu->memory, visible);
    gpu->unified = gpu->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU &&
                   find_type(&gpu->memory, local | visible) != UINT32_MAX;
    gpu->local_type = find_type(&gpu->memory, gpu->unified ? local | visible : local);
    if (gpu->local_type == UINT32_MAX)
        gpu->local_type = gpu->host_type;
    if (gpu->host_type == UINT32_MAX)
        return false;
    gpu->weights_type = choose_weights_type(gpu, visible);
    for (uint32_t i = 0; i < gpu->memory.memoryHeapCount; i++)
        gpu->largest_heap = INF_MAX(gpu->largest_heap, gpu->memory.memoryHeaps[i].size);
    return true;
}

// --- creating and freeing slabs ---

uint64_t vk_buffer_serial(struct vk_device *device)
{
    // Relaxed order is enough, because serial numbers must only be unique.
    return atomic_fetch_add_explicit(&device->serials, 1, memory_order_relaxed) + 1;
}

static void free_holes(struct hole *hole)
{
    while (hole != NULL) {
        struct hole *next = hole->next;
        free(hole);
        hole = next;
    }
}

static void slab_free(struct vk_device *device, struct vk_slab *slab)
{
    free_holes(slab->holes);
    if (!vk_device_abandoned(device)) {
        device->api.DestroyBuffer(device->device, slab->buffer, NULL);
        device->api.FreeMemory(device->device, slab->memory, NULL);
    }
    free(slab);
}

static enum inf_code slab_fill(struct vk_device *device, struct vk_slab *slab,
                               struct inf_error *err)
{
    slab->holes = calloc(1, sizeof(*slab->holes));
    if (slab->holes == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a slab", device->name);
    slab->holes->size = slab->size;
    // Queues of both families access the memory of weights, and the staging buffers through which
    // weights are uploaded. Only runs access arenas.
    const uint32_t families[] = {device->gpu->queue_family, device->gpu->transfer_family};
    bool shared = families[0] != families[1] && slab->use != VK_SPAN_ARENA;
    VkBufferCreateInfo buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                 .size = slab->size,
                                 .usage = VK_SPAN_USAGE,
                                 .sharingMode = shared ? VK_SHARING_MODE_CONCURRENT
                                                       : VK_SHARING_MODE_EXCLUSIVE,
                                 .queueFamilyIndexCount = shared ? 2 : 0,
                                 .pQueueFamilyIndices = families};
    VK_TRY(device, device->api.CreateBuffer(device->device, &buffer, NULL, &slab->buffer), err);
    VkMemoryRequirements needs;
    device->api.GetBufferMemoryRequirements(device->device, slab->buffer, &needs);
    if ((needs.memoryTypeBits >> slab->type & 1) == 0)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_BACKEND,
                               "device '%s': storage buffers do not lie in memory type %u",
                               device->name, slab->type);
    VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                   .allocationSize = needs.size,
                                   .memoryTypeIndex = slab->type};
    VK_TRY(device, device->api.AllocateMemory(device->device, &memory, NULL, &slab->memory), err);
    VK_TRY(device, device->api.BindBufferMemory(device->device, slab->buffer, slab->memory, 0),
           err);
    VkMemoryPropertyFlags flags = device->gpu->memory.memoryTypes[slab->type].propertyFlags;
    if ((flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0)
        VK_TRY(
            device,
            device->api.MapMemory(device->device, slab->memory, 0, VK_WHOLE_SIZE, 0, &slab->host),
            err);
    return INF_OK;
}

// --- checking the driver's memory budget and the configured limit ---

// When this percentage of the memory budget is used, a warning is logged. It can be logged again
// after the use has fallen below the second percentage.
#define SHORT_PERCENT  90
#define ENOUGH_PERCENT 80

struct room {
    uint64_t used, budget;
};

// Returns the used bytes and the budget of the memory type's heap. If the driver does not report
// them, returns the bytes of slabs and the size of the heap.
static struct room heap_room(struct vk_device *device, uint32_t type)
{
    const struct vk_gpu *gpu = device->gpu;
    uint32_t heap = gpu->memory.memoryTypes[type].heapIndex;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    if (gpu->budget) {
        gpu->api->GetPhysicalDeviceMemoryProperties2(gpu->physical, &properties);
        return (struct room){budget.heapUsage[heap], budget.heapBudget[heap]};
    }
    inf_mutex_lock(&device->memory_mutex);
    uint64_t used = device->heap_bytes[heap];
    inf_mutex_unlock(&device->memory_mutex);
    return (struct room){used, gpu->memory.memoryHeaps[heap].size};
}

// Checks the budget before an allocation, because some drivers slow down or crash instead of
// refusing memory that they lack.
//
// INF_EXHAUSTED  (DEVICE_OOM) a slab of `size` bytes exceeds the budget.
static enum inf_code check_room(struct vk_device *device, VkDeviceSize size, uint32_t type,
                                struct inf_error *err)
{
    struct vk_gpu *gpu = device->gpu;
    struct room room = heap_room(device, type);
    if (size > room.budget || room.used > room.budget - size)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_DEVICE_OOM,
                               "device '%s': no room for %" PRIu64 " bytes, %" PRIu64 " of %" PRIu64
                               " are in use",
                               device->name, (uint64_t)size, room.used, room.budget);
    uint64_t after = room.used + size;
    if (after < room.budget / 100 * ENOUGH_PERCENT)
        atomic_store_explicit(&gpu->memory_short, false, memory_order_relaxed);
    if (after >= room.budget / 100 * SHORT_PERCENT && !atomic_exchange(&gpu->memory_short, true))
        inf_log(gpu->log, INF_LOG_WARNING,
                "device memory is short device=%s bytes=%" PRIu64 " budget=%" PRIu64, device->name,
                after, room.budget);
    return INF_OK;
}

static uint64_t *heap_of(struct vk_device *device, const struct vk_slab *slab)
{
    return &device->heap_bytes[device->gpu->memory.memoryTypes[slab->type].heapIndex];
}

// Adds the bytes of a slab to the total before the slab is allocated.
//
// INF_EXHAUSTED  (DEVICE_OOM) the total would exceed the configured limit.
static enum inf_code count_slab(struct vk_device *device, const struct vk_slab *slab,
                                struct inf_error *err)
{
    inf_mutex_lock(&device->memory_mutex);
    uint64_t used = device->slab_bytes, most = device->gpu->memory_bytes;
    bool fits = slab->size <= most && used <= most - slab->size;
    if (fits) {
        *heap_of(device, slab) += slab->size;
        device->slab_bytes += slab->size;
    }
    inf_mutex_unlock(&device->memory_mutex);
    if (fits)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_DEVICE_OOM,
                           "device '%s': no room for %" PRIu64 " bytes, %" PRIu64 " of the %" PRIu64
                           " that may be used (gpu_memory_bytes) are in use",
                           device->name, (uint64_t)slab->size, used, most);
}

static void uncount_slab(struct vk_device *device, const struct vk_slab *slab)
    INF_ATTR(requires_capability(device->memory_mutex))
{
    *heap_of(device, slab) -= slab->size;
    device->slab_bytes -= slab->size;
}

static uint32_t type_of(const struct vk_gpu *gpu, enum vk_span_use use)
{
    if (use == VK_SPAN_HOST)
        return gpu->host_type;
    return use == VK_SPAN_WEIGHTS ? gpu->weights_type : gpu->local_type;
}

// Creates a slab in memory type `type`.
//
// INF_EXHAUSTED    no host memory, or no device memory.
// INF_UNSUPPORTED  the driver refuses storage buffers in this memory type.
static enum inf_code create_slab_in(struct vk_slab **out_slab, struct vk_device *device,
                                    VkDeviceSize size, enum vk_span_use use, uint32_t type,
                                    struct inf_error *err)
{
    struct vk_slab *slab = calloc(1, sizeof(*slab));
    if (slab == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a slab", device->name);
    slab->size = size;
    slab->type = type;
    slab->use = use;
    slab->serial = vk_buffer_serial(device);
    enum inf_code code = check_room(device, size, slab->type, err);
    bool counted = code == INF_OK && (code = count_slab(device, slab, err)) == INF_OK;
    if (counted)
        code = slab_fill(device, slab, err);
    if (code == INF_OK) {
        *out_slab = slab;
        return INF_OK;
    }
    if (counted) {
        inf_mutex_lock(&device->memory_mutex);
        uncount_slab(device, slab);
        inf_mutex_unlock(&device->memory_mutex);
    }
    slab_free(device, slab);
    return code;
}

// Creates a slab in the memory type of its use. If the driver refuses storage buffers in the memory
// type of weights, creates a slab of weights in the memory type of arenas.
static enum inf_code slab_create(struct vk_slab **out_slab, struct vk_device *device,
                                 VkDeviceSize size, enum vk_span_use use, struct inf_error *err)
{
    const struct vk_gpu *gpu = device->gpu;
    uint32_t type = type_of(gpu, use);
    enum inf_code code = create_slab_in(out_slab, device, size, use, type, err);
    if (code == INF_UNSUPPORTED && use == VK_SPAN_WEIGHTS && type != gpu->local_type)
        code = create_slab_in(out_slab, device, size, use, gpu->local_type, err);
    return code;
}

// Allocates a span from the first hole that is large enough. Returns false if there is none.
static bool slab_alloc_span(struct vk_slab *slab, VkDeviceSize size, struct vk_span *span)
{
    for (struct hole **link = &slab->holes; *link != NULL; link = &(*link)->next) {
        struct hole *hole = *link;
        if (hole->size < size)
            continue;
        *span = (struct vk_span){
            .slab = slab,
            .serial = slab->serial,
            .buffer = slab->buffer,
            .offset = hole->offset,
            .size = size,
            .host = slab->host != NULL ? (char *)slab->host + hole->offset : NULL,
        };
        hole->offset += size;
        hole->size -= size;
        if (hole->size == 0) {
            *link = hole->next;
            free(hole);
        }
        slab->spans++;
        return true;
    }
    return false;
}

// Returns a span to its slab and merges it with the holes that it touches. If it touches none, it
// becomes a new hole, for which `fresh` is used. Returns a hole struct that is no longer needed,
// which the caller frees.
static struct hole *slab_free_span(struct vk_slab *slab, const struct vk_span *span,
                                   struct hole *fresh)
{
    struct hole *before = NULL, *after = slab->holes;
    for (; after != NULL && after->offset < span->offset; after = after->next)
        before = after;
    slab->spans--;
    if (before != NULL && before->offset + before->size == span->offset) {
        before->size += span->size;
        if (after == NULL || before->offset + before->size != after->offset) {
            return fresh;
        }
        before->size += after->size;
        before->next = after->next;
        after->next = fresh;
        return after;
    }
    if (after != NULL && span->offset + span->size == after->offset) {
        after->offset = span->offset;
        after->size += span->size;
        return fresh;
    }
    *fresh = (struct hole){.next = after, .offset = span->offset, .size = span->size};
    if (before != NULL)
        before->next = fresh;
    else
        slab->holes = fresh;
    return NULL;
}

static void unlink_slab(struct vk_device *device, struct vk_slab *slab)
    INF_ATTR(requires_capability(device->memory_mutex))
{
    struct vk_slab **link = &device->slabs;
    while (*link != slab)
        link = &(*link)->next;
    *link = slab->next;
    uncount_slab(device, slab);
}

static bool alloc_from_slabs(struct vk_device *device, VkDeviceSize size, enum vk_span_use use,
                             struct vk_span *span)
{
    bool found = false;
    inf_mutex_lock(&device->memory_mutex);
    for (struct vk_slab *slab = device->slabs; slab != NULL && !found; slab = slab->next)
        found = slab->use == use && slab_alloc_span(slab, size, span);
    inf_mutex_unlock(&device->memory_mutex);
    return found;
}

uint64_t vk_span_bytes(size_t size_bytes)
{
    return (size_bytes + INF_BLOB_SLACK_BYTES + VK_SPAN_ALIGNMENT - 1) &
           ~(uint64_t)(VK_SPAN_ALIGNMENT - 1);
}

// Allocates a span from a slab of the device, and creates a slab if necessary.
static enum inf_code alloc_span(struct vk_span *span, struct vk_device *device, VkDeviceSize size,
                                enum vk_span_use use, struct inf_error *err)
{
    struct vk_slab *slab = NULL;
    if (alloc_from_slabs(device, size, use, span))
        return INF_OK;
    // Give a large span its own slab, which is freed with the span.
    VkDeviceSize usual = use == VK_SPAN_WEIGHTS ? WEIGHTS_SLAB_BYTES : SLAB_BYTES;
    VkDeviceSize slab_size = size > usual / 4 ? size : usual;
    enum inf_code code = slab_create(&slab, device, slab_size, use, err);
    if (code == INF_EXHAUSTED && slab_size != size)
        code = slab_create(&slab, device, size, use, err);
    INF_TRY(code);
    // This cannot fail, because a new slab has one hole as large as itself.
    (void)!slab_alloc_span(slab, size, span);
    inf_mutex_lock(&device->memory_mutex);
    slab->next = device->slabs;
    device->slabs = slab;
    inf_mutex_unlock(&device->memory_mutex);
    return INF_OK;
}

enum inf_code vk_span_alloc(struct vk_span *span, struct vk_device *device, size_t size_bytes,
                            enum vk_span_use use, struct inf_error *err)
{
    assert(device->evict != NULL);
    size_t padded;
    if (!inf_size_add(size_bytes, INF_BLOB_SLACK_BYTES + VK_SPAN_ALIGNMENT - 1, &padded) ||
        padded > PTRDIFF_MAX)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_DEVICE_OOM,
                               "device '%s': %zu bytes are more than memory can be", device->name,
                               size_bytes);
    VkDeviceSize size = vk_span_bytes(size_bytes);
    enum inf_code code = alloc_span(span, device, size, use, err);
    // If the span is larger than all memory, fail without evicting weights, which would not help.
    VkDeviceSize most = INF_MIN(device->gpu->largest_heap, device->gpu->memory_bytes);
    while (code == INF_EXHAUSTED && size <= most && device->evict(device))
        code = alloc_span(span, device, size, use, err);
    return code;
}

void vk_span_free(struct vk_device *device, struct vk_span *span)
{
    if (span->slab == NULL)
        return;
    struct vk_slab *slab = span->slab;
    struct hole *fresh = calloc(1, sizeof(*fresh));
    if (fresh == NULL)
        return; // these bytes stay allocated until the device is destroyed; nothing else breaks
    inf_mutex_lock(&device->memory_mutex);
    struct hole *rest = slab_free_span(slab, span, fresh);
    bool empty = slab->spans == 0;
    if (empty)
        unlink_slab(device, slab);
    inf_mutex_unlock(&device->memory_mutex);
    free_holes(rest);
    if (empty)
        slab_free(device, slab);
    *span = (struct vk_span){0};
}

void vk_free_slabs(struct vk_device *device)
{
    while (device->slabs != NULL) {
        struct vk_slab *slab = device->slabs;
        device->slabs = slab->next;
        slab_free(device, slab);
    }
}
