// SPDX-License-Identifier: Apache-2.0
// MemoryInfo: the memory of each device.
#include "proto/wire/message_codec.h"

typedef Inference__MemoryInfoResponse__Device wire_memory;

static enum inf_code decode_memory(union inf_message *message, const void *from,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    const Inference__MemoryInfoResponse *wire = from;
    struct inf_memory_info *info = &message->memory_info;
    info->region_bytes = wire->region_bytes;
    info->resident_bytes = wire->resident_bytes;
    info->session_bytes = wire->session_bytes;
    info->sessions = wire->sessions;
    info->count = (uint32_t)wire->n_devices;
    info->entries = inf_scratch_array(scratch, wire->n_devices, sizeof *info->entries, err);
    if (info->entries == NULL)
        return INF_EXHAUSTED;
    for (size_t i = 0; i < wire->n_devices; i++) {
        const wire_memory *device = wire->devices[i];
        info->entries[i] = (struct inf_memory_entry){
            .name = device->name,
            .num_tensors = device->num_tensors,
            .num_data_buffers = device->num_data_buffers,
            .num_bytes = device->num_bytes,
            .constant_bytes = device->constant_bytes,
            .weight_bytes = device->weight_bytes,
            .buffer_bytes = device->buffer_bytes,
            .budget_bytes = device->budget_bytes,
            .peak_bytes = device->peak_bytes,
        };
    }
    return INF_OK;
}

static void encode_entry(wire_memory *wire, const struct inf_memory_entry *entry)
{
    wire->name = inf_wire_text(entry->name);
    wire->num_tensors = entry->num_tensors;
    wire->num_data_buffers = entry->num_data_buffers;
    wire->num_bytes = entry->num_bytes;
    wire->constant_bytes = entry->constant_bytes;
    wire->weight_bytes = entry->weight_bytes;
    wire->buffer_bytes = entry->buffer_bytes;
    wire->budget_bytes = entry->budget_bytes;
    wire->peak_bytes = entry->peak_bytes;
}

static enum inf_code encode_memory(const union inf_message *message, void *to,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_memory_info *info = &message->memory_info;
    Inference__MemoryInfoResponse *wire = to;
    wire->region_bytes = info->region_bytes;
    wire->resident_bytes = info->resident_bytes;
    wire->session_bytes = info->session_bytes;
    wire->sessions = info->sessions;
    wire->n_devices = info->count;
    wire->devices = inf_wire_list(&inference__memory_info_response__device__descriptor, info->count,
                                  scratch, err);
    if (wire->devices == NULL)
        return INF_EXHAUSTED;
    for (uint32_t i = 0; i < info->count; i++)
        encode_entry(wire->devices[i], &info->entries[i]);
    return INF_OK;
}

const struct inf_message_codec inf_codec_memory_info = {
    .descriptor = &inference__memory_info_response__descriptor,
    .decode = decode_memory,
    .encode = encode_memory,
};
