// SPDX-License-Identifier: Apache-2.0
// Pipelines: a shader with its specialisation constants, made once for a device and kept.
#ifndef INF_BACKENDS_VULKAN_DEVICE_PIPELINE_H
#define INF_BACKENDS_VULKAN_DEVICE_PIPELINE_H

#include "backends/vulkan/device/device.h"

// The pipeline for `variant`; it is the device's and stays as long as that.
//
// INF_UNSUPPORTED  the driver cannot build it; noted (variant.h).
enum inf_code vk_pipeline_get(VkPipeline *out_pipeline, struct vk_device *device,
                              const struct vk_variant *variant,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Makes it where nobody has and nobody does.
enum inf_code vk_pipeline_prepare(struct vk_device *device, const struct vk_variant *variant,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees all pipelines.
void vk_free_pipelines(struct vk_device *device);

#endif
