// SPDX-License-Identifier: Apache-2.0
// Copies bytes between host memory and spans. If the host cannot see the spans, the bytes go
// through a ring of staging buffers: while the GPU copies one piece, the host fills the next one.
// The ring bounds how much host memory an upload takes, whatever its size.
#include "backends/vulkan/device/transfer.h"

#include <string.h>

// The size of a staging buffer.
#define PIECE_BYTES ((size_t)4 << 20)
// The number of staging buffers. With two, the host and the GPU copy at the same time.
#define RING_PIECES 2u
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

// Creates a pool and allocates `count` command buffers from it. The caller destroys the pool, also
// after a failure. Only one thread at a time may use a pool.
static enum inf_code make_commands(struct vk_device *device, uint32_t family, VkCommandPool *pool,
                                   VkCommandBuffer *commands, uint32_t count, struct inf_error *err)
{
    VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                         .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT |
                                                  VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                         .queueFamilyIndex = family};
    *pool = VK_NULL_HANDLE;
    VK_TRY(device, device->api.CreateCommandPool(device->device, &pool_info, NULL, pool), err);
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = *pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = count};
    VK_TRY(device, device->api.AllocateCommandBuffers(device->device, &info, commands), err);
    return INF_OK;
}

// Records copies for a queue of the family `family`.
static enum inf_code record_copies(struct vk_device *device, uint32_t family,
                                   VkCommandBuffer commands, const struct copy *copies,
                                   uint32_t count, struct inf_error *err)
{
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VK_TRY(device, device->api.BeginCommandBuffer(commands, &begin), err);
    for (uint32_t i = 0; i < count; i++)
        device->api.CmdCopyBuffer(commands, copies[i].from, copies[i].to, 1, &copies[i].region);
    // A queue that only copies has no stage for shaders. Runs wait for its timeline instead.
    bool computes = family == device->gpu->queue_family;
    VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                               .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                               .dstAccessMask = VK_ACCESS_HOST_READ_BIT |
                                                (computes ? VK_ACCESS_SHADER_READ_BIT : 0u)};
    device->api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                   VK_PIPELINE_STAGE_HOST_BIT |
                                       (computes ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT : 0u),
                                   0, 1, &barrier, 0, NULL, 0, NULL);
    VK_TRY(device, device->api.EndCommandBuffer(commands), err);
    return INF_OK;
}

static enum inf_code run_copy(struct vk_device *device, VkCommandBuffer commands,
                              const struct copy *copy, struct inf_error *err) INF_MAY_BLOCK
{
    uint64_t ticket;
    INF_TRY(record_copies(device, device->gpu->queue_family, commands, copy, 1, err));
    INF_TRY(vk_device_submit(device, commands, &ticket, err));
    return vk_device_wait(device, ticket, UINT64_MAX, err);
}

enum inf_code vk_span_copy(struct vk_device *device, const VkBufferCopy *region, VkBuffer to,
                           VkBuffer from, struct inf_error *err)
{
    const struct copy copy = {.to = to, .from = from, .region = *region};
    VkCommandPool pool;
    VkCommandBuffer commands;
    enum inf_code code = make_commands(device, device->gpu->queue_family, &pool, &commands, 1, err);
    if (code == INF_OK)
        code = run_copy(device, commands, &copy, err);
    device->api.DestroyCommandPool(device->device, pool, NULL);
    return code;
}

// --- transfers in pieces through the ring ---

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

// A staging buffer, and the copies of its current filling.
struct piece {
    struct vk_span span;
    VkCommandBuffer commands;
    uint64_t ticket; // timeline value of the end of the copies; 0: none are submitted
    struct copy copies[COPIES_MAX];
    uint32_t count;
};

// The staging buffers of one transfer. They are filled in turn.
struct ring {
    struct vk_device *device;
    bool down; // true: from the device to the host
    VkCommandPool pool;
    uint32_t piece_count;
    struct piece pieces[RING_PIECES];
};

// Copies the bytes of all planned copies between host memory and the staging buffer.
static void copy_piece(const struct piece *piece, bool down)
{
    char *seen = piece->span.host;
    for (uint32_t i = 0; i < piece->count; seen += piece->copies[i++].region.size)
        copy_bytes(piece->copies[i].bytes, seen, (size_t)piece->copies[i].region.size, down);
}

// Waits for the copies of a piece, if there are any. If they go to the host, delivers their bytes.
// After that the piece can be filled again.
static enum inf_code finish_piece(const struct ring *ring, struct piece *piece,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    uint64_t ticket = piece->ticket;
    piece->ticket = 0;
    if (ticket == 0)
        return INF_OK;
    INF_TRY(vk_device_wait_transfer(ring->device, ticket, err));
    if (ring->down)
        copy_piece(piece, true);
    return INF_OK;
}

// Plans and submits the next copies with `piece`, the piece of the ring whose turn it is. Waits
// until its previous copies have ended.
static enum inf_code start_piece(const struct ring *ring, struct piece *piece,
                                 struct progress *progress, struct inf_error *err) INF_MAY_BLOCK
{
    INF_TRY(finish_piece(ring, piece, err));
    piece->count = plan_piece(progress, &piece->span, ring->down, piece->copies);
    if (piece->count == 0)
        return INF_OK;
    if (!ring->down)
        copy_piece(piece, false);
    INF_TRY(record_copies(ring->device, ring->device->gpu->transfer_family, piece->commands,
                          piece->copies, piece->count, err));
    return vk_device_submit_transfer(ring->device, piece->commands, &piece->ticket, err);
}

// Allocates the staging buffers for `total` bytes. The caller frees the ring, also after a failure.
static enum inf_code ring_init(struct ring *ring, struct vk_device *device, bool down, size_t total,
                               struct inf_error *err)
{
    VkCommandBuffer commands[RING_PIECES];
    *ring = (struct ring){.device = device, .down = down};
    ring->piece_count = total > PIECE_BYTES ? RING_PIECES : 1;
    for (uint32_t i = 0; i < ring->piece_count; i++)
        INF_TRY(vk_span_alloc(&ring->pieces[i].span, device, INF_MIN(total, PIECE_BYTES),
                              VK_SPAN_HOST, err));
    INF_TRY(make_commands(device, device->gpu->transfer_family, &ring->pool, commands,
                          ring->piece_count, err));
    for (uint32_t i = 0; i < ring->piece_count; i++)
        ring->pieces[i].commands = commands[i];
    return INF_OK;
}

static void ring_fini(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->piece_count; i++)
        vk_span_free(ring->device, &ring->pieces[i].span);
    ring->device->api.DestroyCommandPool(ring->device->device, ring->pool, NULL);
}

// Moves the bytes of all transfers. Waits for all submitted pieces, even after a failure, because
// the device uses their memory.
static enum inf_code move_through(struct ring *ring, struct progress *progress,
                                  struct inf_error *err) INF_MAY_BLOCK
{
    enum inf_code code = INF_OK;
    uint32_t next = 0;
    for (; code == INF_OK && progress->index < progress->count; next++)
        code = start_piece(ring, &ring->pieces[next % ring->piece_count], progress, err);
    // The piece at `next` was submitted before the others, so wait for it first.
    for (uint32_t i = 0; i < ring->piece_count; i++) {
        enum inf_code finished = finish_piece(ring, &ring->pieces[(next + i) % ring->piece_count],
                                              code == INF_OK ? err : NULL);
        code = code == INF_OK ? finished : code;
    }
    return code;
}

static enum inf_code move_pieces(struct vk_device *device, struct progress *progress, bool down,
                                 struct inf_error *err) INF_MAY_BLOCK
{
    struct ring ring;
    size_t total = 0; // if all transfers fit into one piece, their size; otherwise a larger number
    for (uint32_t i = 0; i < progress->count; i++)
        total += INF_MIN(progress->transfers[i].size, PIECE_BYTES + 1);
    if (total == 0)
        return INF_OK;
    enum inf_code code = ring_init(&ring, device, down, total, err);
    if (code == INF_OK)
        code = move_through(&ring, progress, err);
    ring_fini(&ring);
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
