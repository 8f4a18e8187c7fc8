// SPDX-License-Identifier: Apache-2.0
// The GPUs that the process's Vulkan instance finds.
#ifndef INF_BACKENDS_VULKAN_DEVICE_INSTANCE_H
#define INF_BACKENDS_VULKAN_DEVICE_INSTANCE_H

#include "backends/device/device_impl.h"
#include "backends/vulkan/device/api.h"

#define VK_DEVICES_MAX 8

// The GPUs that can be used: Vulkan 1.2, timeline semaphores, a queue that computes.
struct vk_gpus {
    VkPhysicalDevice devices[VK_DEVICES_MAX];
    uint32_t count;
};

// Whether there may be a GPU that is none of the CPU's: one of the device nodes that their drivers
// need. Cheap: loads no driver.
bool vk_hardware_present(void);

// Loads the drivers, once for the process, and lists the GPUs; none where there is no driver.
void vk_gpus_find(struct vk_gpus *gpus) INF_MAY_BLOCK;

// The queue family to compute on: one without graphics where there is one. False where none computes.
bool vk_find_queue_family(const struct vk_instance_api *api, VkPhysicalDevice physical,
                          uint32_t *family) INF_NODISCARD;

// Whether the process may make memory executable, as drivers must that compile for the CPU.
bool vk_may_execute_memory(void);

#endif
