// SPDX-License-Identifier: Apache-2.0
// Loads the Vulkan loader with dlopen() and looks up the entry points of the instance and of
// devices.
#include "backends/vulkan/device/api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOADER "libvulkan.so.1"

// The instance of this process. Loading drivers takes 20 ms or more, and unloading some drivers is
// not safe, so the instance is created at most once and never destroyed. Written only under `once`.
static struct vk_instance_api process_api;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The path of the loader; "" for the system's loader. Set before the instance is created, while the
// process has only one thread.
static char loader_path[4096];

enum inf_code vk_api_prepare(const char *loader, const char *drivers, struct inf_error *err)
{
    if (loader != NULL) {
        // The loader is never closed, because unloading some drivers is not safe.
        if (dlopen(loader, RTLD_NOW | RTLD_LOCAL) == NULL)
            return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE, "vulkan_loader: %s",
                                   dlerror());
        snprintf(loader_path, sizeof loader_path, "%s", loader);
    }
    // Set both environment variables that the loader reads; loaders before 1.3.207 read the second
    // one.
    if (drivers != NULL &&
        (setenv("VK_DRIVER_FILES", drivers, 1) != 0 || setenv("VK_ICD_FILENAMES", drivers, 1) != 0))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory");
    return INF_OK;
}

// Stores an untyped function pointer in the typed pointer at `entry`. Copying the bytes avoids a
// cast between data and function pointers. Returns false if the pointer is NULL.
static bool set_entry(void *entry, PFN_vkVoidFunction found)
{
    memcpy(entry, &found, sizeof(found));
    return found != NULL;
}

static bool load_instance_entries(struct vk_instance_api *api, PFN_vkGetInstanceProcAddr get)
{
    bool all = true;
#define LOAD(name) all = set_entry(&api->name, get(api->instance, "vk" #name)) && all;
    VK_INSTANCE_ENTRIES(LOAD)
#undef LOAD
    api->find_entry = get;
    return all;
}

static void create_instance(void)
{
    void *loader = dlopen(loader_path[0] != '\0' ? loader_path : LOADER, RTLD_NOW | RTLD_LOCAL);
    if (loader == NULL)
        return;
    PFN_vkGetInstanceProcAddr get;
    PFN_vkCreateInstance create;
    void *symbol = dlsym(loader, "vkGetInstanceProcAddr");
    memcpy(&get, &symbol, sizeof(get));
    if (get == NULL || !set_entry(&create, get(VK_NULL_HANDLE, "vkCreateInstance")))
        return;
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .pEngineName = "inferd",
                                           .apiVersion = VK_API_VERSION_1_2};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    // Instance creation fails if there is no driver. This is not an error: the process then has no
    // GPU.
    if (create(&info, NULL, &process_api.instance) != VK_SUCCESS ||
        !load_instance_entries(&process_api, get))
        process_api.instance = VK_NULL_HANDLE;
}

const struct vk_instance_api *vk_instance_api(void)
{
    pthread_once(&once, create_instance);
    return process_api.instance != VK_NULL_HANDLE ? &process_api : NULL;
}

void vk_instance_entry(void *entry, const struct vk_instance_api *api, const char *name)
{
    (void)set_entry(entry, api->find_entry(api->instance, name));
}

enum inf_code vk_device_api_load(struct vk_device_api *api, VkDevice device, struct inf_error *err)
{
    const char *missing = NULL;
#define LOAD(name)                                                                                 \
    if (!set_entry(&api->name, process_api.GetDeviceProcAddr(device, "vk" #name)))                 \
        missing = "vk" #name;
    VK_DEVICE_ENTRIES(LOAD)
#undef LOAD
    if (missing != NULL)
        return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BACKEND, "the driver has no %s",
                               missing);
    return INF_OK;
}

void vk_device_entry(void *entry, VkDevice device, const char *name)
{
    (void)!set_entry(entry, process_api.GetDeviceProcAddr(device, name));
}
