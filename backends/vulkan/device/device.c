// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/device/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/vulkan/device/cache.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/device/pipeline.h"

// A wait looks at the device's state this often.
#define SLICE_NS (100u * INF_NS_PER_MS)

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

// "QueueSubmit" of "device->api.QueueSubmit(device->queue, ...)".
static const char *call_name(const char *what, int *length)
{
    size_t whole = strcspn(what, "(");
    size_t start = whole;
    while (start > 0 && what[start - 1] != '.' && what[start - 1] != '>')
        start--;
    *length = (int)(whole - start);
    return what + start;
}

// Notes that the device is lost; true for the first that does.
static bool lose(struct vk_device *device)
{
    if (atomic_exchange(&device->lost, true))
        return false;
    vk_gpu_note_loss(device->gpu, device->made_ns);
    return true;
}

enum inf_code vk_failure(struct vk_device *device, VkResult result, const char *what,
                         struct inf_error *err)
{
    const char *name = device->name;
    int length;
    const char *call = call_name(what, &length);
    if (result == VK_ERROR_DEVICE_LOST) {
        if (lose(device))
            inf_log(device->gpu->log, INF_LOG_ERROR, "device lost device=%s call=vk%.*s", name,
                    length, call);
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                               "device '%s' is lost (vk%.*s)", name, length, call);
    }
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_DEVICE_OOM,
                               "device '%s': out of memory (vk%.*s)", name, length, call);
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory (vk%.*s)", name, length, call);
    return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BACKEND, "device '%s': vk%.*s: %s (%d)",
                           name, length, call, result_name(result), (int)result);
}

static enum inf_code check_lost(const struct vk_device *device, struct inf_error *err)
{
    if (vk_device_lost(device))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST, "device '%s' is lost",
                               device->name);
    return INF_OK;
}

// --- starting ---

static enum inf_code create_device(struct vk_device *device, struct inf_error *err)
{
    float queue_priority = 1.0f;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueFamilyIndex = device->gpu->queue_family,
                                     .queueCount = 1,
                                     .pQueuePriorities = &queue_priority};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE};
    const struct vk_gpu *gpu = device->gpu;
    VkPhysicalDevice16BitStorageFeatures storage = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = &timeline,
        .storageBuffer16BitAccess = gpu->half_storage};
    const char *extensions[2];
    uint32_t extension_count = 0;
    if (gpu->import_alignment != 0)
        extensions[extension_count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    if (gpu->feedback)
        extensions[extension_count++] = VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME;
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &storage,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = extension_count,
                               .ppEnabledExtensionNames = extensions};
    VK_TRY(device, gpu->api->CreateDevice(gpu->physical, &info, NULL, &device->device), err);
    INF_TRY(vk_device_api_load(&device->api, device->device, err));
    if (gpu->import_alignment != 0)
        vk_device_entry(&device->get_host_pointer, device->device,
                        "vkGetMemoryHostPointerPropertiesEXT");
    device->api.GetDeviceQueue(device->device, gpu->queue_family, 0, &device->queue);
    return INF_OK;
}

static enum inf_code create_layouts(struct vk_device *device, struct inf_error *err)
{
    VkDescriptorSetLayoutBinding bindings[2 * VK_BINDINGS_MAX + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i <= STATUS_BINDING; i++) {
        bool is_view = i >= VK_BINDINGS_MAX && i < STATUS_BINDING;
        if (is_view && !device->gpu->texels)
            continue;
        bindings[count++] = (VkDescriptorSetLayoutBinding){
            .binding = i,
            .descriptorType = is_view ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER
                                      : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .descriptorCount = 1,
            .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
    }
    VkDescriptorSetLayoutCreateInfo set = {.sType =
                                               VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                           .bindingCount = count,
                                           .pBindings = bindings};
    VK_TRY(device,
           device->api.CreateDescriptorSetLayout(device->device, &set, NULL, &device->set_layout),
           err);
    VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                .size = VK_PUSH_BYTES_MAX};
    VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                         .setLayoutCount = 1,
                                         .pSetLayouts = &device->set_layout,
                                         .pushConstantRangeCount = 1,
                                         .pPushConstantRanges = &push};
    VK_TRY(
        device,
        device->api.CreatePipelineLayout(device->device, &layout, NULL, &device->pipeline_layout),
        err);
    return INF_OK;
}

static enum inf_code create_timeline(struct vk_device *device, struct inf_error *err)
{
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                       .pNext = &type};
    VK_TRY(device, device->api.CreateSemaphore(device->device, &semaphore, NULL, &device->timeline),
           err);
    return INF_OK;
}

static enum inf_code fill(struct vk_device *device, struct inf_error *err)
{
    INF_TRY(create_device(device, err));
    INF_TRY(create_layouts(device, err));
    INF_TRY(create_timeline(device, err));
    return vk_cache_load(device, err);
}

enum inf_code vk_device_create(struct vk_device **out_device, struct vk_gpu *gpu,
                               uint32_t generation, struct inf_error *err)
{
    struct vk_device *device = calloc(1, sizeof(*device));
    if (device == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory", gpu->base.info.name);
    device->gpu = gpu;
    device->name = gpu->base.info.name;
    device->generation = generation;
    device->made_ns = inf_clock_ns();
    atomic_init(&device->references, 1);
    atomic_init(&device->lost, true); // until it is made: a loss meanwhile counts as that failure
    inf_mutex_init(&device->queue_mutex);
    inf_mutex_init(&device->memory_mutex);
    inf_mutex_init(&device->weights_mutex);
    inf_cond_init(&device->weights_moved);
    inf_mutex_init(&device->pipeline_mutex);
    inf_cond_init(&device->pipeline_made);
    enum inf_code code = fill(device, err);
    if (code != INF_OK) {
        vk_device_unref(&device);
        return code;
    }
    atomic_store(&device->lost, false);
    *out_device = device;
    return INF_OK;
}

struct vk_device *vk_device_ref(struct vk_device *device)
{
    // Relaxed: whoever passes the pointer on already orders what it points to.
    atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
    return device;
}

// Frees the driver's objects, in so far as they were made.
static void destroy_objects(struct vk_device *device)
{
    if (device->device == VK_NULL_HANDLE)
        return;
    if (device->api.DestroyDevice == NULL || vk_device_abandoned(device)) {
        inf_log(device->gpu->log, INF_LOG_WARNING, "device abandoned device=%s", device->name);
        return;
    }
    // A device that is lost says so at once.
    if (!vk_device_lost(device))
        (void)device->api.DeviceWaitIdle(device->device);
    if (device->cache != VK_NULL_HANDLE)
        vk_cache_store(device);
    vk_cache_trust(device);
    device->api.DestroyPipelineCache(device->device, device->cache, NULL);
    device->api.DestroySemaphore(device->device, device->timeline, NULL);
    device->api.DestroyPipelineLayout(device->device, device->pipeline_layout, NULL);
    device->api.DestroyDescriptorSetLayout(device->device, device->set_layout, NULL);
    device->api.DestroyDevice(device->device, NULL);
}

void vk_device_unref(struct vk_device **pointer)
{
    struct vk_device *device = *pointer;
    *pointer = NULL;
    // Acquire-release: whoever frees sees what every other holder did.
    if (device == NULL ||
        atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1)
        return;
    vk_pipelines_free(device);
    vk_slabs_free(device);
    destroy_objects(device);
    vk_known_fini(&device->known);
    vk_known_fini(&device->loaded);
    inf_mutex_fini(&device->queue_mutex);
    inf_mutex_fini(&device->memory_mutex);
    inf_cond_fini(&device->weights_moved);
    inf_mutex_fini(&device->weights_mutex);
    inf_cond_fini(&device->pipeline_made);
    inf_mutex_fini(&device->pipeline_mutex);
    free(device);
}

bool vk_device_lost(const struct vk_device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

uint32_t vk_device_generation(const struct vk_device *device)
{
    return device->generation;
}

bool vk_device_abandoned(const struct vk_device *device)
{
    uint64_t reached = 0;
    return atomic_load_explicit(&device->hung, memory_order_relaxed) &&
           (device->api.GetSemaphoreCounterValue(device->device, device->timeline, &reached) !=
                VK_SUCCESS ||
            reached < device->submitted);
}

// --- submits ---

enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_value, struct inf_error *err)
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
    uint64_t value = device->submitted + 1;
    timeline.pSignalSemaphoreValues = &value;
    VkResult result = device->api.QueueSubmit(device->queue, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS)
        device->submitted = value;
    inf_mutex_unlock(&device->queue_mutex);
    if (result != VK_SUCCESS)
        return vk_failure(device, result, "vkQueueSubmit", err);
    *out_value = value;
    return INF_OK;
}

static enum inf_code hung(struct vk_device *device, uint64_t value, struct inf_error *err)
{
    atomic_store(&device->hung, true);
    if (lose(device))
        inf_log(device->gpu->log, INF_LOG_ERROR, "device hung device=%s value=%" PRIu64,
                device->name, value);
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_HUNG,
                           "device '%s' did not finish within %" PRIu64 " ms", device->name,
                           device->gpu->hang_ns / INF_NS_PER_MS);
}

enum inf_code vk_device_wait(struct vk_device *device, uint64_t value, uint64_t timeout_ns,
                             struct inf_error *err)
{
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &device->timeline,
                                .pValues = &value};
    uint64_t begin_ns = inf_clock_ns();
    for (uint64_t waited_ns = 0;; waited_ns = inf_clock_ns() - begin_ns) {
        INF_TRY(check_lost(device, err));
        if (waited_ns >= device->gpu->hang_ns)
            return hung(device, value, err);
        uint64_t left_ns = timeout_ns > waited_ns ? timeout_ns - waited_ns : 0;
        VkResult result =
            device->api.WaitSemaphores(device->device, &info, INF_MIN(left_ns, SLICE_NS));
        if (result == VK_SUCCESS)
            return INF_OK;
        if (result != VK_TIMEOUT)
            return vk_failure(device, result, "vkWaitSemaphores", err);
        if (left_ns <= SLICE_NS)
            return inf_fail(err, INF_DEADLINE, "device '%s' is not done yet", device->name);
    }
}
