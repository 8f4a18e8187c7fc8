// SPDX-License-Identifier: Apache-2.0
// The methods of GRPCInferenceService and of grpc.health.v1.Health. The status codes of gRPC and
// the error codes of libinferd are the same numbers, so error codes are not translated.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/gateway/grpc/stream.h"
#include "client/gateway/oip/request_proto.h"
#include "client/gateway/oip/response_json.h"
#include "client/gateway/oip/response_proto.h"

struct call {
    struct inf_grpc_stream *stream;
    struct inf_gateway *gateway;
    struct inf_oip_request request;
    struct inf_link_call *call;    // NULL: no inference is in flight
    struct inf_question *question; // NULL: no question waits for an answer
    uint64_t begin_ns;
    inferd_result *result;
    char *text; // the response without the data of its tensors
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void free_call(void *context)
{
    struct call *call = context;
    inf_oip_request_fini(&call->request);
    inferd_result_free(call->result);
    free(call->text);
    free(call);
}

// Frees a call that the client cancelled, or whose connection was closed.
static void abandon_call(void *context)
{
    struct call *call = context;
    if (call->call != NULL) {
        call->gateway->counters.cancelled++;
        inf_link_cancel(call->call);
    }
    if (call->question != NULL)
        inf_question_forget(call->question);
    free_call(call);
}

static void fail_stream(struct inf_grpc_stream *stream, const struct inf_error *err)
{
    inf_grpc_reply_error(stream, (int)err->code, err->text);
}

// Answers a call with an error and frees the call.
static void fail_call(struct call *call, int code, const char *text)
{
    struct inf_grpc_stream *stream = call->stream;
    stream->user = NULL;
    inf_grpc_reply_error(stream, code, text);
    free_call(call);
}

// Answers with one message, and frees its `text` with free() when it was sent. If `text` is NULL,
// answers that there is no memory.
static void reply_text(struct inf_grpc_stream *stream, char *text, size_t size)
{
    if (text == NULL) {
        inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for the answer");
        return;
    }
    stream->pieces[0] = (struct iovec){text, size};
    stream->piece_count = 1;
    inf_grpc_reply(stream, free, text);
}

static void reply_number(struct inf_grpc_stream *stream, uint64_t value)
{
    size_t size = 0;
    char *text = inf_oip_number_encode_proto(1, value, &size);
    reply_text(stream, text, size);
}

static void answer_live(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    reply_number(stream, 1);
}

static void answer_ready(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    reply_number(stream, inf_link_is_ready(stream->gateway->link));
}

// Answers Health.Check: 1 is SERVING, 2 is NOT_SERVING. The name of the service in the request is
// ignored.
static void answer_health(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    reply_number(stream, inf_link_is_ready(stream->gateway->link) ? 1 : 2);
}

static void answer_server(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    size_t size = 0;
    char *text = inf_oip_server_encode_proto(INFERD_GATEWAY_VERSION, &size);
    reply_text(stream, text, size);
}

static struct call *create_call(struct inf_grpc_stream *stream)
{
    struct call *call = calloc(1, sizeof *call);
    if (call == NULL) {
        inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for the call");
        return NULL;
    }
    call->stream = stream;
    call->gateway = stream->gateway;
    stream->user = call;
    stream->abandon = abandon_call;
    return call;
}

static void handle_lookup(void *context, struct inf_question *question)
{
    struct call *call = context;
    if (call != NULL) {
        struct inf_grpc_stream *stream = call->stream;
        size_t size = 0;
        stream->user = NULL;
        if (question->err.code != INFERD_OK) {
            inf_grpc_reply_error(stream, question->err.code, question->err.text);
        } else if (question->kind == INF_QUESTION_READY) {
            reply_number(stream, question->ready);
        } else {
            char *text = inf_oip_model_encode_proto(question->info, &size);
            reply_text(stream, text, size);
        }
        free_call(call);
    }
    inf_question_free(question);
}

static void ask_about_model(struct inf_grpc_stream *stream, struct inf_span message,
                            enum inf_question_kind kind)
{
    struct call *call = create_call(stream);
    struct inf_question *question = calloc(1, sizeof *question);
    struct inf_error err = {.code = INF_EXHAUSTED, .text = "too many questions wait"};
    if (call == NULL) {
        free(question);
        return;
    }
    if (question != NULL) {
        *question = (struct inf_question){.kind = kind, .callback = handle_lookup, .context = call};
        if (inf_oip_name_decode_proto(message, question->model, question->version, &err) ==
                INF_OK &&
            inf_question_ask(stream->gateway->questions, question)) {
            call->question = question;
            return;
        }
    }
    free(question);
    fail_call(call, (int)err.code, err.text);
}

static void answer_model_ready(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_about_model(stream, message, INF_QUESTION_READY);
}

static void answer_model(struct inf_grpc_stream *stream, struct inf_span message)
{
    ask_about_model(stream, message, INF_QUESTION_DESCRIBE);
}

static void handle_result(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct call *call = context;
    struct inf_grpc_stream *stream = call->stream;
    struct inf_gateway_counters *counters = &call->gateway->counters;
    struct inf_error failure;
    call->call = NULL;
    counters->duration_ns += now_ns() - call->begin_ns;
    if (result == NULL) {
        counters->failed++;
        fail_call(call, err->code, err->text);
        return;
    }
    counters->succeeded++;
    call->result = result;
    if (inf_oip_response_encode_proto(&call->request, result, &call->text, stream->pieces,
                                      &stream->piece_count, &failure) != INF_OK) {
        fail_call(call, (int)failure.code, failure.text);
        return;
    }
    stream->user = NULL;
    inf_grpc_reply(stream, free_call, call);
}

static void start_inference(struct inf_grpc_stream *stream, struct inf_span message)
{
    struct call *call = create_call(stream);
    if (call == NULL)
        return;
    struct inf_gateway *gateway = stream->gateway;
    struct inf_oip_request *request = &call->request;
    struct inf_error failure;
    if (inf_oip_request_decode_proto(request, message, &failure) != INF_OK) {
        fail_call(call, (int)failure.code, failure.text);
        return;
    }
    uint64_t limits[] = {stream->timeout_ms, gateway->timeout_ms};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(limits); i++)
        if (limits[i] != 0 && (request->timeout_ms == 0 || limits[i] < request->timeout_ms))
            request->timeout_ms = limits[i];
    const inferd_request wanted = {
        .model = request->model,
        .version = request->version[0] != '\0' ? request->version : NULL,
        .id = request->id[0] != '\0' ? request->id : NULL,
        .inputs = request->inputs,
        .input_count = request->input_count,
        .outputs = request->output_count > 0 ? request->outputs : NULL,
        .output_count = request->output_count,
        .timeout_ms = request->timeout_ms,
        .priority = request->priority,
    };
    struct inferd_error err;
    call->begin_ns = now_ns();
    gateway->counters.started++;
    if (inf_link_infer(gateway->link, &wanted, handle_result, call, &call->call, &err) !=
        INFERD_OK) {
        gateway->counters.failed++;
        fail_call(call, err.code, err.text);
    }
}

static const struct method {
    const char *path;
    void (*answer)(struct inf_grpc_stream *stream, struct inf_span message);
} methods[] = {
    {"/inference.GRPCInferenceService/ModelInfer", start_inference},
    {"/inference.GRPCInferenceService/ServerLive", answer_live},
    {"/inference.GRPCInferenceService/ServerReady", answer_ready},
    {"/inference.GRPCInferenceService/ServerMetadata", answer_server},
    {"/inference.GRPCInferenceService/ModelReady", answer_model_ready},
    {"/inference.GRPCInferenceService/ModelMetadata", answer_model},
    {"/grpc.health.v1.Health/Check", answer_health},
};

void inf_grpc_method_handle(struct inf_grpc_stream *stream)
{
    struct inf_span message;
    struct inf_error err;
    if (!stream->is_post || !stream->is_grpc || stream->has_bad_timeout) {
        inf_grpc_reply_error(stream, INFERD_INVALID_ARGUMENT, "this is no valid call of gRPC");
        return;
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(methods); i++) {
        if (strcmp(stream->path, methods[i].path) != 0)
            continue;
        if (inf_grpc_stream_message(stream, &message, &err) != INF_OK)
            fail_stream(stream, &err);
        else
            methods[i].answer(stream, message);
        return;
    }
    inf_grpc_reply_error(stream, INFERD_UNIMPLEMENTED, "there is no such method");
}
