// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vulkan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/vk_device.h"
#include "backends/vulkan/vk_instance.h"
#include "backends/vulkan/vk_memory.h"
#include "backends/vulkan/vk_program.h"

#define VULKAN_PRIORITY 300

// Runs that a GPU may overlap; what computes on the CPU has nothing to overlap with.
#define GPU_SLOTS 2

static uint32_t vulkan_probe(void)
{
    struct vk_gpus gpus;
    vk_gpus_find(&gpus);
    return gpus.count;
}

static uint64_t local_bytes(const VkPhysicalDeviceMemoryProperties *memory)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++)
        if ((memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
            bytes += memory->memoryHeaps[i].size;
    return bytes;
}

static void describe(struct vk_device *device, uint32_t index,
                     const struct inf_device_options *options)
{
    struct inf_device_info *info = &device->base.info;
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    vkGetPhysicalDeviceProperties2(device->physical, &properties);
    bool software = device->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    info->kind = software ? INF_DEVICE_SOFTWARE : INF_DEVICE_GPU;
    info->priority = VULKAN_PRIORITY - (int)index;
    info->slots = options->slots != 0 ? options->slots : (software ? 1 : GPU_SLOTS);
    info->threads = 1;
    info->host_memory = false;
    info->alignment = device->properties.limits.minStorageBufferOffsetAlignment;
    info->memory_bytes = local_bytes(&device->memory);
    snprintf(info->name, sizeof(info->name), "vulkan%u", index);
    snprintf(info->backend, sizeof(info->backend), "vulkan");
    snprintf(info->description, sizeof(info->description), "%.48s, %.36s",
             device->properties.deviceName, driver.driverInfo);
}

static enum inf_code examine(struct vk_device *device, uint32_t index,
                             const struct inf_device_options *options, struct inf_error *err)
{
    struct vk_gpus gpus;
    vk_gpus_find(&gpus);
    if (index >= gpus.count)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "vulkan: there is no GPU %u", index);
    device->physical = gpus.devices[index];
    device->log = options->log;
    vkGetPhysicalDeviceProperties(device->physical, &device->properties);
    vkGetPhysicalDeviceMemoryProperties(device->physical, &device->memory);
    describe(device, index, options);
    if (device->base.info.kind == INF_DEVICE_SOFTWARE && !vk_may_execute_memory())
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "vulkan: '%.64s' compiles for the CPU, which this process may not "
                               "(MemoryDenyWriteExecute)",
                               device->properties.deviceName);
    if (!vk_queue_family(device->physical, &device->queue_family) || !vk_memory_types(device))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "vulkan: '%.64s' has no queue or no memory to use",
                               device->properties.deviceName);
    // llvmpipe computes eight invocations at a time; GPUs 16 to 64.
    device->group_size = device->base.info.kind == INF_DEVICE_SOFTWARE ? 8 : 64;
    VkQueueFamilyProperties families[16];
    uint32_t count = INF_ARRAY_LENGTH(families);
    vkGetPhysicalDeviceQueueFamilyProperties(device->physical, &count, families);
    device->timestamp_bits = families[device->queue_family].timestampValidBits;
    if (options->cache_directory != NULL) {
        device->cache_directory = strdup(options->cache_directory);
        if (device->cache_directory == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory");
    }
    return INF_OK;
}

static enum inf_code vulkan_open(struct inf_device **out_device, uint32_t index,
                                 const struct inf_device_options *options, struct inf_error *err)
{
    struct vk_device *device = calloc(1, sizeof(*device));
    if (device == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory");
    enum inf_code code = examine(device, index, options, err);
    if (code != INF_OK) {
        free(device->cache_directory);
        free(device);
        return code;
    }
    inf_mutex_init(&device->start_mutex);
    inf_mutex_init(&device->queue_mutex);
    inf_mutex_init(&device->memory_mutex);
    inf_mutex_init(&device->pipeline_mutex);
    *out_device = &device->base;
    return INF_OK;
}

static void vulkan_close(struct inf_device *base)
{
    struct vk_device *device = (struct vk_device *)base;
    vk_device_stop(device);
    inf_mutex_fini(&device->start_mutex);
    inf_mutex_fini(&device->queue_mutex);
    inf_mutex_fini(&device->memory_mutex);
    inf_mutex_fini(&device->pipeline_mutex);
    free(device->cache_directory);
    free(device);
}

static enum inf_code vulkan_wait(struct inf_device *base, struct inf_ticket ticket,
                                 uint64_t timeout_ns, struct inf_error *err)
{
    struct vk_device *device = (struct vk_device *)base;
    if (ticket.value == 0)
        return INF_OK;
    return vk_device_wait(device, ticket.value, timeout_ns, err);
}

static enum inf_device_health vulkan_health(struct inf_device *base)
{
    struct vk_device *device = (struct vk_device *)base;
    return atomic_load_explicit(&device->lost, memory_order_relaxed) ? INF_DEVICE_LOST
                                                                     : INF_DEVICE_OK;
}

const struct inf_backend inf_vulkan_backend = {
    .name = "vulkan",
    .priority = VULKAN_PRIORITY,
    .hardware = vk_hardware_present,
    .probe = vulkan_probe,
    .open = vulkan_open,
    .close = vulkan_close,
    .supports = vk_program_supports,
    .buffer_alloc = vk_buffer_alloc,
    .buffer_import = vk_buffer_import,
    .buffer_copy = vk_buffer_copy,
    .buffer_free = vk_buffer_free,
    .compile = vk_program_compile,
    .program_destroy = vk_program_destroy,
    .run = vk_program_run,
    .wait = vulkan_wait,
    .profile = vk_program_profile,
    .health = vulkan_health,
};
