// SPDX-License-Identifier: Apache-2.0
// From a caller's request to a frame. Where tensors go:
//
//   inputs   in inferd_memory: where they are, unless the daemon has refused that. From 16 KiB on, or where the frame would get too large:
//            copied into a region of the library's, all of a request into one. Others, and where
//            no region can be had: copied into the frame, or into several.
//   outputs  in inferd_memory: there. Else the daemon puts them into the answer, as far as they fit;
//            those that the library has seen to take 16 KiB or more get room in a region of its own.
//            An answer that does not fit tells how much room is missing, and the request is sent
//            again with more (reply.c).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"

#define TENSOR_META_BYTES  160u // of an entry beside its name: type, rank 8 shape, location
#define REQUEST_META_BYTES 256u

// --- inputs ---

static enum inf_code keep_memory(struct inf_call *call, inferd_memory *memory,
                                 struct inf_error *err)
{
    if (call->memory_count == call->memory_capacity) {
        size_t capacity = INF_MAX(call->memory_capacity * 2, 8);
        inferd_memory **memories = realloc(call->memories, capacity * sizeof(inferd_memory *));
        if (memories == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a request");
        call->memories = memories;
        call->memory_capacity = capacity;
    }
    inf_memory_ref(memory);
    call->memories[call->memory_count++] = memory;
    return INF_OK;
}

// Lays the inputs out: offsets in the frame or, from `region_from` bytes on, in one region. Sizes
// are checked, and 64 of INF_LIMIT_TENSOR_BYTES fit.
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
        // Until the region is known, an id that no region has tells these from those in the frame.
        location->region_id = end == region_bytes ? UINT64_MAX : 0;
        *end = inf_size_align(*end, INF_FRAME_DATA_ALIGNMENT);
        location->offset = *end;
        *end += input->size;
    }
}

// Decides where inputs go, gets the region they need and copies those that go there.
static enum inf_code place_inputs(inferd_client *client, struct inf_call *call,
                                  const inferd_request *request, size_t *inline_bytes,
                                  struct inf_error *err)
{
    struct inf_infer_request *message = &client->message.infer_request;
    size_t region_bytes = 0;
    lay_out_inputs(message, request, client->region_from_bytes, inline_bytes, &region_bytes);
    if (*inline_bytes > inf_client_frame_data_max(client))
        lay_out_inputs(message, request, 1, inline_bytes, &region_bytes);
    if (region_bytes == 0)
        return INF_OK;
    enum inf_code code = inf_memory_acquire_block(client, region_bytes, &call->input_block, err);
    if (code != INF_OK) {
        inf_call_note_plain(client, call);
        lay_out_inputs(message, request, SIZE_MAX, inline_bytes, &region_bytes);
        return *inline_bytes <= inf_client_request_data_max(client) ? INF_OK : code;
    }
    for (size_t i = 0; i < request->input_count; i++) {
        struct inf_location *location = &message->inputs[i].location;
        if (location->region_id != UINT64_MAX)
            continue;
        location->region_id = call->input_block->region_id;
        memcpy(call->input_block->data + location->offset, request->inputs[i].data,
               request->inputs[i].size);
    }
    return INF_OK;
}

static void copy_inline(const struct inf_infer_request *message, const inferd_request *request,
                        uint8_t *data, size_t data_size)
{
    size_t end = 0;
    for (size_t i = 0; i < request->input_count; i++) {
        const struct inf_location *location = &message->inputs[i].location;
        if (!location->present || location->region_id != 0 || request->inputs[i].size == 0)
            continue;
        memset(data + end, 0, location->offset - end); // padding, not what was there before
        memcpy(data + location->offset, request->inputs[i].data, request->inputs[i].size);
        end = location->offset + request->inputs[i].size;
    }
    memset(data + end, 0, data_size - end);
}

static void fill_inputs(struct inf_infer_request *message, const inferd_request *request)
{
    message->input_count = (uint32_t)request->input_count;
    for (size_t i = 0; i < request->input_count; i++) {
        const inferd_tensor *input = &request->inputs[i];
        struct inf_tensor_entry *entry = &message->inputs[i];
        entry->name = input->name;
        entry->session_tensor = input->session_tensor;
        if (input->session_tensor != NULL)
            continue;
        entry->dtype = (enum inf_dtype)input->dtype;
        entry->shape = (struct inf_shape){.rank = input->rank};
        memcpy(entry->shape.dims, input->shape, (size_t)input->rank * sizeof input->shape[0]);
    }
}

// --- outputs ---

// Names all outputs where some of them need a region: locations go by name.
static void expand_outputs(struct inf_infer_request *message, struct inf_call *call,
                           const struct inf_metadata_cache *metadata)
{
    call->expanded = false;
    message->output_count = 0;
    if (metadata == NULL || !metadata->complete)
        return;
    for (uint32_t i = 0; i < metadata->count; i++)
        if (metadata->outputs[i].bytes >= INF_CLIENT_REGION_FROM_BYTES)
            call->expanded = true;
    if (!call->expanded)
        return;
    message->output_count = metadata->count;
    for (uint32_t i = 0; i < metadata->count; i++)
        message->outputs[i] = (struct inf_tensor_entry){.name = metadata->outputs[i].name};
}

// Gives outputs known to be large room in one region of the library's; where there is none, and not `must`, they
// come in the answer.
static enum inf_code place_outputs(inferd_client *client, struct inf_call *call,
                                   const struct inf_metadata_cache *metadata, bool must,
                                   struct inf_error *err)
{
    struct inf_infer_request *message = &client->message.infer_request;
    size_t end = 0;
    if (metadata == NULL)
        return INF_OK;
    for (uint32_t i = 0; i < message->output_count; i++) {
        struct inf_tensor_entry *output = &message->outputs[i];
        const struct inf_metadata_cache_output *known =
            inf_metadata_cache_output(metadata, output->name);
        if (output->location.present || output->session_tensor != NULL || known == NULL ||
            known->bytes < INF_CLIENT_REGION_FROM_BYTES)
            continue;
        size_t offset = inf_size_align(end, INF_FRAME_DATA_ALIGNMENT);
        end = offset + known->bytes;
        // As above, an id that no region has marks those whose region is to be made.
        output->location = (struct inf_location){true, UINT64_MAX, offset, known->bytes};
    }
    if (end == 0)
        return INF_OK;
    enum inf_code code = inf_memory_acquire_block(client, end, &call->output_block, err);
    if (code != INF_OK && must)
        return code;
    if (code != INF_OK)
        inf_call_note_plain(client, call);
    for (uint32_t i = 0; i < message->output_count; i++) {
        struct inf_location *location = &message->outputs[i].location;
        if (location->region_id == UINT64_MAX && code == INF_OK)
            location->region_id = call->output_block->region_id;
        else if (location->region_id == UINT64_MAX)
            *location = (struct inf_location){.present = false};
    }
    return INF_OK;
}

static size_t entry_bound(const struct inf_tensor_entry *entry)
{
    return TENSOR_META_BYTES + strlen(entry->name) +
           (entry->session_tensor != NULL ? strlen(entry->session_tensor) : 0);
}

// The bytes of metadata, at most.
static size_t meta_bound(const struct inf_infer_request *message)
{
    size_t size = REQUEST_META_BYTES + strlen(message->model_name) +
                  strlen(message->model_version) + strlen(message->id) + strlen(message->device) +
                  strlen(message->mode) + strlen(message->precision);
    for (uint32_t i = 0; i < message->input_count; i++)
        size += entry_bound(&message->inputs[i]);
    for (uint32_t i = 0; i < message->output_count; i++)
        size += entry_bound(&message->outputs[i]);
    return size;
}

// --- sending ---

static void fill_request(inferd_client *client, struct inf_call *call,
                         const inferd_request *request)
{
    struct inf_infer_request *message = &client->message.infer_request;
    message->model_name = request->model;
    message->model_version = request->version != NULL ? request->version : "";
    message->id = request->id != NULL ? request->id : "";
    message->device = request->device != NULL ? request->device : "";
    message->timeout_ns = call->deadline_ns == 0 ? 0 : call->deadline_ns - call->start_ns;
    message->queue_timeout_ns = client->queue_timeout_ns;
    message->priority = (enum inf_wire_priority)request->priority;
    message->order_key = request->order_key;
    message->session_id = request->session != NULL ? request->session->id : 0;
    message->mode = client->mode;
    message->precision = client->precision;
    message->against = NULL; // for looking into models
    message->tolerance = 0;
    fill_inputs(message, request);
    message->output_count = (uint32_t)request->output_count;
    for (size_t i = 0; i < request->output_count; i++) {
        const inferd_tensor *output = &request->outputs[i];
        message->outputs[i] = (struct inf_tensor_entry){.name = output->name,
                                                        .session_tensor = output->session_tensor};
        if (output->memory != NULL)
            message->outputs[i].location = (struct inf_location){
                .present = true,
                .region_id = output->memory->region_id,
                .offset = (uint64_t)((const uint8_t *)output->data - output->memory->data),
                .length = output->size,
            };
    }
}

static enum inf_code keep_memories(struct inf_call *call, const inferd_request *request,
                                   struct inf_error *err)
{
    for (size_t i = 0; i < request->input_count; i++)
        if (request->inputs[i].memory != NULL)
            INF_TRY(keep_memory(call, request->inputs[i].memory, err));
    for (size_t i = 0; i < request->output_count; i++)
        if (request->outputs[i].memory != NULL)
            INF_TRY(keep_memory(call, request->outputs[i].memory, err));
    return INF_OK;
}

// Encodes client->message as call->frame, with room for `data_bytes` behind it.
static enum inf_code make_frame(inferd_client *client, struct inf_call *call, size_t data_bytes,
                                struct inf_error *err)
{
    size_t capacity =
        INF_FRAME_HEADER_BYTES + meta_bound(&client->message.infer_request) + data_bytes;
    INF_TRY(inf_outgoing_acquire(client, capacity, &call->frame, err));
    INF_TRY(
        inf_outgoing_encode(client, call->frame, &client->message, INF_MESSAGE_INFER_REQUEST, err));
    call->frame->size += data_bytes;
    return INF_OK;
}

static enum inf_code build(inferd_client *client, struct inf_call *call,
                           const inferd_request *request, struct inf_error *err)
{
    struct inf_infer_request *message = &client->message.infer_request;
    fill_request(client, call, request);
    INF_TRY(keep_memories(call, request, err));
    if (inf_call_refused(call) != NULL)
        inf_call_note_plain(client, call);
    INF_TRY(inf_fallback_outputs(call, message, err));
    size_t data_bytes = 0;
    INF_TRY(place_inputs(client, call, request, &data_bytes, err));
    const struct inf_metadata_cache *metadata =
        inf_metadata_cache_find(client, call->model, call->version);
    // What a session's request returns is not all that the model gives.
    call->once = request->session != NULL || request->order_key != 0;
    call->default_outputs = request->output_count == 0 && request->session == NULL;
    if (call->default_outputs)
        expand_outputs(message, call, metadata);
    INF_TRY(place_outputs(client, call, metadata, false, err));
    INF_TRY(make_frame(client, call, data_bytes, err));
    copy_inline(message, request,
                call->frame->bytes + INF_FRAME_HEADER_BYTES + call->frame->meta_size, data_bytes);
    return INF_OK;
}

static size_t data_size(const struct inf_outgoing *frame)
{
    return frame->size - INF_FRAME_HEADER_BYTES - frame->meta_size;
}

enum inf_code inf_client_may_send_bytes(const inferd_client *client, size_t bytes,
                                        struct inf_error *err)
{
    if (bytes == 0 || client->credit_bytes == 0 || client->bytes_in_flight == 0 ||
        inf_range_ok(client->bytes_in_flight, bytes, client->credit_bytes))
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                           "%zu bytes beside those of requests in flight are more than the daemon "
                           "allows, %llu",
                           bytes, (unsigned long long)client->credit_bytes);
}

enum inf_code inf_infer_start(inferd_client *client, const inferd_request *request,
                              const struct inf_infer_answer *answer, struct inf_call **out_call,
                              struct inf_error *err)
{
    uint64_t start_ns = inf_client_now_ns();
    // Without a connection, an asynchronous request may wait for the next one.
    bool again = !answer->waited && client->retry_ns != 0;
    enum inf_code ready = inf_client_may_send(client, err);
    if (ready != INF_OK && (ready != INF_UNAVAILABLE || !again))
        return ready;
    struct inf_error why = ready != INF_OK ? *err : (struct inf_error){.code = INF_OK};
    INF_TRY(inf_request_check(client, request, err));
    INF_TRY(inf_model_check(client, request, err));
    struct inf_call *call = inf_call_acquire(client, err);
    if (call == NULL)
        return INF_EXHAUSTED;
    call->phase = INF_CALL_INFER;
    call->callback = answer->callback;
    call->waited = answer->waited;
    call->context = answer->context;
    call->start_ns = start_ns;
    call->attempts = 1;
    snprintf(call->model, sizeof call->model, "%s", request->model); // checked: they fit
    snprintf(call->version, sizeof call->version, "%s",
             request->version != NULL ? request->version : "");
    uint64_t timeout_ns;
    if (request->timeout_ms != 0 &&
        !__builtin_mul_overflow(request->timeout_ms, (uint64_t)1000000, &timeout_ns) &&
        timeout_ns < UINT64_MAX / 2) { // centuries are for ever
        call->deadline_ns = start_ns + timeout_ns;
        call->guard_ns = call->deadline_ns + INF_CLIENT_GRACE_NS;
    }
    enum inf_code code = build(client, call, request, err);
    if (code == INF_OK)
        code = inf_client_may_send_bytes(client, data_size(call->frame), err);
    if (code != INF_OK) {
        inf_call_finish(client, call, true);
        return code;
    }
    if (again)
        call->retry_until_ns = start_ns + client->retry_ns;
    if (again && call->deadline_ns != 0)
        call->retry_until_ns = INF_MIN(call->retry_until_ns, call->deadline_ns);
    if (ready != INF_OK && !inf_call_park(client, call, &why, 0)) {
        inf_call_finish(client, call, true);
        *err = why;
        return ready;
    }
    client->waiting_count++;
    client->statistics.requests++;
    *out_call = call;
    if (ready != INF_OK) {
        call->handle = client->next_stream++;
        return INF_OK;
    }
    inf_call_send(client, call, call->frame, INF_METHOD_MODEL_INFER);
    return INF_OK;
}

// Fills the data of a frame that is sent again: with those of the old one, and behind them inputs that were elsewhere.
static void copy_again(const struct inf_infer_request *message, struct inf_outgoing *frame,
                       const struct inf_outgoing *old,
                       const uint8_t *const sources[INF_LIMIT_TENSORS])
{
    uint8_t *data = frame->bytes + INF_FRAME_HEADER_BYTES + frame->meta_size;
    size_t end = data_size(old);
    if (end > 0)
        memcpy(data, old->bytes + INF_FRAME_HEADER_BYTES + old->meta_size, end);
    for (uint32_t i = 0; i < message->input_count; i++) {
        const struct inf_location *location = &message->inputs[i].location;
        if (sources[i] == NULL)
            continue;
        memset(data + end, 0, location->offset - end);
        memcpy(data + location->offset, sources[i], location->length);
        end = location->offset + location->length;
    }
}

enum inf_code inf_infer_resend(inferd_client *client, struct inf_call *call, struct inf_error *err)
{
    if (client->draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon is shutting down and takes no new requests");
    uint64_t now_ns = inf_client_now_ns();
    if (call->deadline_ns != 0 && now_ns >= call->deadline_ns)
        return inf_fail(err, INF_DEADLINE, "the time ran out before the outputs had a place");
    struct inf_outgoing *old = call->frame;
    struct inf_infer_request *message = &client->message.infer_request;
    struct inf_span meta = {old->bytes + INF_FRAME_HEADER_BYTES, old->meta_size};
    call->attempts++;
    client->statistics.sent_again++;
    INF_TRY(inf_message_decode(&client->message, INF_MESSAGE_INFER_REQUEST, meta, client->scratch,
                               err));
    if (call->deadline_ns != 0)
        message->timeout_ns = call->deadline_ns - now_ns;
    const uint8_t *sources[INF_LIMIT_TENSORS];
    bool refused = inf_call_refused(call) != NULL;
    size_t old_bytes = data_size(old);
    size_t data_bytes = inf_fallback_inputs(call, message, old_bytes, sources);
    if (data_bytes > inf_client_request_data_max(client))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "%zu bytes of inputs are too many for the socket, and the daemon "
                               "refused the shared memory: %s",
                               data_bytes, inf_call_refused(call)->refusal);
    INF_TRY(inf_fallback_outputs(call, message, err));
    if (refused)
        inf_call_note_plain(client, call);
    for (uint32_t i = 0; i < message->output_count && call->output_block != NULL; i++)
        if (message->outputs[i].location.region_id == call->output_block->region_id)
            message->outputs[i].location = (struct inf_location){.present = false};
    inf_memory_unref(&call->output_block, true);
    const struct inf_metadata_cache *metadata =
        inf_metadata_cache_find(client, call->model, call->version);
    if (call->default_outputs)
        expand_outputs(message, call, metadata);
    // Where an answer without room was the reason, another try without it makes no sense.
    INF_TRY(place_outputs(client, call, metadata, !refused, err));
    call->frame = NULL;
    enum inf_code code = make_frame(client, call, data_bytes, err);
    if (code == INF_OK)
        copy_again(message, call->frame, old, sources);
    inf_outgoing_release(client, &old);
    if (code != INF_OK)
        return code;
    if (call->input_block != NULL && call->input_block->refused)
        inf_memory_unref(&call->input_block, true);
    call->phase = INF_CALL_INFER;
    inf_call_send(client, call, call->frame, INF_METHOD_MODEL_INFER);
    return INF_OK;
}

// --- the public side ---

int inferd_infer_async(inferd_client *client, const inferd_request *request,
                       inferd_callback callback, void *context, uint64_t *stream,
                       struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    struct inf_call *call = NULL;
    if (request == NULL || callback == NULL) {
        inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER,
                        "a request and a callback are wanted");
        return inf_client_report(err, &error);
    }
    inf_client_enter(client);
    const struct inf_infer_answer answer = {.callback = callback, .context = context};
    enum inf_code code = inf_infer_start(client, request, &answer, &call, &error);
    if (code == INF_OK && stream != NULL)
        *stream = call->handle;
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report(err, &error);
}

static enum inf_code cancel(inferd_client *client, uint64_t stream, struct inf_error *err)
{
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS; i++) {
        for (struct inf_call *call = client->buckets[i]; call != NULL;
             call = call->next_in_bucket) {
            if (call->handle != stream || call->phase == INF_CALL_CONTROL || call->ended)
                continue;
            call->cancelled = true;
            inf_call_cancel(client, call);
            return INF_OK;
        }
    }
    if (inf_parked_cancel(client, stream))
        return INF_OK;
    return inf_fail(err, INF_NOT_FOUND, "no request %llu is in flight", (unsigned long long)stream);
}

int inferd_cancel(inferd_client *client, uint64_t stream, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    inf_client_enter(client);
    enum inf_code code = cancel(client, stream, &error);
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report(err, &error);
}
