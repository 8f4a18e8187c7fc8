// SPDX-License-Identifier: Apache-2.0
// Cache files of a device: its pipeline cache, the list of shader variants that must not be used on
// its driver, and the set of those that were checked. Drivers may crash on data that another driver
// wrote, so a file is used only if it was written with the same driver and the same shaders.
#ifndef INF_BACKENDS_VULKAN_DEVICE_CACHE_FILE_H
#define INF_BACKENDS_VULKAN_DEVICE_CACHE_FILE_H

#include "backends/vulkan/device/gpu.h"

// The size of the largest file that is read or written.
#define VK_CACHE_FILE_BYTES_MAX ((uint64_t)256 << 20)

enum vk_cache_kind {
    VK_CACHE_PIPELINES,
    VK_CACHE_BROKEN,
    VK_CACHE_CHECKED,
};

// Returns the payload of a file; NULL if the file does not exist or is not valid. The caller frees
// *out_file, which holds the payload.
const void *vk_cache_file_read(const struct vk_gpu *gpu, enum vk_cache_kind kind, char **out_file,
                               size_t *out_size);

// Writes a file, completely or not at all. A failure is logged.
void vk_cache_file_write(const struct vk_gpu *gpu, enum vk_cache_kind kind, const void *payload,
                         size_t size);

// The header that a cache file of this device must have. The header changes with the driver and
// with the shaders.
struct vk_cache_header {
    char magic[8];
    uint32_t version;
    uint32_t vendor, device, driver;
    uint8_t device_uuid[VK_UUID_SIZE], cache_uuid[VK_UUID_SIZE];
    char driver_info[VK_MAX_DRIVER_INFO_SIZE];
    uint64_t shaders; // equals inf_shaders_hash
    uint64_t size;    // size of the payload
    uint64_t checksum;
};

// Fills all members except `size` and `checksum`.
void vk_cache_header_init(struct vk_cache_header *header, const struct vk_gpu *gpu,
                          enum vk_cache_kind kind);

// Returns a 64-bit hash (FNV-1a) of the bytes.
uint64_t vk_cache_file_checksum(const void *data, size_t size);

// Returns the payload after the header of a file of `size` bytes, and its size in *out_size.
// Returns NULL if the header differs from `expected` or the checksum is wrong.
const void *vk_cache_file_payload(const void *file, size_t size,
                                  const struct vk_cache_header *expected, size_t *out_size);

// Writes the name of the device's cache file of kind `kind`.
void vk_cache_file_name(const struct vk_gpu *gpu, enum vk_cache_kind kind, char name[64]);

#endif
