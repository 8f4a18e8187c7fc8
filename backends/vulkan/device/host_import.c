// SPDX-License-Identifier: Apache-2.0
// Imports host memory with VK_EXT_external_memory_host.
#include "backends/vulkan/device/host_import.h"

#include <inttypes.h>

#define HANDLE VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT

void vk_host_import_probe(struct vk_gpu *gpu, bool extension)
{
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &host};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver};
    if (!extension)
        return;
    gpu->api->GetPhysicalDeviceProperties2(gpu->physical, &properties);
    gpu->import_alignment = host.minImportedHostPointerAlignment;
    // llvmpipe can import host memory to any memory type, although it reports that none is
    // suitable.
    gpu->imports_any_type = driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
}

static enum inf_code decline_import(const struct vk_device *device, const char *why,
                                    size_t size_bytes, struct inf_error *err)
{
    return inf_fail(err, INF_UNSUPPORTED, "device '%s': %zu bytes of host memory not imported: %s",
                    device->name, size_bytes, why);
}

// Returns the memory type for the import; UINT32_MAX if there is none.
static uint32_t choose_type(struct vk_device *device, const void *host, uint32_t buffer_types)
{
    const struct vk_gpu *gpu = device->gpu;
    VkMemoryHostPointerPropertiesEXT properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    if (device->get_host_pointer(device->device, HANDLE, host, &properties) != VK_SUCCESS)
        return UINT32_MAX;
    if (properties.memoryTypeBits == 0 && gpu->imports_any_type)
        properties.memoryTypeBits = UINT32_MAX;
    uint32_t types = properties.memoryTypeBits & buffer_types;
    for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++)
        if ((types >> i & 1) != 0 &&
            (gpu->memory.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0)
            return i;
    return UINT32_MAX;
}

static enum inf_code import_memory(struct vk_host_import *import, struct vk_device *device,
                                   void *host, size_t size_bytes, struct inf_error *err)
{
    VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = HANDLE};
    VkBufferCreateInfo buffer = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                 .pNext = &external,
                                 .size = size_bytes,
                                 .usage = VK_SPAN_USAGE};
    if (device->api.CreateBuffer(device->device, &buffer, NULL, &import->buffer) != VK_SUCCESS)
        return decline_import(device, "vkCreateBuffer", size_bytes, err);
    VkMemoryRequirements needs;
    device->api.GetBufferMemoryRequirements(device->device, import->buffer, &needs);
    uint32_t type = choose_type(device, host, needs.memoryTypeBits);
    if (type == UINT32_MAX || needs.size > size_bytes)
        return decline_import(device, "no memory type for it", size_bytes, err);
    VkImportMemoryHostPointerInfoEXT pointer = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = HANDLE,
        .pHostPointer = host};
    VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                   .pNext = &pointer,
                                   .allocationSize = size_bytes,
                                   .memoryTypeIndex = type};
    if (device->api.AllocateMemory(device->device, &memory, NULL, &import->memory) != VK_SUCCESS)
        return decline_import(device, "vkAllocateMemory", size_bytes, err);
    if (device->api.BindBufferMemory(device->device, import->buffer, import->memory, 0) !=
        VK_SUCCESS)
        return decline_import(device, "vkBindBufferMemory", size_bytes, err);
    return INF_OK;
}

enum inf_code vk_host_import_init(struct vk_host_import *import, struct vk_span *span,
                                  struct vk_device *device, void *host, size_t size_bytes,
                                  struct inf_error *err)
{
    VkDeviceSize alignment = device->gpu->import_alignment;
    *import = (struct vk_host_import){0};
    if (device->get_host_pointer == NULL)
        return decline_import(device, "the driver has no VK_EXT_external_memory_host", size_bytes,
                              err);
    if (size_bytes == 0 || size_bytes % alignment != 0 || (uintptr_t)host % alignment != 0)
        return inf_fail(err, INF_UNSUPPORTED,
                        "device '%s': %zu bytes at %p not imported, wanted multiples of %" PRIu64,
                        device->name, size_bytes, host, (uint64_t)alignment);
    enum inf_code code = import_memory(import, device, host, size_bytes, err);
    if (code != INF_OK) {
        vk_host_import_fini(import, device);
        return code;
    }
    *span = (struct vk_span){.serial = vk_buffer_serial(device),
                             .buffer = import->buffer,
                             .size = size_bytes,
                             .host = host};
    return INF_OK;
}

void vk_host_import_fini(struct vk_host_import *import, struct vk_device *device)
{
    if (!vk_device_abandoned(device)) {
        device->api.DestroyBuffer(device->device, import->buffer, NULL);
        device->api.FreeMemory(device->device, import->memory, NULL);
    }
    *import = (struct vk_host_import){0};
}
