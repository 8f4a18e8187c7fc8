// SPDX-License-Identifier: Apache-2.0
// Loads the driver's pipeline cache when a device is created, and stores it after pipelines were
// created.
//
// Some drivers crash on cache data that they wrote themselves. Therefore a marker file is created
// and locked before the data is used, and removed after the first run has finished. If a marker
// exists but is not locked, the process that created it crashed, so the cache file is deleted.
#include "backends/vulkan/device/pipeline_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "backends/vulkan/device/cache_file.h"
#include "backends/vulkan/device/known_variants.h"

static int open_directory(const struct vk_gpu *gpu)
{
    int directory;
    return gpu->cache_directory != NULL &&
                   inf_directory_open(&directory, gpu->cache_directory, NULL) == INF_OK
               ? directory
               : -1;
}

// --- the marker file ---

static void marker_name(const struct vk_gpu *gpu, char name[80])
{
    char file[64];
    vk_cache_file_name(gpu, VK_CACHE_PIPELINES, file);
    snprintf(name, 80, "%s.loading", file);
}

// Deletes the cache file and the marker that a crashed process left behind.
static void drop_crashed_file(const struct vk_gpu *gpu, int directory, const char *marker)
{
    char name[64];
    vk_cache_file_name(gpu, VK_CACHE_PIPELINES, name);
    (void)unlinkat(directory, name, 0);
    (void)unlinkat(directory, marker, 0);
    inf_log(gpu->log, INF_LOG_WARNING, "cache file dropped after a crash device=%s file=%s",
            gpu->base.info.name, name);
}

// Creates the marker file before the cache data is used. Returns false if the data must not be
// used, either because the process that used it before crashed, or because another process is using
// it for the first time.
static bool create_marker(struct vk_device *device)
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
            drop_crashed_file(device->gpu, directory, name);
    }
    close(directory);
    if (ours) {
        device->cache_marker_fd = fd;
        atomic_store(&device->cache_marker, true);
    } else if (fd >= 0) {
        close(fd);
    }
    return ours;
}

void vk_pipeline_cache_confirm(struct vk_device *device)
{
    char name[80];
    if (!atomic_load_explicit(&device->cache_marker, memory_order_relaxed) ||
        !atomic_exchange(&device->cache_marker, false))
        return;
    int directory = open_directory(device->gpu);
    marker_name(device->gpu, name);
    if (directory >= 0) {
        (void)unlinkat(directory, name, 0);
        close(directory);
    }
    close(device->cache_marker_fd);
    device->cache_marker_fd = -1;
}

// --- loading and storing the cache ---

// Reads the cache file, and sets the initial data of the pipeline cache. Sets nothing if the file
// is not valid for this device.
static void load_initial_data(struct vk_device *device, VkPipelineCacheCreateInfo *info,
                              char **out_file)
{
    size_t size;
    const char *payload = vk_cache_file_read(device->gpu, VK_CACHE_PIPELINES, out_file, &size);
    size_t names = payload != NULL ? vk_known_variants_read(&device->loaded, payload, size) : 0;
    if (names == 0 || !create_marker(device)) {
        vk_known_variants_fini(&device->loaded);
        return;
    }
    (void)vk_known_variants_read(&device->known, payload, size);
    info->pInitialData = payload + names;
    info->initialDataSize = size - names;
}

enum inf_code vk_pipeline_cache_load(struct vk_device *device, struct inf_error *err)
{
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    char *file = NULL;
    device->cache_marker_fd = -1;
    load_initial_data(device, &info, &file);
    VkResult result = device->api.CreatePipelineCache(device->device, &info, NULL, &device->cache);
    free(file);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkCreatePipelineCache", err);
    return INF_OK;
}

void vk_pipeline_cache_store(struct vk_device *device)
{
    size_t size = 0;
    inf_mutex_lock(&device->pipeline_mutex);
    uint32_t made = device->pipelines_made;
    device->pipelines_made = 0;
    inf_mutex_unlock(&device->pipeline_mutex);
    if (device->gpu->cache_directory == NULL || made == 0 || vk_device_lost(device) ||
        device->api.GetPipelineCacheData(device->device, device->cache, &size, NULL) !=
            VK_SUCCESS ||
        size > VK_CACHE_FILE_BYTES_MAX)
        return;
    size_t names;
    inf_mutex_lock(&device->pipeline_mutex);
    char *payload = vk_known_variants_encode(&device->known, size, &names);
    inf_mutex_unlock(&device->pipeline_mutex);
    // If another thread has created pipelines meanwhile, the driver's data may have grown and not
    // fit. Then nothing is stored here; the other thread stores the cache later.
    if (payload != NULL && device->api.GetPipelineCacheData(device->device, device->cache, &size,
                                                            payload + names) == VK_SUCCESS)
        vk_cache_file_write(device->gpu, VK_CACHE_PIPELINES, payload, names + size);
    free(payload);
}
