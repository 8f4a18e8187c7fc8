// SPDX-License-Identifier: Apache-2.0
// What becomes of an inference's answer: a result, a failure, or another try with more room for
// outputs. The daemon measures outputs before it runs a model, so trying again costs no inference.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"

// The room that an output of unknown size gets first; an answer's data segment is not larger.
#define UNKNOWN_OUTPUT_BYTES ((size_t)1 << 20)
// Each try finds at least one output's size.
#define ATTEMPTS_MAX (INF_LIMIT_TENSORS + 8)

// --- results ---

// Where an output lies that the daemon says is at `location`; NULL where it has no business there.
static uint8_t *find_bytes(const inferd_client *client, const struct inf_call *call, uint8_t *data,
                           const struct inf_location *location, inferd_memory **memory)
{
    *memory = NULL;
    if (location->region_id == 0)
        return data == NULL ? NULL : data + location->offset; // checked
    inferd_memory *region = inf_memory_find(client, location->region_id);
    bool ours = region != NULL && region == call->output_block;
    for (size_t i = 0; i < call->memory_count && region != NULL && !ours; i++)
        if (call->memories[i] == region)
            *memory = region;
    if ((!ours && *memory == NULL) ||
        !inf_range_ok(location->offset, location->length, region->size))
        return NULL;
    return region->data + location->offset;
}

static const char *put_text(char **end, const char *text)
{
    char *start = *end;
    size_t size = strlen(text) + 1;
    memcpy(start, text, size);
    *end = start + size;
    return start;
}

static size_t text_size(const struct inf_infer_reply *reply)
{
    size_t size = strlen(reply->model_version) + strlen(reply->device) + strlen(reply->precision) +
                  strlen(reply->id) + 4;
    for (uint32_t i = 0; i < reply->output_count; i++)
        size += strlen(reply->outputs[i].name) + 1;
    return size;
}

static void fill_facts(inferd_result *result, const struct inf_call *call,
                       const struct inf_infer_reply *reply, char *text)
{
    result->model_version = put_text(&text, reply->model_version);
    result->batch_size = reply->batch_size;
    result->padded_size = INF_MAX(reply->padded_to, reply->batch_size);
    result->flags = reply->flags;
    result->device = put_text(&text, reply->device);
    result->precision = put_text(&text, reply->precision);
    result->id = put_text(&text, reply->id);
    result->timing = (inferd_timing){
        .queue_ns = reply->timing.queue_ns,
        .input_ns = reply->timing.input_ns,
        .compute_ns = reply->timing.compute_ns,
        .output_ns = reply->timing.output_ns,
        .total_ns = inf_client_now_ns() - call->start_ns,
    };
    result->output_count = reply->output_count;
    for (uint32_t i = 0; i < reply->output_count; i++)
        result->outputs[i].name = put_text(&text, reply->outputs[i].name);
}

// Fills the outputs; names are in already.
static enum inf_code fill_outputs(inferd_client *client, const struct inf_call *call,
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
        output->data = find_bytes(client, call, data, &entry->location, &output->memory);
        if (output->data == NULL && output->size != 0)
            return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BAD_FRAME,
                                   "output '%s' is in region %llu, at %llu, where no output was "
                                   "asked for",
                                   entry->name, (unsigned long long)entry->location.region_id,
                                   (unsigned long long)entry->location.offset);
    }
    return INF_OK;
}

// Remembers how large the outputs were. Without memory it is just not remembered.
static void learn(inferd_client *client, const struct inf_call *call)
{
    const struct inf_infer_reply *reply = &client->message.infer_reply;
    struct inf_metadata_cache *metadata =
        inf_metadata_cache_make(client, call->model, call->version);
    if (metadata == NULL)
        return;
    if (metadata->info != NULL && strcmp(metadata->info->version, reply->model_version) != 0)
        inf_metadata_cache_forget_info(metadata);
    bool all = call->default_outputs && !call->expanded;
    if (strcmp(metadata->version_got, reply->model_version) != 0 ||
        (all && (!metadata->complete || metadata->count != reply->output_count))) {
        inf_metadata_cache_reset(metadata);
        snprintf(metadata->version_got, sizeof metadata->version_got, "%s", reply->model_version);
        metadata->complete = all;
    }
    for (uint32_t i = 0; i < reply->output_count; i++)
        if (!inf_metadata_cache_note(metadata, reply->outputs[i].name,
                                     reply->outputs[i].location.length))
            metadata->complete = false;
    if (all && metadata->count != reply->output_count)
        metadata->complete = false; // other names than before: the next answer tells them all
}

// --- trying again ---

// A failure, copied out of the message that resending overwrites.
struct refusal {
    struct inf_error error;
    uint32_t retry_after_ms;
    char tensor[INF_LIMIT_TENSOR_NAME + 1];
    size_t needed_bytes; // 0: not said
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

// Makes room for the outputs that may be meant. False where there are none: the caller's own memory
// is too small, or nothing can grow.
static bool grow(inferd_client *client, struct inf_call *call, const struct refusal *refusal)
{
    struct inf_infer_request *request = &client->message.infer_request;
    struct inf_span meta = {call->frame->bytes + INF_FRAME_HEADER_BYTES, call->frame->meta_size};
    struct inf_error ignored;
    struct inf_metadata_cache *metadata =
        inf_metadata_cache_make(client, call->model, call->version);
    if (metadata == NULL || inf_message_decode(&client->message, INF_MESSAGE_INFER_REQUEST, meta,
                                               client->scratch, &ignored) != INF_OK)
        return false;
    bool in_answer = refusal->error.reason == INF_REASON_FRAME_TOO_LARGE;
    bool grown = false;
    // Outputs that were not listed are those metadata, none of them in a region.
    uint32_t count = request->output_count == 0 ? metadata->count : request->output_count;
    for (uint32_t i = 0; i < count; i++) {
        const char *name =
            request->output_count == 0 ? metadata->outputs[i].name : request->outputs[i].name;
        bool placed = request->output_count != 0 && request->outputs[i].location.present;
        bool callers =
            placed && (call->output_block == NULL ||
                       request->outputs[i].location.region_id != call->output_block->region_id);
        if (callers || placed == in_answer ||
            (refusal->tensor[0] != '\0' && strcmp(refusal->tensor, name) != 0))
            continue;
        const struct inf_metadata_cache_output *known = inf_metadata_cache_output(metadata, name);
        size_t bytes = refusal->tensor[0] != '\0' ? refusal->needed_bytes : 0;
        size_t known_bytes = known != NULL ? known->bytes : 0;
        if (bytes <= known_bytes)
            bytes = INF_MAX(known_bytes * 2, UNKNOWN_OUTPUT_BYTES);
        if (bytes > INF_LIMIT_TENSOR_BYTES)
            return false;
        grown = inf_metadata_cache_note(metadata, name, bytes) || grown;
    }
    return grown;
}

// Asks for the outputs' names and sizes; the answer sends the inference again.
static bool ask_metadata(inferd_client *client, struct inf_call *call)
{
    struct inf_error ignored;
    struct inf_outgoing *question = NULL;
    if (client->draining)
        return false;
    client->control.model =
        (struct inf_model_request){.name = call->model, .version = call->version};
    size_t capacity = INF_FRAME_HEADER_BYTES + 256; // two short names
    if (inf_outgoing_acquire(client, capacity, &question, &ignored) != INF_OK)
        return false;
    bool ok = inf_outgoing_encode(client, question, &client->control,
                                  INF_MESSAGE_MODEL_METADATA_REQUEST, &ignored) == INF_OK;
    if (ok) {
        call->phase = INF_CALL_METADATA;
        inf_call_send(client, call, question, INF_METHOD_MODEL_METADATA);
    }
    inf_outgoing_release(client, &question);
    return ok;
}

// Sends the inference again where that helps; the call is out of the table. False: it does not help.
static bool try_again(inferd_client *client, struct inf_call *call, struct refusal *refusal)
{
    if (call->ended || call->cancelled || call->once || call->phase != INF_CALL_INFER ||
        call->attempts >= ATTEMPTS_MAX)
        return false;
    struct inf_metadata_cache *metadata =
        inf_metadata_cache_find(client, call->model, call->version);
    if (call->expanded && refusal->error.reason == INF_REASON_TENSOR_UNKNOWN) {
        if (metadata != NULL)
            inf_metadata_cache_reset(metadata); // the model has been replaced by another
    } else if (refusal->error.reason == INF_REASON_REGION_NOT_FOUND) {
        if (inf_call_refused(call) == NULL)
            return false;
    } else if (!is_too_small(refusal)) {
        return false;
    } else if (call->default_outputs && (metadata == NULL || !metadata->complete)) {
        return ask_metadata(client, call);
    } else if (!grow(client, call, refusal)) {
        return false;
    }
    struct inf_error failure;
    if (inf_infer_resend(client, call, &failure) == INF_OK)
        return true;
    refusal->error = failure;
    refusal->retry_after_ms = 0;
    return false;
}

// Whether the daemon is done with the request's memory. After a timeout or a cancel the device may
// still be at it, unless it never began.
static bool is_done(const struct inf_error *error)
{
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

// Where the daemon does not know a region, its own words about the registration say more.
static void explain_region(const struct inf_call *call, struct inf_error *error)
{
    if (error->reason != INF_REASON_REGION_NOT_FOUND)
        return;
    const inferd_memory *refused = inf_call_refused(call);
    if (refused != NULL)
        inf_fail_reason(error, INF_EXHAUSTED, INF_REASON_REGION_NOT_FOUND,
                        "the daemon refused the shared memory: %s", refused->refusal);
}

static void end_failed(inferd_client *client, struct inf_call *call, struct refusal *refusal)
{
    if (inf_reason_is_unbegun(refusal->error.code, refusal->error.reason) &&
        inf_call_park(client, call, &refusal->error, refusal->retry_after_ms))
        return;
    explain_region(call, &refusal->error);
    inf_call_end(client, call, &refusal->error, refusal->retry_after_ms);
    inf_call_finish(client, call, is_done(&refusal->error));
}

void inf_infer_refused(inferd_client *client, struct inf_call *call)
{
    struct refusal refusal;
    copy_refusal(&refusal, &client->message.status);
    inf_call_answered(client, call, 1);
    if (!try_again(client, call, &refusal))
        end_failed(client, call, &refusal);
}

// The model's outputs are known now: back to the inference.
static bool metadata_answer(inferd_client *client, struct inf_call *call,
                            const struct inf_frame *frame, struct inf_error *err)
{
    if (inf_message_decode(&client->message, INF_MESSAGE_MODEL_METADATA, frame->meta,
                           client->scratch, err) != INF_OK)
        return false;
    const struct inf_model_metadata *model = &client->message.model_metadata;
    inf_call_answered(client, call, 1);
    struct refusal refusal = {.error = {.code = INF_CANCELLED,
                                        .reason = INF_REASON_BY_CLIENT,
                                        .text = "cancelled by the client"}};
    struct inf_metadata_cache *metadata =
        inf_metadata_cache_make(client, call->model, call->version);
    if (metadata != NULL) {
        inf_metadata_cache_reset(metadata);
        metadata->complete = true;
        snprintf(metadata->version_got, sizeof metadata->version_got, "%s", model->version);
        for (uint32_t i = 0; i < model->output_count; i++) {
            size_t bytes = 0;
            if (!inf_shape_bytes(&model->outputs[i].shape, model->outputs[i].dtype, &bytes))
                bytes = UNKNOWN_OUTPUT_BYTES;
            if (!inf_metadata_cache_note(metadata, model->outputs[i].name, bytes))
                metadata->complete = false;
        }
    }
    if (call->cancelled || call->ended || inf_infer_resend(client, call, &refusal.error) != INF_OK)
        end_failed(client, call, &refusal);
    return true;
}

// The outputs were listed from what an older version had: its successor may have others.
static bool is_outdated(inferd_client *client, const struct inf_call *call)
{
    if (!call->expanded || call->once)
        return false;
    struct inf_metadata_cache *metadata =
        inf_metadata_cache_find(client, call->model, call->version);
    const char *version = client->message.infer_reply.model_version;
    if (metadata != NULL && strcmp(metadata->version_got, version) == 0)
        return false;
    if (metadata != NULL)
        inf_metadata_cache_reset(metadata);
    return true;
}

static bool take_result(inferd_client *client, struct inf_call *call, struct inf_frame *frame,
                        struct inf_error *err)
{
    const struct inf_infer_reply *reply = &client->message.infer_reply;
    inferd_result *result = NULL;
    struct inf_error failure;
    if (inf_result_acquire(client, reply->output_count, text_size(reply), &result, &failure) !=
        INF_OK) {
        inf_call_answered(client, call, reply->credit_return);
        inf_call_end(client, call, &failure, 0);
        inf_call_finish(client, call, true);
        return true;
    }
    fill_facts(result, call, reply, result->text);
    if (fill_outputs(client, call, result, frame->data, err) != INF_OK) {
        inferd_result_free(result);
        return false;
    }
    learn(client, call);
    inf_call_answered(client, call, reply->credit_return);
    if (inf_fallback_return(call, result, &failure) != INF_OK) {
        inferd_result_free(result);
        inf_call_end(client, call, &failure, 0);
        inf_call_finish(client, call, true);
        return true;
    }
    result->data = frame->data;
    result->data_size = frame->header.data_bytes;
    frame->data = NULL;
    result->output_block = call->output_block;
    call->output_block = NULL;
    call->result = result;
    inf_call_end(client, call, NULL, 0);
    inf_call_finish(client, call, true);
    return true;
}

bool inf_infer_answer(inferd_client *client, struct inf_call *call, struct inf_frame *frame,
                      struct inf_error *err)
{
    if (call->phase == INF_CALL_METADATA)
        return metadata_answer(client, call, frame, err);
    struct inf_infer_reply *reply = &client->message.infer_reply;
    if (inf_message_decode(&client->message, INF_MESSAGE_INFER_REPLY, frame->meta, client->scratch,
                           err) != INF_OK ||
        inf_infer_reply_resolve_inline(reply, frame->header.data_bytes, err) != INF_OK)
        return false;
    if (call->ended) { // the caller has stopped waiting
        inf_call_answered(client, call, reply->credit_return);
        inf_call_finish(client, call, true);
        return true;
    }
    if (!is_outdated(client, call) || call->attempts >= ATTEMPTS_MAX)
        return take_result(client, call, frame, err);
    inf_call_answered(client, call, reply->credit_return);
    struct refusal refusal = {.error = {.code = INF_OK}};
    if (inf_infer_resend(client, call, &refusal.error) != INF_OK)
        end_failed(client, call, &refusal);
    return true;
}
