// SPDX-License-Identifier: Apache-2.0
// Handles the answer to an inference: the answer becomes a result or a failure, or the library
// sends the inference again with more room for its outputs.
//
// The library does not know how large outputs are when it sends the first request for a model. The
// daemon computes the sizes before it runs the model, and refuses a request whose outputs do not
// fit; so a second try costs no inference. If the refusal names the output and its size, the
// library uses that size. Otherwise it asks for the model's metadata, or doubles the room. The
// sizes are remembered (metadata_cache.h): later requests succeed the first time.
#include "client/lib/infer/reply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/infer/fallback.h"
#include "client/lib/infer/infer.h"
#include "proto/core/shape.h"
#include "proto/core/span.h"
#include "proto/core/tensor_name.h"

// Room for an output of unknown size. The data segment of an answer is never larger.
#define UNKNOWN_OUTPUT_BYTES ((size_t)1 << 20)
// A limit that is never reached in practice, because each attempt learns the size of at least one
// output.
#define ATTEMPTS_MAX (INF_LIMIT_TENSORS + 8)

// Returns the bytes of an output at `location`: in the answer's data, or in a region of the call.
// Returns NULL if the call has no such region. Sets *memory if the region belongs to the caller.
static uint8_t *find_output_data(const inferd_client *client, const struct inf_client_call *call,
                                 uint8_t *data, const struct inf_location *location,
                                 inferd_memory **memory)
{
    *memory = NULL;
    if (location->region_id == 0)
        return data == NULL ? NULL : data + location->offset; // the decoder has checked the offset
    inferd_memory *region = inf_client_region_find(client, location->region_id);
    bool is_library = region != NULL && region == call->output_region;
    for (size_t i = 0; i < call->memory_count && region != NULL && !is_library; i++)
        if (call->memories[i] == region)
            *memory = region;
    if ((!is_library && *memory == NULL) ||
        !inf_range_ok(location->offset, location->length, region->size))
        return NULL;
    return region->data + location->offset;
}

static const char *append_text(char **end, const char *text)
{
    char *start = *end;
    size_t size = strlen(text) + 1;
    memcpy(start, text, size);
    *end = start + size;
    return start;
}

static size_t sum_text_size(const struct inf_infer_reply *reply)
{
    size_t size = strlen(reply->model_version) + strlen(reply->device) + strlen(reply->precision) +
                  strlen(reply->id) + 4;
    for (uint32_t i = 0; i < reply->output_count; i++)
        size += strlen(reply->outputs[i].name) + 1;
    return size;
}

static void fill_properties(inferd_result *result, const struct inf_client_call *call,
                            const struct inf_infer_reply *reply, char *text)
{
    result->model_version = append_text(&text, reply->model_version);
    result->batch_size = reply->batch_size;
    result->padded_size = INF_MAX(reply->padded_to, reply->batch_size);
    result->flags = reply->flags;
    result->threads = reply->timing.threads;
    result->core_ns = reply->timing.core_ns;
    result->device = append_text(&text, reply->device);
    result->precision = append_text(&text, reply->precision);
    result->id = append_text(&text, reply->id);
    result->timing = (inferd_timing){
        .queue_ns = reply->timing.queue_ns,
        .input_ns = reply->timing.input_ns,
        .compute_ns = reply->timing.compute_ns,
        .output_ns = reply->timing.output_ns,
        .total_ns = inf_client_now_ns() - call->start_ns,
    };
    result->output_count = reply->output_count;
    for (uint32_t i = 0; i < reply->output_count; i++)
        result->outputs[i].name = append_text(&text, reply->outputs[i].name);
}

// Fills the outputs of a result, except for their names.
static enum inf_code fill_outputs(inferd_client *client, const struct inf_client_call *call,
                                  inferd_result *result, uint8_t *data, struct inf_error *err)
{
    const struct inf_infer_reply *reply = &client->message.infer_reply;
    for (uint32_t i = 0; i < reply->output_count; i++) {
        const struct inf_tensor_entry *entry = &reply->outputs[i];
        inferd_tensor *output = &result->outputs[i];
        output->dtype = (inferd_dtype)entry->dtype;
        output->rank = entry->shape.rank;
        memcpy(output->shape, entry->shape.dims, sizeof output->shape);
        output->size = entry->location.length;
        output->data = find_output_data(client, call, data, &entry->location, &output->memory);
        if (output->data == NULL && output->size != 0)
            return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME,
                                   "output '%s' is in region %llu, at %llu, where no output was "
                                   "asked for",
                                   entry->name, (unsigned long long)entry->location.region_id,
                                   (unsigned long long)entry->location.offset);
    }
    return INF_OK;
}

// Records the sizes of the outputs in the metadata cache. If there is no memory, nothing is
// recorded.
static void remember_sizes(inferd_client *client, const struct inf_client_call *call)
{
    const struct inf_infer_reply *reply = &client->message.infer_reply;
    struct inf_client_metadata *metadata =
        inf_client_metadata_cache_add(&client->metadata, call->model, call->version);
    if (metadata == NULL)
        return;
    if (metadata->info != NULL && strcmp(metadata->info->version, reply->model_version) != 0)
        inf_client_metadata_drop_info(metadata);
    bool all = call->default_outputs && !call->outputs_listed;
    if (strcmp(metadata->version_got, reply->model_version) != 0 ||
        (all && (!metadata->complete || metadata->count != reply->output_count))) {
        inf_client_metadata_clear_outputs(metadata);
        snprintf(metadata->version_got, sizeof metadata->version_got, "%s", reply->model_version);
        metadata->complete = all;
    }
    for (uint32_t i = 0; i < reply->output_count; i++)
        if (!inf_client_metadata_note_output(metadata, reply->outputs[i].name,
                                             reply->outputs[i].location.length))
            metadata->complete = false;
    if (all && metadata->count != reply->output_count)
        // The recorded list has an output that is not in this answer, so mark the list as
        // incomplete until the next answer.
        metadata->complete = false;
}

// The failure of an inference, copied from client->message because sending the inference again
// overwrites that message.
struct refusal {
    struct inf_error error;
    uint32_t retry_after_ms;
    char tensor[INF_LIMIT_TENSOR_NAME + 1];
    size_t needed_bytes; // size of the output that did not fit; 0: unknown
};

static void copy_refusal(struct refusal *refusal, const struct inf_status *status)
{
    inf_error_from_status(&refusal->error, status);
    refusal->retry_after_ms = status->retry_after_ms;
    snprintf(refusal->tensor, sizeof refusal->tensor, "%s", status->tensor);
    errno = 0;
    char *end = NULL;
    unsigned long long needed = strtoull(status->expected, &end, 10);
    bool is_number = end != status->expected && *end == '\0' && errno == 0;
    refusal->needed_bytes = is_number && needed <= INF_LIMIT_TENSOR_BYTES ? (size_t)needed : 0;
}

static bool is_too_small(const struct refusal *refusal)
{
    return (refusal->error.code == INF_RANGE &&
            refusal->error.reason == INF_REASON_OUTPUT_TOO_SMALL) ||
           (refusal->error.code == INF_EXHAUSTED &&
            refusal->error.reason == INF_REASON_FRAME_TOO_LARGE);
}

// Enlarges the recorded sizes of the outputs that may have been too small. Returns false if no
// output can be enlarged, for example because the caller's own memory is too small.
static bool grow_outputs(inferd_client *client, struct inf_client_call *call,
                         const struct refusal *refusal)
{
    struct inf_infer_request *request = &client->message.infer_request;
    struct inf_span meta = {call->frame->bytes + INF_FRAME_HEADER_BYTES, call->frame->meta_size};
    struct inf_error ignored;
    struct inf_client_metadata *metadata =
        inf_client_metadata_cache_add(&client->metadata, call->model, call->version);
    if (metadata == NULL || inf_message_decode(&client->message, INF_MESSAGE_INFER_REQUEST, meta,
                                               client->scratch, &ignored) != INF_OK)
        return false;
    bool in_answer = refusal->error.reason == INF_REASON_FRAME_TOO_LARGE;
    bool grown = false;
    // A request that lists no outputs gets all outputs of the model in the answer's data, none of
    // them in a region.
    uint32_t count = request->output_count == 0 ? metadata->count : request->output_count;
    for (uint32_t i = 0; i < count; i++) {
        const char *name =
            request->output_count == 0 ? metadata->outputs[i].name : request->outputs[i].name;
        bool placed = request->output_count != 0 && request->outputs[i].location.present;
        bool is_caller =
            placed && (call->output_region == NULL ||
                       request->outputs[i].location.region_id != call->output_region->region_id);
        if (is_caller || placed == in_answer ||
            (refusal->tensor[0] != '\0' && !inf_tensor_name_matches(refusal->tensor, name)))
            continue;
        const struct inf_client_metadata_output *known =
            inf_client_metadata_find_output(metadata, name);
        size_t bytes = refusal->tensor[0] != '\0' ? refusal->needed_bytes : 0;
        size_t known_bytes = known != NULL ? known->bytes : 0;
        if (bytes <= known_bytes)
            bytes = INF_MAX(known_bytes * 2, UNKNOWN_OUTPUT_BYTES);
        if (bytes > INF_LIMIT_TENSOR_BYTES)
            return false;
        grown = inf_client_metadata_note_output(metadata, name, bytes) || grown;
    }
    return grown;
}

// Asks the daemon for the names and sizes of the model's outputs. When the answer arrives,
// handle_metadata() sends the inference again.
static bool ask_metadata(inferd_client *client, struct inf_client_call *call)
{
    struct inf_error ignored;
    struct inf_client_outgoing *question = NULL;
    if (client->connection.draining)
        return false;
    client->control.model =
        (struct inf_model_request){.name = call->model, .version = call->version};
    size_t capacity = INF_FRAME_HEADER_BYTES + 256; // room for the names of a model and a version
    if (inf_client_outgoing_acquire(client, capacity, &question, &ignored) != INF_OK)
        return false;
    bool ok = inf_client_outgoing_encode(client, question, &client->control,
                                         INF_MESSAGE_MODEL_METADATA_REQUEST, &ignored) == INF_OK;
    if (ok) {
        call->phase = INF_CLIENT_CALL_METADATA;
        inf_client_call_send(client, call, question, INF_METHOD_MODEL_METADATA);
    }
    inf_client_outgoing_release(client, &question);
    return ok;
}

// Sends the inference again if that can succeed; otherwise returns false. The call must have been
// removed from the table of calls.
static bool resend_if_useful(inferd_client *client, struct inf_client_call *call,
                             struct refusal *refusal)
{
    if (call->ended || call->cancelled || call->no_resend || call->phase != INF_CLIENT_CALL_INFER ||
        call->attempts >= ATTEMPTS_MAX)
        return false;
    struct inf_client_metadata *metadata =
        inf_client_metadata_cache_find(&client->metadata, call->model, call->version);
    if (call->outputs_listed && refusal->error.reason == INF_REASON_TENSOR_UNKNOWN) {
        if (metadata != NULL)
            inf_client_metadata_clear_outputs(metadata); // the model was replaced by another one
    } else if (refusal->error.reason == INF_REASON_REGION_NOT_FOUND) {
        if (inf_client_fallback_find_refused(call) == NULL)
            return false;
    } else if (!is_too_small(refusal)) {
        return false;
    } else if (call->default_outputs && (metadata == NULL || !metadata->complete)) {
        return ask_metadata(client, call);
    } else if (!grow_outputs(client, call, refusal)) {
        return false;
    }
    struct inf_error failure;
    if (inf_client_infer_resend(client, call, &failure) == INF_OK)
        return true;
    refusal->error = failure;
    refusal->retry_after_ms = 0;
    return false;
}

// Returns whether the daemon no longer uses the memory of a request that failed with this error.
// After a timeout or a cancellation the device may still be running, unless the request was never
// started.
static bool is_memory_released(const struct inf_error *error)
{
    if (inf_client_retry_is_safe(error->code, error->reason))
        return true;
    switch (error->code) {
    case INF_DEADLINE:
        return error->reason == INF_REASON_IN_QUEUE || error->reason == INF_REASON_PREDICTED ||
               error->reason == INF_REASON_LOADING;
    case INF_CANCELLED:
    case INF_ABORTED:
    case INF_INTERNAL:
    case INF_UNAVAILABLE:
        return false;
    default:
        return true;
    }
}

// If the daemon does not know a region because it refused that region, replaces the error with the
// reason for the refusal.
static void explain_region(const struct inf_client_call *call, struct inf_error *error)
{
    if (error->reason != INF_REASON_REGION_NOT_FOUND)
        return;
    const inferd_memory *refused = inf_client_fallback_find_refused(call);
    if (refused != NULL)
        inf_fail_reason(error, INF_EXHAUSTED, INF_REASON_REGION_NOT_FOUND,
                        "the daemon refused the shared memory: %s", refused->refusal);
}

static void end_or_retry(inferd_client *client, struct inf_client_call *call,
                         struct refusal *refusal)
{
    if (inf_client_retry_is_safe(refusal->error.code, refusal->error.reason) &&
        inf_client_retry_queue_push(client, call, &refusal->error, refusal->retry_after_ms))
        return;
    explain_region(call, &refusal->error);
    inf_client_call_end(client, call, &refusal->error, refusal->retry_after_ms);
    inf_client_call_release(client, call, is_memory_released(&refusal->error));
}

void inf_client_reply_handle_failure(inferd_client *client, struct inf_client_call *call)
{
    struct refusal refusal;
    copy_refusal(&refusal, &client->message.status);
    inf_client_call_remove(client, call, 1);
    if (!resend_if_useful(client, call, &refusal))
        end_or_retry(client, call, &refusal);
}

// Records the outputs of the model, and sends the inference again.
static bool handle_metadata(inferd_client *client, struct inf_client_call *call,
                            const struct inf_frame *frame, struct inf_error *err)
{
    if (inf_message_decode(&client->message, INF_MESSAGE_MODEL_METADATA, frame->meta,
                           client->scratch, err) != INF_OK)
        return false;
    const struct inf_model_metadata *model = &client->message.model_metadata;
    inf_client_call_remove(client, call, 1);
    struct refusal refusal = {.error = {.code = INF_CANCELLED,
                                        .reason = INF_REASON_BY_CLIENT,
                                        .text = "cancelled by the client"}};
    struct inf_client_metadata *metadata =
        inf_client_metadata_cache_add(&client->metadata, call->model, call->version);
    if (metadata != NULL) {
        inf_client_metadata_clear_outputs(metadata);
        metadata->complete = true;
        snprintf(metadata->version_got, sizeof metadata->version_got, "%s", model->version);
        for (uint32_t i = 0; i < model->output_count; i++) {
            size_t bytes = 0;
            if (model->outputs[i].dtype == INF_DTYPE_BYTES ||
                !inf_shape_bytes(&model->outputs[i].shape, model->outputs[i].dtype, &bytes))
                bytes = UNKNOWN_OUTPUT_BYTES;
            if (!inf_client_metadata_note_output(metadata, model->outputs[i].name, bytes))
                metadata->complete = false;
        }
    }
    if (call->cancelled || call->ended ||
        inf_client_infer_resend(client, call, &refusal.error) != INF_OK)
        end_or_retry(client, call, &refusal);
    return true;
}

// Returns whether the listed outputs come from another version of the model than the version that
// answered, which may have other outputs.
static bool is_outdated(inferd_client *client, const struct inf_client_call *call)
{
    if (!call->outputs_listed || call->no_resend)
        return false;
    struct inf_client_metadata *metadata =
        inf_client_metadata_cache_find(&client->metadata, call->model, call->version);
    const char *version = client->message.infer_reply.model_version;
    if (metadata != NULL && strcmp(metadata->version_got, version) == 0)
        return false;
    if (metadata != NULL)
        inf_client_metadata_clear_outputs(metadata);
    return true;
}

static bool take_result(inferd_client *client, struct inf_client_call *call,
                        struct inf_frame *frame, struct inf_error *err)
{
    const struct inf_infer_reply *reply = &client->message.infer_reply;
    inferd_result *result = NULL;
    struct inf_error failure;
    if (inf_client_result_acquire(client, reply->output_count, sum_text_size(reply), &result,
                                  &failure) != INF_OK) {
        inf_client_call_remove(client, call, reply->credit_return);
        inf_client_call_end(client, call, &failure, 0);
        inf_client_call_release(client, call, true);
        return true;
    }
    fill_properties(result, call, reply, result->text);
    if (fill_outputs(client, call, result, frame->data, err) != INF_OK) {
        inf_client_result_release(result);
        return false;
    }
    remember_sizes(client, call);
    inf_client_call_remove(client, call, reply->credit_return);
    if (inf_client_fallback_copy_outputs(call, result, &failure) != INF_OK) {
        inf_client_result_release(result);
        inf_client_call_end(client, call, &failure, 0);
        inf_client_call_release(client, call, true);
        return true;
    }
    result->data = frame->data;
    result->data_size = frame->header.data_bytes;
    frame->data = NULL;
    result->output_region = call->output_region;
    call->output_region = NULL;
    call->result = result;
    inf_client_call_end(client, call, NULL, 0);
    inf_client_call_release(client, call, true);
    return true;
}

bool inf_client_reply_handle(inferd_client *client, struct inf_client_call *call,
                             struct inf_frame *frame, struct inf_error *err)
{
    if (call->phase == INF_CLIENT_CALL_METADATA)
        return handle_metadata(client, call, frame, err);
    struct inf_infer_reply *reply = &client->message.infer_reply;
    if (inf_message_decode(&client->message, INF_MESSAGE_INFER_REPLY, frame->meta, client->scratch,
                           err) != INF_OK ||
        inf_infer_reply_resolve_inline(reply, frame->header.data_bytes, err) != INF_OK)
        return false;
    if (call->ended) { // the caller was informed earlier, because the call timed out
        inf_client_call_remove(client, call, reply->credit_return);
        inf_client_call_release(client, call, true);
        return true;
    }
    if (!is_outdated(client, call) || call->attempts >= ATTEMPTS_MAX)
        return take_result(client, call, frame, err);
    inf_client_call_remove(client, call, reply->credit_return);
    struct refusal refusal = {.error = {.code = INF_OK}};
    if (inf_client_infer_resend(client, call, &refusal.error) != INF_OK)
        end_or_retry(client, call, &refusal);
    return true;
}
