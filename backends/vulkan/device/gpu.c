// SPDX-License-Identifier: Apache-2.0
// Acquires the logical device of a GPU. One thread creates the device without holding a lock, while
// other threads wait. A lost device is replaced when its backoff time is over.
#include "backends/vulkan/device/gpu.h"

#include <inttypes.h>

#include "backends/storage/race_results.h"
#include "backends/vulkan/device/device_create.h"

static enum inf_code fail_unavailable(const struct vk_gpu *gpu, struct inf_error *err)
{
    const char *name = gpu->base.info.name;
    uint32_t losses = atomic_load_explicit(&gpu->losses, memory_order_relaxed);
    uint64_t now_ns = inf_clock_ns();
    uint64_t retry_at_ns = atomic_load_explicit(&gpu->retry_at_ns, memory_order_relaxed);
    if (losses >= VK_LOSSES_MAX)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                               "device '%s' was lost %" PRIu32 " times in a row and is left alone",
                               name, losses);
    return inf_fail_reason(
        err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
        "device '%s' is lost; it is created again in %" PRIu64 " ms", name,
        retry_at_ns > now_ns ? (retry_at_ns - now_ns + INF_NS_PER_MS - 1) / INF_NS_PER_MS : 0);
}

// Creates the logical device that replaces `old`, and drops `old`. The caller must not hold a lock,
// because drivers are slow.
static enum inf_code make_device(struct vk_gpu *gpu, struct vk_device *old, uint32_t generation,
                                 struct vk_device **out_device, struct inf_error *err) INF_MAY_BLOCK
{
    // Frees the old device, unless programs or buffers still hold references.
    vk_device_unref(&old);
    uint64_t begin_ns = inf_clock_ns();
    struct inf_error why = {0};
    if (vk_device_create(out_device, gpu, generation, &why) != INF_OK) {
        vk_gpu_note_loss(gpu, begin_ns);
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DEVICE_LOST,
                               "device '%s' cannot be made: %.200s", gpu->base.info.name, why.text);
    }
    inf_log(gpu->log, generation == 0 ? INF_LOG_DEBUG : INF_LOG_WARNING,
            "device %s device=%s us=%" PRIu64, generation == 0 ? "started" : "created again",
            gpu->base.info.name, (inf_clock_ns() - begin_ns) / 1000);
    atomic_store_explicit(&gpu->retry_at_ns, 0, memory_order_relaxed);
    return INF_OK;
}

// Takes a reference to the current device, or claims the right to create the next one. In the
// second case *out_makes is true, and the caller must drop *out_old and then call publish_device().
// Waits while another thread creates the device.
static enum inf_code claim_device(struct vk_gpu *gpu, struct vk_device **out_device,
                                  struct vk_device **out_old, bool *out_makes,
                                  struct inf_error *err)
{
    enum inf_code code = INF_OK;
    inf_mutex_lock(&gpu->device_mutex);
    while (gpu->making)
        inf_cond_wait(&gpu->device_made, &gpu->device_mutex);
    *out_makes = gpu->device == NULL || vk_device_lost(gpu->device);
    if (!*out_makes) {
        *out_device = vk_device_ref(gpu->device);
    } else if (vk_gpu_health(gpu) != INF_DEVICE_OK) {
        *out_makes = false;
        code = fail_unavailable(gpu, err);
    } else {
        *out_old = gpu->device;
        gpu->device = NULL;
        gpu->making = true;
    }
    inf_mutex_unlock(&gpu->device_mutex);
    return code;
}

// Ends what claim_device() began: makes `device` the current device and wakes the waiting threads.
// `device` is NULL if it could not be created.
static void publish_device(struct vk_gpu *gpu, struct vk_device *device)
{
    inf_mutex_lock(&gpu->device_mutex);
    gpu->device = device;
    gpu->generation += device != NULL;
    gpu->making = false;
    inf_mutex_unlock(&gpu->device_mutex);
    inf_cond_broadcast(&gpu->device_made);
}

enum inf_code vk_gpu_acquire(struct vk_gpu *gpu, struct vk_device **out_device,
                             struct inf_error *err)
{
    struct vk_device *old = NULL, *made = NULL;
    bool makes;
    INF_TRY(claim_device(gpu, out_device, &old, &makes, err));
    if (!makes)
        return INF_OK;
    // Reading the generation without the lock is safe, because no other thread changes it while
    // this thread creates the device.
    enum inf_code code = make_device(gpu, old, gpu->generation, &made, err);
    if (code == INF_OK)
        *out_device = vk_device_ref(made);
    publish_device(gpu, made);
    return code;
}

struct vk_device *vk_gpu_find(struct vk_gpu *gpu, uint32_t generation)
{
    struct vk_device *found = NULL;
    inf_mutex_lock(&gpu->device_mutex);
    if (gpu->device != NULL && vk_device_generation(gpu->device) == generation)
        found = vk_device_ref(gpu->device);
    inf_mutex_unlock(&gpu->device_mutex);
    return found;
}

void vk_gpu_destroy_device(struct vk_gpu *gpu)
{
    vk_device_unref(&gpu->device);
}

enum inf_code vk_gpu_open_races(struct vk_gpu *gpu, struct inf_error *err)
{
    static const struct inf_race_file file = {"shaders.db", "inferd-shaders 1",
                                              "memory of shaders"};
    return inf_race_results_open(&gpu->races, gpu->cache_directory, &file, gpu->base.info.identity,
                                 gpu->log, err);
}

void vk_gpu_close_races(struct vk_gpu *gpu)
{
    inf_race_results_close(&gpu->races);
}

bool vk_gpu_kernel_choices(const struct vk_gpu *gpu, struct inf_kernel_choices *out_choices)
{
    if (gpu->races == NULL)
        return false;
    *out_choices = (struct inf_kernel_choices){
        .measured = inf_race_results_choices(gpu->races, INF_RACE_CHOICE_MEASURED),
        .known = inf_race_results_choices(gpu->races, INF_RACE_CHOICE_KNOWN),
        .rule = inf_race_results_choices(gpu->races, INF_RACE_CHOICE_RULE),
        .later = inf_race_results_choices(gpu->races, INF_RACE_CHOICE_LATER),
        .overturned = inf_race_results_overturned(gpu->races),
    };
    return true;
}
