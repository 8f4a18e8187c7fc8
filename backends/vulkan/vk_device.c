// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vk_device.h"

#include <inttypes.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/vulkan/vk_cache.h"
#include "backends/vulkan/vk_memory.h"
#include "backends/vulkan/vk_pipeline.h"

// A wait looks at the device's state this often.
#define SLICE_NS (100u * INF_NS_PER_MS)
// What takes longer than this is taken for hung.
#define HUNG_NS (120ull * INF_NS_PER_S)

static const char *result_name(VkResult result)
{
    switch (result) {
    case VK_NOT_READY:
        return "not ready";
    case VK_TIMEOUT:
        return "timeout";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return "out of device memory";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
        return "out of pool memory";
    case VK_ERROR_INITIALIZATION_FAILED:
        return "initialisation failed";
    case VK_ERROR_DEVICE_LOST:
        return "device lost";
    case VK_ERROR_TOO_MANY_OBJECTS:
        return "too many objects";
    default:
        return "error";
    }
}

// "vkQueueSubmit" of "vkQueueSubmit(device->queue, ...)".
static int name_length(const char *what)
{
    return (int)strcspn(what, "(");
}

enum inf_code vk_failure(struct vk_device *device, VkResult result, const char *what,
                         struct inf_error *err)
{
    const char *name = device->base.info.name;
    if (result == VK_ERROR_DEVICE_LOST) {
        if (!atomic_exchange(&device->lost, true))
            inf_log(device->log, INF_LOG_ERROR, "device lost device=%s call=%.*s", name,
                    name_length(what), what);
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                               "device '%s' is lost (%.*s)", name, name_length(what), what);
    }
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_DEVICE_OOM,
                               "device '%s': out of memory (%.*s)", name, name_length(what), what);
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory (%.*s)", name, name_length(what), what);
    return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BACKEND, "device '%s': %.*s: %s (%d)",
                           name, name_length(what), what, result_name(result), (int)result);
}

static enum inf_code check_lost(struct vk_device *device, struct inf_error *err)
{
    if (atomic_load_explicit(&device->lost, memory_order_relaxed))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST, "device '%s' is lost",
                               device->base.info.name);
    return INF_OK;
}

// --- starting ---

static enum inf_code create_device(struct vk_device *device, struct inf_error *err)
{
    float queue_priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = device->queue_family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &queue_priority};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &timeline,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue};
    VK_TRY(device, vkCreateDevice(device->physical, &info, NULL, &device->device), err);
    vkGetDeviceQueue(device->device, device->queue_family, 0, &device->queue);
    return INF_OK;
}

static enum inf_code create_layouts(struct vk_device *device, struct inf_error *err)
{
    VkDescriptorSetLayoutBinding bindings[VK_BINDINGS_MAX];
    for (uint32_t i = 0; i < VK_BINDINGS_MAX; i++)
        bindings[i] =
            (VkDescriptorSetLayoutBinding){.binding = i,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .descriptorCount = 1,
                                           .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    VkDescriptorSetLayoutCreateInfo set = {.sType =
                                               VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                           .bindingCount = VK_BINDINGS_MAX,
                                           .pBindings = bindings};
    VK_TRY(device, vkCreateDescriptorSetLayout(device->device, &set, NULL, &device->set_layout),
           err);
    VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                .size = VK_PUSH_BYTES_MAX};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = 1,
                                         .pSetLayouts = &device->set_layout,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &push};
    VK_TRY(device, vkCreatePipelineLayout(device->device, &layout, NULL, &device->pipeline_layout),
           err);
    return INF_OK;
}

static enum inf_code create_timeline(struct vk_device *device, struct inf_error *err)
{
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                       .pNext = &type};
    VK_TRY(device, vkCreateSemaphore(device->device, &semaphore, NULL, &device->timeline), err);
    return INF_OK;
}

static enum inf_code start(struct vk_device *device, struct inf_error *err)
{
    uint64_t begin_ns = inf_clock_ns();
    INF_TRY(create_device(device, err));
    INF_TRY(create_layouts(device, err));
    INF_TRY(create_timeline(device, err));
    INF_TRY(vk_cache_load(device, err));
    inf_log(device->log, INF_LOG_DEBUG, "device started device=%s us=%" PRIu64,
            device->base.info.name, (inf_clock_ns() - begin_ns) / 1000);
    return INF_OK;
}

enum inf_code vk_device_start(struct vk_device *device, struct inf_error *err)
{
    INF_TRY(check_lost(device, err));
    if (atomic_load_explicit(&device->started, memory_order_acquire))
        return INF_OK;
    enum inf_code code = INF_OK;
    inf_mutex_lock(&device->start_mutex);
    if (!atomic_load_explicit(&device->started, memory_order_relaxed)) {
        code = start(device, err);
        if (code == INF_OK)
            atomic_store_explicit(&device->started, true, memory_order_release);
        else
            vk_device_stop(device);
    }
    inf_mutex_unlock(&device->start_mutex);
    return code;
}

void vk_device_stop(struct vk_device *device)
{
    if (device->device == VK_NULL_HANDLE)
        return;
    // A device that is lost says so at once; one that hangs would hold up the process's end.
    if (!atomic_load(&device->lost))
        (void)vkDeviceWaitIdle(device->device);
    vk_cache_store(device);
    vk_pipelines_free(device);
    vk_slabs_free(device);
    vkDestroyPipelineCache(device->device, device->cache, NULL);
    vkDestroySemaphore(device->device, device->timeline, NULL);
    vkDestroyPipelineLayout(device->device, device->pipeline_layout, NULL);
    vkDestroyDescriptorSetLayout(device->device, device->set_layout, NULL);
    vkDestroyDevice(device->device, NULL);
    device->device = VK_NULL_HANDLE;
    device->cache = VK_NULL_HANDLE;
    device->timeline = VK_NULL_HANDLE;
    device->pipeline_layout = VK_NULL_HANDLE;
    device->set_layout = VK_NULL_HANDLE;
}

// --- submits ---

enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_ticket, struct inf_error *err)
{
    INF_TRY(check_lost(device, err));
    VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .signalSemaphoreValueCount = 1};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &device->timeline};
    inf_mutex_lock(&device->queue_mutex);
    uint64_t ticket = device->submitted + 1;
    timeline.pSignalSemaphoreValues = &ticket;
    VkResult result = vkQueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS)
        device->submitted = ticket;
    inf_mutex_unlock(&device->queue_mutex);
    if (result != VK_SUCCESS)
        return vk_failure(device, result, "vkQueueSubmit", err);
    *out_ticket = ticket;
    return INF_OK;
}

static enum inf_code hung(struct vk_device *device, uint64_t ticket, struct inf_error *err)
{
    if (!atomic_exchange(&device->lost, true))
        inf_log(device->log, INF_LOG_ERROR, "device hung device=%s ticket=%" PRIu64,
                device->base.info.name, ticket);
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_HUNG,
                           "device '%s' did not finish within %llu s", device->base.info.name,
                           HUNG_NS / INF_NS_PER_S);
}

enum inf_code vk_device_wait(struct vk_device *device, uint64_t ticket, uint64_t timeout_ns,
                             struct inf_error *err)
{
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &device->timeline,
                                .pValues = &ticket};
    uint64_t begin_ns = inf_clock_ns();
    for (uint64_t waited_ns = 0;; waited_ns = inf_clock_ns() - begin_ns) {
        INF_TRY(check_lost(device, err));
        if (waited_ns >= HUNG_NS)
            return hung(device, ticket, err);
        uint64_t left_ns = timeout_ns > waited_ns ? timeout_ns - waited_ns : 0;
        VkResult result = vkWaitSemaphores(device->device, &info, INF_MIN(left_ns, SLICE_NS));
        if (result == VK_SUCCESS)
            return INF_OK;
        if (result != VK_TIMEOUT)
            return vk_failure(device, result, "vkWaitSemaphores", err);
        if (left_ns <= SLICE_NS)
            return inf_fail(err, INF_DEADLINE, "device '%s' is not done yet",
                            device->base.info.name);
    }
}
