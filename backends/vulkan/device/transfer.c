// SPDX-License-Identifier: Apache-2.0
// Copies bytes between host memory and spans. If the host cannot see the spans, the bytes go
// through a staging buffer, piece by piece.
#include "backends/vulkan/device/transfer.h"

#include <string.h>

// The size of the staging buffer.
#define PIECE_BYTES ((size_t)4 << 20)
// The most copies in one submission.
#define COPIES_MAX 64u

// --- recording and running copies between two buffers ---

struct copy {
    VkBuffer to, from;
    VkBufferCopy region;
    // Host address of these bytes. A write copies from here to the staging buffer before the GPU
    // copy; a read copies from the staging buffer to here after it.
    void *bytes;
};

static enum inf_code record_copies(struct vk_device *device, VkCommandBuffer commands,
                                   const struct copy *copies, uint32_t count, struct inf_error *err)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VK_TRY(device, device->api.BeginCommandBuffer(commands, &begin), err);
    for (uint32_t i = 0; i < count; i++)
        device->api.CmdCopyBuffer(commands, copies[i].from, copies[i].to, 1, &copies[i].region);
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask =
                                   VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_HOST_READ_BIT};
    device->api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                   VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                       VK_PIPELINE_STAGE_HOST_BIT,
                                   0, 1, &barrier, 0, NULL, 0, NULL);
    VK_TRY(device, device->api.EndCommandBuffer(commands), err);
    return INF_OK;
}

// Each call creates its own command pool, because only one thread at a time may use a pool.
static enum inf_code run_copies(struct vk_device *device, const struct copy *copies, uint32_t count,
                                struct inf_error *err)
{
    VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                         .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                         .queueFamilyIndex = device->gpu->queue_family};
    VkCommandPool pool;
    VK_TRY(device, device->api.CreateCommandPool(device->device, &pool_info, NULL, &pool), err);
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    VkCommandBuffer commands;
    VkResult result = device->api.AllocateCommandBuffers(device->device, &info, &commands);
    enum inf_code code = result == VK_SUCCESS
                             ? record_copies(device, commands, copies, count, err)
                             : vk_fail(device, result, "vkAllocateCommandBuffers", err);
    uint64_t ticket;
    if (code == INF_OK)
        code = vk_device_submit(device, commands, &ticket, err);
    if (code == INF_OK)
        code = vk_device_wait(device, ticket, UINT64_MAX, err);
    device->api.DestroyCommandPool(device->device, pool, NULL);
    return code;
}

enum inf_code vk_span_copy(struct vk_device *device, const VkBufferCopy *region, VkBuffer to,
                           VkBuffer from, struct inf_error *err)
{
    const struct copy copy = {.to = to, .from = from, .region = *region};
    return run_copies(device, &copy, 1, err);
}

// --- transfers in pieces through the staging buffer ---

// How far a list of transfers has been planned.
struct progress {
    const struct vk_transfer *transfers;
    uint32_t count;
    uint32_t index; // the first transfer that is not completely planned
    size_t offset;  // bytes of transfer `index` that are already planned
};

// Plans the copies for the next piece (one filling of the staging buffer). Each copy is a part of a
// transfer; the copies follow each other in the staging buffer. Returns the number of copies.
static uint32_t plan_piece(struct progress *progress, const struct vk_span *piece, bool down,
                           struct copy *copies)
{
    uint32_t count = 0;
    size_t used = 0;
    while (progress->index < progress->count && used < PIECE_BYTES && count < COPIES_MAX) {
        const struct vk_transfer *transfer = &progress->transfers[progress->index];
        size_t size = INF_MIN(transfer->size - progress->offset, PIECE_BYTES - used);
        VkDeviceSize near = piece->offset + used, far = transfer->span->offset + progress->offset;
        if (size > 0)
            copies[count++] = (struct copy){.to = down ? piece->buffer : transfer->span->buffer,
                                            .from = down ? transfer->span->buffer : piece->buffer,
                                            .region = {.srcOffset = down ? far : near,
                                                       .dstOffset = down ? near : far,
                                                       .size = size},
                                            .bytes = (char *)transfer->bytes + progress->offset};
        used += size;
        progress->offset += size;
        if (progress->offset == transfer->size) {
            progress->index++;
            progress->offset = 0;
        }
    }
    return count;
}

// Copies bytes between host memory and mapped device memory: from the device if `down` is true,
// otherwise to the device.
static void copy_bytes(void *bytes, void *seen, size_t size, bool down)
{
    if (size > 0)
        memcpy(down ? bytes : seen, down ? seen : bytes, size);
}

// Copies the bytes of all planned copies between host memory and the staging buffer.
static void copy_piece(const struct vk_span *piece, const struct copy *copies, uint32_t count,
                       bool down)
{
    char *seen = piece->host;
    for (uint32_t i = 0; i < count; seen += copies[i++].region.size)
        copy_bytes(copies[i].bytes, seen, (size_t)copies[i].region.size, down);
}

static enum inf_code move_pieces(struct vk_device *device, struct progress *progress, bool down,
                                 struct inf_error *err)
{
    struct copy copies[COPIES_MAX];
    struct vk_span piece = {0};
    size_t total = 0;
    for (uint32_t i = 0; i < progress->count; i++)
        total += INF_MIN(progress->transfers[i].size, PIECE_BYTES);
    if (total == 0)
        return INF_OK;
    INF_TRY(vk_span_alloc(&piece, device, INF_MIN(total, PIECE_BYTES), VK_SPAN_HOST, err));
    enum inf_code code = INF_OK;
    while (code == INF_OK && progress->index < progress->count) {
        uint32_t count = plan_piece(progress, &piece, down, copies);
        if (!down)
            copy_piece(&piece, copies, count, false);
        if (count > 0)
            code = run_copies(device, copies, count, err);
        if (code == INF_OK && down)
            copy_piece(&piece, copies, count, true);
    }
    vk_span_free(device, &piece);
    return code;
}

static enum inf_code transfer_spans(struct vk_device *device, const struct vk_transfer *transfers,
                                    uint32_t count, bool down, struct inf_error *err)
{
    struct progress progress = {.transfers = transfers, .count = count};
    if (count == 0 || transfers[0].span->host == NULL)
        return move_pieces(device, &progress, down, err);
    for (uint32_t i = 0; i < count; i++)
        copy_bytes(transfers[i].bytes, transfers[i].span->host, transfers[i].size, down);
    return INF_OK;
}

enum inf_code vk_transfer_write(struct vk_device *device, const struct vk_transfer *transfers,
                                uint32_t count, struct inf_error *err)
{
    return transfer_spans(device, transfers, count, false, err);
}

enum inf_code vk_transfer_read(struct vk_device *device, const struct vk_transfer *transfers,
                               uint32_t count, struct inf_error *err)
{
    return transfer_spans(device, transfers, count, true, err);
}
