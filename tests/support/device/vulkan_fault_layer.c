// SPDX-License-Identifier: Apache-2.0
// The Vulkan layer that vulkan_faults.h controls. It supports one instance and the devices of one
// driver. Interface: https://github.com/KhronosGroup/Vulkan-Loader, docs/LoaderLayerInterface.md.
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include "tests/support/device/vulkan_faults.h"

static struct vulkan_faults none;
static struct vulkan_faults *faults = &none;

// Pointers to the next functions in the chain of layers.
static PFN_vkGetInstanceProcAddr next_instance;
static PFN_vkGetDeviceProcAddr next_device;
static VkInstance instance;
// Pointers to functions of the driver, loaded while the instance is created, because later the
// loader would return this layer's own function.
static PFN_vkGetPhysicalDeviceMemoryProperties next_memory_types;
static PFN_vkGetPhysicalDeviceProperties next_properties;
static PFN_vkGetPhysicalDeviceQueueFamilyProperties next_families;
static VkDevice any_device;

#define NEXT(name) ((PFN_vk##name)next_device(any_device, "vk" #name))

// --- timing the calls of the driver ---

struct moment {
    uint64_t wall_ns, cpu_ns;
};

static struct moment now_ns(void)
{
    struct timespec wall = {0}, cpu = {0};
    if (faults->timed) {
        clock_gettime(CLOCK_MONOTONIC, &wall);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    }
    return (struct moment){(uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec,
                           (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec};
}

static void add_time(_Atomic uint64_t *wall_ns, _Atomic uint64_t *cpu_ns, struct moment begin)
{
    struct moment end = now_ns();
    *wall_ns += end.wall_ns - begin.wall_ns;
    *cpu_ns += end.cpu_ns - begin.cpu_ns;
}

// --- Vulkan calls that this layer intercepts ---

// The queue of the simulated family is also the queue of the driver's first family. Only one thread
// at a time may use it.
static pthread_mutex_t submitting = PTHREAD_MUTEX_INITIALIZER;

// Returns `result` instead of the driver's result. Waits for all submissions first: the real device
// is not lost, and would go on using memory that the application frees.
static VkResult fail_call(int32_t result)
{
    pthread_mutex_lock(&submitting);
    NEXT(DeviceWaitIdle)(any_device);
    pthread_mutex_unlock(&submitting);
    return (VkResult)result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fault_submit(VkQueue queue, uint32_t count,
                                                   const VkSubmitInfo *submits, VkFence fence)
{
    if (++faults->submits == faults->raise_at)
        faults->raised = true;
    if (faults->submit != 0)
        return fail_call(faults->submit);
    PFN_vkQueueSubmit next = NEXT(QueueSubmit);
    struct moment begin = now_ns();
    pthread_mutex_lock(&submitting);
    VkResult result = next(queue, count, submits, fence);
    pthread_mutex_unlock(&submitting);
    add_time(&faults->submit_ns, &faults->submit_cpu_ns, begin);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fault_wait(VkDevice device, const VkSemaphoreWaitInfo *info,
                                                 uint64_t timeout)
{
    if (faults->hang) {
        struct timespec pause = {.tv_nsec = (long)(timeout < 20000000 ? timeout : 20000000)};
        nanosleep(&pause, NULL);
        return VK_TIMEOUT;
    }
    PFN_vkWaitSemaphores next = NEXT(WaitSemaphores);
    struct moment begin = now_ns();
    VkResult result = next(device, info, timeout);
    add_time(&faults->wait_ns, &faults->wait_cpu_ns, begin);
    return faults->wait != 0 ? fail_call(faults->wait) : result;
}

static VKAPI_ATTR VkResult VKAPI_CALL fault_counter(VkDevice device, VkSemaphore semaphore,
                                                    uint64_t *value)
{
    VkResult result = NEXT(GetSemaphoreCounterValue)(device, semaphore, value);
    if (faults->hang)
        *value = 0;
    return result;
}

// Index of the memory type that simulates a discrete device's own memory. It follows the memory
// types of the driver.
static uint32_t own_type;

static VKAPI_ATTR VkResult VKAPI_CALL fault_allocate(VkDevice device,
                                                     const VkMemoryAllocateInfo *info,
                                                     const VkAllocationCallbacks *callbacks,
                                                     VkDeviceMemory *memory)
{
    VkMemoryAllocateInfo real = *info;
    if (faults->allocate != 0)
        return (VkResult)faults->allocate;
    if (faults->discrete && real.memoryTypeIndex == own_type)
        real.memoryTypeIndex = 0;
    VkResult result = NEXT(AllocateMemory)(device, &real, callbacks, memory);
    faults->allocations += result == VK_SUCCESS;
    return result;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *callbacks)
{
    faults->allocations -= memory != VK_NULL_HANDLE;
    NEXT(FreeMemory)(device, memory, callbacks);
}

static VKAPI_ATTR void VKAPI_CALL buffer_needs(VkDevice device, VkBuffer buffer,
                                               VkMemoryRequirements *needs)
{
    NEXT(GetBufferMemoryRequirements)(device, buffer, needs);
    if (faults->discrete)
        needs->memoryTypeBits |= 1u << own_type;
}

static VKAPI_ATTR void VKAPI_CALL memory_types(VkPhysicalDevice physical,
                                               VkPhysicalDeviceMemoryProperties *memory)
{
    next_memory_types(physical, memory);
    if (!faults->discrete)
        return;
    own_type = memory->memoryTypeCount;
    for (uint32_t i = 0; i < own_type; i++)
        memory->memoryTypes[i].propertyFlags &=
            ~(VkMemoryPropertyFlags)VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    memory->memoryTypes[memory->memoryTypeCount++] =
        (VkMemoryType){.propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
}

// Index of the simulated family of queues that only copy; UINT32_MAX: there is none. It follows the
// families of the driver.
static uint32_t copy_family = UINT32_MAX;

static VKAPI_ATTR void VKAPI_CALL queue_families(VkPhysicalDevice physical, uint32_t *count,
                                                 VkQueueFamilyProperties *families)
{
    uint32_t capacity = *count;
    next_families(physical, count, families);
    if (!faults->copies || families == NULL || *count == capacity)
        return;
    copy_family = (*count)++;
    families[copy_family] = families[0];
    families[copy_family].queueFlags = VK_QUEUE_TRANSFER_BIT;
}

static VKAPI_ATTR void VKAPI_CALL find_queue(VkDevice device, uint32_t family, uint32_t index,
                                             VkQueue *queue)
{
    NEXT(GetDeviceQueue)(device, family == copy_family ? 0 : family, index, queue);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device,
                                                  const VkCommandPoolCreateInfo *info,
                                                  const VkAllocationCallbacks *callbacks,
                                                  VkCommandPool *pool)
{
    VkCommandPoolCreateInfo real = *info;
    if (real.queueFamilyIndex == copy_family) {
        real.queueFamilyIndex = 0;
        faults->copy_pools++;
    }
    return NEXT(CreateCommandPool)(device, &real, callbacks, pool);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkBuffer *buffer)
{
    VkBufferCreateInfo real = *info;
    if (copy_family != UINT32_MAX)
        real.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    return NEXT(CreateBuffer)(device, &real, callbacks, buffer);
}

static VKAPI_ATTR void VKAPI_CALL fault_properties(VkPhysicalDevice physical,
                                                   VkPhysicalDeviceProperties *found)
{
    next_properties(physical, found);
    if (faults->discrete)
        found->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

// Returns true if the specialisation constants of a pipeline have a word `word` with this value.
static bool has_word(const VkComputePipelineCreateInfo *info, uint32_t word, uint32_t wanted)
{
    const VkSpecializationInfo *constants = info->stage.pSpecializationInfo;
    uint32_t value;
    if (constants == NULL || (word + 1) * sizeof(value) > constants->dataSize)
        return false;
    memcpy(&value, (const char *)constants->pData + word * sizeof(value), sizeof(value));
    return value == wanted;
}

static bool is_meant(const VkComputePipelineCreateInfo *info)
{
    return faults->pipeline_word == 0 ||
           has_word(info, faults->pipeline_word, faults->pipeline_value);
}

// The most words of specialisation constants of such a pipeline.
#define WORDS_MAX 64

// Creates a pipeline that computes wrongly: one of its specialisation constants has another value.
static VkResult create_wrong(VkDevice device, VkPipelineCache cache,
                             const VkComputePipelineCreateInfo *info,
                             const VkAllocationCallbacks *callbacks, VkPipeline *pipeline)
{
    VkComputePipelineCreateInfo wrong = *info;
    VkSpecializationInfo constants = *info->stage.pSpecializationInfo;
    uint32_t words[WORDS_MAX];
    if (constants.dataSize > sizeof(words))
        return VK_ERROR_UNKNOWN;
    memcpy(words, constants.pData, constants.dataSize);
    words[faults->wrong_word] = faults->wrong_instead;
    constants.pData = words;
    wrong.stage.pSpecializationInfo = &constants;
    return NEXT(CreateComputePipelines)(device, cache, 1, &wrong, callbacks, pipeline);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_pipelines(VkDevice device, VkPipelineCache cache,
                                                       uint32_t count,
                                                       const VkComputePipelineCreateInfo *infos,
                                                       const VkAllocationCallbacks *callbacks,
                                                       VkPipeline *pipelines)
{
    faults->pipelines += count;
    if (faults->pipeline != 0 && is_meant(&infos[0]))
        return (VkResult)faults->pipeline;
    if (count == 1 && faults->wrong_word != 0 &&
        has_word(&infos[0], faults->wrong_word, faults->wrong_value))
        return create_wrong(device, cache, infos, callbacks, pipelines);
    return NEXT(CreateComputePipelines)(device, cache, count, infos, callbacks, pipelines);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkDevice *device)
{
    VkLayerDeviceCreateInfo *link = (VkLayerDeviceCreateInfo *)(uintptr_t)info->pNext;
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO ||
           link->function != VK_LAYER_LINK_INFO)
        link = (VkLayerDeviceCreateInfo *)(uintptr_t)link->pNext;
    next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    PFN_vkGetInstanceProcAddr next = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    faults->devices++;
    struct timespec pause = {.tv_nsec = 1000000};
    while (faults->delay_device)
        nanosleep(&pause, NULL);
    if (faults->create_device != 0)
        return (VkResult)faults->create_device;
    PFN_vkCreateDevice create = (PFN_vkCreateDevice)next(instance, "vkCreateDevice");
    VkDeviceCreateInfo real = *info;
    // The application lists the queues of the simulated family last. The driver has no such family.
    if (copy_family != UINT32_MAX && real.queueCreateInfoCount > 1)
        real.queueCreateInfoCount--;
    VkResult result = create(physical, &real, callbacks, device);
    any_device = *device;
    return result;
}

static void map_faults(void)
{
    const char *path = getenv(VULKAN_FAULTS_ENV);
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *memory = mmap(NULL, sizeof(*faults), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory != MAP_FAILED)
        faults = memory;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *callbacks,
                                                      VkInstance *made)
{
    VkLayerInstanceCreateInfo *link = (VkLayerInstanceCreateInfo *)(uintptr_t)info->pNext;
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
           link->function != VK_LAYER_LINK_INFO)
        link = (VkLayerInstanceCreateInfo *)(uintptr_t)link->pNext;
    next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    map_faults();
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)next_instance(NULL, "vkCreateInstance");
    VkResult result = create(info, callbacks, made);
    instance = *made;
    next_memory_types = (PFN_vkGetPhysicalDeviceMemoryProperties)next_instance(
        instance, "vkGetPhysicalDeviceMemoryProperties");
    next_properties =
        (PFN_vkGetPhysicalDeviceProperties)next_instance(instance, "vkGetPhysicalDeviceProperties");
    next_families = (PFN_vkGetPhysicalDeviceQueueFamilyProperties)next_instance(
        instance, "vkGetPhysicalDeviceQueueFamilyProperties");
    return result;
}

// --- looking up the functions that this layer intercepts ---

#define HOOK(name, function)                                                                       \
    {                                                                                              \
        "vk" #name, (PFN_vkVoidFunction)(function)                                                 \
    }

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice device, const char *name);
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_entry(VkInstance asked, const char *name);

static const struct {
    const char *name;
    PFN_vkVoidFunction function;
} hooks[] = {
    HOOK(QueueSubmit, fault_submit),
    HOOK(WaitSemaphores, fault_wait),
    HOOK(GetSemaphoreCounterValue, fault_counter),
    HOOK(AllocateMemory, fault_allocate),
    HOOK(FreeMemory, free_memory),
    HOOK(GetBufferMemoryRequirements, buffer_needs),
    HOOK(GetPhysicalDeviceMemoryProperties, memory_types),
    HOOK(GetPhysicalDeviceProperties, fault_properties),
    HOOK(CreateComputePipelines, create_pipelines),
    HOOK(GetDeviceProcAddr, device_entry),
    HOOK(GetPhysicalDeviceQueueFamilyProperties, queue_families),
    HOOK(GetDeviceQueue, find_queue),
    HOOK(CreateCommandPool, create_pool),
    HOOK(CreateBuffer, create_buffer),
    HOOK(CreateDevice, create_device),
    HOOK(CreateInstance, create_instance),
    HOOK(GetInstanceProcAddr, instance_entry),
};

static PFN_vkVoidFunction find_hook(const char *name)
{
    for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++)
        if (strcmp(hooks[i].name, name) == 0)
            return hooks[i].function;
    return NULL;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_entry(VkDevice device, const char *name)
{
    PFN_vkVoidFunction hook = find_hook(name);
    return hook != NULL ? hook : next_device(device, name);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_entry(VkInstance asked, const char *name)
{
    PFN_vkVoidFunction hook = find_hook(name);
    return hook != NULL ? hook : next_instance(asked, name);
}

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *negotiate);

VK_LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *negotiate)
{
    negotiate->loaderLayerInterfaceVersion = 2;
    negotiate->pfnGetInstanceProcAddr = instance_entry;
    negotiate->pfnGetDeviceProcAddr = device_entry;
    negotiate->pfnGetPhysicalDeviceProcAddr = NULL;
    return VK_SUCCESS;
}
