// SPDX-License-Identifier: Apache-2.0
// Uploads the constants of a program when it runs, and evicts them while the program is idle.
// Packed constants, which are not in the graph, are read back to the host before they are evicted.
#include "backends/vulkan/device/weights.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backends/device/counts.h"
#include "backends/vulkan/device/transfer.h"

void vk_weights_init(struct vk_weights *weights, struct vk_device *device)
{
    *weights = (struct vk_weights){.device = device};
    inf_mutex_lock(&device->weights_mutex);
    weights->next = device->weights;
    device->weights = weights;
    inf_mutex_unlock(&device->weights_mutex);
}

static void unlink_weights(struct vk_device *device, const struct vk_weights *weights)
    INF_ATTR(requires_capability(device->weights_mutex))
{
    struct vk_weights **link = &device->weights;
    while (*link != weights)
        link = &(*link)->next;
    *link = weights->next;
}

// Frees the device copies of all constants. Returns how many bytes were freed.
static uint64_t free_spans(struct vk_weights *weights)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < weights->count; i++) {
        bytes += weights->constants[i].span.size;
        vk_span_free(weights->device, &weights->constants[i].span);
    }
    return bytes;
}

// Adds the size of the weights to the device's count of weight bytes in device memory, or subtracts
// it if `there` is false.
static void count_weights(const struct vk_weights *weights, bool there)
{
    struct inf_device *base = &weights->device->gpu->base;
    if (there)
        inf_device_count_weights(base, weights->bytes);
    else
        inf_device_uncount_weights(base, weights->bytes);
}

void vk_weights_fini(struct vk_weights *weights)
{
    struct vk_device *device = weights->device;
    if (device == NULL)
        return;
    inf_mutex_lock(&device->weights_mutex);
    while (weights->state == VK_WEIGHTS_MOVING)
        inf_cond_wait(&device->weights_moved, &device->weights_mutex);
    unlink_weights(device, weights);
    inf_mutex_unlock(&device->weights_mutex);
    if (weights->state == VK_WEIGHTS_THERE)
        count_weights(weights, false);
    (void)free_spans(weights);
    for (uint32_t i = 0; i < weights->count; i++)
        free(weights->constants[i].packed);
    free(weights->constants);
    *weights = (struct vk_weights){0};
}

uint32_t vk_weights_find(const struct vk_weights *weights, uint32_t value)
{
    for (uint32_t i = 0; i < weights->count; i++)
        if (weights->constants[i].value == value)
            return i;
    return VK_CONSTANT_NONE;
}

enum inf_code vk_weights_add(struct vk_weights *weights, uint32_t value, void *bytes,
                             size_t size_bytes, uint32_t *out_index, struct inf_error *err)
{
    void *own = value == INF_VALUE_NONE ? bytes : NULL;
    if (weights->count == weights->capacity) {
        uint32_t wanted = weights->capacity * 2 + 32;
        struct vk_constant *larger =
            reallocarray(weights->constants, wanted, sizeof(*weights->constants));
        if (larger == NULL) {
            free(own);
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "device '%s': no host memory for %u constants",
                                   weights->device->name, wanted);
        }
        weights->constants = larger;
        weights->capacity = wanted;
    }
    weights->constants[weights->count] = (struct vk_constant){
        .value = value, .size_bytes = size_bytes, .source = bytes, .packed = own};
    weights->bytes += vk_span_bytes(size_bytes);
    *out_index = weights->count++;
    return INF_OK;
}

// --- uploading the constants of a program ---

// Frees the host copies of packed constants, because they are now on the device.
static void free_host_copies(struct vk_weights *weights)
{
    for (uint32_t i = 0; i < weights->count; i++) {
        struct vk_constant *constant = &weights->constants[i];
        if (constant->packed == NULL)
            continue;
        free(constant->packed);
        constant->packed = NULL;
        constant->source = NULL;
    }
}

// Transfers all constants to the device, or back to the host if they were packed.
static enum inf_code transfer_constants(struct vk_weights *weights, bool down,
                                        struct inf_error *err)
{
    struct vk_device *device = weights->device;
    struct vk_transfer *transfers = calloc((size_t)weights->count + 1, sizeof(*transfers));
    uint32_t count = 0;
    if (transfers == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory to move %u constants", device->name,
                               weights->count);
    for (uint32_t i = 0; i < weights->count; i++) {
        const struct vk_constant *constant = &weights->constants[i];
        if (!down || constant->packed != NULL)
            transfers[count++] = (struct vk_transfer){
                .span = &constant->span,
                .bytes = down ? constant->packed : (void *)(uintptr_t)constant->source,
                .size = constant->size_bytes};
    }
    enum inf_code code = down ? vk_transfer_read(device, transfers, count, err)
                              : vk_transfer_write(device, transfers, count, err);
    free(transfers);
    return code;
}

static enum inf_code place_and_write(struct vk_weights *weights, struct inf_error *err)
{
    for (uint32_t i = 0; i < weights->count; i++)
        INF_TRY(vk_span_alloc(&weights->constants[i].span, weights->device,
                              weights->constants[i].size_bytes, VK_SPAN_WEIGHTS, err));
    return transfer_constants(weights, false, err);
}

// Uploads all constants. If one upload fails, no constant stays on the device.
static enum inf_code upload_weights(struct vk_weights *weights, struct inf_error *err)
{
    struct vk_device *device = weights->device;
    uint64_t bytes = 0;
    enum inf_code code = place_and_write(weights, err);
    if (code != INF_OK) {
        (void)free_spans(weights);
        return inf_error_prefix(err, code, "weights of %" PRIu64 " bytes", weights->bytes);
    }
    for (uint32_t i = 0; i < weights->count; i++)
        bytes += weights->constants[i].size_bytes;
    free_host_copies(weights);
    if (bytes == 0)
        return INF_OK;
    count_weights(weights, true);
    inf_device_add_count(&device->gpu->base, INF_COUNT_UPLOADS, 1);
    inf_device_add_count(&device->gpu->base, INF_COUNT_UPLOAD_BYTES, bytes);
    inf_log(device->gpu->log, INF_LOG_DEBUG, "weights uploaded device=%s bytes=%" PRIu64,
            device->name, bytes);
    return INF_OK;
}

enum inf_code vk_weights_acquire(struct vk_weights *weights, struct inf_error *err)
{
    struct vk_device *device = weights->device;
    inf_mutex_lock(&device->weights_mutex);
    while (weights->state == VK_WEIGHTS_MOVING)
        inf_cond_wait(&device->weights_moved, &device->weights_mutex);
    weights->users++;
    weights->used_at = ++device->weights_clock;
    bool moves = weights->state == VK_WEIGHTS_ABSENT;
    if (moves)
        weights->state = VK_WEIGHTS_MOVING;
    inf_mutex_unlock(&device->weights_mutex);
    if (!moves)
        return INF_OK;
    enum inf_code code = upload_weights(weights, err);
    inf_mutex_lock(&device->weights_mutex);
    weights->state = code == INF_OK ? VK_WEIGHTS_THERE : VK_WEIGHTS_ABSENT;
    if (code != INF_OK)
        weights->users--;
    inf_mutex_unlock(&device->weights_mutex);
    inf_cond_broadcast(&device->weights_moved);
    return code;
}

void vk_weights_release(struct vk_weights *weights, uint64_t submitted)
{
    struct vk_device *device = weights->device;
    inf_mutex_lock(&device->weights_mutex);
    assert(weights->users > 0);
    weights->users--;
    weights->submitted = INF_MAX(weights->submitted, submitted);
    inf_mutex_unlock(&device->weights_mutex);
}

// --- evicting the constants of idle programs ---

// Returns the weights to evict, those of the idle program that ran longest ago; NULL if no program
// is idle.
static struct vk_weights *choose_victim(struct vk_device *device, uint64_t reached)
    INF_ATTR(requires_capability(device->weights_mutex))
{
    struct vk_weights *oldest = NULL;
    for (struct vk_weights *weights = device->weights; weights != NULL; weights = weights->next)
        if (weights->state == VK_WEIGHTS_THERE && weights->users == 0 && weights->bytes > 0 &&
            weights->submitted <= reached && (oldest == NULL || weights->used_at < oldest->used_at))
            oldest = weights;
    return oldest;
}

// Reads packed constants, which are not in the graph, back to the host. If this fails, returns
// false, and the constants stay on the device.
static bool fetch_constants(struct vk_weights *weights)
{
    for (uint32_t i = 0; i < weights->count; i++) {
        struct vk_constant *constant = &weights->constants[i];
        if (constant->source != NULL)
            continue;
        constant->packed = malloc(INF_MAX(constant->size_bytes, (size_t)1));
        constant->source = constant->packed;
        if (constant->packed == NULL)
            return false;
    }
    return transfer_constants(weights, true, NULL) == INF_OK;
}

bool vk_weights_evict(struct vk_device *device)
{
    uint64_t reached = 0;
    if (vk_device_lost(device) ||
        device->api.GetSemaphoreCounterValue(device->device, device->runs.timeline, &reached) !=
            VK_SUCCESS)
        return false;
    inf_mutex_lock(&device->weights_mutex);
    struct vk_weights *weights = choose_victim(device, reached);
    if (weights != NULL)
        weights->state = VK_WEIGHTS_MOVING;
    inf_mutex_unlock(&device->weights_mutex);
    if (weights == NULL)
        return false;
    bool gone = fetch_constants(weights);
    if (gone) {
        uint64_t bytes = free_spans(weights);
        count_weights(weights, false);
        inf_device_add_count(&device->gpu->base, INF_COUNT_EVICTIONS, 1);
        inf_device_add_count(&device->gpu->base, INF_COUNT_EVICTED_BYTES, bytes);
        inf_log(device->gpu->log, INF_LOG_INFO, "weights evicted device=%s bytes=%" PRIu64,
                device->name, bytes);
    } else {
        free_host_copies(weights);
    }
    inf_mutex_lock(&device->weights_mutex);
    weights->state = gone ? VK_WEIGHTS_ABSENT : VK_WEIGHTS_THERE;
    inf_mutex_unlock(&device->weights_mutex);
    inf_cond_broadcast(&device->weights_moved);
    return gone;
}
