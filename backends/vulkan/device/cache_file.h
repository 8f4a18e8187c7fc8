// SPDX-License-Identifier: Apache-2.0
// Files that are kept for a device: its pipeline cache, and the shader variants that its driver cannot build.
#ifndef INF_BACKENDS_VULKAN_DEVICE_CACHE_FILE_H
#define INF_BACKENDS_VULKAN_DEVICE_CACHE_FILE_H

#include "backends/vulkan/device/gpu.h"

// The size of the largest file that is read or written.
#define VK_CACHE_FILE_BYTES_MAX ((uint64_t)256 << 20)

enum vk_cache_kind {
    VK_CACHE_PIPELINES,
    VK_CACHE_BROKEN,
};

// The payload of a file, in memory that the caller frees through *out_file; NULL where there is none,
// or none that is valid.
const void *vk_cache_file_read(const struct vk_gpu *gpu, enum vk_cache_kind kind, char **out_file,
                               size_t *out_size);

// Writes a file, whole or not at all. A failure is logged and no more.
void vk_cache_file_write(const struct vk_gpu *gpu, enum vk_cache_kind kind, const void *payload,
                         size_t size);

// What a cache file must begin with on this device; constant as long as driver and shaders are.
struct vk_cache_header {
    char magic[8];
    uint32_t version;
    uint32_t vendor, device, driver;
    uint8_t device_uuid[VK_UUID_SIZE], cache_uuid[VK_UUID_SIZE];
    char driver_info[VK_MAX_DRIVER_INFO_SIZE];
    uint64_t shaders; // inf_shaders_hash
    uint64_t size;    // of what follows
    uint64_t checksum;
};

// Fills all but size and checksum.
void vk_cache_header_init(struct vk_cache_header *header, const struct vk_gpu *gpu,
                          enum vk_cache_kind kind);

// 64 bits that change when any byte does (FNV-1a).
uint64_t vk_cache_file_checksum(const void *data, size_t size);

// The driver's bytes behind the header of a file's `size` bytes, count in *out_size; NULL where the
// file is not exactly as `expected` wants it.
const void *vk_cache_file_payload(const void *file, size_t size,
                                  const struct vk_cache_header *expected, size_t *out_size);

// The name of a device's file of that kind.
void vk_cache_file_name(const struct vk_gpu *gpu, enum vk_cache_kind kind, char name[64]);

#endif
