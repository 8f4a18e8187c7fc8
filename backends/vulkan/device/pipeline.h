// SPDX-License-Identifier: Apache-2.0
// Pipelines: shaders with their specialisation constants. A pipeline is created once for a device
// and kept.
#ifndef INF_BACKENDS_VULKAN_DEVICE_PIPELINE_H
#define INF_BACKENDS_VULKAN_DEVICE_PIPELINE_H

#include "backends/vulkan/device/device.h"

// Returns the pipeline for `variant`. The device owns it. Waits if another thread is creating it.
//
// INF_UNSUPPORTED  the driver cannot build the pipeline; the failure is recorded (variant.h).
enum inf_code vk_pipeline_get(VkPipeline *out_pipeline, struct vk_device *device,
                              const struct vk_variant *variant,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Creates the pipeline, unless it exists or another thread is creating it.
enum inf_code vk_pipeline_prepare(struct vk_device *device, const struct vk_variant *variant,
                                  struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees all pipelines of the device.
void vk_free_pipelines(struct vk_device *device);

#endif
