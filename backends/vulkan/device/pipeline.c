// SPDX-License-Identifier: Apache-2.0
// Creates each pipeline once for a device, even if several threads request it. The list is locked
// only for looking up and adding; drivers compile without the lock.
#include "backends/vulkan/device/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/device/counts.h"

struct vk_pipeline {
    struct vk_pipeline *next;
    struct vk_variant variant;
    VkPipeline pipeline; // VK_NULL_HANDLE while a thread creates it
};

static struct vk_pipeline *find_pipeline(struct vk_device *device, const struct vk_variant *variant)
    INF_ATTR(requires_capability(device->pipeline_mutex))
{
    struct vk_pipeline *pipeline = device->pipelines;
    while (pipeline != NULL && memcmp(&pipeline->variant, variant, sizeof(*variant)) != 0)
        pipeline = pipeline->next;
    return pipeline;
}

// Adds a new pipeline to the count of created pipelines, and logs it.
static void note_made(struct vk_device *device, const struct vk_variant *variant, uint64_t time_ns,
                      bool hit)
{
    struct inf_device *base = &device->gpu->base;
    bool known = vk_known_variants_has(&device->loaded, variant);
    inf_device_add_count(base, INF_COUNT_PIPELINES, 1);
    inf_device_add_count(base, INF_COUNT_PIPELINES_KNOWN, known);
    inf_device_add_count(base, INF_COUNT_PIPELINES_HIT, hit);
    inf_device_add_count(base, INF_COUNT_PIPELINE_US, time_ns / 1000);
    inf_log(device->gpu->log, INF_LOG_DEBUG,
            "pipeline made device=%s shader=%s us=%" PRIu64 " known=%d hit=%d", device->name,
            vk_variant_shader(device->gpu, variant)->name, time_ns / 1000, known, hit);
}

static enum inf_code make_pipeline(VkPipeline *out_pipeline, struct vk_device *device,
                                   const struct vk_variant *variant, struct inf_error *err)
{
    const struct inf_shader *shader = vk_variant_shader(device->gpu, variant);
    VkShaderModuleCreateInfo module_info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                            .codeSize = shader->size_bytes,
                                            .pCode = shader->words};
    VkShaderModule module;
    VK_TRY(device, device->api.CreateShaderModule(device->device, &module_info, NULL, &module),
           err);
    uint32_t data[HALVES_CONSTANT + 1] = {vk_variant_group_size(device->gpu, variant)};
    memcpy(data + 1, variant->constants, sizeof(variant->constants));
    data[HALVES_CONSTANT] = variant->halves;
    VkSpecializationMapEntry entries[INF_ARRAY_LENGTH(data)];
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(data); i++)
        entries[i] = (VkSpecializationMapEntry){
            .constantID = i, .offset = i * (uint32_t)sizeof(*data), .size = sizeof(*data)};
    VkSpecializationInfo constants = {.mapEntryCount = INF_ARRAY_LENGTH(entries),
                                      .pMapEntries = entries,
                                      .dataSize = sizeof(data),
                                      .pData = data};
    VkPipelineCreationFeedback whole = {0}, stage = {0};
    VkPipelineCreationFeedbackCreateInfo feedback = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_CREATION_FEEDBACK_CREATE_INFO,
        .pPipelineCreationFeedback = &whole,
        .pipelineStageCreationFeedbackCount = 1,
        .pPipelineStageCreationFeedbacks = &stage};
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .pNext = device->gpu->feedback ? &feedback : NULL,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .flags = vk_variant_needs_full_subgroups(variant)
                               ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT
                               : 0u,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = module,
                  .pName = "main",
                  .pSpecializationInfo = &constants},
        .layout = device->pipeline_layout};
    uint64_t begin_ns = inf_clock_ns();
    VkResult result = device->api.CreateComputePipelines(device->device, device->cache, 1, &info,
                                                         NULL, out_pipeline);
    device->api.DestroyShaderModule(device->device, module, NULL);
    const VkPipelineCreationFeedbackFlags hit =
        VK_PIPELINE_CREATION_FEEDBACK_VALID_BIT |
        VK_PIPELINE_CREATION_FEEDBACK_APPLICATION_PIPELINE_CACHE_HIT_BIT;
    if (result == VK_SUCCESS) {
        note_made(device, variant, inf_clock_ns() - begin_ns, (whole.flags & hit) == hit);
        return INF_OK;
    }
    enum inf_code code = vk_fail(device, result, "vkCreateComputePipelines", err);
    // Record the shader as broken only after an internal error. Exhausted memory and lost devices
    // do not mean that the shader is broken.
    if (code == INF_INTERNAL) {
        vk_variant_note_broken(device->gpu, variant, VK_VARIANT_UNBUILT);
        code = INF_UNSUPPORTED;
        if (err != NULL)
            err->code = code;
    }
    return inf_error_prefix(err, code, "shader '%s'", shader->name);
}

// Looks up the variant. Returns true and sets *out_pipeline if the pipeline exists. If another
// thread is creating it and `waits` is false, *out_pipeline is VK_NULL_HANDLE. If false is
// returned, the caller must create the pipeline in *fresh, which is NULL if memory is exhausted.
static bool claim_pipeline(struct vk_device *device, const struct vk_variant *variant, bool waits,
                           struct vk_pipeline **fresh, VkPipeline *out_pipeline)
{
    *fresh = NULL;
    inf_mutex_lock(&device->pipeline_mutex);
    struct vk_pipeline *found = find_pipeline(device, variant);
    while (found != NULL && found->pipeline == VK_NULL_HANDLE && waits) {
        inf_cond_wait(&device->pipeline_made, &device->pipeline_mutex);
        // Still NULL if the other thread could not create the pipeline.
        found = find_pipeline(device, variant);
    }
    if (found == NULL && (*fresh = calloc(1, sizeof(**fresh))) != NULL) {
        (*fresh)->variant = *variant;
        (*fresh)->next = device->pipelines;
        device->pipelines = *fresh;
    }
    if (found != NULL)
        *out_pipeline = found->pipeline;
    inf_mutex_unlock(&device->pipeline_mutex);
    return found != NULL;
}

static void unlink_pipeline(struct vk_device *device, const struct vk_pipeline *pipeline)
    INF_ATTR(requires_capability(device->pipeline_mutex))
{
    struct vk_pipeline **link = &device->pipelines;
    while (*link != pipeline)
        link = &(*link)->next;
    *link = pipeline->next;
}

static enum inf_code get_pipeline(VkPipeline *out_pipeline, struct vk_device *device,
                                  const struct vk_variant *variant, bool waits,
                                  struct inf_error *err)
{
    struct vk_pipeline *fresh;
    if (claim_pipeline(device, variant, waits, &fresh, out_pipeline))
        return INF_OK;
    if (fresh == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory for a pipeline", device->name);
    VkPipeline pipeline = VK_NULL_HANDLE;
    enum inf_code code = make_pipeline(&pipeline, device, variant, err);
    inf_mutex_lock(&device->pipeline_mutex);
    fresh->pipeline = pipeline;
    if (code == INF_OK) {
        device->pipelines_made++;
        vk_known_variants_add(&device->known, variant);
    } else {
        unlink_pipeline(device, fresh);
    }
    inf_mutex_unlock(&device->pipeline_mutex);
    inf_cond_broadcast(&device->pipeline_made);
    if (code == INF_OK)
        *out_pipeline = pipeline;
    else
        free(fresh);
    return code;
}

enum inf_code vk_pipeline_get(VkPipeline *out_pipeline, struct vk_device *device,
                              const struct vk_variant *variant, struct inf_error *err)
{
    return get_pipeline(out_pipeline, device, variant, true, err);
}

enum inf_code vk_pipeline_prepare(struct vk_device *device, const struct vk_variant *variant,
                                  struct inf_error *err)
{
    VkPipeline pipeline;
    return get_pipeline(&pipeline, device, variant, false, err);
}

void vk_free_pipelines(struct vk_device *device)
{
    while (device->pipelines != NULL) {
        struct vk_pipeline *pipeline = device->pipelines;
        device->pipelines = pipeline->next;
        device->api.DestroyPipeline(device->device, pipeline->pipeline, NULL);
        free(pipeline);
    }
}
