// SPDX-License-Identifier: Apache-2.0
// Vulkan's entry points. The Vulkan loader is opened at run time, so that inferd also starts on a
// system without it. Entry points of a device are looked up in its driver, so that calls do not go
// through the loader.
#ifndef INF_BACKENDS_VULKAN_DEVICE_API_H
#define INF_BACKENDS_VULKAN_DEVICE_API_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// The instance entry points that the backend uses, without the prefix "vk".
#define VK_INSTANCE_ENTRIES(X)                                                                     \
    X(CreateDevice)                                                                                \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(EnumeratePhysicalDevices)                                                                    \
    X(GetDeviceProcAddr)                                                                           \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceMemoryProperties2)                                                          \
    X(GetPhysicalDeviceProperties)                                                                 \
    X(GetPhysicalDeviceFormatProperties)                                                           \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceQueueFamilyProperties)

// The device entry points that the backend uses, without the prefix "vk".
#define VK_DEVICE_ENTRIES(X)                                                                       \
    X(AllocateCommandBuffers)                                                                      \
    X(AllocateDescriptorSets)                                                                      \
    X(AllocateMemory)                                                                              \
    X(BeginCommandBuffer)                                                                          \
    X(BindBufferMemory)                                                                            \
    X(CmdBindDescriptorSets)                                                                       \
    X(CmdBindPipeline)                                                                             \
    X(CmdCopyBuffer)                                                                               \
    X(CmdDispatch)                                                                                 \
    X(CmdPipelineBarrier)                                                                          \
    X(CmdPushConstants)                                                                            \
    X(CmdResetQueryPool)                                                                           \
    X(CmdWriteTimestamp)                                                                           \
    X(CreateBuffer)                                                                                \
    X(CreateBufferView)                                                                            \
    X(CreateCommandPool)                                                                           \
    X(CreateComputePipelines)                                                                      \
    X(CreateDescriptorPool)                                                                        \
    X(CreateDescriptorSetLayout)                                                                   \
    X(CreatePipelineCache)                                                                         \
    X(CreatePipelineLayout)                                                                        \
    X(CreateQueryPool)                                                                             \
    X(CreateSemaphore)                                                                             \
    X(CreateShaderModule)                                                                          \
    X(DestroyBuffer)                                                                               \
    X(DestroyBufferView)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(DestroyDescriptorPool)                                                                       \
    X(DestroyDescriptorSetLayout)                                                                  \
    X(DestroyDevice)                                                                               \
    X(DestroyPipeline)                                                                             \
    X(DestroyPipelineCache)                                                                        \
    X(DestroyPipelineLayout)                                                                       \
    X(DestroyQueryPool)                                                                            \
    X(DestroySemaphore)                                                                            \
    X(DestroyShaderModule)                                                                         \
    X(DeviceWaitIdle)                                                                              \
    X(EndCommandBuffer)                                                                            \
    X(FreeMemory)                                                                                  \
    X(GetBufferMemoryRequirements)                                                                 \
    X(GetDeviceQueue)                                                                              \
    X(GetPipelineCacheData)                                                                        \
    X(GetQueryPoolResults)                                                                         \
    X(GetSemaphoreCounterValue)                                                                    \
    X(MapMemory)                                                                                   \
    X(QueueSubmit)                                                                                 \
    X(ResetCommandBuffer)                                                                          \
    X(UpdateDescriptorSets)                                                                        \
    X(WaitSemaphores)

#define VK_ENTRY_MEMBER(name) PFN_vk##name name;

struct vk_instance_api {
    VkInstance instance;
    VK_INSTANCE_ENTRIES(VK_ENTRY_MEMBER)
    PFN_vkGetInstanceProcAddr find_entry; // of the loader; for entry points of extensions
};

struct vk_device_api {
    VK_DEVICE_ENTRIES(VK_ENTRY_MEMBER)
};

// Sets the path of the loader, and the drivers that it may load. NULL selects the system's loader
// or drivers. Must be called before the instance is created, while no other thread reads the
// environment.
//
// INF_UNAVAILABLE  the loader cannot be opened.
enum inf_code vk_api_prepare(const char *loader, const char *drivers,
                             struct inf_error *err) INF_NODISCARD;

// Returns the instance of this process, which the first call creates. Returns NULL if there is no
// loader or no driver. Valid until the process ends. Any thread.
const struct vk_instance_api *vk_instance_api(void) INF_MAY_BLOCK;

// Sets *entry, a function pointer, to the entry point called `name` of an extension of GPUs, or to
// NULL if no driver has it.
void vk_instance_entry(void *entry, const struct vk_instance_api *api, const char *name);

// Looks up the entry points of a device.
//
// INF_INTERNAL  the driver lacks an entry point.
enum inf_code vk_device_api_load(struct vk_device_api *api, VkDevice device,
                                 struct inf_error *err) INF_NODISCARD;

// Sets *entry, a function pointer, to the device's entry point called `name`; NULL if the device
// has none.
void vk_device_entry(void *entry, VkDevice device, const char *name);

#endif
