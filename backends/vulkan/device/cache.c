// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/device/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "backends/vulkan/device/known_variants.h"
#include "shaders/shaders.h"

#define VERSION        2
#define FILE_BYTES_MAX ((uint64_t)256 << 20)

// What tells the files of a device apart: their first bytes and the ends of their names.
static const struct {
    char magic[8];
    const char *suffix;
} kinds[] = {
    [VK_CACHE_PIPELINES] = {"infvkpc", "cache"}, [VK_CACHE_BROKEN] = {"infvkbv", "broken"}};

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
    memset(header, 0, sizeof(*header)); // padding is compared too
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

static void file_name(const struct vk_gpu *gpu, enum vk_cache_kind kind, char name[64])
{
    snprintf(name, 64, "vulkan-%08x-%08x.%s", gpu->properties.vendorID, gpu->properties.deviceID,
             kinds[kind].suffix);
}

const void *vk_cache_read(const struct vk_gpu *gpu, enum vk_cache_kind kind, char **out_file,
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
    file_name(gpu, kind, name);
    enum inf_code code =
        inf_file_read_all(out_file, &file_size, directory, name, FILE_BYTES_MAX, NULL);
    close(directory);
    if (code != INF_OK) {
        *out_file = NULL;
        return NULL;
    }
    struct vk_cache_header header;
    vk_cache_header_init(&header, gpu, kind);
    const void *payload = vk_cache_payload(*out_file, file_size, &header, out_size);
    if (payload == NULL)
        inf_log(gpu->log, INF_LOG_INFO, "cache file dropped device=%s file=%s bytes=%zu",
                gpu->base.info.name, name, file_size);
    return payload;
}

// Whole or not at all: a new file, on the disk before it takes the old one's name.
static bool replace(int directory, const char *name, const char *data, size_t size)
{
    char temporary[80];
    snprintf(temporary, sizeof(temporary), "%s.%d", name, (int)gettid());
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

void vk_cache_write(const struct vk_gpu *gpu, enum vk_cache_kind kind, const void *payload,
                    size_t size)
{
    struct vk_cache_header header;
    char name[64];
    int directory;
    if (gpu->cache_directory == NULL ||
        inf_directory_open(&directory, gpu->cache_directory, NULL) != INF_OK)
        return;
    file_name(gpu, kind, name);
    char *file = malloc(sizeof(header) + size);
    if (file != NULL) {
        vk_cache_header_init(&header, gpu, kind);
        header.size = size;
        header.checksum = vk_cache_checksum(payload, size);
        memcpy(file, &header, sizeof(header));
        memcpy(file + sizeof(header), payload, size);
    }
    if (file == NULL || !replace(directory, name, file, sizeof(header) + size))
        inf_log(gpu->log, INF_LOG_WARNING, "cache file not written device=%s file=%s",
                gpu->base.info.name, name);
    free(file);
    close(directory);
}

// --- the marker ---

static int open_directory(const struct vk_gpu *gpu)
{
    int directory;
    return gpu->cache_directory != NULL &&
                   inf_directory_open(&directory, gpu->cache_directory, NULL) == INF_OK
               ? directory
               : -1;
}

static void marker_name(const struct vk_gpu *gpu, char name[80])
{
    char file[64];
    file_name(gpu, VK_CACHE_PIPELINES, file);
    snprintf(name, 80, "%s.loading", file);
}

// Drops what crashed the process that left the marker.
static void drop_crashed(const struct vk_gpu *gpu, int directory, const char *marker)
{
    char name[64];
    file_name(gpu, VK_CACHE_PIPELINES, name);
    (void)unlinkat(directory, name, 0);
    (void)unlinkat(directory, marker, 0);
    inf_log(gpu->log, INF_LOG_WARNING, "cache file dropped after a crash device=%s file=%s",
            gpu->base.info.name, name);
}

// Leaves the marker, before the bytes are used; false where they had better not be: the last who did crashed,
// or somebody is trying them now.
static bool leave_marker(struct vk_device *device)
{
    char name[80];
    int directory = open_directory(device->gpu);
    bool ours = false;
    marker_name(device->gpu, name);
    if (directory < 0)
        return false;
    int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) {
        ours = flock(fd, LOCK_EX | LOCK_NB) == 0;
    } else if (errno == EEXIST) {
        fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
            drop_crashed(device->gpu, directory, name);
    }
    close(directory);
    if (ours) {
        device->canary_fd = fd;
        atomic_store(&device->canary, true);
    } else if (fd >= 0) {
        close(fd);
    }
    return ours;
}

void vk_cache_trust(struct vk_device *device)
{
    char name[80];
    if (!atomic_load_explicit(&device->canary, memory_order_relaxed) ||
        !atomic_exchange(&device->canary, false))
        return;
    int directory = open_directory(device->gpu);
    marker_name(device->gpu, name);
    if (directory >= 0) {
        (void)unlinkat(directory, name, 0);
        close(directory);
    }
    close(device->canary_fd);
    device->canary_fd = -1;
}

// --- pipelines ---

// Finds the driver's bytes behind the variants that they are of; none where the file has none for us.
static void find_initial(struct vk_device *device, VkPipelineCacheCreateInfo *info, char **out_file)
{
    size_t size;
    const char *payload = vk_cache_read(device->gpu, VK_CACHE_PIPELINES, out_file, &size);
    size_t names = payload != NULL ? vk_known_read(&device->loaded, payload, size) : 0;
    if (names == 0 || !leave_marker(device)) {
        vk_known_fini(&device->loaded);
        return;
    }
    (void)vk_known_read(&device->known, payload, size);
    info->pInitialData = payload + names;
    info->initialDataSize = size - names;
}

enum inf_code vk_cache_load(struct vk_device *device, struct inf_error *err)
{
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    char *file = NULL;
    device->canary_fd = -1;
    find_initial(device, &info, &file);
    VkResult result = device->api.CreatePipelineCache(device->device, &info, NULL, &device->cache);
    free(file);
    if (result != VK_SUCCESS)
        return vk_failure(device, result, "vkCreatePipelineCache", err);
    return INF_OK;
}

// The names of what the cache has now, to write in front of it; more may come meanwhile. The caller frees them.
static char *copy_names(struct vk_device *device, size_t room, size_t *out_size)
{
    inf_mutex_lock(&device->pipeline_mutex);
    size_t size = vk_known_bytes(&device->known);
    char *names = malloc(size + room);
    if (names != NULL)
        vk_known_write(&device->known, names);
    inf_mutex_unlock(&device->pipeline_mutex);
    *out_size = size;
    return names;
}

void vk_cache_store(struct vk_device *device)
{
    size_t size = 0;
    inf_mutex_lock(&device->pipeline_mutex);
    uint32_t made = device->pipelines_made;
    device->pipelines_made = 0;
    inf_mutex_unlock(&device->pipeline_mutex);
    if (device->gpu->cache_directory == NULL || made == 0 || vk_device_lost(device) ||
        device->api.GetPipelineCacheData(device->device, device->cache, &size, NULL) !=
            VK_SUCCESS ||
        size > FILE_BYTES_MAX)
        return;
    size_t names;
    char *payload = copy_names(device, size, &names);
    // A thread that makes pipelines meanwhile leaves no room for all of them, and writes them itself.
    if (payload != NULL && device->api.GetPipelineCacheData(device->device, device->cache, &size,
                                                            payload + names) == VK_SUCCESS)
        vk_cache_write(device->gpu, VK_CACHE_PIPELINES, payload, names + size);
    free(payload);
}
