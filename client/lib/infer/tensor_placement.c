// SPDX-License-Identifier: Apache-2.0
// Decides where the tensors of a request are stored:
//
//   inputs   In shared memory of the caller: they stay there, unless the daemon has refused the
//            region. Inputs of 16 KiB and more, or all inputs if the frame would be too large:
//            copied into one region of the library. Other inputs, and all if no region is
//            available: copied into the frame, or into several frames.
//   outputs  In shared memory of the caller: the daemon writes there. Outputs that took 16 KiB or
//            more in earlier answers: into one region of the library. Other outputs: the daemon
//            puts them into the answer. If they do not fit, the daemon says how much room is
//            missing, and the request is sent again with more (reply.c).
//
// The layout is known before the region is: until then UINT64_MAX, which no region has as its id,
// stands for it.
#include "client/lib/infer/tensor_placement.h"

#include <stddef.h>
#include <string.h>

#include "client/lib/client.h"
#include "client/lib/infer/fallback.h"
#include "proto/core/span.h"

// Sets the offsets of the inputs: inputs of at least `region_from` bytes go into one region, the
// others into the frame. The sums cannot overflow, because there are at most 64 inputs of at most
// INF_LIMIT_TENSOR_BYTES.
static void lay_out_inputs(struct inf_infer_request *message, const inferd_request *request,
                           size_t region_from, size_t *inline_bytes, size_t *region_bytes)
{
    *inline_bytes = *region_bytes = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        const inferd_tensor *input = &request->inputs[i];
        struct inf_location *location = &message->inputs[i].location;
        *location = (struct inf_location){.present = false};
        if (input->session_tensor != NULL)
            continue;
        *location = (struct inf_location){.present = true, .length = input->size};
        if (input->memory != NULL && !input->memory->refused) {
            location->region_id = input->memory->region_id;
            location->offset = (uint64_t)((const uint8_t *)input->data - input->memory->data);
            continue;
        }
        size_t *end = input->size >= region_from && input->size > 0 ? region_bytes : inline_bytes;
        // Use UINT64_MAX as the id of the region until the region is acquired and its id is known.
        location->region_id = end == region_bytes ? UINT64_MAX : 0;
        *end = inf_size_align(*end, INF_FRAME_DATA_ALIGNMENT);
        location->offset = *end;
        *end += input->size;
    }
}

enum inf_code inf_client_tensor_placement_place_inputs(inferd_client *client,
                                                       struct inf_client_call *call,
                                                       const inferd_request *request,
                                                       size_t *inline_bytes, struct inf_error *err)
{
    struct inf_infer_request *message = &client->message.infer_request;
    size_t region_bytes = 0;
    lay_out_inputs(message, request, client->regions.from_bytes, inline_bytes, &region_bytes);
    if (*inline_bytes > inf_client_send_queue_frame_data_max(client))
        lay_out_inputs(message, request, 1, inline_bytes, &region_bytes);
    if (region_bytes == 0)
        return INF_OK;
    enum inf_code code =
        inf_client_region_acquire_optional(client, region_bytes, &call->input_region, err);
    if (code != INF_OK) {
        inf_client_fallback_count(client, call);
        lay_out_inputs(message, request, SIZE_MAX, inline_bytes, &region_bytes);
        return *inline_bytes <= inf_client_send_queue_request_data_max(client) ? INF_OK : code;
    }
    for (size_t i = 0; i < request->input_count; i++) {
        struct inf_location *location = &message->inputs[i].location;
        if (location->region_id != UINT64_MAX)
            continue;
        location->region_id = call->input_region->region_id;
        memcpy(call->input_region->data + location->offset, request->inputs[i].data,
               request->inputs[i].size);
    }
    return INF_OK;
}

void inf_client_tensor_placement_copy_inline(const struct inf_infer_request *message,
                                             const inferd_request *request, uint8_t *data,
                                             size_t data_size)
{
    size_t end = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        const struct inf_location *location = &message->inputs[i].location;
        if (!location->present || location->region_id != 0 || request->inputs[i].size == 0)
            continue;
        // Clear the padding, because the buffer has old contents.
        memset(data + end, 0, location->offset - end);
        memcpy(data + location->offset, request->inputs[i].data, request->inputs[i].size);
        end = location->offset + request->inputs[i].size;
    }
    memset(data + end, 0, data_size - end);
}

void inf_client_tensor_placement_list_outputs(struct inf_infer_request *message,
                                              struct inf_client_call *call,
                                              const struct inf_client_metadata *metadata)
{
    call->outputs_listed = false;
    message->output_count = 0;
    if (metadata == NULL || !metadata->complete)
        return;
    for (uint32_t i = 0; i < metadata->count; i++)
        if (metadata->outputs[i].bytes >= INF_CLIENT_REGION_FROM_BYTES)
            call->outputs_listed = true;
    if (!call->outputs_listed)
        return;
    message->output_count = metadata->count;
    for (uint32_t i = 0; i < metadata->count; i++)
        message->outputs[i] = (struct inf_tensor_entry){.name = metadata->outputs[i].name};
}

enum inf_code inf_client_tensor_placement_place_outputs(inferd_client *client,
                                                        struct inf_client_call *call,
                                                        const struct inf_client_metadata *metadata,
                                                        bool must, struct inf_error *err)
{
    struct inf_infer_request *message = &client->message.infer_request;
    size_t end = 0;
    if (metadata == NULL)
        return INF_OK;
    for (uint32_t i = 0; i < message->output_count; i++) {
        struct inf_tensor_entry *output = &message->outputs[i];
        const struct inf_client_metadata_output *known =
            inf_client_metadata_find_output(metadata, output->name);
        if (output->location.present || output->session_tensor != NULL || known == NULL ||
            known->bytes < INF_CLIENT_REGION_FROM_BYTES)
            continue;
        size_t offset = inf_size_align(end, INF_FRAME_DATA_ALIGNMENT);
        end = offset + known->bytes;
        // Use UINT64_MAX as the id of the region until the region is acquired and its id is known.
        output->location = (struct inf_location){true, UINT64_MAX, offset, known->bytes};
    }
    if (end == 0)
        return INF_OK;
    enum inf_code code = inf_client_region_acquire_optional(client, end, &call->output_region, err);
    if (code != INF_OK && must)
        return code;
    if (code != INF_OK)
        inf_client_fallback_count(client, call);
    for (uint32_t i = 0; i < message->output_count; i++) {
        struct inf_location *location = &message->outputs[i].location;
        if (location->region_id == UINT64_MAX && code == INF_OK)
            location->region_id = call->output_region->region_id;
        else if (location->region_id == UINT64_MAX)
            *location = (struct inf_location){.present = false};
    }
    return INF_OK;
}
