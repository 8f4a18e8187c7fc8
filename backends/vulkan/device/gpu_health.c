// SPDX-License-Identifier: Apache-2.0
// Counts how often the device of a GPU was lost, and decides when the GPU may be used again.
#include <inttypes.h>

#include "backends/vulkan/device/gpu.h"

static bool is_quarantined(const struct vk_gpu *gpu)
{
    return atomic_load_explicit(&gpu->losses, memory_order_relaxed) >= VK_LOSSES_MAX;
}

void vk_gpu_note_loss(struct vk_gpu *gpu, uint64_t made_ns)
{
    uint64_t now_ns = inf_clock_ns();
    if (now_ns - made_ns >= VK_HEALED_NS)
        atomic_store_explicit(&gpu->losses, 0, memory_order_relaxed);
    uint32_t losses = atomic_fetch_add_explicit(&gpu->losses, 1, memory_order_relaxed) + 1;
    uint64_t wait_ns = gpu->backoff_ns << INF_MIN(losses - 1, 16u);
    atomic_store_explicit(&gpu->retry_at_ns, now_ns + wait_ns, memory_order_relaxed);
    if (is_quarantined(gpu))
        inf_log(gpu->log, INF_LOG_ERROR, "device quarantined device=%s losses=%" PRIu32,
                gpu->base.info.name, losses);
}

enum inf_device_health vk_gpu_health(const struct vk_gpu *gpu)
{
    if (is_quarantined(gpu))
        return INF_DEVICE_QUARANTINED;
    uint64_t retry_at_ns = atomic_load_explicit(&gpu->retry_at_ns, memory_order_relaxed);
    return retry_at_ns != 0 && inf_clock_ns() < retry_at_ns ? INF_DEVICE_LOST : INF_DEVICE_OK;
}
