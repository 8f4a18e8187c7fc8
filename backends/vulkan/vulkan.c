// SPDX-License-Identifier: Apache-2.0
// The Vulkan backend: finds GPUs, reads their properties when they are opened, and fills the
// backend's table of functions.
#include "backends/vulkan/vulkan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/jit/glsl.h"
#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/device/host_import.h"
#include "backends/vulkan/device/instance.h"
#include "backends/vulkan/device/memory.h"
#include "backends/vulkan/program/lower_step.h"
#include "backends/vulkan/program/program.h"
#include "backends/vulkan/program/shader_check.h"
#include "backends/vulkan/program/shader_race.h"

#define VULKAN_PRIORITY 300

// The number of runs that may be in progress on a GPU at the same time. A software device gets one,
// because it computes on the CPU and overlapping runs would not be faster.
#define GPU_SLOTS 2

// The speed, in multiply-adds per second, that is assumed before anything was measured. Even slow
// devices of each kind reach it.
#define GPU_RATE      UINT64_C(10000000000)
#define SOFTWARE_RATE UINT64_C(2000000000)
// llvmpipe ends the loops of an invocation after 65,535 iterations of all of them together, without
// an error (LP_MAX_TGSI_LOOP_ITERATIONS). lowering/loops.h says how it counts. The limit leaves
// some iterations to loops that the lowerings do not count (VK_FEW_ITERATIONS).
#define SOFTWARE_LOOPS_MAX 65000u

static enum inf_code vulkan_prepare(const struct inf_device_options *options, struct inf_error *err)
{
    return vk_api_prepare(options->vulkan_loader, options->vulkan_drivers, err);
}

static uint32_t vulkan_probe(void)
{
    struct vk_gpus gpus;
    vk_gpus_find(&gpus);
    return gpus.count;
}

static uint64_t local_bytes(const VkPhysicalDeviceMemoryProperties *memory)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < memory->memoryHeapCount; i++)
        if ((memory->memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0)
            bytes += memory->memoryHeaps[i].size;
    return bytes;
}

// Writes a UUID as 32 hexadecimal digits and a terminating zero.
static void write_uuid(char text[2 * VK_UUID_SIZE + 1], const uint8_t uuid[VK_UUID_SIZE])
{
    for (size_t i = 0; i < VK_UUID_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", uuid[i]);
}

// Writes the identity of the GPU and its driver: "DEVICE-UUID DRIVER-UUID VERSION". The driver UUID
// is different for each build of a driver.
static void write_identity(struct vk_gpu *gpu, const VkPhysicalDeviceIDProperties *ids)
{
    struct inf_device_info *info = &gpu->base.info;
    char device[2 * VK_UUID_SIZE + 1], driver[2 * VK_UUID_SIZE + 1];
    write_uuid(device, ids->deviceUUID);
    write_uuid(driver, ids->driverUUID);
    snprintf(info->identity, sizeof info->identity, "%s %s %08" PRIx32, device, driver,
             gpu->properties.driverVersion);
}

static void describe_gpu(struct vk_gpu *gpu, uint32_t index,
                         const struct inf_device_options *options)
{
    struct inf_device_info *info = &gpu->base.info;
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceIDProperties ids = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                        .pNext = &driver};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &ids};
    gpu->api->GetPhysicalDeviceProperties2(gpu->physical, &properties);
    write_identity(gpu, &ids);
    bool software = gpu->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    info->kind = software ? INF_DEVICE_SOFTWARE : INF_DEVICE_GPU;
    info->priority = VULKAN_PRIORITY - (int)index;
    info->slots = options->slots != 0 ? options->slots : (software ? 1 : GPU_SLOTS);
    info->threads = 1;
    info->discrete = gpu->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    info->host_memory = false;
    info->handoff_elements = options->handoff_elements;
    info->alignment = INF_MAX(gpu->properties.limits.minStorageBufferOffsetAlignment,
                              gpu->properties.limits.minTexelBufferOffsetAlignment);
    gpu->memory_bytes = options->memory_bytes != 0 ? options->memory_bytes : UINT64_MAX;
    info->memory_bytes = INF_MIN(local_bytes(&gpu->memory), gpu->memory_bytes);
    snprintf(info->name, sizeof(info->name), "vulkan%u", index);
    snprintf(info->backend, sizeof(info->backend), "vulkan");
    snprintf(info->description, sizeof(info->description), "%.48s, %.36s",
             gpu->properties.deviceName, driver.driverInfo);
}

// Finds out which small types shaders can store and compute with. `has_products`: the driver has
// VK_KHR_shader_integer_dot_product.
static void examine_small_types(struct vk_gpu *gpu, bool has_products)
{
    VkPhysicalDeviceShaderIntegerDotProductFeatures products = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    VkPhysicalDeviceShaderFloat16Int8Features arithmetic = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES,
        .pNext = has_products ? &products : NULL};
    VkPhysicalDevice8BitStorageFeatures bytes = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, .pNext = &arithmetic};
    VkPhysicalDevice16BitStorageFeatures halves = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, .pNext = &bytes};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &halves};
    gpu->api->GetPhysicalDeviceFeatures2(gpu->physical, &features);
    gpu->half_storage = halves.storageBuffer16BitAccess;
    gpu->half_arithmetic = arithmetic.shaderFloat16;
    gpu->byte_storage = bytes.storageBuffer8BitAccess;
    gpu->byte_products = products.shaderIntegerDotProduct;
}

static bool has_triples(const struct vk_gpu *gpu)
{
    static const VkFormat formats[] = {VK_FORMAT_R32G32B32_SFLOAT, VK_FORMAT_R16G16B16_SFLOAT};
    bool all = true;
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(formats); i++) {
        VkFormatProperties properties;
        gpu->api->GetPhysicalDeviceFormatProperties(gpu->physical, formats[i], &properties);
        all &= (properties.bufferFeatures & VK_FORMAT_FEATURE_UNIFORM_TEXEL_BUFFER_BIT) != 0;
    }
    return all;
}

// Reads the subgroup properties: the size, whether shaders may compute across a subgroup, and
// whether subgroups have eight invocations that may read each other's values.
static void examine_subgroups(struct vk_gpu *gpu)
{
    VkPhysicalDeviceSubgroupProperties subgroup = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroup};
    gpu->api->GetPhysicalDeviceProperties2(gpu->physical, &properties);
    if ((subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0)
        return;
    if ((subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0)
        gpu->subgroup_size = subgroup.subgroupSize;
    gpu->subgroup_tiles = gpu->texels && subgroup.subgroupSize == 8 &&
                          (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
}

static bool has_extension(const struct vk_gpu *gpu, const char *name)
{
    uint32_t count = 0;
    if (gpu->api->EnumerateDeviceExtensionProperties(gpu->physical, NULL, &count, NULL) !=
        VK_SUCCESS)
        return false;
    VkExtensionProperties *all = calloc((size_t)count + 1, sizeof(*all));
    bool found = false;
    if (all != NULL && gpu->api->EnumerateDeviceExtensionProperties(gpu->physical, NULL, &count,
                                                                    all) == VK_SUCCESS)
        for (uint32_t i = 0; i < count; i++)
            found |= strcmp(all[i].extensionName, name) == 0;
    free(all);
    return found;
}

// Lists the limits and features on which the choice of kernels depends.
static void list_features(struct vk_gpu *gpu)
{
    const VkPhysicalDeviceLimits *limits = &gpu->properties.limits;
    snprintf(
        gpu->base.info.features, sizeof gpu->base.info.features,
        "Vulkan %u.%u, bindings of %u MiB, groups of %u, %u KiB shared%s%s%s%s%s%s%s%s%s%s%s",
        VK_API_VERSION_MAJOR(gpu->properties.apiVersion),
        VK_API_VERSION_MINOR(gpu->properties.apiVersion), limits->maxStorageBufferRange >> 20,
        limits->maxComputeWorkGroupInvocations, limits->maxComputeSharedMemorySize >> 10,
        gpu->unified ? ", unified memory" : "",
        gpu->transfer_family != gpu->queue_family ? ", transfer queue" : "",
        gpu->half_storage ? ", 16-bit storage" : "",
        gpu->half_arithmetic ? ", 16-bit arithmetic" : "",
        gpu->matrices.method != VK_MATRICES_NONE ? ", matrices" : "",
        gpu->byte_storage ? ", 8-bit storage" : "", gpu->byte_products ? ", byte products" : "",
        gpu->import_alignment != 0 ? ", host import" : "", gpu->budget ? ", budget" : "",
        gpu->feedback ? ", cache feedback" : "", gpu->timestamp_bits != 0 ? ", timestamps" : "");
}

static enum inf_code examine_gpu(struct vk_gpu *gpu, uint32_t index,
                                 const struct inf_device_options *options, struct inf_error *err)
{
    struct vk_gpus gpus;
    vk_gpus_find(&gpus);
    if (index >= gpus.count)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "vulkan: there is no GPU %u", index);
    gpu->api = vk_instance_api();
    gpu->physical = gpus.devices[index];
    gpu->backoff_ns = VK_BACKOFF_NS;
    gpu->hang_ns = VK_HANG_NS;
    gpu->race_error_max = VK_RACE_ERROR_MAX;
    gpu->log = options->log;
    gpu->api->GetPhysicalDeviceProperties(gpu->physical, &gpu->properties);
    gpu->api->GetPhysicalDeviceMemoryProperties(gpu->physical, &gpu->memory);
    describe_gpu(gpu, index, options);
    if (gpu->base.info.kind == INF_DEVICE_SOFTWARE && !vk_may_execute_memory())
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "vulkan: '%.64s' compiles for the CPU, which this process may not "
                               "(MemoryDenyWriteExecute)",
                               gpu->properties.deviceName);
    if (!vk_find_queue_family(gpu->api, gpu->physical, &gpu->queue_family) ||
        !vk_choose_memory_types(gpu))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_NO_DEVICE,
                               "vulkan: '%.64s' has no queue or no memory to use",
                               gpu->properties.deviceName);
    gpu->transfer_family = vk_find_transfer_family(gpu->api, gpu->physical, gpu->queue_family);
    gpu->budget = has_extension(gpu, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    vk_host_import_probe(gpu, has_extension(gpu, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME));
    gpu->feedback = has_extension(gpu, VK_EXT_PIPELINE_CREATION_FEEDBACK_EXTENSION_NAME);
    examine_small_types(gpu, has_extension(gpu, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME));
    if (gpu->half_storage)
        gpu->base.info.precisions |= INF_PRECISION_BIT(INF_PRECISION_FP16);
    // On llvmpipe, read floats through texel views. llvmpipe loads a whole texel in a few
    // instructions, but checks the bounds of each number that a shader reads from a buffer.
    const VkPhysicalDeviceLimits *limits = &gpu->properties.limits;
    gpu->texels = gpu->base.info.kind == INF_DEVICE_SOFTWARE && gpu->half_storage &&
                  limits->maxTexelBufferElements >= limits->maxStorageBufferRange / sizeof(float);
    gpu->texel_triples = gpu->texels && has_triples(gpu);
    // Barriers are slow on llvmpipe, which has no memory that is faster when shared.
    atomic_init(&gpu->attention_off, gpu->base.info.kind == INF_DEVICE_SOFTWARE);
    examine_subgroups(gpu);
    const struct vk_matrix_extensions matrices = {
        .khr = has_extension(gpu, "VK_KHR_cooperative_matrix"),
        .subgroups = has_extension(gpu, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME),
        .nv = has_extension(gpu, VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME)};
    gpu->matrices = vk_find_matrices(gpu->api, gpu->physical, matrices);
    // The number of invocations in a work group: llvmpipe computes eight at the same time, GPUs 16
    // to 64.
    gpu->group_size = gpu->base.info.kind == INF_DEVICE_SOFTWARE ? 8 : 64;
    gpu->loops_max = gpu->base.info.kind == INF_DEVICE_SOFTWARE ? SOFTWARE_LOOPS_MAX : UINT32_MAX;
    atomic_init(&gpu->slice_cost,
                (gpu->base.info.kind == INF_DEVICE_SOFTWARE ? SOFTWARE_RATE : GPU_RATE) /
                    (INF_NS_PER_S / VK_SLICE_NS));
    VkQueueFamilyProperties families[16];
    uint32_t count = INF_ARRAY_LENGTH(families);
    gpu->api->GetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, families);
    gpu->timestamp_bits = families[gpu->queue_family].timestampValidBits;
    list_features(gpu);
    if (options->cache_directory != NULL) {
        gpu->cache_directory = strdup(options->cache_directory);
        if (gpu->cache_directory == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory");
    }
    return INF_OK;
}

static void vulkan_close(struct inf_device *base)
{
    struct vk_gpu *gpu = (struct vk_gpu *)base;
    vk_gpu_destroy_device(gpu);
    vk_fused_shaders_fini(&gpu->fused_shaders);
    vk_broken_variants_fini(gpu);
    vk_shader_checks_fini(&gpu->checks);
    vk_gpu_close_races(gpu);
    inf_cond_fini(&gpu->device_made);
    inf_mutex_fini(&gpu->device_mutex);
    free(gpu->cache_directory);
    free(gpu);
}

static enum inf_code vulkan_open(struct inf_device **out_device, uint32_t index,
                                 const struct inf_device_options *options, struct inf_error *err)
{
    struct vk_gpu *gpu = calloc(1, sizeof(*gpu));
    if (gpu == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "vulkan: no memory");
    enum inf_code code = examine_gpu(gpu, index, options, err);
    if (code != INF_OK) {
        free(gpu->cache_directory);
        free(gpu);
        return code;
    }
    inf_mutex_init(&gpu->device_mutex);
    inf_cond_init(&gpu->device_made);
    vk_broken_variants_init(gpu);
    // Software devices are checked on request only: Mesa tests them, and checks of them take long.
    bool trusted = gpu->base.info.kind == INF_DEVICE_SOFTWARE && !options->check_software;
    vk_shader_checks_init(gpu, trusted ? NULL : options->shader_oracle);
    vk_fused_shaders_init(&gpu->fused_shaders, inf_glsl_available());
    // On a software device the rule was measured, and compiling all candidates takes seconds.
    if (options->kernel_races && gpu->base.info.kind != INF_DEVICE_SOFTWARE)
        code = vk_gpu_open_races(gpu, err);
    if (code != INF_OK) {
        vulkan_close(&gpu->base);
        return code;
    }
    *out_device = &gpu->base;
    return INF_OK;
}

static enum inf_device_health vulkan_health(struct inf_device *base)
{
    return vk_gpu_health((struct vk_gpu *)base);
}

static bool vulkan_kernel_choices(struct inf_device *base, struct inf_kernel_choices *out_choices)
{
    return vk_gpu_kernel_choices((const struct vk_gpu *)base, out_choices);
}

const struct inf_backend inf_vulkan_backend = {
    .name = "vulkan",
    .priority = VULKAN_PRIORITY,
    .hardware = vk_hardware_present,
    .prepare = vulkan_prepare,
    .probe = vulkan_probe,
    .open = vulkan_open,
    .close = vulkan_close,
    .supports = vk_program_supports,
    .choose_kernels = vk_shader_race_segment,
    .fused_into = vk_fused_into,
    .buffer_alloc = vk_buffer_alloc,
    .buffer_import = vk_buffer_import,
    .buffer_copy = vk_buffer_copy,
    .buffer_lost = vk_buffer_lost,
    .buffer_free = vk_buffer_free,
    .compile = vk_program_compile_checked,
    .program_destroy = vk_program_destroy,
    .program_lost = vk_program_lost,
    .run = vk_program_run,
    .wait = vk_program_wait,
    .finish = vk_program_finish,
    .profile = vk_program_profile,
    .kernel_choices = vulkan_kernel_choices,
    .health = vulkan_health,
};
