// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/vk_record.h"

#include <stdlib.h>
#include <string.h>

// The least that every driver has of groups along a dimension.
#define GROUPS_MAX 65535u

static enum inf_code create_pools(struct vk_recording *recording, struct vk_device *device,
                                  uint32_t count, struct inf_error *err)
{
    VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                 .descriptorCount = count * VK_BINDINGS_MAX};
    VkDescriptorPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                       .maxSets = count,
                                       .poolSizeCount = 1,
                                       .pPoolSizes = &size};
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

enum inf_code vk_recording_init(struct vk_recording *recording, struct vk_device *device,
                                uint32_t count, struct inf_error *err)
{
    size_t places = (size_t)count * VK_BINDINGS_MAX;
    recording->sets = calloc(count + 1u, sizeof(*recording->sets));
    recording->places = calloc(places + 1, sizeof(*recording->places));
    recording->touched = calloc(places + 1, sizeof(*recording->touched));
    recording->written = calloc(places + 1, sizeof(*recording->written));
    if (recording->sets == NULL || recording->places == NULL || recording->touched == NULL ||
        recording->written == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "device '%s': no host memory to record %u dispatches", device->name,
                               count);
    if (count == 0)
        return INF_OK;
    INF_TRY(create_pools(recording, device, count, err));
    return allocate_sets(recording, device, count, err);
}

void vk_recording_fini(struct vk_recording *recording, struct vk_device *device)
{
    if (!vk_device_abandoned(device)) {
        device->api.DestroyQueryPool(device->device, recording->queries, NULL);
        device->api.DestroyDescriptorPool(device->device, recording->descriptors, NULL);
        device->api.DestroyCommandPool(device->device, recording->pool, NULL);
    }
    free(recording->sets);
    free(recording->places);
    free(recording->touched);
    free(recording->written);
}

// --- barriers ---

static bool overlap(const struct vk_place *a, const struct vk_place *b)
{
    return a->buffer == b->buffer && a->offset < b->offset + b->size &&
           b->offset < a->offset + a->size;
}

// Whether a dispatch must wait for one since the last barrier: it touches what that one wrote, or
// writes what that one touched.
static bool must_wait(const struct vk_recording *recording, uint32_t touched,
                      const struct vk_place *places, uint32_t count)
{
    for (uint32_t i = 0; i < touched; i++)
        for (uint32_t k = 0; k < count; k++)
            if ((recording->written[i] || k == count - 1) &&
                overlap(&recording->touched[i], &places[k]))
                return true;
    return false;
}

static void barrier(const struct vk_device *device, VkCommandBuffer commands, VkAccessFlags access,
                    VkPipelineStageFlags stage)
{
    VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                              .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                              .dstAccessMask = access};
    device->api.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, stage, 0, 1,
                                   &memory, 0, NULL, 0, NULL);
}

// --- recording ---

static void write_set(struct vk_recording *recording, struct vk_device *device, uint32_t index,
                      uint32_t count)
{
    VkDescriptorBufferInfo buffers[VK_BINDINGS_MAX];
    VkWriteDescriptorSet writes[VK_BINDINGS_MAX];
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
    device->api.UpdateDescriptorSets(device->device, count, writes, 0, NULL);
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
    uint32_t groups =
        (dispatch->invocations + device->gpu->group_size - 1) / device->gpu->group_size;
    uint32_t rows = (groups + GROUPS_MAX - 1) / GROUPS_MAX;
    if (recording->timed)
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT,
                                      recording->queries, 2 * index);
    device->api.CmdDispatch(commands, (groups + rows - 1) / rows, rows, 1);
    if (recording->timed)
        device->api.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
                                      recording->queries, 2 * index + 1);
}

// Begins slice `index`, which may be used for the first time.
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

// Ends a slice: for the host, and for the next submit, which the queue starts but does not order
// memory for.
static enum inf_code end_slice(struct vk_device *device, const struct vk_slice *slice,
                               struct inf_error *err)
{
    barrier(device, slice->commands,
            VK_ACCESS_HOST_READ_BIT | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    VK_TRY(device, device->api.EndCommandBuffer(slice->commands), err);
    return INF_OK;
}

// What a slice may cost so that there are not more than there may be.
static uint64_t limit_slices(const struct vk_dispatch *dispatches, uint32_t count,
                             uint64_t slice_cost)
{
    uint64_t total = 0, largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += dispatches[i].cost;
        largest = INF_MAX(largest, dispatches[i].cost);
    }
    // A slice that is ended is more than half full, or alone with a dispatch that is.
    return INF_MAX(slice_cost, 2 * total / (VK_SLICES_MAX - 1) + largest / VK_SLICES_MAX + 1);
}

enum inf_code vk_record(struct vk_recording *recording, struct vk_device *device,
                        const struct vk_dispatch *dispatches, uint32_t count, uint64_t slice_cost,
                        bool timed, struct inf_error *err)
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
        write_set(recording, device, i, operands);
        if (slice->cost > 0 && slice->cost + dispatches[i].cost > most &&
            recording->slice_count < VK_SLICES_MAX) {
            INF_TRY(end_slice(device, slice, err));
            INF_TRY(begin_slice(recording, device, recording->slice_count, err));
            slice = &recording->slices[recording->slice_count - 1];
            touched = 0;
        }
        // Timed dispatches stand alone, or their times would be those of several.
        if (recording->timed ? i > 0 : must_wait(recording, touched, places, operands)) {
            barrier(device, slice->commands, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT,
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
