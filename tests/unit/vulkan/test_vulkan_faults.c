// SPDX-License-Identifier: Apache-2.0
// Drivers that fail: the effect on the device, on the objects created on it, and on later runs.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "backends/base/clock.h"
#include "backends/vulkan/device/device_create.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"

static struct vulkan_faults *faults;

static void install_faults(void)
{
    faults = vulkan_faults_install();
    cr_assert_not_null(faults);
}

TestSuite(vulkan_faults, .init = install_faults, .timeout = 60);

// Opens a device that, after it is lost, is created again at once instead of after a pause
// (backoff).
static struct inf_device *open_impatient(const char *cache_directory)
{
    struct inf_device *device = vulkan_open(cache_directory);
    ((struct vk_gpu *)device)->backoff_ns = 1;
    return device;
}

static void make_negation(struct negation *negation, struct inf_device *device)
{
    struct inf_error err = {0};
    cr_assert_eq(negation_init(negation, device, 100, &err), INF_OK, "%s", err.text);
}

static void expect_works(struct inf_device *device)
{
    struct negation negation;
    struct inf_error err = {0};
    make_negation(&negation, device);
    cr_assert_eq(negation_run(&negation, device, 0, 7, false, &err), INF_OK, "%s", err.text);
    cr_assert(negation_holds(&negation, 7));
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    negation_fini(&negation);
}

static void expect_run_fails(struct inf_device *device, struct negation *negation,
                             enum inf_reason reason)
{
    struct inf_error err = {0};
    cr_assert_eq(negation_run(negation, device, 0, 1, false, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, reason, "%s", err.text);
    cr_assert_not_null(strstr(err.text, "vulkan0"), "'%s' names no device", err.text);
    cr_assert(inf_program_lost(negation->program));
}

// --- a driver that reports that the device was lost ---

Test(vulkan_faults, objects_of_a_lost_device_stay_lost)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation, early;
    struct inf_error err = {0};
    make_negation(&negation, device);
    cr_assert_eq(negation_run(&negation, device, 0, 7, false, &err), INF_OK, "%s", err.text);
    cr_assert_not(inf_program_lost(negation.program));
    ((struct vk_gpu *)device)->backoff_ns = 3600 * INF_NS_PER_S;
    faults->submit = VK_ERROR_DEVICE_LOST;
    expect_run_fails(device, &negation, INF_REASON_DEVICE_LOST);
    cr_assert_eq(inf_device_health(device), INF_DEVICE_LOST);
    faults->submit = 0;
    expect_run_fails(device, &negation, INF_REASON_DEVICE_LOST);
    // The lost device is created again only after an hour. Until then, new programs fail too.
    cr_assert_eq(negation_init(&early, device, 10, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_DEVICE_LOST);
    cr_assert_not_null(strstr(err.text, "created again in"), "%s", err.text);
    negation_fini(&early);
    cr_assert_eq(faults->devices, 1u);
    negation_fini(&negation);
    inf_device_unref(&device);
}

Test(vulkan_faults, a_lost_device_is_created_again)
{
    struct inf_device *device = open_impatient(NULL);
    struct negation old, new;
    struct inf_error err = {0};
    make_negation(&old, device);
    faults->wait = VK_ERROR_DEVICE_LOST;
    expect_run_fails(device, &old, INF_REASON_DEVICE_LOST);
    faults->wait = 0;
    expect_works(device);
    cr_assert_eq(faults->devices, 2u);
    expect_run_fails(device, &old, INF_REASON_DEVICE_LOST);
    // New programs refuse the buffers of the lost device, and old programs refuse new buffers.
    make_negation(&new, device);
    struct inf_buffer *fresh = new.x;
    new.x = old.x;
    cr_assert_eq(negation_run(&new, device, 0, 1, false, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_DEVICE_LOST);
    cr_assert_eq(inf_buffer_copy(fresh, 0, old.x, 0, 16, &err), INF_UNAVAILABLE);
    new.x = fresh;
    cr_assert_eq(negation_run(&new, device, 1, 2, false, &err), INF_OK, "%s", err.text);
    cr_assert(negation_holds(&new, 2));
    negation_fini(&old);
    negation_fini(&new);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 0u);
    inf_device_unref(&device);
}

Test(vulkan_faults, a_device_that_is_lost_repeatedly_is_quarantined)
{
    struct inf_device *device = open_impatient(NULL);
    struct negation negation;
    struct inf_error err = {0};
    for (int loss = 0; loss < VK_LOSSES_MAX; loss++) {
        cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
        make_negation(&negation, device);
        faults->submit = VK_ERROR_DEVICE_LOST;
        expect_run_fails(device, &negation, INF_REASON_DEVICE_LOST);
        faults->submit = 0;
        negation_fini(&negation);
        struct timespec pause = {.tv_nsec = 1000000}; // longer than any backoff in this test
        nanosleep(&pause, NULL);
    }
    cr_assert_eq(inf_device_health(device), INF_DEVICE_QUARANTINED);
    cr_assert_eq(negation_init(&negation, device, 10, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_DEVICE_LOST);
    cr_assert_not_null(strstr(err.text, "5 times"), "%s", err.text);
    negation_fini(&negation);
    cr_assert_eq(faults->devices, (uint32_t)VK_LOSSES_MAX);
    inf_device_unref(&device);
}

Test(vulkan_faults, a_driver_that_creates_no_device_counts_as_a_loss)
{
    struct inf_device *device = open_impatient(NULL);
    struct negation negation;
    struct inf_error err = {0};
    faults->create_device = VK_ERROR_INITIALIZATION_FAILED;
    cr_assert_eq(negation_init(&negation, device, 10, &err), INF_UNAVAILABLE);
    cr_assert_eq(err.reason, INF_REASON_DEVICE_LOST);
    cr_assert_not_null(strstr(err.text, "vkCreateDevice"), "%s", err.text);
    negation_fini(&negation);
    faults->create_device = 0;
    expect_works(device);
    inf_device_unref(&device);
}

static void acquire_and_release(void *argument)
{
    struct vk_device *device;
    if (vk_gpu_acquire(argument, &device, NULL) == INF_OK)
        vk_device_unref(&device);
}

Test(vulkan_faults, only_users_wait_for_a_device_that_is_being_created)
{
    struct inf_device *device = open_impatient(NULL);
    struct negation negation;
    struct inf_thread maker = {0};
    struct timespec pause = {.tv_nsec = 1000000};
    make_negation(&negation, device);
    faults->wait = VK_ERROR_DEVICE_LOST;
    expect_run_fails(device, &negation, INF_REASON_DEVICE_LOST);
    faults->wait = 0;
    faults->delay_device = true;
    cr_assert_eq(inf_thread_start(&maker, "maker", acquire_and_release, device, NULL), INF_OK);
    while (faults->devices < 2)
        nanosleep(&pause, NULL);
    // Given a ticket of the lost device, expect that the wait ends immediately, although no new
    // device exists yet.
    cr_assert_eq(inf_device_wait(device, (struct inf_ticket){1}, UINT64_MAX, NULL),
                 INF_UNAVAILABLE);
    faults->delay_device = false;
    expect_works(device); // waits until the device is created
    inf_thread_join(&maker);
    cr_assert_eq(faults->devices, 2u);
    negation_fini(&negation);
    inf_device_unref(&device);
}

// --- a driver whose submissions hang ---

static void expect_hangs(struct inf_device *device, struct negation *negation)
{
    make_negation(negation, device);
    ((struct vk_gpu *)device)->hang_ns = 50 * INF_NS_PER_MS;
    faults->hang = true;
    uint64_t begin_ns = inf_clock_ns();
    expect_run_fails(device, negation, INF_REASON_DEVICE_HUNG);
    cr_assert_geq(inf_clock_ns() - begin_ns, 50 * INF_NS_PER_MS);
}

Test(vulkan_faults, a_device_that_hangs_is_lost_and_created_again)
{
    struct inf_device *device = open_impatient(NULL);
    struct negation negation;
    expect_hangs(device, &negation);
    expect_run_fails(device, &negation, INF_REASON_DEVICE_LOST);
    faults->hang = false;
    ((struct vk_gpu *)device)->hang_ns = VK_HANG_NS;
    expect_works(device);
    negation_fini(&negation);
    inf_device_unref(&device);
}

Test(vulkan_faults, memory_of_a_hung_device_is_not_freed)
{
    struct inf_device *device = open_impatient(NULL);
    struct negation negation;
    expect_hangs(device, &negation);
    // The program is destroyed without waiting for the hung run. The memory of the run is not
    // freed, because the driver may still use it.
    negation_fini(&negation);
    cr_assert_eq(inf_device_memory(device).buffer_bytes, 0u);
    inf_device_unref(&device);
}

// --- a driver that is out of memory ---

Test(vulkan_faults, exhausted_memory_fails_the_allocation_only)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    faults->allocate = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_EXHAUSTED);
    cr_assert_eq(err.reason, INF_REASON_DEVICE_OOM);
    negation_fini(&negation);
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    faults->allocate = 0;
    expect_works(device);
    inf_device_unref(&device);
}

// --- a driver that cannot build some shader variants ---

static enum inf_code ask_support(struct inf_device *device, struct inf_error *err)
{
    struct negation plain = {0};
    struct inf_shape shape = INF_SHAPE(100);
    uint32_t node;
    cr_assert_eq(inf_graph_create(&plain.graph, err), INF_OK);
    cr_assert_eq(inf_graph_add_value(plain.graph, "x", INF_DTYPE_F32, &shape, &plain.x_value, err),
                 INF_OK);
    cr_assert_eq(inf_graph_add_node(plain.graph, INF_OP_UNARY, "negation", "", &plain.x_value, 1, 1,
                                    &node, err),
                 INF_OK);
    struct inf_value *y = &plain.graph->values[plain.graph->nodes[node].outputs[0]];
    y->dtype = INF_DTYPE_F32;
    y->shape = shape;
    enum inf_code code = inf_device_supports(device, plain.graph, node, err);
    negation_fini(&plain);
    return code;
}

Test(vulkan_faults, exhausted_memory_does_not_mark_a_variant_as_broken)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    faults->pipeline = VK_ERROR_OUT_OF_HOST_MEMORY;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_EXHAUSTED);
    cr_assert_not_null(strstr(err.text, "unary'"), "'%s'", err.text);
    negation_fini(&negation);
    faults->pipeline = 0;
    cr_assert_eq(ask_support(device, &err), INF_OK, "%s", err.text);
    expect_works(device);
    inf_device_unref(&device);
}

Test(vulkan_faults, a_variant_that_cannot_be_built_is_not_used_again)
{
    char folder[] = "/tmp/inf-vk-faults-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    struct inf_error err = {0};
    struct negation negation;
    struct inf_device *device = vulkan_open(folder);
    cr_assert_eq(ask_support(device, &err), INF_OK, "%s", err.text);
    faults->pipeline = VK_ERROR_UNKNOWN;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_UNSUPPORTED);
    cr_assert_not_null(strstr(err.text, "unary'"), "'%s'", err.text);
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    negation_fini(&negation);
    inf_device_unref(&device);
    // The next start reads the recorded failure and does not build the variant again.
    faults->pipeline = 0;
    uint32_t built = faults->pipelines;
    device = vulkan_open(folder);
    cr_assert_eq(ask_support(device, &err), INF_UNSUPPORTED);
    cr_assert_not_null(strstr(err.text, "cannot build"), "%s", err.text);
    cr_assert_eq(faults->pipelines, built);
    inf_device_unref(&device);
    // Without the record, or with another driver, the variant is built again.
    char command[64];
    snprintf(command, sizeof(command), "rm -r %s/*.broken", folder);
    cr_assert_eq(system(command), 0);
    device = vulkan_open(folder);
    expect_works(device);
    inf_device_unref(&device);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}
