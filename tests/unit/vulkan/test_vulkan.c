// SPDX-License-Identifier: Apache-2.0
// The vulkan device: its description, its memory and its recordings. tests/conformance compares its
// results with the reference device `ref`.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/thread.h"
#include "backends/vulkan/device/device_create.h"
#include "backends/vulkan/device/instance.h"
#include "backends/vulkan/device/memory.h"
#include "tests/support/device/vulkan_kit.h"

Test(vulkan, describes_itself)
{
    struct inf_device *device = vulkan_open(NULL);
    const struct inf_device_info *info = inf_device_info(device);
    cr_assert_str_eq(info->name, "vulkan0");
    cr_assert_str_eq(info->backend, "vulkan");
    cr_assert_not(info->host_memory);
    cr_assert_eq(info->slots, 2u);
    cr_assert_leq(info->alignment, 256u);
    // llvmpipe is a software driver that computes on the CPU.
    bool software = strstr(info->description, "llvmpipe") != NULL;
    if (software)
        cr_assert_eq(info->kind, INF_DEVICE_SOFTWARE);
    cr_assert_gt(info->memory_bytes, 0u);
    cr_assert_eq(strncmp(info->features, "Vulkan 1.", 9), 0, "%s", info->features);
    cr_assert_eq(strstr(info->features, "16-bit storage") != NULL,
                 (info->precisions & INF_PRECISION_BIT(INF_PRECISION_FP16)) != 0);
    // The identity has the UUIDs of the device and of the driver, and the driver's version.
    cr_assert_eq(strlen(info->identity), 32u + 1 + 32 + 1 + 8, "%s", info->identity);
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    inf_device_unref(&device);
}

Test(vulkan, refuses_a_device_that_does_not_exist)
{
    struct inf_device *device = NULL;
    struct inf_error err = {0};
    uint32_t count = inf_vulkan_backend.probe();
    cr_assert_eq(inf_device_open(&device, &inf_vulkan_backend, count, NULL, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_NO_DEVICE);
}

#define MIB ((size_t)1 << 20)

Test(vulkan, respects_the_budget_and_reports_short_memory)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct inf_buffer *first = NULL, *second = NULL;
    struct inf_error err = {0};
    gpu->budget = false;
    for (uint32_t i = 0; i < gpu->memory.memoryHeapCount; i++)
        gpu->memory.memoryHeaps[i].size = 100 * MIB;
    cr_assert_eq(inf_buffer_alloc(&first, device, 60 * MIB, INF_BUFFER_ARENA, &err), INF_OK, "%s",
                 err.text);
    cr_expect(!atomic_load(&gpu->memory_short));
    cr_assert_eq(inf_buffer_alloc(&second, device, 60 * MIB, INF_BUFFER_ARENA, &err),
                 INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_DEVICE_OOM);
    cr_expect_not_null(strstr(err.text, "104857600"), "%s", err.text);
    cr_assert_eq(inf_buffer_alloc(&second, device, 35 * MIB, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_expect(atomic_load(&gpu->memory_short));
    inf_buffer_free(&first);
    inf_buffer_free(&second);
    // Freed memory can be allocated again. The shortage flag is cleared, so the next shortage is
    // reported.
    cr_assert_eq(inf_buffer_alloc(&first, device, 40 * MIB, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_expect(!atomic_load(&gpu->memory_short));
    inf_buffer_free(&first);
    inf_device_unref(&device);
}

Test(vulkan, asks_for_full_subgroups_for_all_shaders_with_khr_matrices)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < INF_SHADER_COUNT; i++) {
        const struct vk_variant variant = {.shader = i};
        const char *name = inf_shaders[i].name;
        bool has_matrices = strstr(name, "_khr") != NULL;
        cr_expect_eq(vk_variant_needs_full_subgroups(&variant), has_matrices, "%s", name);
        count += has_matrices;
    }
    cr_expect_eq(count, 2);
}

#define LOCAL   VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE (VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
#define CACHED  (VISIBLE | VK_MEMORY_PROPERTY_HOST_CACHED_BIT)

// Makes up a GPU with 8 GB of its own memory, of which the host sees `bar_mib` MiB, and with 16 GB
// of host memory.
static struct vk_gpu make_up_gpu(VkPhysicalDeviceType type, uint64_t bar_mib)
{
    const uint64_t mib = 1 << 20;
    bool whole = bar_mib == 8192;
    return (struct vk_gpu){
        .properties.deviceType = type,
        .memory = {.memoryTypeCount = 4,
                   .memoryTypes =
                       {{LOCAL, 0}, {VISIBLE, 1}, {CACHED, 1}, {LOCAL | VISIBLE, whole ? 0 : 2}},
                   .memoryHeapCount = whole ? 2 : 3,
                   .memoryHeaps = {{8192 * mib, 0}, {16384 * mib, 0}, {bar_mib * mib, 0}}}};
}

Test(vulkan, writes_weights_in_place_if_the_host_sees_all_memory)
{
    struct vk_gpu resizable = make_up_gpu(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 8192);
    cr_assert(vk_choose_memory_types(&resizable));
    cr_expect_eq(resizable.weights_type, 3);
    cr_expect_eq(resizable.local_type, 0);
    cr_expect_eq(resizable.host_type, 2);
    cr_expect_not(resizable.unified);
    struct vk_gpu small = make_up_gpu(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 256);
    cr_assert(vk_choose_memory_types(&small));
    cr_expect_eq(small.weights_type, 0);
    cr_expect_eq(small.local_type, 0);
    struct vk_gpu integrated = make_up_gpu(VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, 8192);
    cr_assert(vk_choose_memory_types(&integrated));
    cr_expect(integrated.unified);
    cr_expect_eq(integrated.weights_type, 3);
    cr_expect_eq(integrated.local_type, 3);
    struct vk_gpu none = make_up_gpu(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 256);
    none.memory.memoryTypeCount = 1;
    cr_expect_not(vk_choose_memory_types(&none));
    none.memory.memoryTypes[0].propertyFlags = VISIBLE;
    cr_assert(vk_choose_memory_types(&none));
    cr_expect_eq(none.weights_type, 0);
}

// A made-up driver, which lets storage buffers lie only in some memory types.
struct driver {
    uint32_t allowed; // bit i is set: storage buffers may lie in memory type i
    uint32_t type;    // of the last allocation
    int buffers;      // number of buffers that exist
    char mapped;      // what the host sees of mapped memory
};

static VkResult create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                              const VkAllocationCallbacks *callbacks, VkBuffer *out_buffer)
{
    (void)info;
    (void)callbacks;
    (void)out_buffer;
    ((struct driver *)device)->buffers++;
    return VK_SUCCESS;
}

static void destroy_buffer(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks *callbacks)
{
    (void)buffer;
    (void)callbacks;
    ((struct driver *)device)->buffers--;
}

static void report_requirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements *needs)
{
    (void)buffer;
    *needs =
        (VkMemoryRequirements){.size = 4096, .memoryTypeBits = ((struct driver *)device)->allowed};
}

static VkResult allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                const VkAllocationCallbacks *callbacks, VkDeviceMemory *out_memory)
{
    (void)callbacks;
    (void)out_memory;
    ((struct driver *)device)->type = info->memoryTypeIndex;
    return VK_SUCCESS;
}

static void free_memory(VkDevice device, VkDeviceMemory memory,
                        const VkAllocationCallbacks *callbacks)
{
    (void)device;
    (void)memory;
    (void)callbacks;
}

static VkResult bind_memory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory,
                            VkDeviceSize offset)
{
    (void)device;
    (void)buffer;
    (void)memory;
    (void)offset;
    return VK_SUCCESS;
}

static VkResult map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                           VkDeviceSize size, VkMemoryMapFlags flags, void **out_host)
{
    (void)memory;
    (void)offset;
    (void)size;
    (void)flags;
    *out_host = &((struct driver *)device)->mapped;
    return VK_SUCCESS;
}

static bool evict_nothing(struct vk_device *device)
{
    (void)device;
    return false;
}

// Allocates and frees a span on a made-up GPU with resizable BAR. Its driver lets storage buffers
// lie in the memory types of `allowed`. Sets *out_type to the memory type of the last allocation,
// and *out_seen to true if the host sees the span.
static enum inf_code place_span(uint32_t allowed, enum vk_span_use use, uint32_t *out_type,
                                bool *out_seen)
{
    struct vk_gpu gpu = make_up_gpu(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 8192);
    struct driver driver = {.allowed = allowed};
    struct vk_device device = {.gpu = &gpu,
                               .name = "made up",
                               .device = (VkDevice)&driver,
                               .evict = evict_nothing,
                               .api = {.CreateBuffer = create_buffer,
                                       .DestroyBuffer = destroy_buffer,
                                       .GetBufferMemoryRequirements = report_requirements,
                                       .AllocateMemory = allocate_memory,
                                       .FreeMemory = free_memory,
                                       .BindBufferMemory = bind_memory,
                                       .MapMemory = map_memory}};
    struct vk_span span = {0};
    gpu.memory_bytes = UINT64_MAX;
    cr_assert(vk_choose_memory_types(&gpu));
    inf_mutex_init(&device.memory_mutex);
    enum inf_code code = vk_span_alloc(&span, &device, 100, use, NULL);
    *out_type = driver.type;
    *out_seen = span.host != NULL;
    vk_span_free(&device, &span);
    cr_expect_eq(driver.buffers, 0);
    cr_expect_eq(device.slab_bytes, 0);
    inf_mutex_fini(&device.memory_mutex);
    return code;
}

#define TYPE(i) (UINT32_C(1) << (i))

Test(vulkan, places_weights_in_local_memory_if_the_driver_refuses_memory_that_the_host_sees)
{
    uint32_t type;
    bool seen;
    cr_assert_eq(place_span(TYPE(0) | TYPE(2) | TYPE(3), VK_SPAN_WEIGHTS, &type, &seen), INF_OK);
    cr_expect_eq(type, 3);
    cr_expect(seen);
    cr_assert_eq(place_span(TYPE(0) | TYPE(2), VK_SPAN_WEIGHTS, &type, &seen), INF_OK);
    cr_expect_eq(type, 0);
    cr_expect_not(seen);
    cr_expect_eq(place_span(TYPE(2), VK_SPAN_WEIGHTS, &type, &seen), INF_UNSUPPORTED);
    // Arenas, and buffers that the host reads and writes, have no other memory type.
    cr_expect_eq(place_span(TYPE(2) | TYPE(3), VK_SPAN_ARENA, &type, &seen), INF_UNSUPPORTED);
    cr_expect_eq(place_span(TYPE(0) | TYPE(3), VK_SPAN_HOST, &type, &seen), INF_UNSUPPORTED);
}

Test(vulkan, detects_if_memory_may_be_executable)
{
    cr_assert(vk_may_execute_memory());
}

// --- allocating device memory ---

Test(vulkan, copies_between_memory_of_any_kind)
{
    struct inf_device *device = vulkan_open(NULL);
    struct inf_buffer *arena, *staging;
    struct inf_error err = {0};
    cr_assert_eq(inf_buffer_alloc(&arena, device, 1000, INF_BUFFER_ARENA, &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(inf_buffer_alloc(&staging, device, 1000, INF_BUFFER_STAGING, &err), INF_OK, "%s",
                 err.text);
    cr_assert_null(inf_buffer_host(arena));
    unsigned char *bytes = inf_buffer_host(staging);
    for (size_t i = 0; i < 1000; i++)
        bytes[i] = (unsigned char)(i * 7);
    cr_assert_eq(inf_buffer_copy(arena, 13, staging, 1, 987, &err), INF_OK, "%s", err.text);
    memset(bytes, 0, 1000);
    cr_assert_eq(inf_buffer_copy(staging, 1, arena, 13, 987, &err), INF_OK, "%s", err.text);
    cr_assert_eq(bytes[0], 0);
    cr_assert_eq(bytes[988], 0);
    for (size_t i = 1; i < 988; i++)
        cr_assert_eq(bytes[i], (unsigned char)(i * 7), "byte %zu", i);
    cr_assert_eq(inf_buffer_copy(staging, 1, arena, 14, 987, &err), INF_RANGE);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 2000u);
    inf_buffer_free(&arena);
    inf_buffer_free(&staging);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 0u);
    inf_device_unref(&device);
}

Test(vulkan, refuses_more_memory_than_there_can_be)
{
    struct inf_device *device = vulkan_open(NULL);
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 300, SIZE_MAX / 2, (size_t)1 << 50};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes); i++) {
        struct inf_buffer *buffer = NULL;
        struct inf_error err = {0};
        cr_assert_neq(inf_buffer_alloc(&buffer, device, sizes[i], INF_BUFFER_ARENA, &err), INF_OK);
        cr_assert_null(buffer);
        cr_assert_gt(strlen(err.text), 0u);
    }
    inf_device_unref(&device);
}

#define SPANS 300

static bool spans_meet(const struct vk_span *a, const struct vk_span *b)
{
    return a->slab == b->slab && a->slab != NULL && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

Test(vulkan, allocates_spans_that_do_not_overlap_and_frees_slabs)
{
    struct inf_device *base = vulkan_open(NULL);
    struct vk_device *device;
    cr_assert_eq(vk_gpu_acquire((struct vk_gpu *)base, &device, NULL), INF_OK);
    struct vk_span spans[SPANS] = {0};
    uint32_t seed = 1;
    for (int step = 0; step < 4000; step++) {
        seed = seed * 1664525u + 1013904223u;
        struct vk_span *span = &spans[seed >> 16 & 0xff];
        if (span->slab != NULL) {
            vk_span_free(device, span);
            cr_assert_null(span->slab);
            continue;
        }
        // Most sizes are small. Some are larger than a slab.
        size_t size = seed % 97 == 0 ? (size_t)20 << 20 : seed % 200000;
        struct inf_error err = {0};
        cr_assert_eq(vk_span_alloc(span, device, size, seed % 2 == 0, &err), INF_OK, "%s",
                     err.text);
        cr_assert_geq(span->size, size + INF_BLOB_SLACK_BYTES);
        cr_assert_eq(span->offset % VK_SPAN_ALIGNMENT, 0u);
        for (int i = 0; i < SPANS; i++)
            cr_assert(&spans[i] == span || !spans_meet(&spans[i], span));
    }
    for (int i = 0; i < SPANS; i++)
        vk_span_free(device, &spans[i]);
    cr_assert_null(device->slabs, "slabs are left though nothing is in use");
    vk_device_unref(&device);
    inf_device_unref(&base);
}

// --- compiling and running programs ---

Test(vulkan, replays_with_new_values_and_new_bindings)
{
    struct inf_device *device = vulkan_open(NULL);
    const int64_t sizes[] = {1, 3, 4, 5, 8, 1021, 300007};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes); i++) {
        struct negation negation;
        struct inf_error err = {0};
        cr_assert_eq(negation_init(&negation, device, sizes[i], &err), INF_OK, "%s", err.text);
        for (uint32_t run = 0; run < 4; run++) {
            float first = (float)run * 10;
            cr_assert_eq(negation_run(&negation, device, run % 2, first, false, &err), INF_OK, "%s",
                         err.text);
            cr_assert(negation_holds(&negation, first), "%lld elements, run %u",
                      (long long)sizes[i], run);
        }
        inf_buffer_free(&negation.x);
        cr_assert_eq(inf_buffer_alloc(&negation.x, device, (size_t)sizes[i] * 4 + 4096,
                                      INF_BUFFER_STAGING, &err),
                     INF_OK);
        cr_assert_eq(negation_run(&negation, device, 0, 5, false, &err), INF_OK, "%s", err.text);
        cr_assert(negation_holds(&negation, 5));
        negation_fini(&negation);
    }
    inf_device_unref(&device);
}

Test(vulkan, times_the_steps_of_a_profiled_run)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    struct inf_step_profile steps[4];
    cr_assert_eq(negation_init(&negation, device, 100000, &err), INF_OK, "%s", err.text);
    cr_assert_eq(negation_run(&negation, device, 0, 1, false, &err), INF_OK);
    cr_assert_eq(inf_program_profile(negation.program, 0, steps, 4), 0u);
    cr_assert_eq(negation_run(&negation, device, 0, 1, true, &err), INF_OK);
    cr_assert_eq(inf_program_profile(negation.program, 0, steps, 4), 1u);
    cr_assert_eq(steps[0].node, 0u);
    cr_assert_gt(steps[0].time_ns, 0u);
    cr_assert_not_null(strstr(steps[0].kernel, "unary"), "%s", steps[0].kernel);
    negation_fini(&negation);
    inf_device_unref(&device);
}

Test(vulkan, refuses_bindings_outside_its_memory)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    float host[8] = {0};
    struct inf_ticket ticket;
    cr_assert_eq(negation_init(&negation, device, 1000, &err), INF_OK, "%s", err.text);
    struct inf_binding bindings[2] = {{.host = host}, {.host = host}};
    struct inf_run run = {.bindings = bindings};
    cr_assert_eq(inf_program_run(negation.program, &run, &ticket, &err), INF_INVALID);
    bindings[negation.x_value] = (struct inf_binding){.buffer = negation.x, .offset = 1 << 20};
    bindings[negation.y_value] = (struct inf_binding){.buffer = negation.y};
    cr_assert_eq(inf_program_run(negation.program, &run, &ticket, &err), INF_RANGE);
    atomic_bool cancelled = true;
    run.cancelled = &cancelled;
    cr_assert_eq(inf_program_run(negation.program, &run, &ticket, &err), INF_CANCELLED);
    cr_assert_eq(negation_run(&negation, device, 0, 2, false, &err), INF_OK, "%s", err.text);
    cr_assert(negation_holds(&negation, 2));
    negation_fini(&negation);
    inf_device_unref(&device);
}

// --- compiling and running in many threads at once ---

struct worker {
    struct inf_thread thread;
    struct inf_device *device;
    float first;
    bool ok;
};

static void run_thread(void *argument)
{
    struct worker *worker = argument;
    worker->ok = true;
    for (int64_t i = 0; i < 10 && worker->ok; i++) {
        struct negation negation;
        struct inf_error err = {0};
        worker->ok =
            negation_init(&negation, worker->device, 100 + i, &err) == INF_OK &&
            negation_run(&negation, worker->device, 0, worker->first, false, &err) == INF_OK &&
            negation_holds(&negation, worker->first);
        negation_fini(&negation);
    }
}

Test(vulkan, compiles_and_runs_on_many_threads_at_once)
{
    struct inf_device *device = vulkan_open(NULL);
    struct worker workers[4];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(workers); i++) {
        workers[i] = (struct worker){.device = device, .first = (float)i * 1000};
        cr_assert_eq(inf_thread_start(&workers[i].thread, "worker", run_thread, &workers[i], NULL),
                     INF_OK);
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(workers); i++) {
        inf_thread_join(&workers[i].thread);
        cr_assert(workers[i].ok, "worker %zu", i);
    }
    inf_device_unref(&device);
}
