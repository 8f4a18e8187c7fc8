// SPDX-License-Identifier: Apache-2.0
// Drivers that fail: the entry points below stand before the loader's and fail when told to.
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "tests/support/vulkan_kit.h"

// From the how-manieth call on an entry point fails; 0: never.
static struct {
    unsigned submit, allocate, pipeline, wait;
} fail_at, calls;

VKAPI_ATTR VkResult VKAPI_CALL vkQueueSubmit(VkQueue queue, uint32_t count,
                                             const VkSubmitInfo *submits, VkFence fence)
{
    PFN_vkQueueSubmit next = (PFN_vkQueueSubmit)dlsym(RTLD_NEXT, "vkQueueSubmit");
    if (fail_at.submit != 0 && ++calls.submit >= fail_at.submit)
        return VK_ERROR_DEVICE_LOST;
    return next(queue, count, submits, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo *info,
                                                uint64_t timeout)
{
    PFN_vkWaitSemaphores next = (PFN_vkWaitSemaphores)dlsym(RTLD_NEXT, "vkWaitSemaphores");
    // What was submitted is let finish: the driver here is not lost in truth.
    VkResult result = next(device, info, timeout);
    return fail_at.wait != 0 && ++calls.wait >= fail_at.wait ? VK_ERROR_DEVICE_LOST : result;
}

VKAPI_ATTR VkResult VKAPI_CALL vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                const VkAllocationCallbacks *callbacks,
                                                VkDeviceMemory *memory)
{
    PFN_vkAllocateMemory next = (PFN_vkAllocateMemory)dlsym(RTLD_NEXT, "vkAllocateMemory");
    if (fail_at.allocate != 0 && ++calls.allocate >= fail_at.allocate)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    return next(device, info, callbacks, memory);
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                        uint32_t count,
                                                        const VkComputePipelineCreateInfo *infos,
                                                        const VkAllocationCallbacks *callbacks,
                                                        VkPipeline *pipelines)
{
    PFN_vkCreateComputePipelines next =
        (PFN_vkCreateComputePipelines)dlsym(RTLD_NEXT, "vkCreateComputePipelines");
    if (fail_at.pipeline != 0 && ++calls.pipeline >= fail_at.pipeline)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    return next(device, cache, count, infos, callbacks, pipelines);
}

static void expect_lost(struct inf_device *device, struct negation *negation)
{
    for (int again = 0; again < 3; again++) {
        struct inf_error err = {0};
        cr_assert_eq(negation_run(negation, device, 0, 1, false, &err), INF_UNAVAILABLE);
        cr_assert_eq(err.reason, INF_REASON_DEVICE_LOST);
        cr_assert_not_null(strstr(err.text, "vulkan0"), "'%s' names no device", err.text);
        cr_assert_eq(inf_device_health(device), INF_DEVICE_LOST);
    }
    struct negation another;
    struct inf_error err = {0};
    cr_assert_eq(negation_init(&another, device, 10, &err), INF_UNAVAILABLE);
    negation_fini(&another);
}

Test(vulkan_faults, a_device_lost_at_a_submit_stays_lost)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    cr_assert_eq(negation_run(&negation, device, 0, 7, false, &err), INF_OK, "%s", err.text);
    fail_at.submit = 1;
    expect_lost(device, &negation);
    negation_fini(&negation);
    inf_device_unref(&device);
    // Opened anew it works.
    fail_at.submit = 0;
    device = vulkan_open(NULL);
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    cr_assert_eq(negation_run(&negation, device, 0, 7, false, &err), INF_OK, "%s", err.text);
    cr_assert(negation_holds(&negation, 7));
    negation_fini(&negation);
    inf_device_unref(&device);
}

Test(vulkan_faults, a_device_lost_during_a_wait_stays_lost)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    fail_at.wait = 1;
    expect_lost(device, &negation);
    negation_fini(&negation);
    inf_device_unref(&device);
}

Test(vulkan_faults, memory_that_runs_out_fails_the_allocation_only)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    fail_at.allocate = 1;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_EXHAUSTED);
    cr_assert_eq(err.reason, INF_REASON_DEVICE_OOM);
    negation_fini(&negation);
    fail_at.allocate = 0;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    cr_assert_eq(negation_run(&negation, device, 0, 7, false, &err), INF_OK, "%s", err.text);
    cr_assert(negation_holds(&negation, 7));
    negation_fini(&negation);
    cr_assert_eq(inf_device_health(device), INF_DEVICE_OK);
    inf_device_unref(&device);
}

Test(vulkan_faults, a_pipeline_that_cannot_be_made_fails_the_compilation_only)
{
    struct inf_device *device = vulkan_open(NULL);
    struct negation negation;
    struct inf_error err = {0};
    fail_at.pipeline = 1;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_EXHAUSTED);
    cr_assert_not_null(strstr(err.text, "shader 'unary'"), "'%s'", err.text);
    negation_fini(&negation);
    fail_at.pipeline = 0;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    cr_assert_eq(negation_run(&negation, device, 0, 7, false, &err), INF_OK, "%s", err.text);
    negation_fini(&negation);
    inf_device_unref(&device);
}
