// SPDX-License-Identifier: Apache-2.0
// Pipelines: a shader with its specialisation constants, made once for a device and kept.
#ifndef INF_BACKENDS_VULKAN_VK_PIPELINE_H
#define INF_BACKENDS_VULKAN_VK_PIPELINE_H

#include "backends/vulkan/vk_device.h"
#include "shaders/shaders.h"

// Constants 1 and up; constant 0 is the size of a work group everywhere.
#define VK_CONSTANTS_MAX 7

struct vk_pipeline_key {
    enum inf_shader_index shader;
    uint32_t constants[VK_CONSTANTS_MAX]; // 0 behind the last
};

// The pipeline for `key`; it is the device's and stays as long as that.
enum inf_code vk_pipeline_get(VkPipeline *out_pipeline, struct vk_device *device,
                              const struct vk_pipeline_key *key,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees all pipelines.
void vk_pipelines_free(struct vk_device *device);

#endif
