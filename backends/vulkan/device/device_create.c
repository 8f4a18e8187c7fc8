// SPDX-License-Identifier: Apache-2.0
// Creates the driver objects of a logical device, and frees them together with all objects that
// were created on the device.
#include "backends/vulkan/device/device_create.h"

#include <stdlib.h>

#include "backends/base/clock.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/device/pipeline.h"
#include "backends/vulkan/device/pipeline_cache.h"
#include "backends/vulkan/device/weights.h"

static enum inf_code create_device(struct vk_device *device, struct inf_error *err)
{
    float queue_priority = 1.0f;
    const VkDeviceQueueCreateInfo queues[] = {{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                               .queueFamilyIndex = device->gpu->queue_family,
                                               .queueCount = 1,
                                               .pQueuePriorities = &queue_priority},
                                              {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                               .queueFamilyIndex = device->gpu->transfer_family,
                                               .queueCount = 1,
                                               .pQueuePriorities = &queue_priority}};
    bool copies = device->gpu->transfer_family != device->gpu->queue_family;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE};
    const struct vk_gpu *gpu = device->gpu;
    VkPhysicalDevice16BitStorageFeatures halves = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
        .pNext = &timeline,
        .storageBuffer16BitAccess = gpu->half_storage};
    VkPhysicalDeviceShaderFloat16Int8Features arithmetic = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .pNext = &halves,
        .shaderFloat16 = gpu->half_arithmetic};
    VkPhysicalDevice8BitStorageFeatures bytes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
        .pNext = &arithmetic,
        .storageBuffer8BitAccess = gpu->byte_storage};
    VkPhysicalDeviceShaderIntegerDotProductFeatures products = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES,
        .pNext = &bytes,
        .shaderIntegerDotProduct = VK_TRUE};
    struct vk_matrix_features matrices;
    const void *features = vk_matrix_features_chain(
        &matrices, gpu->matrices.method, gpu->byte_products ? (void *)&products : &bytes);
    const char *extensions[3 + VK_MATRIX_EXTENSIONS_MAX];
    uint32_t extension_count = 0;
    if (gpu->import_alignment != 0)
        extensions[extension_count++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
    if (gpu->feedback)
        extensions[extension_count++] = VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME;
    if (gpu->byte_products)
        extensions[extension_count++] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME;
    for (uint32_t i = 0; i < matrices.extension_count; i++)
        extensions[extension_count++] = matrices.extensions[i];
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = features,
                               .queueCreateInfoCount = copies ? 2 : 1,
                               .pQueueCreateInfos = queues,
                               .enabledExtensionCount = extension_count,
                               .ppEnabledExtensionNames = extensions};
    VK_TRY(device, gpu->api->CreateDevice(gpu->physical, &info, NULL, &device->device), err);
    INF_TRY(vk_device_api_load(&device->api, device->device, err));
    if (gpu->import_alignment != 0)
        vk_device_entry(&device->get_host_pointer, device->device,
                        "vkGetMemoryHostPointerPropertiesEXT");
    device->api.GetDeviceQueue(device->device, gpu->queue_family, 0, &device->runs.queue);
    if (copies)
        device->api.GetDeviceQueue(device->device, gpu->transfer_family, 0,
                                   &device->transfers.queue);
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

static enum inf_code create_timeline(struct vk_device *device, struct vk_queue *queue,
                                     struct inf_error *err)
{
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                       .pNext = &type};
    VK_TRY(device, device->api.CreateSemaphore(device->device, &semaphore, NULL, &queue->timeline),
           err);
    return INF_OK;
}

static enum inf_code create_objects(struct vk_device *device, struct inf_error *err)
{
    INF_TRY(create_device(device, err));
    INF_TRY(create_layouts(device, err));
    INF_TRY(create_timeline(device, &device->runs, err));
    if (device->transfers.queue != VK_NULL_HANDLE)
        INF_TRY(create_timeline(device, &device->transfers, err));
    return vk_pipeline_cache_load(device, err);
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
    // Mark the half-created device as lost, so that it is only freed. This does not count as a
    // loss, because the caller counts failures during creation.
    atomic_init(&device->lost, true);
    inf_mutex_init(&device->runs.mutex);
    inf_mutex_init(&device->transfers.mutex);
    inf_mutex_init(&device->memory_mutex);
    inf_mutex_init(&device->weights_mutex);
    inf_cond_init(&device->weights_moved);
    inf_mutex_init(&device->pipeline_mutex);
    inf_cond_init(&device->pipeline_made);
    device->evict = vk_weights_evict;
    enum inf_code code = create_objects(device, err);
    if (code != INF_OK) {
        vk_device_unref(&device);
        return code;
    }
    atomic_store(&device->lost, false);
    *out_device = device;
    return INF_OK;
}

// Frees those driver objects that were already created.
static void destroy_objects(struct vk_device *device)
{
    if (device->device == VK_NULL_HANDLE)
        return;
    if (device->api.DestroyDevice == NULL || vk_device_abandoned(device)) {
        inf_log(device->gpu->log, INF_LOG_WARNING, "device abandoned device=%s", device->name);
        return;
    }
    // Skip the call on a lost device, because it would only return an error.
    if (!vk_device_lost(device))
        (void)device->api.DeviceWaitIdle(device->device);
    if (device->cache != VK_NULL_HANDLE)
        vk_pipeline_cache_store(device);
    vk_pipeline_cache_confirm(device);
    device->api.DestroyPipelineCache(device->device, device->cache, NULL);
    device->api.DestroySemaphore(device->device, device->runs.timeline, NULL);
    device->api.DestroySemaphore(device->device, device->transfers.timeline, NULL);
    device->api.DestroyPipelineLayout(device->device, device->pipeline_layout, NULL);
    device->api.DestroyDescriptorSetLayout(device->device, device->set_layout, NULL);
    device->api.DestroyDevice(device->device, NULL);
}

void vk_device_unref(struct vk_device **pointer)
{
    struct vk_device *device = *pointer;
    *pointer = NULL;
    // Acquire-release order, so that the thread that frees the device sees all writes of the other
    // holders.
    if (device == NULL ||
        atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1)
        return;
    vk_free_pipelines(device);
    vk_free_slabs(device);
    destroy_objects(device);
    vk_known_variants_fini(&device->known);
    vk_known_variants_fini(&device->loaded);
    inf_mutex_fini(&device->runs.mutex);
    inf_mutex_fini(&device->transfers.mutex);
    inf_mutex_fini(&device->memory_mutex);
    inf_cond_fini(&device->weights_moved);
    inf_mutex_fini(&device->weights_mutex);
    inf_cond_fini(&device->pipeline_made);
    inf_mutex_fini(&device->pipeline_mutex);
    free(device);
}
