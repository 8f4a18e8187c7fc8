// SPDX-License-Identifier: Apache-2.0
// The GPUs that the Vulkan instance of this process finds.
#ifndef INF_BACKENDS_VULKAN_DEVICE_INSTANCE_H
#define INF_BACKENDS_VULKAN_DEVICE_INSTANCE_H

#include "backends/device/backend.h"
#include "backends/vulkan/device/api.h"

#define VK_DEVICES_MAX 8

// The usable GPUs. A usable GPU has Vulkan 1.2, timeline semaphores and a compute queue.
struct vk_gpus {
    VkPhysicalDevice devices[VK_DEVICES_MAX];
    uint32_t count;
};

// Returns true if the system has a device node of a GPU driver, so that there may be a GPU in
// addition to software rendering. Cheap, because no Vulkan driver is loaded.
bool vk_hardware_present(void);

// Loads the drivers, once for each process, and lists the GPUs. The list is empty if there is no
// driver.
void vk_gpus_find(struct vk_gpus *gpus) INF_MAY_BLOCK;

// Finds the queue family to compute on, preferably a family without graphics. Returns false if no
// family supports compute.
bool vk_find_queue_family(const struct vk_instance_api *api, VkPhysicalDevice physical,
                          uint32_t *family) INF_NODISCARD;

// Returns a queue family that copies, but neither computes nor draws, so that its queues copy while
// others compute; `otherwise` if there is none.
uint32_t vk_find_transfer_family(const struct vk_instance_api *api, VkPhysicalDevice physical,
                                 uint32_t otherwise);

// Returns true if the process may make memory executable. Drivers that compile for the CPU need
// this.
bool vk_may_execute_memory(void);

#endif
