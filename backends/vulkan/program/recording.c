// SPDX-License-Identifier: Apache-2.0
// Records dispatches into command buffers.
//
// Recording takes longer than submitting, and runs mostly use the same buffers. Therefore each slot
// (concurrent run) records its dispatches once, with the addresses of all operands, and a run
// replays the command buffers. A run whose operands have other addresses records again.
//
// A barrier is recorded only if a dispatch accesses memory that a dispatch since the last barrier
// wrote, or writes memory that such a dispatch read:
//
//     d0: a -> b     d1: a -> c
//             barrier
//     d2: b, c -> d        d0 and d1 may overlap
//
// Long programs are cut into slices of about 20 ms (VK_SLICE_NS). Each slice is one submission, so
// that other programs can run in between and a run can be cancelled.
#include "backends/vulkan/program/recording.h"

#include <stdlib.h>
#include <string.h>

// The number of work groups along one dimension that every driver supports.
#define GROUPS_MAX 65535u

static enum inf_code create_pools(struct vk_recording *recording, struct vk_device *device,
                                  uint32_t count, struct inf_error *err)
{
    VkDescriptorPoolSize sizes[] = {{.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     .descriptorCount = count * (VK_BINDINGS_MAX + 1)},
                                    {.type = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                                     .descriptorCount = count * VK_BINDINGS_MAX}};
    VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = count,
                                       .poolSizeCount = device->gpu->texels ? 2 : 1,
                                       .pPoolSizes = sizes};
    VK_TRY(device,
           device->api.CreateDescriptorPool(device->device, &pool, NULL, &recording->descriptors),
           err);
    VkCommandPoolCreateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = device->gpu->queue_family};
    VK_TRY(device, device->api.CreateCommandPool(device->device, &commands, NULL, &recording->pool),
           err);
    if (device->gpu->timestamp_bits == 0)
        return INF_OK;
    VkQueryPoolCreateInfo queries = {.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                     .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                     .queryCount = 2 * count};
    VK_TRY(device, device->api.CreateQueryPool(device->device, &queries, NULL, &recording->queries),
           err);
    return INF_OK;
}

static enum inf_code allocate_sets(struct vk_recording *recording, struct vk_device *device,
                                   uint32_t count, struct inf_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = recording->descriptors,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &device->set_layout};
        VK_TRY(device,
               device->api.AllocateDescriptorSets(device->device, &info, &recording->sets[i]), err);
    }
    return INF_OK;
}

// Returns the distance in bytes between the status words of two consecutive dispatches. The status
// of each dispatch is bound separately, so the distance must be a valid binding offset.
static size_t status_stride(const struct vk_device *device)
{
    size_t alignment = device->gpu->properties.limits.minStorageBufferOffsetAlignment;
    return (STATUS_WORDS * sizeof(uint32_t) + alignment - 1) / alignment * alignment;
}

const uint32_t *vk_recording_status(const struct vk_recording *recording,
                                    const struct vk_device *device, uint32_t index)
{
    return (const uint32_t *)((const unsigned char *)recording->status.host +
                              index * status_stride(device));
}

enum inf_code vk_recording_init(struct vk_recording *recording, struct vk_device *device,
                                uint32_t count, struct inf_error *err)
{
    size_t places = (size_t)count * VK_BINDINGS_MAX;
    recording->sets = calloc(count + 1u, sizeof(*recording->sets));
    recording->places = calloc(places + 1, sizeof(*recording->places));
    recording->views = calloc(places + 1, sizeof(VkBufferView));
    recording->view_count = recording->views != NULL ? (uint32_t)places : 0;
    recording->touched = calloc(places + 1, sizeof(*recording->touched));
    recording->written = calloc(places + 1, sizeof(*recording->written));
    if (recording->sets == NULL || recording->places == NULL || recording->views == NULL ||
        recording->touched == NULL || recording->written == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory to record %u dispatches", device->name,
                               count);
    if (count == 0)
        return INF_OK;
    INF_TRY(create_pools(recording, device, count, err));
    INF_TRY(vk_span_alloc(&recording->status, device, count * status_stride(device), VK_SPAN_HOST,
                          err));
    return allocate_sets(recording, device, count, err);
}

void vk_recording_fini(struct vk_recording *recording, struct vk_device *device)
{
    vk_span_free(device, &recording->status);
    vk_span_free(device, &recording->scratch);
    if (!vk_device_abandoned(device)) {
        for (uint32_t i = 0; i < recording->view_count; i++)
            device->api.DestroyBufferView(device->device, recording->views[i], NULL);
        device->api.DestroyQueryPool(device->device, recording->queries, NULL);
        device->api.DestroyDescriptorPool(device->device, recording->descriptors, NULL);
        device->api.DestroyCommandPool(device->device, recording->pool, NULL);
    }
    free(recording->sets);
    free(recording->places);
    free(recording->views);
    free(recording->touched);
    free(recording->written);
}

// --- deciding where barriers are needed ---

static bool places_overlap(const struct vk_place *a, const struct vk_place *b)
{
    return a->buffer == b->buffer && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

// Returns true if a barrier is needed before the dispatch, because it accesses memory that a
// dispatch since the last barrier wrote, or writes memory that such a dispatch accessed.
static bool must_wait(const struct vk_recording *recording, uint32_t touched,
                      const struct vk_place *places, uint32_t count)
{
    for (uint32_t i = 0; i < touched; i++)
        for (uint32_t k = 0; k < count; k++)
            if ((recording->written[i] || k == count - 1) &&
                places_overlap(&recording->touched[i], &places[k]))
                return true;
    return false;
}

static void record_barrier(const struct vk_device *device, VkCommandBuffer commands,
                           VkAccessFlags access, VkPipelineStageFlags stage)
{
    VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                              .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                              .dstAccessMask = access};
    device->api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stage, 0, 1,
                                   &memory, 0, NULL, 0, NULL);
}

// --- recording the command buffers of a slot ---

// The formats of texels, for 32-bit and 16-bit floats.
static const struct texel {
    uint32_t numbers;
    VkFormat full, half;
} texels[] = {
    [VK_TEXEL_NUMBER] = {1, VK_FORMAT_R32_SFLOAT, VK_FORMAT_R16_SFLOAT},
    [VK_TEXEL_TRIPLE] = {3, VK_FORMAT_R32G32B32_SFLOAT, VK_FORMAT_R16G16B16_SFLOAT},
    [VK_TEXEL_VECTOR] = {4, VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R16G16B16A16_SFLOAT},
};

// Creates a texel view of an operand at its current address, and stores it in *view in place of the
// old one.
static enum inf_code make_view(VkBufferView *view, struct vk_device *device,
                               const struct vk_operand *operand, const struct vk_place *place,
                               struct inf_error *err)
{
    const struct texel *texel = &texels[operand->texel];
    VkDeviceSize texel_bytes = texel->numbers * (operand->half ? 2 : 4);
    VkBufferViewCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                   .buffer = place->buffer,
                                   .format = operand->half ? texel->half : texel->full,
                                   .offset = place->offset,
                                   .range = place->size / texel_bytes * texel_bytes};
    device->api.DestroyBufferView(device->device, *view, NULL);
    *view = VK_NULL_HANDLE;
    VK_TRY(device, device->api.CreateBufferView(device->device, &info, NULL, view), err);
    return INF_OK;
}

static enum inf_code write_views(struct vk_recording *recording, struct vk_device *device,
                                 const struct vk_dispatch *dispatch, uint32_t index,
                                 struct inf_error *err)
{
    for (uint32_t i = 0; i < dispatch->operand_count; i++) {
        uint32_t at = index * VK_BINDINGS_MAX + i;
        if (dispatch->operands[i].texel == VK_TEXEL_NONE)
            continue;
        INF_TRY(make_view(&recording->views[at], device, &dispatch->operands[i],
                          &recording->places[at], err));
        VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                      .dstSet = recording->sets[index],
                                      .dstBinding = VK_BINDINGS_MAX + i,
                                      .descriptorCount = 1,
                                      .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                                      .pTexelBufferView = &recording->views[at]};
        device->api.UpdateDescriptorSets(device->device, 1, &write, 0, NULL);
    }
    return INF_OK;
}

static enum inf_code write_set(struct vk_recording *recording, struct vk_device *device,
                               const struct vk_dispatch *dispatch, uint32_t index,
                               struct inf_error *err)
{
    uint32_t count = dispatch->operand_count;
    VkDescriptorBufferInfo buffers[VK_BINDINGS_MAX + 1];
    VkWriteDescriptorSet writes[VK_BINDINGS_MAX + 1];
    for (uint32_t i = 0; i < count; i++) {
        const struct vk_place *place = &recording->places[index * VK_BINDINGS_MAX + i];
        buffers[i] = (VkDescriptorBufferInfo){place->buffer, place->offset, place->size};
        writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = recording->sets[index],
                                           .dstBinding = i,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &buffers[i]};
    }
    buffers[count] = (VkDescriptorBufferInfo){
        recording->status.buffer, recording->status.offset + index * status_stride(device),
        STATUS_WORDS * sizeof(uint32_t)};
    writes[count] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                           .dstSet = recording->sets[index],
                                           .dstBinding = STATUS_BINDING,
                                           .descriptorCount = 1,
                                           .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                           .pBufferInfo = &buffers[count]};
    device->api.UpdateDescriptorSets(device->device, count + 1, writes, 0, NULL);
    return write_views(recording, device, dispatch, index, err);
}

static void record_dispatch(struct vk_recording *recording, struct vk_device *device,
                            VkCommandBuffer commands, const struct vk_dispatch *dispatch,
                            uint32_t index)
{
    device->api.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, dispatch->pipeline);
    device->api.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                                      device->pipeline_layout, 0, 1, &recording->sets[index], 0,
                                      NULL);
    device->api.CmdPushConstants(commands, device->pipeline_layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                 dispatch->push_bytes, dispatch->push);
    uint32_t group_size = vk_variant_group_size(device->gpu, &dispatch->variant);
    uint32_t groups = (dispatch->invocations + group_size - 1) / group_size;
    uint32_t rows = (groups + GROUPS_MAX - 1) / GROUPS_MAX;
    if (recording->timed)
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                                      recording->queries, 2 * index);
    device->api.CmdDispatch(commands, (groups + rows - 1) / rows, rows, 1);
    if (recording->timed)
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                      recording->queries, 2 * index + 1);
}

// Begins slice `index`. Allocates its command buffer when the slice is first used.
static enum inf_code begin_slice(struct vk_recording *recording, struct vk_device *device,
                                 uint32_t index, struct inf_error *err)
{
    struct vk_slice *slice = &recording->slices[index];
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = recording->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    if (slice->commands == VK_NULL_HANDLE)
        VK_TRY(device, device->api.AllocateCommandBuffers(device->device, &info, &slice->commands),
               err);
    else
        VK_TRY(device, device->api.ResetCommandBuffer(slice->commands, 0), err);
    VK_TRY(device, device->api.BeginCommandBuffer(slice->commands, &begin), err);
    slice->cost = 0;
    recording->slice_count = index + 1;
    return INF_OK;
}

// Ends a slice with a barrier, which makes its results visible to the host and to the next
// submission. The queue starts submissions in order, but does not order their memory accesses.
static enum inf_code end_slice(struct vk_device *device, const struct vk_slice *slice,
                               struct inf_error *err)
{
    record_barrier(device, slice->commands,
                   VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                   VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    VK_TRY(device, device->api.EndCommandBuffer(slice->commands), err);
    return INF_OK;
}

// Returns the largest cost of a slice. It is `slice_cost`, or more if the dispatches would
// otherwise need more than VK_SLICES_MAX slices.
static uint64_t limit_slices(const struct vk_dispatch *dispatches, uint32_t count,
                             uint64_t slice_cost)
{
    uint64_t total = 0, largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += dispatches[i].cost;
        largest = INF_MAX(largest, dispatches[i].cost);
    }
    // A slice is ended only if it is more than half full or the next dispatch is too large for it.
    // This bounds the number of slices.
    return INF_MAX(slice_cost, 2 * total / (VK_SLICES_MAX - 1) + largest / VK_SLICES_MAX + 1);
}

enum inf_code vk_recording_record(struct vk_recording *recording, struct vk_device *device,
                                  const struct vk_dispatch *dispatches, uint32_t count,
                                  uint64_t slice_cost, bool timed, struct inf_error *err)
{
    uint64_t most = limit_slices(dispatches, count, slice_cost);
    recording->timed = timed && recording->queries != VK_NULL_HANDLE;
    recording->slice_cost = slice_cost;
    INF_TRY(begin_slice(recording, device, 0, err));
    struct vk_slice *slice = &recording->slices[0];
    if (recording->timed)
        device->api.CmdResetQueryPool(slice->commands, recording->queries, 0, 2 * count);
    uint32_t touched = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct vk_place *places = &recording->places[i * VK_BINDINGS_MAX];
        uint32_t operands = dispatches[i].operand_count;
        INF_TRY(write_set(recording, device, &dispatches[i], i, err));
        if (slice->cost > 0 && slice->cost + dispatches[i].cost > most &&
            recording->slice_count < VK_SLICES_MAX) {
            INF_TRY(end_slice(device, slice, err));
            INF_TRY(begin_slice(recording, device, recording->slice_count, err));
            slice = &recording->slices[recording->slice_count - 1];
            touched = 0;
        }
        // Separate timed dispatches by barriers, so that they do not overlap and each time belongs
        // to one dispatch.
        if (recording->timed ? i > 0 : must_wait(recording, touched, places, operands)) {
            record_barrier(device, slice->commands,
                           VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
            touched = 0;
        }
        for (uint32_t k = 0; k < operands; k++, touched++) {
            recording->touched[touched] = places[k];
            recording->written[touched] = k == operands - 1;
        }
        record_dispatch(recording, device, slice->commands, &dispatches[i], i);
        slice->cost += dispatches[i].cost;
    }
    INF_TRY(end_slice(device, slice, err));
    recording->recorded = true;
    return INF_OK;
}
