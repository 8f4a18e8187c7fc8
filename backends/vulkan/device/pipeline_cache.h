// SPDX-License-Identifier: Apache-2.0
// The driver's pipeline cache, on disk.
#ifndef INF_BACKENDS_VULKAN_DEVICE_PIPELINE_CACHE_H
#define INF_BACKENDS_VULKAN_DEVICE_PIPELINE_CACHE_H

#include "backends/vulkan/device/device.h"

// Makes the device's pipeline cache, from the file where that is valid; empty otherwise. While a file's bytes
// are in use for the first time a marker lies beside it, locked: whoever finds one that nobody holds knows that
// the process that left it crashed, and uses those bytes no more.
enum inf_code vk_pipeline_cache_load(struct vk_device *device, struct inf_error *err) INF_NODISCARD;

// Writes that file where pipelines were made since it was last read or written. Any thread.
void vk_pipeline_cache_store(struct vk_device *device);

// Takes the marker away: the driver got along with the bytes. Cheap where there is none. Any thread.
void vk_pipeline_cache_confirm(struct vk_device *device);

#endif
