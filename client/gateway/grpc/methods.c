// SPDX-License-Identifier: Apache-2.0
// The methods of GRPCInferenceService and of grpc.health.v1.Health. The status codes of gRPC and
// the error codes of libinferd are the same numbers, so error codes are not translated.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/core/run.h"
#include "client/gateway/grpc/health.h"
#include "client/gateway/grpc/infer_stream.h"
#include "client/gateway/grpc/questions.h"
#include "client/gateway/grpc/reflection.h"
#include "client/gateway/oip/request_proto.h"
#include "client/gateway/oip/response_proto.h"

struct call {
    struct inf_grpc_stream *stream;
    struct inf_oip_request request;
    struct inf_run *run; // NULL: the inference was not started
    char *text;          // the response without the data of its tensors
};

// Frees a call, and cancels its inference if that is in flight.
static void free_call(void *context)
{
    struct call *call = context;
    inf_run_free(call->run);
    inf_oip_request_fini(&call->request);
    free(call->text);
    free(call);
}

// Answers a call with an error and frees the call.
static void fail_call(struct call *call, int code, const char *text)
{
    struct inf_grpc_stream *stream = call->stream;
    stream->user = NULL;
    inf_grpc_reply_error(stream, code, text);
    free_call(call);
}

static void answer_live(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    inf_grpc_reply_number(stream, 1);
}

static void answer_ready(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    inf_grpc_reply_number(stream, inf_link_is_ready(stream->gateway->link));
}

static void answer_server(struct inf_grpc_stream *stream, struct inf_span message)
{
    (void)message;
    size_t size = 0;
    char *text = inf_oip_server_encode_proto(INFERD_GATEWAY_VERSION, &size);
    inf_grpc_reply_text(stream, text, size);
}

static void handle_result(void *context, const inferd_result *result,
                          const struct inferd_error *err)
{
    struct call *call = context;
    struct inf_grpc_stream *stream = call->stream;
    struct inf_error failure;
    if (result == NULL) {
        fail_call(call, err->code, err->text);
        return;
    }
    if (inf_oip_response_encode_proto(&call->request, result, false, &call->text, stream->pieces,
                                      &stream->piece_count, &failure) != INF_OK) {
        fail_call(call, (int)failure.code, failure.text);
        return;
    }
    stream->user = NULL;
    inf_grpc_reply(stream, free_call, call);
}

static void start_inference(struct inf_grpc_stream *stream, struct inf_span message)
{
    struct call *call = calloc(1, sizeof *call);
    struct inf_error failure;
    struct inferd_error err;
    if (call == NULL) {
        inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for the call");
        return;
    }
    call->stream = stream;
    stream->user = call;
    stream->abandon = free_call;
    struct inf_oip_request *request = &call->request;
    if (inf_oip_request_decode_proto(request, message, &failure) != INF_OK) {
        fail_call(call, (int)failure.code, failure.text);
        return;
    }
    uint64_t limit = stream->timeout_ms;
    if (limit != 0 && (request->timeout_ms == 0 || limit < request->timeout_ms))
        request->timeout_ms = limit;
    request->owner = stream->token;
    snprintf(request->trace_parent, sizeof request->trace_parent, "%s", stream->trace_parent);
    if (inf_run_start(stream->gateway, request, inf_grpc_stream_other_id(stream), handle_result,
                      call, &call->run, &err) != INFERD_OK)
        fail_call(call, err.code, err.text);
}

// The status of gRPC for a call without credentials. libinferd has no such code.
#define UNAUTHENTICATED 16

#define SERVICE "/inference.GRPCInferenceService/"

static const struct method {
    const char *path;
    void (*answer)(struct inf_grpc_stream *stream, struct inf_span message);
    bool admin; // allowed only on listeners for administrators
    bool open;  // allowed without a token
} methods[] = {
    {SERVICE "ModelInfer", start_inference, false, false},
    {SERVICE "ServerLive", answer_live, false, true},
    {SERVICE "ServerReady", answer_ready, false, true},
    {SERVICE "ServerMetadata", answer_server, false, false},
    {SERVICE "ModelReady", inf_grpc_question_model_ready, false, false},
    {SERVICE "ModelMetadata", inf_grpc_question_model, false, false},
    {SERVICE "ModelStatistics", inf_grpc_question_statistics, false, false},
    {SERVICE "RepositoryIndex", inf_grpc_question_index, true, false},
    {SERVICE "RepositoryModelLoad", inf_grpc_question_load, true, false},
    {SERVICE "RepositoryModelUnload", inf_grpc_question_unload, true, false},
    {"/grpc.health.v1.Health/Check", inf_grpc_health_check, false, true},
};

// Methods of streaming calls.
static const struct {
    const char *path;
    void (*begin)(struct inf_grpc_stream *stream);
    bool open; // allowed without a token
} streaming_methods[] = {
    {SERVICE "ModelStreamInfer", inf_grpc_infer_stream_begin, false},
    {"/grpc.health.v1.Health/Watch", inf_grpc_health_watch_begin, true},
    {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", inf_grpc_reflection_begin, false},
    {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", inf_grpc_reflection_begin,
     false},
};

// Methods of the protocol that inferd does not have: prefixes of their names.
static const struct {
    const char *path, *what;
} missing[] = {
    {SERVICE "ModelConfig", "configurations of models are not supported"},
    {SERVICE "SystemSharedMemory", "system shared memory is not supported"},
    {SERVICE "CudaSharedMemory", "CUDA shared memory is not supported"},
    {SERVICE "TraceSetting", "settings of traces are not supported"},
    {SERVICE "LogSettings", "settings of the log are not supported"},
};

static bool is_valid_call(const struct inf_grpc_stream *stream)
{
    return stream->is_post && stream->is_grpc && !stream->has_bad_timeout;
}

static bool is_open(const char *path)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(methods); i++)
        if (methods[i].open && strcmp(path, methods[i].path) == 0)
            return true;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(streaming_methods); i++)
        if (streaming_methods[i].open && strcmp(path, streaming_methods[i].path) == 0)
            return true;
    return false;
}

void inf_grpc_method_begin(struct inf_grpc_stream *stream)
{
    if (stream->gateway->tokens != NULL && stream->token == 0 && !is_open(stream->path)) {
        inf_grpc_reply_error(stream, UNAUTHENTICATED, "the call has no valid bearer token");
        return;
    }
    for (size_t i = 0; i < INF_ARRAY_LENGTH(streaming_methods) && is_valid_call(stream); i++)
        if (strcmp(stream->path, streaming_methods[i].path) == 0) {
            streaming_methods[i].begin(stream);
            return;
        }
}

// Returns the method of a call; NULL: the call is answered with an error.
static const struct method *find_method(struct inf_grpc_stream *stream)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(methods); i++) {
        if (strcmp(stream->path, methods[i].path) != 0)
            continue;
        if (!methods[i].admin || stream->is_admin)
            return &methods[i];
        inf_grpc_reply_error(stream, INFERD_PERMISSION_DENIED,
                             "only on the listener for administrators");
        return NULL;
    }
    const char *what = "there is no such method";
    for (size_t i = 0; i < INF_ARRAY_LENGTH(missing); i++)
        if (strncmp(stream->path, missing[i].path, strlen(missing[i].path)) == 0)
            what = missing[i].what;
    inf_grpc_reply_error(stream, INFERD_UNIMPLEMENTED, what);
    return NULL;
}

static void handle_inflated(void *context, struct inf_span message, const struct inf_error *err)
{
    struct inf_grpc_stream *stream = context;
    if (err->code != INF_OK)
        inf_grpc_reply_error(stream, (int)err->code, err->text);
    else
        find_method(stream)->answer(stream, message);
}

void inf_grpc_method_handle(struct inf_grpc_stream *stream)
{
    struct inf_span message;
    bool compressed;
    struct inf_error err;
    if (!is_valid_call(stream)) {
        inf_grpc_reply_error(stream, INFERD_INVALID_ARGUMENT, "this is no valid call of gRPC");
        return;
    }
    const struct method *method = find_method(stream);
    if (method == NULL)
        return;
    if (inf_grpc_stream_message(stream, &message, &compressed, &err) != INF_OK ||
        inf_grpc_stream_check_coding(stream, compressed, &err) != INF_OK)
        inf_grpc_reply_error(stream, (int)err.code, err.text);
    else if (compressed)
        inf_grpc_inflate(&stream->inflater, stream->gateway, stream->coding, message,
                         handle_inflated, stream);
    else
        method->answer(stream, message);
}
