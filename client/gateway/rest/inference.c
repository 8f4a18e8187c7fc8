// SPDX-License-Identifier: Apache-2.0
// Inferences over REST: decodes a body to a request of libinferd, and encodes the result as a
// response.
//
// The body of a request with binary tensors is received into memory that is shared with the daemon.
// A tensor in shared memory must begin at a multiple of 64 bytes, but in the body the tensors
// follow a JSON text of any length. The header field Inference-Header-Content-Length gives that
// length before the body arrives, so the body is placed such that the first tensor is aligned. A
// later tensor is not aligned if the sizes of the tensors before it are not multiples of 64;
// libinferd copies such a tensor. Binary outputs are written to the socket directly from the memory
// of libinferd's result.
//
// Compressed bodies and tensors in JSON take long, so they are handled in slices:
//
//   inflate --> decode --> (run) --> encode --> respond
//
// Small requests pass through all stages without a break.
#include "client/gateway/rest/inference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/core/run.h"
#include "client/gateway/http/content_coding.h"
#include "client/gateway/oip/request_json.h"
#include "client/gateway/oip/response_json.h"
#include "client/gateway/rest/reply.h"

// Alignment of tensors in shared memory, in bytes.
#define TENSOR_ALIGNMENT ((size_t)64)
// Minimum size of the tensors of a body for shared memory, in bytes. libinferd sends smaller
// tensors through the socket.
#define SHARED_MIN_BYTES ((size_t)16 << 10)
// What a slice handles: bytes of JSON, uncompressed bytes, elements of outputs. Each takes 0.1 to
// 0.2 ms.
#define DECODE_BYTES    ((size_t)16 << 10)
#define INFLATE_BYTES   ((size_t)32 << 10)
#define ENCODE_ELEMENTS ((size_t)1 << 10)

struct inf_rest_inference;

// A stage of a request. Returns true if it is to be called again.
typedef bool (*stage_function)(struct inf_rest_inference *inference);

struct inf_rest_inference {
    struct inf_gateway *gateway;
    struct inf_http_exchange *exchange;
    struct inf_oip_request request;
    struct inf_run *run;   // NULL: the inference was not started
    inferd_memory *memory; // shared memory that holds the body; NULL: the server owns the body
    struct inf_slice_task task;
    stage_function stage;
    struct inf_oip_json_decoder decoder;
    size_t charged;              // bytes of inputs, the decompressed body and the response's text
    const inferd_result *result; // belongs to `run`
    struct inf_oip_response_encoder encoder;
    struct inf_http_coder inflater;                // of the body
    char header_id[INF_HTTP_REQUEST_ID_BYTES + 1]; // X-Request-Id or traceparent; "": none
};

static bool step_inference(void *context)
{
    struct inf_rest_inference *inference = context;
    return inference->stage(inference);
}

// Starts a stage, whose first slice runs at once.
static void start_stage(struct inf_rest_inference *inference, stage_function stage)
{
    inference->stage = stage;
    inference->task.step = step_inference;
    inference->task.context = inference;
    inf_slices_start(inference->gateway->slices, &inference->task);
}

// Frees an inference, and cancels it if it is in flight.
static void free_inference(void *context)
{
    struct inf_rest_inference *inference = context;
    struct inf_gateway *gateway = inference->gateway;
    inf_slices_cancel(gateway->slices, &inference->task);
    inf_run_free(inference->run);
    inf_oip_json_decoder_fini(&inference->decoder);
    inf_oip_request_fini(&inference->request);
    inf_http_server_release(gateway->server, inference->charged);
    inferd_memory_free(inference->memory);
    inf_oip_response_encoder_fini(&inference->encoder);
    inf_http_coder_fini(&inference->inflater);
    free(inference);
}

static struct inf_rest_inference *create_inference(struct inf_gateway *gateway,
                                                   struct inf_http_exchange *exchange)
{
    struct inf_rest_inference *inference = calloc(1, sizeof *inference);
    if (inference == NULL)
        return NULL;
    inference->gateway = gateway;
    inference->exchange = exchange;
    exchange->user = inference;
    exchange->abandon = free_inference;
    return inference;
}

uint8_t *inf_rest_inference_place(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                                  size_t size)
{
    const struct inf_http_head *head = &exchange->head;
    if (!head->has_json_length || head->json_length > size ||
        size - head->json_length < SHARED_MIN_BYTES || !inf_link_is_ready(gateway->link))
        return NULL;
    size_t offset =
        inf_size_align((size_t)head->json_length, TENSOR_ALIGNMENT) - (size_t)head->json_length;
    inferd_memory *memory;
    if (inferd_memory_alloc(inf_link_client(gateway->link), size + offset, &memory, NULL) !=
        INFERD_OK)
        return NULL;
    struct inf_rest_inference *inference = create_inference(gateway, exchange);
    if (inference == NULL) {
        inferd_memory_free(memory);
        return NULL;
    }
    inference->memory = memory;
    return (uint8_t *)inferd_memory_data(memory) + offset;
}

// Responds with an error and frees the inference, which must not be in flight.
static void reply_failure(struct inf_rest_inference *inference, const struct inferd_error *err)
{
    struct inf_http_exchange *exchange = inference->exchange;
    exchange->user = NULL;
    inf_rest_reply_error(exchange, err);
    free_inference(inference);
}

static void fail_inference(struct inf_rest_inference *inference, const struct inf_error *err)
{
    struct inferd_error converted;
    inf_oip_error_convert(&converted, err);
    reply_failure(inference, &converted);
}

static bool charge_inputs(void *context, size_t size)
{
    struct inf_rest_inference *inference = context;
    if (!inf_http_server_charge(inference->gateway->server, size))
        return false;
    inference->charged += size;
    return true;
}

// Charges memory that the inference has allocated.
static enum inf_code charge_bytes(struct inf_rest_inference *inference, size_t size,
                                  struct inf_error *err)
{
    if (charge_inputs(inference, size))
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "the bodies of other requests need all memory");
}

// Sends the JSON text of a response without binary tensors, and frees the inference.
static void send_json(struct inf_rest_inference *inference)
{
    struct inf_gateway *gateway = inference->gateway;
    struct inf_http_exchange *exchange = inference->exchange;
    struct inf_oip_response_encoder *encoder = &inference->encoder;
    const struct inf_rest_text text = {.content_type = "application/json",
                                       .data = encoder->text,
                                       .size = encoder->size,
                                       .charged = encoder->capacity};
    encoder->text = NULL;
    inference->charged -= encoder->capacity;
    exchange->user = NULL;
    free_inference(inference);
    inf_rest_reply_text(gateway, exchange, &text);
}

// Sends the response, whose JSON text is complete. A response with binary tensors is never
// compressed.
static void send_result(struct inf_rest_inference *inference)
{
    const struct inf_oip_response_encoder *encoder = &inference->encoder;
    char fields[64];
    struct inf_http_response response = {
        .status = 200,
        .content_type = "application/octet-stream",
        .fields = fields,
        .pieces = {{encoder->text, encoder->size}},
        .piece_count = 1,
        .release = free_inference,
        .context = inference,
    };
    for (size_t i = 0; i < inferd_result_output_count(inference->result); i++) {
        const inferd_tensor *output = inferd_result_output(inference->result, i);
        if (encoder->is_binary[i])
            response.pieces[response.piece_count++] = (struct iovec){output->data, output->size};
    }
    if (response.piece_count == 1) {
        send_json(inference);
        return;
    }
    snprintf(fields, sizeof fields, "Inference-Header-Content-Length: %zu\r\n", encoder->size);
    struct inf_http_exchange *exchange = inference->exchange;
    exchange->user = NULL;
    inf_http_respond(exchange, &response);
}

static bool encode_slice(struct inf_rest_inference *inference)
{
    struct inf_oip_response_encoder *encoder = &inference->encoder;
    bool done;
    struct inf_error err;
    size_t before = encoder->capacity;
    enum inf_code code = inf_oip_response_encode(encoder, ENCODE_ELEMENTS, &done, &err);
    if (code == INF_OK)
        code = charge_bytes(inference, encoder->capacity - before, &err);
    if (code != INF_OK)
        fail_inference(inference, &err);
    else if (done)
        send_result(inference);
    return code == INF_OK && !done;
}

static void handle_answer(void *context, const inferd_result *result,
                          const struct inferd_error *err)
{
    struct inf_rest_inference *inference = context;
    inference->result = result;
    if (result == NULL) {
        reply_failure(inference, err);
        return;
    }
    inference->encoder.request = &inference->request;
    inference->encoder.result = result;
    start_stage(inference, encode_slice);
}

// Copies the name or the version of a model from the path of the request.
static enum inf_code copy_name(char *to, size_t room, struct inf_span from, struct inf_error *err)
{
    if (from.size >= room)
        return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                               "the name of the model or its version is too long");
    if (from.size > 0)
        memcpy(to, from.data, from.size);
    to[from.size] = '\0';
    return INF_OK;
}

// Splits a body into the JSON text and the binary tensors, and prepares to decode them.
static enum inf_code prepare_decoder(struct inf_rest_inference *inference, struct inf_span body,
                                     struct inf_error *err)
{
    const struct inf_http_head *head = &inference->exchange->head;
    struct inf_gateway *gateway = inference->gateway;
    struct inf_span binary = {0};
    if (head->has_json_length) {
        if (head->json_length == 0)
            return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                                   "a body without a JSON text is not supported");
        if (head->json_length > body.size)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                                   "Inference-Header-Content-Length is %llu, the body has %zu "
                                   "bytes",
                                   (unsigned long long)head->json_length, body.size);
        binary.data = body.data + head->json_length;
        binary.size = body.size - (size_t)head->json_length;
        body.size = (size_t)head->json_length;
    }
    inference->decoder = (struct inf_oip_json_decoder){
        .request = &inference->request,
        .binary = binary,
        .outline.text = body,
        .client = inf_link_is_ready(gateway->link) ? inf_link_client(gateway->link) : NULL,
        .charge = charge_inputs,
        .context = inference,
    };
    return INF_OK;
}

// Sets `memory` of the inputs whose data lies in shared memory at a multiple of 64 bytes, so that
// libinferd does not copy them.
static void mark_shared_inputs(struct inf_rest_inference *inference)
{
    const uint8_t *begin = inferd_memory_data(inference->memory);
    struct inf_oip_request *request = &inference->request;
    for (size_t i = 0; i < request->input_count; i++) {
        inferd_tensor *input = &request->inputs[i];
        bool decoded = request->buffers[i] != NULL || request->memories[i] != NULL;
        if (!decoded && ((const uint8_t *)input->data - begin) % (ptrdiff_t)TENSOR_ALIGNMENT == 0)
            input->memory = inference->memory;
    }
}

static void start_run(struct inf_rest_inference *inference)
{
    // The daemon's log shows the id of the request or, if it has none, its X-Request-Id or
    // traceparent.
    char *header_id = inference->header_id;
    const struct inf_http_head *head = &inference->exchange->head;
    struct inf_span given = head->request_id.size > 0 ? head->request_id : head->trace_parent;
    if (given.size > 0)
        memcpy(header_id, given.data, given.size);
    if (head->trace_parent.size > 0 &&
        head->trace_parent.size < sizeof inference->request.trace_parent)
        memcpy(inference->request.trace_parent, head->trace_parent.data, head->trace_parent.size);
    const struct inf_tokens *tokens = inference->gateway->tokens;
    if (tokens != NULL)
        inference->request.owner = inf_tokens_find(tokens, head->authorization);
    struct inferd_error err;
    if (inf_run_start(inference->gateway, &inference->request,
                      header_id[0] != '\0' ? header_id : NULL, handle_answer, inference,
                      &inference->run, &err) != INFERD_OK)
        reply_failure(inference, &err);
}

static bool decode_slice(struct inf_rest_inference *inference)
{
    bool done;
    struct inf_error err;
    if (inf_oip_json_decode(&inference->decoder, DECODE_BYTES, &done, &err) != INF_OK) {
        fail_inference(inference, &err);
        return false;
    }
    if (!done)
        return true;
    inf_oip_json_decoder_fini(&inference->decoder);
    if (inference->memory != NULL)
        mark_shared_inputs(inference);
    start_run(inference);
    return false;
}

static bool inflate_slice(struct inf_rest_inference *inference)
{
    struct inf_http_coder *inflater = &inference->inflater;
    bool done;
    struct inf_error err;
    size_t before = inflater->capacity;
    enum inf_code code = inf_http_code(inflater, INFLATE_BYTES, &done, &err);
    if (code == INF_OK)
        code = charge_bytes(inference, inflater->capacity - before, &err);
    if (code != INF_OK ||
        (done && prepare_decoder(inference, (struct inf_span){inflater->data, inflater->size},
                                 &err) != INF_OK)) {
        fail_inference(inference, &err);
        return false;
    }
    if (done)
        inference->stage = decode_slice;
    return true;
}

static enum inf_code begin_inflating(struct inf_rest_inference *inference, struct inf_error *err)
{
    const struct inf_http_exchange *exchange = inference->exchange;
    INF_TRY(charge_bytes(inference, INF_HTTP_INFLATE_STATE_BYTES, err));
    return inf_http_inflate_begin(&inference->inflater, exchange->head.coding, exchange->body, err);
}

void inf_rest_inference_run(struct inf_gateway *gateway, struct inf_http_exchange *exchange,
                            struct inf_span model, struct inf_span version)
{
    struct inf_rest_inference *inference = exchange->user;
    if (inference == NULL)
        inference = create_inference(gateway, exchange);
    if (inference == NULL) {
        inf_rest_reply_status(exchange, 503, "no memory for the request");
        return;
    }
    struct inf_oip_request *request = &inference->request;
    bool compressed = exchange->head.coding != INF_HTTP_IDENTITY;
    struct inf_error err;
    if (copy_name(request->model, sizeof request->model, model, &err) != INF_OK ||
        copy_name(request->version, sizeof request->version, version, &err) != INF_OK ||
        (compressed ? begin_inflating(inference, &err)
                    : prepare_decoder(inference, exchange->body, &err)) != INF_OK)
        fail_inference(inference, &err);
    else
        start_stage(inference, compressed ? inflate_slice : decode_slice);
}
