// SPDX-License-Identifier: Apache-2.0
// Encodes a request of the caller as a frame, and sends the frame again if necessary.
//
// The encoded request is kept until the answer has come. To send it again, the library decodes it,
// changes the locations of the tensors and encodes it again, because the caller's structs may no
// longer exist.
#include "client/lib/infer/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/infer/fallback.h"
#include "client/lib/infer/model_check.h"
#include "client/lib/infer/request_check.h"
#include "client/lib/infer/tensor_placement.h"
#include "client/lib/io/credit.h"
#include "proto/core/span.h"

// Upper bounds of the encoded metadata in bytes: for one tensor without its name (type, shape of
// rank 8, location), and for all fields of a request that are not tensors.
#define TENSOR_META_BYTES  160u
#define REQUEST_META_BYTES 256u

static enum inf_code keep_memory(struct inf_client_call *call, inferd_memory *memory,
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
    inf_client_region_ref(memory);
    call->memories[call->memory_count++] = memory;
    return INF_OK;
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

static size_t bound_entry_size(const struct inf_tensor_entry *entry)
{
    return TENSOR_META_BYTES + strlen(entry->name) +
           (entry->session_tensor != NULL ? strlen(entry->session_tensor) : 0);
}

// Returns an upper bound of the encoded metadata, in bytes.
static size_t bound_meta_size(const struct inf_infer_request *message)
{
    size_t size = REQUEST_META_BYTES + strlen(message->model_name) +
                  strlen(message->model_version) + strlen(message->id) + strlen(message->device) +
                  strlen(message->mode) + strlen(message->precision) +
                  strlen(message->traceparent) + strlen(message->tracestate);
    for (uint32_t i = 0; i < message->input_count; i++)
        size += bound_entry_size(&message->inputs[i]);
    for (uint32_t i = 0; i < message->output_count; i++)
        size += bound_entry_size(&message->outputs[i]);
    return size;
}

static void fill_request(inferd_client *client, struct inf_client_call *call,
                         const inferd_request *request)
{
    struct inf_infer_request *message = &client->message.infer_request;
    message->model_name = request->model;
    message->model_version = request->version != NULL ? request->version : "";
    message->id = request->id != NULL ? request->id : "";
    message->device = request->device != NULL ? request->device : "";
    message->timeout_ns = call->deadline_ns == 0 ? 0 : call->deadline_ns - call->start_ns;
    message->queue_timeout_ns = client->options.queue_timeout_ns;
    message->priority = (enum inf_wire_priority)request->priority;
    message->order_key = request->order_key;
    message->session_id = request->session != NULL ? request->session->id : 0;
    message->mode = client->options.mode;
    message->precision = client->options.precision;
    message->traceparent = client->options.traceparent;
    message->tracestate = client->options.tracestate;
    message->against = NULL; // a field that only inferd_inspect() uses
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

static enum inf_code keep_memories(struct inf_client_call *call, const inferd_request *request,
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

// Encodes client->message as call->frame, with room for `data_bytes` after the metadata.
static enum inf_code encode_frame(inferd_client *client, struct inf_client_call *call,
                                  size_t data_bytes, struct inf_error *err)
{
    size_t capacity =
        INF_FRAME_HEADER_BYTES + bound_meta_size(&client->message.infer_request) + data_bytes;
    INF_TRY(inf_client_outgoing_acquire(client, capacity, &call->frame, err));
    INF_TRY(inf_client_outgoing_encode(client, call->frame, &client->message,
                                       INF_MESSAGE_INFER_REQUEST, err));
    call->frame->size += data_bytes;
    return INF_OK;
}

static enum inf_code build_frame(inferd_client *client, struct inf_client_call *call,
                                 const inferd_request *request, struct inf_error *err)
{
    struct inf_infer_request *message = &client->message.infer_request;
    fill_request(client, call, request);
    INF_TRY(keep_memories(call, request, err));
    if (inf_client_fallback_find_refused(call) != NULL)
        inf_client_fallback_count(client, call);
    INF_TRY(inf_client_fallback_move_outputs(call, message, err));
    size_t data_bytes = 0;
    INF_TRY(inf_client_tensor_placement_place_inputs(client, call, request, &data_bytes, err));
    const struct inf_client_metadata *metadata =
        inf_client_metadata_cache_find(&client->metadata, call->model, call->version);
    // The sizes are not remembered for a request with a session, because the answer contains only a
    // part of the outputs.
    call->no_resend = request->session != NULL || request->order_key != 0;
    call->default_outputs = request->output_count == 0 && request->session == NULL;
    if (call->default_outputs)
        inf_client_tensor_placement_list_outputs(message, call, metadata);
    INF_TRY(inf_client_tensor_placement_place_outputs(client, call, metadata, false, err));
    INF_TRY(encode_frame(client, call, data_bytes, err));
    inf_client_tensor_placement_copy_inline(message, request, inf_client_outgoing_data(call->frame),
                                            data_bytes);
    return INF_OK;
}

enum inf_code inf_client_infer_start(inferd_client *client, const inferd_request *request,
                                     const struct inf_client_infer_target *target,
                                     struct inf_client_call **out_call, struct inf_error *err)
{
    uint64_t start_ns = inf_client_now_ns();
    // Without a connection, an asynchronous request may wait in the retry queue.
    bool may_retry = !target->blocking && client->retry.limit_ns != 0;
    enum inf_code ready = inf_client_credit_check_request(client, err);
    if (ready != INF_OK && (ready != INF_UNAVAILABLE || !may_retry))
        return ready;
    struct inf_error why = ready != INF_OK ? *err : (struct inf_error){.code = INF_OK};
    INF_TRY(inf_client_request_check(client, request, err));
    INF_TRY(inf_client_model_check_cached(client, request, err));
    struct inf_client_call *call = inf_client_call_acquire(client, err);
    if (call == NULL)
        return INF_EXHAUSTED;
    call->phase = INF_CLIENT_CALL_INFER;
    call->callback = target->callback;
    call->internal_callback = target->blocking;
    call->context = target->context;
    call->start_ns = start_ns;
    call->attempts = 1;
    snprintf(call->model, sizeof call->model, "%s",
             request->model); // request_check.c has checked that the texts fit
    snprintf(call->version, sizeof call->version, "%s",
             request->version != NULL ? request->version : "");
    uint64_t timeout_ns;
    if (request->timeout_ms != 0 &&
        !__builtin_mul_overflow(request->timeout_ms, (uint64_t)1000000, &timeout_ns) &&
        // Treat a longer timeout, more than 200 years, as no limit.
        timeout_ns < UINT64_MAX / 2) {
        call->deadline_ns = start_ns + timeout_ns;
        call->give_up_ns = call->deadline_ns + INF_CLIENT_GRACE_NS;
    }
    enum inf_code code = build_frame(client, call, request, err);
    if (code == INF_OK)
        code =
            inf_client_credit_check_bytes(client, inf_client_outgoing_data_size(call->frame), err);
    if (code != INF_OK) {
        inf_client_call_release(client, call, true);
        return code;
    }
    if (may_retry)
        call->retry_until_ns = start_ns + client->retry.limit_ns;
    if (may_retry && call->deadline_ns != 0)
        call->retry_until_ns = INF_MIN(call->retry_until_ns, call->deadline_ns);
    if (ready != INF_OK && !inf_client_retry_queue_push(client, call, &why, 0)) {
        inf_client_call_release(client, call, true);
        *err = why;
        return ready;
    }
    client->calls.waiting_count++;
    client->statistics.requests++;
    *out_call = call;
    if (ready != INF_OK) {
        call->handle = client->connection.next_stream++;
        return INF_OK;
    }
    inf_client_call_send(client, call, call->frame, INF_METHOD_MODEL_INFER);
    return INF_OK;
}

// Fills the data of a frame that is sent again: first the data of the old frame, then the inputs
// that were in regions refused by the daemon (sources[i] != NULL).
static void copy_resent_data(const struct inf_infer_request *message,
                             struct inf_client_outgoing *frame,
                             const struct inf_client_outgoing *old,
                             const uint8_t *const sources[INF_LIMIT_TENSORS])
{
    uint8_t *data = inf_client_outgoing_data(frame);
    size_t end = inf_client_outgoing_data_size(old);
    if (end > 0)
        memcpy(data, inf_client_outgoing_data(old), end);
    for (uint32_t i = 0; i < message->input_count; i++) {
        const struct inf_location *location = &message->inputs[i].location;
        if (sources[i] == NULL)
            continue;
        memset(data + end, 0, location->offset - end);
        memcpy(data + location->offset, sources[i], location->length);
        end = location->offset + location->length;
    }
}

enum inf_code inf_client_infer_resend(inferd_client *client, struct inf_client_call *call,
                                      struct inf_error *err)
{
    if (client->connection.draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING,
                               "the daemon is shutting down and takes no new requests");
    uint64_t now_ns = inf_client_now_ns();
    if (call->deadline_ns != 0 && now_ns >= call->deadline_ns)
        return inf_fail(err, INF_DEADLINE, "the time ran out before the outputs had a place");
    struct inf_client_outgoing *old = call->frame;
    struct inf_infer_request *message = &client->message.infer_request;
    struct inf_span meta = {old->bytes + INF_FRAME_HEADER_BYTES, old->meta_size};
    call->attempts++;
    client->statistics.resent++;
    INF_TRY(inf_message_decode(&client->message, INF_MESSAGE_INFER_REQUEST, meta, client->scratch,
                               err));
    if (call->deadline_ns != 0)
        message->timeout_ns = call->deadline_ns - now_ns;
    const uint8_t *sources[INF_LIMIT_TENSORS];
    bool refused = inf_client_fallback_find_refused(call) != NULL;
    size_t old_bytes = inf_client_outgoing_data_size(old);
    size_t data_bytes = inf_client_fallback_move_inputs(call, message, old_bytes, sources);
    if (data_bytes > inf_client_send_queue_request_data_max(client))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "%zu bytes of inputs are too many for the socket, and the daemon "
                               "refused the shared memory: %s",
                               data_bytes, inf_client_fallback_find_refused(call)->refusal);
    INF_TRY(inf_client_fallback_move_outputs(call, message, err));
    if (refused)
        inf_client_fallback_count(client, call);
    for (uint32_t i = 0; i < message->output_count && call->output_region != NULL; i++)
        if (message->outputs[i].location.region_id == call->output_region->region_id)
            message->outputs[i].location = (struct inf_location){.present = false};
    inf_client_region_unref(&call->output_region, true);
    const struct inf_client_metadata *metadata =
        inf_client_metadata_cache_find(&client->metadata, call->model, call->version);
    if (call->default_outputs)
        inf_client_tensor_placement_list_outputs(message, call, metadata);
    // If the outputs were too large for the answer's data, they must be written to a region. If the
    // daemon refused a region, the outputs may also be sent through the socket.
    INF_TRY(inf_client_tensor_placement_place_outputs(client, call, metadata, !refused, err));
    call->frame = NULL;
    enum inf_code code = encode_frame(client, call, data_bytes, err);
    if (code == INF_OK)
        copy_resent_data(message, call->frame, old, sources);
    inf_client_outgoing_release(client, &old);
    if (code != INF_OK)
        return code;
    if (call->input_region != NULL && call->input_region->refused)
        inf_client_region_unref(&call->input_region, true);
    call->phase = INF_CLIENT_CALL_INFER;
    inf_client_call_send(client, call, call->frame, INF_METHOD_MODEL_INFER);
    return INF_OK;
}
