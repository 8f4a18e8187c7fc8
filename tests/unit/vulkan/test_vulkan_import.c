// SPDX-License-Identifier: Apache-2.0
// Host memory that the device imports and reads in place.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/device/mapping.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"

#define ELEMENTS 1000
#define BYTES    ((size_t)64 << 10)

static struct vulkan_faults *faults;

static void install_hooks(void)
{
    faults = vulkan_faults_install();
    cr_assert_not_null(faults);
}

TestSuite(vulkan_import, .init = install_hooks, .timeout = 60);

// Maps shared memory in the same way as the daemon maps a client's memory region.
static float *map_region(void)
{
    int fd = memfd_create("region", 0);
    cr_assert_eq(ftruncate(fd, (off_t)BYTES), 0);
    float *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(memory, MAP_FAILED);
    close(fd);
    return memory;
}

static struct inf_mapping *make_mapping(void *host)
{
    struct inf_mapping *mapping = NULL;
    cr_assert_eq(inf_mapping_create(&mapping, host, BYTES, NULL), INF_OK);
    return mapping;
}

// Opens the first device. Skips the test if the device cannot import host memory.
static struct inf_device *open_importing(void)
{
    struct inf_device *device = vulkan_open(NULL);
    if (((struct vk_gpu *)device)->import_alignment == 0)
        cr_skip_test("the driver has no VK_EXT_external_memory_host");
    ((struct vk_gpu *)device)->backoff_ns = 1;
    return device;
}

// Runs on x = first, first + 1, ..., which are stored at `x`. The binding refers to the same
// memory.
static enum inf_code run_in_place(struct negation *negation, struct inf_device *device, float *x,
                                  const struct inf_binding *binding, float first)
{
    for (int64_t i = 0; i < negation->elements; i++)
        x[i] = first + (float)i;
    struct inf_binding bindings[2] = {0};
    bindings[negation->x_value] = *binding;
    bindings[negation->y_value].buffer = negation->y;
    struct inf_run run = {.bindings = bindings};
    struct inf_ticket ticket;
    INF_TRY(inf_program_run(negation->program, &run, &ticket, NULL));
    return inf_device_wait(device, ticket, UINT64_MAX, NULL);
}

Test(vulkan_import, reads_the_mapping_and_later_writes_to_it)
{
    struct inf_device *device = open_importing();
    struct negation negation;
    struct inf_binding binding;
    cr_assert_eq(negation_init(&negation, device, ELEMENTS, NULL), INF_OK);
    // Map, run and unmap one memory region after the other. A driver may give a new buffer the
    // handle of a destroyed buffer, and the run must not mistake one for the other.
    for (int round = 0; round < 4; round++) {
        float *region = map_region();
        struct inf_mapping *mapping = make_mapping(region);
        for (int place = 0; place < 3; place++) {
            float *x = region + place * 1024;
            size_t size = ELEMENTS * sizeof *x;
            cr_assert(inf_mapping_bind(mapping, device, x, size, &binding));
            cr_assert_eq(binding.host, x);
            float first = (float)(round * 100 + place);
            cr_assert_eq(run_in_place(&negation, device, x, &binding, first), INF_OK);
            cr_assert(negation_holds(&negation, first), "round %d, place %d", round, place);
            cr_assert_eq(run_in_place(&negation, device, x, &binding, first + 7), INF_OK);
            cr_assert(negation_holds(&negation, first + 7), "round %d, place %d", round, place);
        }
        inf_mapping_destroy(&mapping);
        munmap(region, BYTES);
    }
    // The imported memory uses no device memory. Only the buffers of the program are counted.
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 2 * ELEMENTS * sizeof(float));
    negation_fini(&negation);
    inf_device_unref(&device);
}

Test(vulkan_import, binds_only_aligned_parts_of_the_mapping)
{
    struct inf_device *device = open_importing();
    char *region = (char *)map_region();
    struct inf_mapping *mapping = make_mapping(region);
    struct inf_binding binding;
    cr_assert(inf_mapping_bind(mapping, device, region, BYTES, &binding));
    cr_assert(!inf_mapping_bind(mapping, device, region, BYTES + 1, &binding));
    cr_assert(!inf_mapping_bind(mapping, device, region + 64, BYTES, &binding));
    cr_assert(!inf_mapping_bind(mapping, device, region + 1, 64, &binding));
    cr_assert(!inf_mapping_bind(mapping, device, region - 64, 64, &binding));
    cr_assert(!inf_mapping_bind(mapping, device, &binding, 64, &binding));
    inf_mapping_destroy(&mapping);
    // A mapping that does not begin at a page boundary cannot be imported.
    cr_assert_eq(inf_mapping_create(&mapping, region + 64, 4096, NULL), INF_OK);
    cr_assert(!inf_mapping_bind(mapping, device, region + 64, 64, &binding));
    inf_mapping_destroy(&mapping);
    munmap(region, BYTES);
    inf_device_unref(&device);
}

Test(vulkan_import, asks_a_driver_that_refuses_only_once)
{
    struct inf_device *device = open_importing();
    float *region = map_region();
    struct inf_mapping *mapping = make_mapping(region);
    struct inf_binding binding;
    faults->allocate = VK_ERROR_INVALID_EXTERNAL_HANDLE;
    cr_assert(!inf_mapping_bind(mapping, device, region, 64, &binding));
    faults->allocate = 0;
    cr_assert(!inf_mapping_bind(mapping, device, region, 64, &binding));
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    inf_mapping_destroy(&mapping);
    munmap(region, BYTES);
    inf_device_unref(&device);
}

Test(vulkan_import, imports_again_after_a_device_was_created_again)
{
    struct inf_device *device = open_importing();
    float *region = map_region();
    struct inf_mapping *mapping = make_mapping(region);
    struct negation old, new;
    struct inf_binding binding;
    cr_assert_eq(negation_init(&old, device, ELEMENTS, NULL), INF_OK);
    cr_assert(inf_mapping_bind(mapping, device, region, ELEMENTS * sizeof *region, &binding));
    faults->wait = VK_ERROR_DEVICE_LOST;
    cr_assert_eq(run_in_place(&old, device, region, &binding, 1), INF_UNAVAILABLE);
    faults->wait = 0;
    cr_assert_eq(negation_init(&new, device, ELEMENTS, NULL), INF_OK);
    cr_assert(inf_mapping_bind(mapping, device, region, ELEMENTS * sizeof *region, &binding));
    cr_assert_eq(run_in_place(&new, device, region, &binding, 2), INF_OK);
    cr_assert(negation_holds(&new, 2));
    negation_fini(&old);
    negation_fini(&new);
    inf_mapping_destroy(&mapping);
    munmap(region, BYTES);
    cr_assert_eq(faults->allocations, 0);
    inf_device_unref(&device);
}
