// SPDX-License-Identifier: Apache-2.0
// Vulkan's entry points. The loader is looked for at run time, so that inferd starts where there is
// none, and a device's own entries are asked of its driver, which saves the loader's detour.
#ifndef INF_BACKENDS_VULKAN_DEVICE_API_H
#define INF_BACKENDS_VULKAN_DEVICE_API_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

#include "backends/base/role.h"
#include "proto/core/status.h"

// What is used of an instance, without the prefix.
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

// What is used of a device.
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
};

struct vk_device_api {
    VK_DEVICE_ENTRIES(VK_ENTRY_MEMBER)
};

// Says where the loader is and which drivers it is to look at; NULL: where and what the system has. Before
// the instance is made, while nobody else reads the environment.
//
// INF_UNAVAILABLE  there is no such loader.
enum inf_code vk_api_prepare(const char *loader, const char *drivers,
                             struct inf_error *err) INF_NODISCARD;

// The process's instance, made by the first call; NULL where there is no loader, or no driver that it
// could load. Valid until the process ends. Any thread.
const struct vk_instance_api *vk_instance_api(void) INF_MAY_BLOCK;

// Fills in the entries of a device.
//
// INF_INTERNAL  the driver lacks one.
enum inf_code vk_device_api_load(struct vk_device_api *api, VkDevice device,
                                 struct inf_error *err) INF_NODISCARD;

// *entry, a pointer to a function, = the device's entry of that name; NULL where it has none.
void vk_device_entry(void *entry, VkDevice device, const char *name);

#endif
