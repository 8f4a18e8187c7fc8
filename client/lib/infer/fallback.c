// SPDX-License-Identifier: Apache-2.0
// Requests with shared memory that the daemon has refused (it is out of memory, or the quota is
// used up): their tensors go through the socket, at the cost of copies. Outputs are copied to the
// caller's memory when the answer has come, so that the caller sees no difference.
#include "client/lib/infer/fallback.h"

#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"
#include "proto/core/span.h"

static const inferd_memory *find_memory(const struct inf_client_call *call, uint64_t region_id)
{
    const inferd_memory *regions[] = {call->input_region, call->output_region};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(regions); i++)
        if (regions[i] != NULL && regions[i]->region_id == region_id)
            return regions[i];
    for (size_t i = 0; i < call->memory_count; i++)
        if (call->memories[i]->region_id == region_id)
            return call->memories[i];
    return NULL;
}

// Returns the region that `location` refers to if the daemon has refused to register that region;
// otherwise NULL.
static const inferd_memory *find_refused_at(const struct inf_client_call *call,
                                            const struct inf_location *location)
{
    const inferd_memory *memory = NULL;
    if (location->present && location->region_id != 0)
        memory = find_memory(call, location->region_id);
    return memory != NULL && memory->refused ? memory : NULL;
}

const inferd_memory *inf_client_fallback_find_refused(const struct inf_client_call *call)
{
    const inferd_memory *regions[] = {call->input_region, call->output_region};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(regions); i++)
        if (regions[i] != NULL && regions[i]->refused)
            return regions[i];
    for (size_t i = 0; i < call->memory_count; i++)
        if (call->memories[i]->refused)
            return call->memories[i];
    return NULL;
}

void inf_client_fallback_count(inferd_client *client, struct inf_client_call *call)
{
    client->statistics.without_shared_memory += !call->without_memory;
    call->without_memory = true;
}

size_t inf_client_fallback_move_inputs(const struct inf_client_call *call,
                                       struct inf_infer_request *message, size_t data_bytes,
                                       const uint8_t *sources[INF_LIMIT_TENSORS])
{
    for (uint32_t i = 0; i < message->input_count; i++) {
        struct inf_location *location = &message->inputs[i].location;
        const inferd_memory *memory = find_refused_at(call, location);
        sources[i] = memory != NULL ? memory->data + location->offset : NULL;
        if (memory == NULL)
            continue;
        location->region_id = 0;
        location->offset = inf_size_align(data_bytes, INF_FRAME_DATA_ALIGNMENT);
        data_bytes = location->offset + location->length;
    }
    return data_bytes;
}

enum inf_code inf_client_fallback_move_outputs(struct inf_client_call *call,
                                               struct inf_infer_request *message,
                                               struct inf_error *err)
{
    uint32_t answer_index = 0;
    for (uint32_t i = 0; i < message->output_count; i++) {
        struct inf_tensor_entry *output = &message->outputs[i];
        const inferd_memory *memory = find_refused_at(call, &output->location);
        uint32_t index = answer_index;
        answer_index += output->session_tensor == NULL;
        if (memory == NULL)
            continue;
        // Outputs in a region of the library are not copied back, because the caller did not choose
        // their address.
        if (memory != call->output_region) {
            struct inf_client_output_target *targets =
                realloc(call->targets, (call->target_count + 1) * sizeof *targets);
            if (targets == NULL)
                return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                       "no memory for a request");
            call->targets = targets;
            targets[call->target_count++] =
                (struct inf_client_output_target){.index = index,
                                                  .size = output->location.length,
                                                  .data = memory->data + output->location.offset,
                                                  .memory = (inferd_memory *)memory};
        }
        output->location = (struct inf_location){.present = false};
    }
    return INF_OK;
}

enum inf_code inf_client_fallback_copy_outputs(const struct inf_client_call *call,
                                               inferd_result *result, struct inf_error *err)
{
    for (size_t i = 0; i < call->target_count; i++) {
        const struct inf_client_output_target *target = &call->targets[i];
        if (target->index >= result->output_count)
            continue;
        inferd_tensor *output = &result->outputs[target->index];
        if (output->size > target->size)
            return inf_fail_reason(err, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL,
                                   "output '%s': %zu bytes, but the room given is %zu",
                                   output->name, output->size, target->size);
        if (output->size > 0)
            memcpy(target->data, output->data, output->size);
        output->data = target->data;
        output->memory = target->memory;
    }
    return INF_OK;
}
