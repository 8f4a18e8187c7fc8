// SPDX-License-Identifier: Apache-2.0
// The driver's pipeline cache, which is kept on disk.
#ifndef INF_BACKENDS_VULKAN_DEVICE_PIPELINE_CACHE_H
#define INF_BACKENDS_VULKAN_DEVICE_PIPELINE_CACHE_H

#include "backends/vulkan/device/device.h"

// Creates the device's pipeline cache, from the cache file if that is valid, otherwise empty. While
// the data of the file is used for the first time, a locked marker file exists, which reveals a
// crash (pipeline_cache.c).
enum inf_code vk_pipeline_cache_load(struct vk_device *device, struct inf_error *err) INF_NODISCARD;

// Writes the cache file if pipelines were created since it was last read or written. Any thread.
void vk_pipeline_cache_store(struct vk_device *device);

// Removes the marker file after the first run has finished, because the cache data did not crash
// the driver. Cheap if there is no marker. Any thread.
void vk_pipeline_cache_confirm(struct vk_device *device);

#endif
