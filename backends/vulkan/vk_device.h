// SPDX-License-Identifier: Apache-2.0
// One GPU: its facts, the logical device that is made when it is first needed, and submits.
#ifndef INF_BACKENDS_VULKAN_VK_DEVICE_H
#define INF_BACKENDS_VULKAN_VK_DEVICE_H

#include <stdatomic.h>
#include <vulkan/vulkan.h>

#include "backends/base/thread.h"
#include "backends/device/device_impl.h"

struct vk_slab;
struct vk_pipeline;

// Storage buffers that one dispatch binds, at most.
#define VK_BINDINGS_MAX 6
// The least that every driver has.
#define VK_PUSH_BYTES_MAX 128

struct vk_device {
    struct inf_device base;
    const struct inf_log *log;
    char *cache_directory; // of pipelines; NULL: none

    // Facts, fixed when it is opened.
    VkPhysicalDevice physical;
    VkPhysicalDeviceProperties properties;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t queue_family;
    uint32_t group_size;     // invocations of a work group
    bool unified;            // the memory of weights and arenas is visible to the host
    uint32_t local_type;     // memory types: for arenas and weights,
    uint32_t host_type;      // for what the host reads and writes
    uint32_t timestamp_bits; // 0: no profile

    atomic_bool lost; // sticky

    struct inf_mutex start_mutex; // guards `started` while the device is made
    atomic_bool started;

    // Made by vk_device_start(); constant from then on.
    VkDevice device;
    VkQueue queue;
    VkSemaphore timeline;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout pipeline_layout;
    VkPipelineCache cache;

    struct inf_mutex queue_mutex; // guards the queue and `submitted`
    uint64_t submitted;           // the timeline's value when all that was submitted is done

    struct inf_mutex memory_mutex; // guards the list of slabs and what is free in them
    struct vk_slab *slabs;

    struct inf_mutex pipeline_mutex; // guards the list
    struct vk_pipeline *pipelines;
    uint32_t pipelines_made; // since the cache was last written
};

// Makes the logical device unless it is there. Any thread.
//
// INF_UNAVAILABLE  (DEVICE_LOST) the driver refuses, or the device is lost.
enum inf_code vk_device_start(struct vk_device *device,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees what vk_device_start() made.
void vk_device_stop(struct vk_device *device);

// Submits one recorded command buffer; *out_ticket is reached when it is done.
enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_ticket, struct inf_error *err) INF_NODISCARD;

// Waits until the ticket is reached, in slices, so that a device lost meanwhile ends the wait.
//
// INF_DEADLINE     it was not within `timeout_ns`.
// INF_UNAVAILABLE  (DEVICE_LOST, DEVICE_HUNG)
enum inf_code vk_device_wait(struct vk_device *device, uint64_t ticket, uint64_t timeout_ns,
                             struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Turns a result into a failure: what was being done, and the result's name. Notes a lost device.
enum inf_code vk_failure(struct vk_device *device, VkResult result, const char *what,
                         struct inf_error *err);

// Runs `expression`, a VkResult, and forwards a failure.
#define VK_TRY(device, expression, err)                                                            \
    do {                                                                                           \
        VkResult vk_try_result_ = (expression);                                                    \
        if (vk_try_result_ != VK_SUCCESS)                                                          \
            return vk_failure((device), vk_try_result_, #expression, (err));                       \
    } while (0)

#endif
