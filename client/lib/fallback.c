// SPDX-License-Identifier: Apache-2.0
// Requests with memory that the daemon has refused to share: what lies there goes through the socket.
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"

static const inferd_memory *find_memory(const struct inf_call *call, uint64_t region_id)
{
    const inferd_memory *blocks[] = {call->input_block, call->output_block};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(blocks); i++)
        if (blocks[i] != NULL && blocks[i]->region_id == region_id)
            return blocks[i];
    for (size_t i = 0; i < call->memory_count; i++)
        if (call->memories[i]->region_id == region_id)
            return call->memories[i];
    return NULL;
}

// The memory of a tensor at `location`, where it has been refused; else NULL.
static const inferd_memory *refused_at(const struct inf_call *call,
                                       const struct inf_location *location)
{
    const inferd_memory *memory = NULL;
    if (location->present && location->region_id != 0)
        memory = find_memory(call, location->region_id);
    return memory != NULL && memory->refused ? memory : NULL;
}

const inferd_memory *inf_call_refused(const struct inf_call *call)
{
    const inferd_memory *blocks[] = {call->input_block, call->output_block};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(blocks); i++)
        if (blocks[i] != NULL && blocks[i]->refused)
            return blocks[i];
    for (size_t i = 0; i < call->memory_count; i++)
        if (call->memories[i]->refused)
            return call->memories[i];
    return NULL;
}

void inf_call_note_plain(inferd_client *client, struct inf_call *call)
{
    client->statistics.without_memory += !call->plain;
    call->plain = true;
}

size_t inf_fallback_inputs(const struct inf_call *call, struct inf_infer_request *message,
                           size_t data_bytes, const uint8_t *sources[INF_LIMIT_TENSORS])
{
    for (uint32_t i = 0; i < message->input_count; i++) {
        struct inf_location *location = &message->inputs[i].location;
        const inferd_memory *memory = refused_at(call, location);
        sources[i] = memory != NULL ? memory->data + location->offset : NULL;
        if (memory == NULL)
            continue;
        location->region_id = 0;
        location->offset = inf_size_align(data_bytes, INF_FRAME_DATA_ALIGNMENT);
        data_bytes = location->offset + location->length;
    }
    return data_bytes;
}

enum inf_code inf_fallback_outputs(struct inf_call *call, struct inf_infer_request *message,
                                   struct inf_error *err)
{
    uint32_t returned = 0;
    for (uint32_t i = 0; i < message->output_count; i++) {
        struct inf_tensor_entry *output = &message->outputs[i];
        const inferd_memory *memory = refused_at(call, &output->location);
        uint32_t index = returned;
        returned += output->session_tensor == NULL;
        if (memory == NULL)
            continue;
        // A block of the library's is nobody's home.
        if (memory != call->output_block) {
            struct inf_output_home *homes =
                realloc(call->homes, (call->home_count + 1) * sizeof *homes);
            if (homes == NULL)
                return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                       "no memory for a request");
            call->homes = homes;
            homes[call->home_count++] =
                (struct inf_output_home){.index = index,
                                         .size = output->location.length,
                                         .data = memory->data + output->location.offset,
                                         .memory = (inferd_memory *)memory};
        }
        output->location = (struct inf_location){.present = false};
    }
    return INF_OK;
}

enum inf_code inf_fallback_return(const struct inf_call *call, inferd_result *result,
                                  struct inf_error *err)
{
    for (size_t i = 0; i < call->home_count; i++) {
        const struct inf_output_home *home = &call->homes[i];
        if (home->index >= result->output_count)
            continue;
        inferd_tensor *output = &result->outputs[home->index];
        if (output->size > home->size)
            return inf_fail_reason(err, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL,
                                   "output '%s': %zu bytes, but the room given is %zu",
                                   output->name, output->size, home->size);
        if (output->size > 0)
            memcpy(home->data, output->data, output->size);
        output->data = home->data;
        output->memory = home->memory;
    }
    return INF_OK;
}
