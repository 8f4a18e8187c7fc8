// SPDX-License-Identifier: Apache-2.0
// Finds GPUs in two steps. The first looks for device nodes of the kernel, without loading drivers.
// The second lists the physical devices of the Vulkan instance.
#include "backends/vulkan/device/instance.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <unistd.h>

bool vk_hardware_present(void)
{
    static const char *const nodes[] = {
        "/dev/dri/renderD*",                                  // Mesa, AMD, Intel
        "/dev/nvidia[0-9]*", "/dev/nvhost-gpu", "/dev/nvgpu", // NVIDIA, Tegra
        "/dev/kgsl-3d0",                                      // Adreno
        "/dev/mali*",                                         // Mali
        "/dev/pvr_sync",     "/dev/galcore",    "/dev/dxg",   // PowerVR, Vivante, WSL
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(nodes); i++) {
        glob_t found = {0};
        bool present = glob(nodes[i], GLOB_NOSORT, NULL, &found) == 0 && found.gl_pathc > 0;
        globfree(&found);
        if (present)
            return true;
    }
    return false;
}

// The most queue families that are looked at.
#define FAMILIES_MAX 16

bool vk_find_queue_family(const struct vk_instance_api *api, VkPhysicalDevice physical,
                          uint32_t *family)
{
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t count = INF_ARRAY_LENGTH(families);
    api->GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        bool computes = (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
        bool draws = (families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT) != 0;
        if (!computes || (found && draws))
            continue;
        *family = i;
        found = true;
        if (!draws)
            return true;
    }
    return found;
}

uint32_t vk_find_transfer_family(const struct vk_instance_api *api, VkPhysicalDevice physical,
                                 uint32_t otherwise)
{
    VkQueueFamilyProperties families[FAMILIES_MAX];
    uint32_t count = INF_ARRAY_LENGTH(families);
    api->GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        VkQueueFlags flags = families[i].queueFlags;
        if ((flags & VK_QUEUE_TRANSFER_BIT) != 0 &&
            (flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) == 0)
            return i;
    }
    return otherwise;
}

static bool is_usable(const struct vk_instance_api *api, VkPhysicalDevice physical)
{
    VkPhysicalDeviceProperties properties;
    api->GetPhysicalDeviceProperties(physical, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_2)
        return false;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &timeline};
    api->GetPhysicalDeviceFeatures2(physical, &features);
    uint32_t family;
    return timeline.timelineSemaphore && vk_find_queue_family(api, physical, &family);
}

void vk_gpus_find(struct vk_gpus *gpus)
{
    gpus->count = 0;
    const struct vk_instance_api *api = vk_instance_api();
    if (api == NULL)
        return;
    VkPhysicalDevice all[VK_DEVICES_MAX];
    uint32_t count = VK_DEVICES_MAX;
    VkResult result = api->EnumeratePhysicalDevices(api->instance, &count, all);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return;
    for (uint32_t i = 0; i < count; i++)
        if (is_usable(api, all[i]))
            gpus->devices[gpus->count++] = all[i];
}

bool vk_may_execute_memory(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool may = mprotect(page, size, PROT_READ | PROT_EXEC) == 0;
    munmap(page, size);
    return may;
}
