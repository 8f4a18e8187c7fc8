// SPDX-License-Identifier: Apache-2.0
// Submits work to a logical device, waits for it, and detects the loss of the device.
//
// A device is *lost* if the driver reports a loss, or if a submission does not finish within
// VK_HANG_NS. In the second case it is also *hung*. A lost device stays lost. Every later call
// fails with DEVICE_LOST, and threads that wait return at the end of their current slice, so no
// thread stays blocked. After a delay the GPU gets another logical device (gpu.c, gpu_health.c).
//
// A hung device may still be writing to its memory. None of its memory is freed until its timeline
// has reached the last submitted value. If that never happens, the device is *abandoned*: its
// memory is kept until the process ends.
#include "backends/vulkan/device/device.h"

#include <inttypes.h>
#include <string.h>

#include "backends/base/clock.h"

// A wait is divided into slices of this length. After each slice the waiting thread checks whether
// another thread found the device lost, so that its request can move to another device.
#define SLICE_NS (20u * INF_NS_PER_MS)

static const char *result_name(VkResult result)
{
    switch (result) {
    case VK_NOT_READY:
        return "not ready";
    case VK_TIMEOUT:
        return "timeout";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
        return "out of host memory";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
        return "out of device memory";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
        return "out of pool memory";
    case VK_ERROR_INITIALIZATION_FAILED:
        return "initialisation failed";
    case VK_ERROR_DEVICE_LOST:
        return "device lost";
    case VK_ERROR_TOO_MANY_OBJECTS:
        return "too many objects";
    default:
        return "error";
    }
}

// Returns the name of the Vulkan function in the source text of a call, without "vk", and its
// length. Given "device->api.QueueSubmit(queue, ...)" or "vkQueueSubmit", returns "QueueSubmit".
static const char *call_name(const char *what, int *length)
{
    size_t whole = strcspn(what, "(");
    size_t start = whole;
    while (start > 0 && what[start - 1] != '.' && what[start - 1] != '>')
        start--;
    if (strncmp(what + start, "vk", 2) == 0)
        start += 2;
    *length = (int)(whole - start);
    return what + start;
}

// Marks the device lost. Returns true only for the first call, so that a loss is counted once.
static bool mark_lost(struct vk_device *device)
{
    if (atomic_exchange(&device->lost, true))
        return false;
    vk_gpu_note_loss(device->gpu, device->made_ns);
    return true;
}

enum inf_code vk_fail(struct vk_device *device, VkResult result, const char *what,
                      struct inf_error *err)
{
    const char *name = device->name;
    int length;
    const char *call = call_name(what, &length);
    if (result == VK_ERROR_DEVICE_LOST) {
        if (mark_lost(device))
            inf_log(device->gpu->log, INF_LOG_ERROR, "device lost device=%s call=vk%.*s", name,
                    length, call);
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                               "device '%s' is lost (vk%.*s)", name, length, call);
    }
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_DEVICE_OOM,
                               "device '%s': out of memory (vk%.*s)", name, length, call);
    if (result == VK_ERROR_OUT_OF_HOST_MEMORY)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory (vk%.*s)", name, length, call);
    return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BACKEND, "device '%s': vk%.*s: %s (%d)",
                           name, length, call, result_name(result), (int)result);
}

static enum inf_code check_lost(const struct vk_device *device, struct inf_error *err)
{
    if (vk_device_lost(device))
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST, "device '%s' is lost",
                               device->name);
    return INF_OK;
}

struct vk_device *vk_device_ref(struct vk_device *device)
{
    // Relaxed order is enough, because passing the pointer to another thread already orders the
    // data that it points to.
    atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
    return device;
}

bool vk_device_lost(const struct vk_device *device)
{
    return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

uint32_t vk_device_generation(const struct vk_device *device)
{
    return device->generation;
}

// Returns true if submissions of the queue are not finished.
static bool is_busy(const struct vk_device *device, const struct vk_queue *queue)
{
    uint64_t reached = 0;
    return queue->queue != VK_NULL_HANDLE &&
           (device->api.GetSemaphoreCounterValue(device->device, queue->timeline, &reached) !=
                VK_SUCCESS ||
            reached < queue->submitted);
}

bool vk_device_abandoned(const struct vk_device *device)
{
    return atomic_load_explicit(&device->hung, memory_order_relaxed) &&
           (is_busy(device, &device->runs) || is_busy(device, &device->transfers));
}

// --- submitting command buffers, and waiting for them ---

// Submits to a queue. After a transfer has finished, the next submission of a run waits for the
// timeline of transfers. Its value is reached already, but without this wait, shaders would not see
// what another queue has written. Later submissions to the same queue need no wait of their own.
static enum inf_code submit_to(struct vk_device *device, struct vk_queue *queue,
                               VkCommandBuffer commands, uint64_t *out_value, struct inf_error *err)
{
    INF_TRY(check_lost(device, err));
    const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    uint64_t transferred = queue == &device->runs ? atomic_load(&device->transferred) : 0;
    VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .signalSemaphoreValueCount = 1};
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .pNext = &timeline,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands,
                         .signalSemaphoreCount = 1,
                         .pSignalSemaphores = &queue->timeline};
    inf_mutex_lock(&queue->mutex);
    uint64_t value = queue->submitted + 1;
    timeline.pSignalSemaphoreValues = &value;
    if (transferred > queue->awaited) {
        timeline.waitSemaphoreValueCount = info.waitSemaphoreCount = 1;
        timeline.pWaitSemaphoreValues = &transferred;
        info.pWaitSemaphores = &device->transfers.timeline;
        info.pWaitDstStageMask = &stage;
    }
    VkResult result = device->api.QueueSubmit(queue->queue, 1, &info, VK_NULL_HANDLE);
    if (result == VK_SUCCESS) {
        queue->submitted = value;
        queue->awaited = INF_MAX(queue->awaited, transferred);
    }
    inf_mutex_unlock(&queue->mutex);
    if (result != VK_SUCCESS)
        return vk_fail(device, result, "vkQueueSubmit", err);
    *out_value = value;
    return INF_OK;
}

enum inf_code vk_device_submit(struct vk_device *device, VkCommandBuffer commands,
                               uint64_t *out_value, struct inf_error *err)
{
    return submit_to(device, &device->runs, commands, out_value, err);
}

// Returns the queue on which weights are transferred.
static struct vk_queue *find_transfer_queue(struct vk_device *device)
{
    return device->transfers.queue != VK_NULL_HANDLE ? &device->transfers : &device->runs;
}

enum inf_code vk_device_submit_transfer(struct vk_device *device, VkCommandBuffer commands,
                                        uint64_t *out_value, struct inf_error *err)
{
    return submit_to(device, find_transfer_queue(device), commands, out_value, err);
}

static enum inf_code fail_hung(struct vk_device *device, uint64_t value, struct inf_error *err)
{
    atomic_store(&device->hung, true);
    if (mark_lost(device))
        inf_log(device->gpu->log, INF_LOG_ERROR, "device hung device=%s value=%" PRIu64,
                device->name, value);
    return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_HUNG,
                           "device '%s' did not finish within %" PRIu64 " ms", device->name,
                           device->gpu->hang_ns / INF_NS_PER_MS);
}

static enum inf_code wait_for(struct vk_device *device, const struct vk_queue *queue,
                              uint64_t value, uint64_t timeout_ns,
                              struct inf_error *err) INF_MAY_BLOCK
{
    VkSemaphoreWaitInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &queue->timeline,
                                .pValues = &value};
    uint64_t begin_ns = inf_clock_ns();
    for (uint64_t waited_ns = 0;; waited_ns = inf_clock_ns() - begin_ns) {
        INF_TRY(check_lost(device, err));
        if (waited_ns >= device->gpu->hang_ns)
            return fail_hung(device, value, err);
        uint64_t left_ns = timeout_ns > waited_ns ? timeout_ns - waited_ns : 0;
        VkResult result =
            device->api.WaitSemaphores(device->device, &info, INF_MIN(left_ns, SLICE_NS));
        if (result == VK_SUCCESS)
            return INF_OK;
        if (result != VK_TIMEOUT)
            return vk_fail(device, result, "vkWaitSemaphores", err);
        if (left_ns <= SLICE_NS)
            return inf_fail(err, INF_DEADLINE, "device '%s' is not done yet", device->name);
    }
}

enum inf_code vk_device_wait(struct vk_device *device, uint64_t value, uint64_t timeout_ns,
                             struct inf_error *err)
{
    return wait_for(device, &device->runs, value, timeout_ns, err);
}

enum inf_code vk_device_wait_transfer(struct vk_device *device, uint64_t value,
                                      struct inf_error *err)
{
    const struct vk_queue *queue = find_transfer_queue(device);
    INF_TRY(wait_for(device, queue, value, UINT64_MAX, err));
    if (queue == &device->runs)
        return INF_OK;
    uint64_t known = atomic_load(&device->transferred);
    while (known < value && !atomic_compare_exchange_weak(&device->transferred, &known, value))
        continue;
    return INF_OK;
}
