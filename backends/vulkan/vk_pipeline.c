// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vk_pipeline.h"

#include <stdlib.h>
#include <string.h>

struct vk_pipeline {
    struct vk_pipeline *next;
    struct vk_variant variant;
    VkPipeline pipeline;
};

static struct vk_pipeline *find(struct vk_device *device, const struct vk_variant *variant)
    INF_ATTR(requires_capability(device->pipeline_mutex))
{
    struct vk_pipeline *pipeline = device->pipelines;
    while (pipeline != NULL && memcmp(&pipeline->variant, variant, sizeof(*variant)) != 0)
        pipeline = pipeline->next;
    return pipeline;
}

static enum inf_code make(VkPipeline *out_pipeline, struct vk_device *device,
                          const struct vk_variant *variant, struct inf_error *err)
{
    const struct inf_shader *shader = vk_variant_shader(device->gpu, variant);
    VkShaderModuleCreateInfo module_info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = shader->size_bytes,
                                            .pCode = shader->words};
    VkShaderModule module;
    VK_TRY(device, device->api.CreateShaderModule(device->device, &module_info, NULL, &module),
           err);
    uint32_t data[2 + VK_CONSTANTS_MAX] = {device->gpu->group_size};
    memcpy(data + 1, variant->constants, sizeof(variant->constants));
    data[1 + VK_CONSTANTS_MAX] = variant->halves;
    VkSpecializationMapEntry entries[INF_ARRAY_LENGTH(data)];
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(data); i++)
        entries[i] = (VkSpecializationMapEntry){
            .constantID = i, .offset = i * (uint32_t)sizeof(*data), .size = sizeof(*data)};
    VkSpecializationInfo constants = {.mapEntryCount = INF_ARRAY_LENGTH(entries),
                                      .pMapEntries = entries,
                                      .dataSize = sizeof(data),
                                      .pData = data};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = device->pipeline_layout};
    VkResult result = device->api.CreateComputePipelines(device->device, device->cache, 1, &info,
                                                         NULL, out_pipeline);
    device->api.DestroyShaderModule(device->device, module, NULL);
    if (result == VK_SUCCESS)
        return INF_OK;
    enum inf_code code = vk_failure(device, result, "vkCreateComputePipelines", err);
    // Memory and lost devices say nothing about the shader.
    if (code == INF_INTERNAL) {
        vk_variant_note_broken(device->gpu, variant);
        code = INF_UNSUPPORTED;
        if (err != NULL)
            err->code = code;
    }
    return inf_error_prefix(err, code, "shader '%s'", shader->name);
}

enum inf_code vk_pipeline_get(VkPipeline *out_pipeline, struct vk_device *device,
                              const struct vk_variant *variant, struct inf_error *err)
{
    inf_mutex_lock(&device->pipeline_mutex);
    struct vk_pipeline *found = find(device, variant);
    inf_mutex_unlock(&device->pipeline_mutex);
    if (found != NULL) {
        *out_pipeline = found->pipeline;
        return INF_OK;
    }
    struct vk_pipeline *fresh = calloc(1, sizeof(*fresh));
    if (fresh == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a pipeline", device->name);
    fresh->variant = *variant;
    enum inf_code code = make(&fresh->pipeline, device, variant, err);
    if (code != INF_OK) {
        free(fresh);
        return code;
    }
    // Made outside the lock, so two threads may have made the same one: the later goes.
    inf_mutex_lock(&device->pipeline_mutex);
    found = find(device, variant);
    if (found == NULL) {
        fresh->next = device->pipelines;
        device->pipelines = fresh;
        device->pipelines_made++;
    }
    inf_mutex_unlock(&device->pipeline_mutex);
    *out_pipeline = found != NULL ? found->pipeline : fresh->pipeline;
    if (found != NULL) {
        device->api.DestroyPipeline(device->device, fresh->pipeline, NULL);
        free(fresh);
    }
    return INF_OK;
}

void vk_pipelines_free(struct vk_device *device)
{
    while (device->pipelines != NULL) {
        struct vk_pipeline *pipeline = device->pipelines;
        device->pipelines = pipeline->next;
        device->api.DestroyPipeline(device->device, pipeline->pipeline, NULL);
        free(pipeline);
    }
}
