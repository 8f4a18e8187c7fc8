// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vk_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "shaders/shaders.h"

#define MAGIC          "infvkpc"
#define VERSION        1
#define FILE_BYTES_MAX ((uint64_t)256 << 20)

void vk_cache_header_init(struct vk_cache_header *header, VkPhysicalDevice physical)
{
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                       .pNext = &driver};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &id};
    vkGetPhysicalDeviceProperties2(physical, &properties);
    memset(header, 0, sizeof(*header)); // padding is compared too
    memcpy(header->magic, MAGIC, sizeof(header->magic));
    header->version = VERSION;
    header->vendor = properties.properties.vendorID;
    header->device = properties.properties.deviceID;
    header->driver = properties.properties.driverVersion;
    memcpy(header->device_uuid, id.deviceUUID, VK_UUID_SIZE);
    memcpy(header->cache_uuid, properties.properties.pipelineCacheUUID, VK_UUID_SIZE);
    snprintf(header->driver_info, sizeof(header->driver_info), "%s", driver.driverInfo);
    header->shaders = inf_shaders_hash;
}

uint64_t vk_cache_checksum(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const void *vk_cache_payload(const void *file, size_t size, const struct vk_cache_header *expected,
                             size_t *out_size)
{
    struct vk_cache_header header;
    if (size < sizeof(header))
        return NULL;
    memcpy(&header, file, sizeof(header));
    const void *payload = (const char *)file + sizeof(header);
    struct vk_cache_header wanted = *expected;
    wanted.size = size - sizeof(header);
    wanted.checksum = vk_cache_checksum(payload, wanted.size);
    if (memcmp(&header, &wanted, sizeof(header)) != 0)
        return NULL;
    *out_size = wanted.size;
    return payload;
}

static void file_name(const struct vk_device *device, char name[64])
{
    snprintf(name, 64, "vulkan-%08x-%08x.cache", device->properties.vendorID,
             device->properties.deviceID);
}

// Reads the file into memory that the caller frees; NULL where there is none.
static char *read_file(const struct vk_device *device, size_t *size)
{
    char name[64];
    char *file = NULL;
    int directory;
    if (device->cache_directory == NULL ||
        inf_directory_open(&directory, device->cache_directory, NULL) != INF_OK)
        return NULL;
    file_name(device, name);
    if (inf_file_read_all(&file, size, directory, name, FILE_BYTES_MAX, NULL) != INF_OK)
        file = NULL;
    close(directory);
    return file;
}

enum inf_code vk_cache_load(struct vk_device *device, struct inf_error *err)
{
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    size_t file_size = 0, size = 0;
    char *file = read_file(device, &file_size);
    if (file != NULL) {
        struct vk_cache_header header;
        vk_cache_header_init(&header, device->physical);
        info.pInitialData = vk_cache_payload(file, file_size, &header, &size);
        info.initialDataSize = size;
        if (info.pInitialData == NULL)
            inf_log(device->log, INF_LOG_INFO, "pipeline cache dropped device=%s bytes=%zu",
                    device->base.info.name, file_size);
    }
    VkResult result = vkCreatePipelineCache(device->device, &info, NULL, &device->cache);
    free(file);
    if (result != VK_SUCCESS)
        return vk_failure(device, result, "vkCreatePipelineCache", err);
    return INF_OK;
}

// Header and payload in memory that the caller frees; NULL where the driver has none to give.
static char *compose(struct vk_device *device, size_t *out_size)
{
    size_t size = 0;
    if (vkGetPipelineCacheData(device->device, device->cache, &size, NULL) != VK_SUCCESS ||
        size > FILE_BYTES_MAX)
        return NULL;
    struct vk_cache_header header;
    char *file = malloc(sizeof(header) + size);
    if (file == NULL)
        return NULL;
    char *payload = file + sizeof(header);
    if (vkGetPipelineCacheData(device->device, device->cache, &size, payload) != VK_SUCCESS) {
        free(file);
        return NULL;
    }
    vk_cache_header_init(&header, device->physical);
    header.size = size;
    header.checksum = vk_cache_checksum(payload, size);
    memcpy(file, &header, sizeof(header));
    *out_size = sizeof(header) + size;
    return file;
}

// Whole or not at all: a new file, on the disk before it takes the old one's name.
static bool replace(int directory, const char *name, const char *data, size_t size)
{
    char temporary[80];
    snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)getpid());
    int fd =
        openat(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    size_t done = 0;
    while (done < size) {
        ssize_t count = write(fd, data + done, size - done);
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    bool ok = done == size && fsync(fd) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && renameat(directory, temporary, directory, name) == 0;
    if (!ok)
        (void)unlinkat(directory, temporary, 0);
    return ok;
}

void vk_cache_store(struct vk_device *device)
{
    int directory;
    size_t size;
    if (device->cache_directory == NULL || device->pipelines_made == 0 ||
        atomic_load(&device->lost) ||
        inf_directory_open(&directory, device->cache_directory, NULL) != INF_OK)
        return;
    char name[64];
    file_name(device, name);
    char *file = compose(device, &size);
    if (file == NULL || !replace(directory, name, file, size))
        inf_log(device->log, INF_LOG_WARNING, "pipeline cache not written device=%s",
                device->base.info.name);
    free(file);
    close(directory);
}
