// SPDX-License-Identifier: Apache-2.0
// Reads and writes the cache files of a device. A file is used only if its header and its checksum
// match.
#include "backends/vulkan/device/cache_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "proto/core/hash.h"
#include "shaders/shaders.h"

#define VERSION        3
#define FILE_BYTES_MAX VK_CACHE_FILE_BYTES_MAX

// Indexed by kind of cache file: the first bytes of the file, and the end of its name.
static const struct {
    char magic[8];
    const char *suffix;
} kinds[] = {
    [VK_CACHE_PIPELINES] = {"infvkpc", "cache"},
    [VK_CACHE_BROKEN] = {"infvkbv", "broken"},
    [VK_CACHE_CHECKED] = {"infvkcv", "checked"},
};

void vk_cache_header_init(struct vk_cache_header *header, const struct vk_gpu *gpu,
                          enum vk_cache_kind kind)
{
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                       .pNext = &driver};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    gpu->api->GetPhysicalDeviceProperties2(gpu->physical, &properties);
    // Zero the padding bytes of the struct too, because headers are compared byte by byte.
    memset(header, 0, sizeof(*header));
    memcpy(header->magic, kinds[kind].magic, sizeof(header->magic));
    header->version = VERSION;
    header->vendor = properties.properties.vendorID;
    header->device = properties.properties.deviceID;
    header->driver = properties.properties.driverVersion;
    memcpy(header->device_uuid, id.deviceUUID, VK_UUID_SIZE);
    memcpy(header->cache_uuid, properties.properties.pipelineCacheUUID, VK_UUID_SIZE);
    snprintf(header->driver_info, sizeof(header->driver_info), "%s", driver.driverInfo);
    header->shaders = inf_shaders_hash;
}

uint64_t vk_cache_file_checksum(const void *data, size_t size)
{
    return inf_hash_bytes(INF_HASH_INIT, data, size);
}

const void *vk_cache_file_payload(const void *file, size_t size,
                                  const struct vk_cache_header *expected, size_t *out_size)
{
    struct vk_cache_header header;
    if (size < sizeof(header))
        return NULL;
    memcpy(&header, file, sizeof(header));
    const void *payload = (const char *)file + sizeof(header);
    struct vk_cache_header wanted = *expected;
    wanted.size = size - sizeof(header);
    wanted.checksum = vk_cache_file_checksum(payload, wanted.size);
    if (memcmp(&header, &wanted, sizeof(header)) != 0)
        return NULL;
    *out_size = wanted.size;
    return payload;
}

void vk_cache_file_name(const struct vk_gpu *gpu, enum vk_cache_kind kind, char name[64])
{
    snprintf(name, 64, "vulkan-%08x-%08x.%s", gpu->properties.vendorID, gpu->properties.deviceID,
             kinds[kind].suffix);
}

const void *vk_cache_file_read(const struct vk_gpu *gpu, enum vk_cache_kind kind, char **out_file,
                               size_t *out_size)
{
    char name[64];
    size_t file_size = 0;
    int directory;
    *out_file = NULL;
    *out_size = 0;
    if (gpu->cache_directory == NULL ||
        inf_directory_open(&directory, gpu->cache_directory, NULL) != INF_OK)
        return NULL;
    vk_cache_file_name(gpu, kind, name);
    enum inf_code code =
        inf_file_read_all(out_file, &file_size, directory, name, FILE_BYTES_MAX, NULL);
    close(directory);
    if (code != INF_OK) {
        *out_file = NULL;
        return NULL;
    }
    struct vk_cache_header header;
    vk_cache_header_init(&header, gpu, kind);
    const void *payload = vk_cache_file_payload(*out_file, file_size, &header, out_size);
    if (payload == NULL)
        inf_log(gpu->log, INF_LOG_INFO, "cache file dropped device=%s file=%s bytes=%zu",
                gpu->base.info.name, name, file_size);
    return payload;
}

// Replaces a file atomically: writes a new file, syncs it, then renames it.
static bool replace_file(int directory, const char *name, const char *data, size_t size)
{
    char temporary[80];
    snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)gettid());
    int fd =
        openat(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = inf_file_write_all(fd, data, size) && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && renameat(directory, temporary, directory, name) == 0;
    if (!ok)
        (void)unlinkat(directory, temporary, 0);
    return ok;
}

void vk_cache_file_write(const struct vk_gpu *gpu, enum vk_cache_kind kind, const void *payload,
                         size_t size)
{
    struct vk_cache_header header;
    char name[64];
    int directory;
    if (gpu->cache_directory == NULL ||
        inf_directory_open(&directory, gpu->cache_directory, NULL) != INF_OK)
        return;
    vk_cache_file_name(gpu, kind, name);
    char *file = malloc(sizeof(header) + size);
    if (file != NULL) {
        vk_cache_header_init(&header, gpu, kind);
        header.size = size;
        header.checksum = vk_cache_file_checksum(payload, size);
        memcpy(file, &header, sizeof(header));
        memcpy(file + sizeof(header), payload, size);
    }
    if (file == NULL || !replace_file(directory, name, file, sizeof(header) + size))
        inf_log(gpu->log, INF_LOG_WARNING, "cache file not written device=%s file=%s",
                gpu->base.info.name, name);
    free(file);
    close(directory);
}
