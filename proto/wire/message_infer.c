// SPDX-License-Identifier: Apache-2.0
// The request and the reply of ModelInfer (and of ModelInspect, which has the same request).
#include <assert.h>
#include <stddef.h>

#include "proto/core/utf8.h"
#include "proto/wire/message_codec.h"
#include "proto/wire/tensor_entry.h"

typedef Inference__ModelInferRequest__InferInputTensor wire_input;
typedef Inference__ModelInferRequest__InferRequestedOutputTensor wire_wanted;
typedef Inference__ModelInferResponse__InferOutputTensor wire_output;

// --- the request of ModelInfer ---

static enum inf_code fail_contents(const char *what, const char *name, struct inf_error *err)
{
    return inf_fail_reason(
        err, INF_INVALID, INF_REASON_BAD_PARAMETER,
        "%s '%s': contents are not read: tensor bytes follow the metadata as the "
        "frame's data segment, or lie in a registered region",
        what, inf_quote(name).text);
}

static enum inf_code fail_raw(const char *field, struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "%s is not read: tensor bytes follow the metadata as the frame's data "
                           "segment, or lie in a registered region",
                           field);
}

// Decodes an input whose elements, type and shape are in the session, so that the request has only
// a name for it.
static enum inf_code decode_kept_input(struct inf_tensor_entry *entry, const wire_input *input,
                                       bool in_session, struct inf_error *err)
{
    *entry = (struct inf_tensor_entry){.name = input->name};
    INF_TRY(inf_tensor_check_name("input", input->name, err));
    INF_TRY(inf_location_decode(&entry->location, "input", input->name, input->location, err));
    return inf_session_tensor_decode(entry, "input", input->session_tensor, in_session, err);
}

static enum inf_code decode_inputs(struct inf_infer_request *request,
                                   const Inference__ModelInferRequest *wire, struct inf_error *err)
{
    INF_TRY(inf_tensor_check_count("input", wire->n_inputs, err));
    for (size_t i = 0; i < wire->n_inputs; i++) {
        const wire_input *input = wire->inputs[i];
        struct inf_wire_tensor tensor = {
            input->name, input->datatype, input->n_shape, input->shape, input->location,
        };
        if (input->contents != NULL)
            return fail_contents("input", input->name, err);
        if (input->session_tensor[0] != '\0')
            INF_TRY(decode_kept_input(&request->inputs[i], input, request->session_id != 0, err));
        else
            INF_TRY(inf_tensor_decode(&request->inputs[i], "input", &tensor, err));
    }
    request->input_count = (uint32_t)wire->n_inputs;
    return inf_tensor_check_distinct("input", request->inputs, request->input_count, err);
}

static enum inf_code decode_wanted(struct inf_infer_request *request,
                                   const Inference__ModelInferRequest *wire, struct inf_error *err)
{
    INF_TRY(inf_tensor_check_count("output", wire->n_outputs, err));
    for (size_t i = 0; i < wire->n_outputs; i++) {
        const wire_wanted *output = wire->outputs[i];
        struct inf_tensor_entry *entry = &request->outputs[i];
        INF_TRY(inf_tensor_check_name("output", output->name, err));
        *entry = (struct inf_tensor_entry){.name = output->name};
        INF_TRY(
            inf_location_decode(&entry->location, "output", output->name, output->location, err));
        if (entry->location.present && entry->location.region_id == 0)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                                   "output '%s': location names no region_id; leave the location "
                                   "out to have the tensor in the reply's data segment",
                                   inf_quote(output->name).text);
        INF_TRY(inf_session_tensor_decode(entry, "output", output->session_tensor,
                                          request->session_id != 0, err));
    }
    request->output_count = (uint32_t)wire->n_outputs;
    return inf_tensor_check_distinct("output", request->outputs, request->output_count, err);
}

// The texts of a request that are copied as they are, and the most bytes of each. A table takes
// less room in the client library than code for each text.
static const struct {
    uint16_t from, to, limit; // offsets in the protobuf message and in struct inf_infer_request
    char name[12];
} request_texts[] = {
#define FROM(field) offsetof(Inference__ModelInferRequest, field)
#define TEXT(field, limit)                                                                         \
    {                                                                                              \
        FROM(field), offsetof(struct inf_infer_request, field), (limit), #field                    \
    }
    TEXT(id, INF_LIMIT_REQUEST_ID),
    TEXT(device, INF_TEXT_LIMIT),
    TEXT(mode, INF_TEXT_LIMIT),
    TEXT(against, INF_TEXT_LIMIT),
    TEXT(precision, INF_TEXT_LIMIT),
    TEXT(traceparent, INF_LIMIT_TRACE_PARENT),
    TEXT(tracestate, INF_LIMIT_TRACE_STATE),
#undef TEXT
#undef FROM
};

static enum inf_code decode_texts(struct inf_infer_request *request,
                                  const Inference__ModelInferRequest *wire, struct inf_error *err)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(request_texts); i++) {
        const char *text = *(char *const *)((const char *)wire + request_texts[i].from);
        INF_TRY(inf_check_text(request_texts[i].name, text, request_texts[i].limit, err));
        *(const char **)((char *)request + request_texts[i].to) = text;
    }
    return INF_OK;
}

static enum inf_code decode_request(union inf_message *message, const void *from,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelInferRequest *wire = from;
    struct inf_infer_request *request = &message->infer_request;
    request->model_name = wire->model_name;
    request->model_version = wire->model_version;
    request->timeout_ns = wire->timeout_ns;
    request->queue_timeout_ns = wire->queue_timeout_ns;
    request->session_id = wire->session_id;
    request->order_key = wire->order_key;
    INF_TRY(inf_decode_model("model_name", wire->model_name, "model_version",
                             &request->model_version, err));
    INF_TRY(decode_texts(request, wire, err));
    if (wire->priority >= INF_WIRE_PRIORITY_COUNT)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "priority %u, wanted 0 (normal), 1 (high) or 2 (low)",
                               wire->priority);
    request->priority = (enum inf_wire_priority)wire->priority;
    request->tolerance = wire->tolerance;
    if (wire->n_raw_input_contents != 0)
        return fail_raw("raw_input_contents", err);
    INF_TRY(decode_inputs(request, wire, err));
    return decode_wanted(request, wire, err);
}

static enum inf_code encode_input(wire_input *wire, const struct inf_tensor_entry *entry,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    wire->name = inf_wire_text(entry->name);
    wire->session_tensor = inf_wire_text(entry->session_tensor);
    if (entry->session_tensor != NULL)
        return INF_OK;
    INF_TRY(inf_tensor_check_encodable("input", entry, false, err));
    wire->datatype = (char *)inf_dtype_name(entry->dtype);
    wire->n_shape = (size_t)entry->shape.rank;
    wire->shape = (int64_t *)entry->shape.dims;
    return inf_location_encode(&wire->location, &entry->location, scratch, err);
}

static enum inf_code encode_request(const union inf_message *message, void *to,
                                    struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_infer_request *request = &message->infer_request;
    Inference__ModelInferRequest *wire = to;
    assert(request->input_count <= INF_LIMIT_TENSORS);
    assert(request->output_count <= INF_LIMIT_TENSORS);
    wire->model_name = inf_wire_text(request->model_name);
    wire->model_version = inf_wire_text(request->model_version);
    wire->id = inf_wire_text(request->id);
    wire->device = inf_wire_text(request->device);
    wire->timeout_ns = request->timeout_ns;
    wire->queue_timeout_ns = request->queue_timeout_ns;
    wire->priority = request->priority;
    wire->session_id = request->session_id;
    wire->order_key = request->order_key;
    wire->mode = inf_wire_text(request->mode);
    wire->against = inf_wire_text(request->against);
    wire->precision = inf_wire_text(request->precision);
    wire->tolerance = request->tolerance;
    wire->traceparent = inf_wire_text(request->traceparent);
    wire->tracestate = inf_wire_text(request->tracestate);
    wire->n_inputs = request->input_count;
    wire->inputs = inf_wire_list(&inference__model_infer_request__infer_input_tensor__descriptor,
                                 wire->n_inputs, scratch, err);
    wire->n_outputs = request->output_count;
    wire->outputs =
        inf_wire_list(&inference__model_infer_request__infer_requested_output_tensor__descriptor,
                      wire->n_outputs, scratch, err);
    if (wire->inputs == NULL || wire->outputs == NULL)
        return INF_EXHAUSTED;
    for (size_t i = 0; i < wire->n_inputs; i++)
        INF_TRY(encode_input(wire->inputs[i], &request->inputs[i], scratch, err));
    for (size_t i = 0; i < wire->n_outputs; i++) {
        wire->outputs[i]->name = inf_wire_text(request->outputs[i].name);
        wire->outputs[i]->session_tensor = inf_wire_text(request->outputs[i].session_tensor);
        INF_TRY(inf_location_encode(&wire->outputs[i]->location, &request->outputs[i].location,
                                    scratch, err));
    }
    return INF_OK;
}

const struct inf_message_codec inf_codec_infer_request = {
    .descriptor = &inference__model_infer_request__descriptor,
    .decode = decode_request,
    .encode = encode_request,
};

// --- the reply of ModelInfer ---

static enum inf_code decode_outputs(struct inf_infer_reply *reply,
                                    const Inference__ModelInferResponse *wire,
                                    struct inf_error *err)
{
    INF_TRY(inf_tensor_check_count("output", wire->n_outputs, err));
    for (size_t i = 0; i < wire->n_outputs; i++) {
        const wire_output *output = wire->outputs[i];
        struct inf_wire_tensor tensor = {
            output->name, output->datatype, output->n_shape, output->shape, output->location,
        };
        if (output->contents != NULL)
            return fail_contents("output", output->name, err);
        INF_TRY(inf_tensor_decode(&reply->outputs[i], "output", &tensor, err));
    }
    reply->output_count = (uint32_t)wire->n_outputs;
    return inf_tensor_check_distinct("output", reply->outputs, reply->output_count, err);
}

static enum inf_code decode_reply(union inf_message *message, const void *from,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    (void)scratch;
    const Inference__ModelInferResponse *wire = from;
    struct inf_infer_reply *reply = &message->infer_reply;
    reply->model_name = wire->model_name;
    reply->model_version = wire->model_version;
    reply->id = wire->id;
    reply->timing = (struct inf_timing){0};
    if (wire->timing != NULL)
        reply->timing = (struct inf_timing){
            .queue_ns = wire->timing->queue_ns,
            .input_ns = wire->timing->input_ns,
            .compute_ns = wire->timing->compute_ns,
            .output_ns = wire->timing->output_ns,
            .core_ns = wire->timing->core_ns,
            .threads = wire->timing->threads,
        };
    reply->batch_size = wire->batch_size;
    reply->device = wire->device;
    reply->precision = wire->precision;
    reply->credit_return = wire->credit_return;
    reply->flags = wire->flags;
    reply->padded_to = wire->padded_to;
    if (wire->n_raw_output_contents != 0)
        return fail_raw("raw_output_contents", err);
    return decode_outputs(reply, wire, err);
}

static enum inf_code encode_output(wire_output *wire, const struct inf_tensor_entry *entry,
                                   struct inf_scratch *scratch, struct inf_error *err)
{
    INF_TRY(inf_tensor_check_encodable("output", entry, false, err));
    wire->name = inf_wire_text(entry->name);
    wire->datatype = (char *)inf_dtype_name(entry->dtype);
    wire->n_shape = (size_t)entry->shape.rank;
    wire->shape = (int64_t *)entry->shape.dims;
    return inf_location_encode(&wire->location, &entry->location, scratch, err);
}

static enum inf_code encode_reply(const union inf_message *message, void *to,
                                  struct inf_scratch *scratch, struct inf_error *err)
{
    const struct inf_infer_reply *reply = &message->infer_reply;
    Inference__ModelInferResponse *wire = to;
    assert(reply->output_count <= INF_LIMIT_TENSORS);
    wire->model_name = inf_wire_text(reply->model_name);
    wire->model_version = inf_wire_text(reply->model_version);
    wire->id = inf_wire_text(reply->id);
    wire->batch_size = reply->batch_size;
    wire->device = inf_wire_text(reply->device);
    wire->precision = inf_wire_text(reply->precision);
    wire->credit_return = reply->credit_return;
    wire->flags = reply->flags;
    wire->padded_to = reply->padded_to;
    wire->timing = inf_wire_new(&inference__timing__descriptor, scratch, err);
    wire->n_outputs = reply->output_count;
    wire->outputs = inf_wire_list(&inference__model_infer_response__infer_output_tensor__descriptor,
                                  wire->n_outputs, scratch, err);
    if (wire->timing == NULL || wire->outputs == NULL)
        return INF_EXHAUSTED;
    wire->timing->queue_ns = reply->timing.queue_ns;
    wire->timing->input_ns = reply->timing.input_ns;
    wire->timing->compute_ns = reply->timing.compute_ns;
    wire->timing->output_ns = reply->timing.output_ns;
    wire->timing->core_ns = reply->timing.core_ns;
    wire->timing->threads = reply->timing.threads;
    for (size_t i = 0; i < wire->n_outputs; i++)
        INF_TRY(encode_output(wire->outputs[i], &reply->outputs[i], scratch, err));
    return INF_OK;
}

const struct inf_message_codec inf_codec_infer_reply = {
    .descriptor = &inference__model_infer_response__descriptor,
    .decode = decode_reply,
    .encode = encode_reply,
};
