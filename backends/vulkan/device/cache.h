// SPDX-License-Identifier: Apache-2.0
// What is kept on disk for a device: its driver's pipeline cache, and which variants the driver cannot
// build; a file each, with a header of ours in front. Drivers crash on bytes that are not theirs, so
// nothing is used that was not written for the same driver and the same shaders.
#ifndef INF_BACKENDS_VULKAN_DEVICE_CACHE_H
#define INF_BACKENDS_VULKAN_DEVICE_CACHE_H

#include "backends/vulkan/device/device.h"

enum vk_cache_kind {
    VK_CACHE_PIPELINES,
    VK_CACHE_BROKEN,
};

// The payload of a file, in memory that the caller frees through *out_file; NULL where there is none,
// or none that is valid.
const void *vk_cache_read(const struct vk_gpu *gpu, enum vk_cache_kind kind, char **out_file,
                          size_t *out_size);

// Writes a file, whole or not at all. A failure is logged and no more.
void vk_cache_write(const struct vk_gpu *gpu, enum vk_cache_kind kind, const void *payload,
                    size_t size);

// Makes the device's pipeline cache, from the file where that is valid; empty otherwise. While a file's bytes
// are in use for the first time a marker lies beside it, locked: whoever finds one that nobody holds knows that
// the process that left it crashed, and uses those bytes no more.
enum inf_code vk_cache_load(struct vk_device *device, struct inf_error *err) INF_NODISCARD;

// Writes that file where pipelines were made since it was last read or written. Any thread.
void vk_cache_store(struct vk_device *device);

// Takes the marker away: the driver got along with the bytes. Cheap where there is none. Any thread.
void vk_cache_trust(struct vk_device *device);

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
uint64_t vk_cache_checksum(const void *data, size_t size);

// The driver's bytes behind the header of a file's `size` bytes, count in *out_size; NULL where the
// file is not exactly as `expected` wants it.
const void *vk_cache_payload(const void *file, size_t size, const struct vk_cache_header *expected,
                             size_t *out_size);

#endif
