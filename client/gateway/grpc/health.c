// SPDX-License-Identifier: Apache-2.0
// Answers the health checking protocol of gRPC. A call of Watch learns from the link when the
// connection to the daemon changes. Only the newest status is kept for a client: changes that it
// did not read in time are skipped, as the protocol allows, so a client that never reads costs
// nothing.
//
// The fields of the two messages, by their numbers in health.proto:
//
//   HealthCheckRequest   1 service
//   HealthCheckResponse  1 status
#include "client/gateway/grpc/health.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/grpc/questions.h"
#include "client/gateway/oip/proto_reader.h"

// Maximum size of the message of Watch in bytes. The longest name of a service has less than 40.
#define REQUEST_BYTES_MAX ((size_t)1 << 10)

enum serving_status {
    NONE = 0, // no status was sent; the protocol calls this number UNKNOWN
    SERVING = 1,
    NOT_SERVING = 2,
    SERVICE_UNKNOWN = 3,
};

// A call of Watch.
struct watch {
    struct inf_grpc_stream *stream;
    struct inf_link_watcher watcher;
    bool asked;               // the message has arrived
    bool known;               // the gateway knows the service that it names
    enum serving_status sent; // the status that the client has or is about to have
    uint8_t message[INF_GRPC_PREFIX_BYTES + 2];
};

// Finds whether the gateway knows the service that a message names. Returns false if the message is
// invalid.
static bool find_service(struct inf_span message, bool *known)
{
    static const char *const names[] = {"", "inference.GRPCInferenceService",
                                        "grpc.health.v1.Health"};
    struct inf_span name = {0};
    struct inf_proto_field field;
    int code;
    while ((code = inf_proto_read_field(&message, &field)) == 1)
        if (field.number == 1 && field.wire == INF_PROTO_BYTES)
            name = field.bytes;
    *known = false;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        if (name.size == strlen(names[i]) &&
            (name.size == 0 || memcmp(name.data, names[i], name.size) == 0))
            *known = true;
    return code == 0;
}

static enum serving_status find_status(const struct inf_grpc_stream *stream)
{
    return inf_link_is_ready(stream->gateway->link) ? SERVING : NOT_SERVING;
}

void inf_grpc_health_check(struct inf_grpc_stream *stream, struct inf_span message)
{
    bool known;
    if (!find_service(message, &known))
        inf_grpc_reply_error(stream, INFERD_INVALID_ARGUMENT, "the message is invalid");
    else if (!known)
        inf_grpc_reply_error(stream, INFERD_NOT_FOUND, "there is no such service");
    else
        inf_grpc_reply_number(stream, find_status(stream));
}

static enum serving_status find_watched_status(const struct watch *watch)
{
    return watch->known ? find_status(watch->stream) : SERVICE_UNKNOWN;
}

// Takes the message of the call, and drops what follows it.
static void take_message(struct watch *watch)
{
    struct inf_grpc_stream *stream = watch->stream;
    struct inf_span message;
    if (!watch->asked && inf_grpc_stream_peek(stream, REQUEST_BYTES_MAX, &message)) {
        watch->asked = true;
        if (!find_service(message, &watch->known))
            inf_grpc_stream_fail(stream, INFERD_INVALID_ARGUMENT, "the message is invalid");
    }
    if (!watch->asked && stream->complete)
        inf_grpc_stream_fail(stream, INFERD_INVALID_ARGUMENT, "the call has no whole message");
    if (watch->asked)
        inf_grpc_stream_discard(stream, stream->body_size);
}

// Determines whether the client has a status to read, and whether the call has ended.
static void update_call(struct watch *watch)
{
    struct inf_grpc_stream *stream = watch->stream;
    stream->ended = stream->end_code != INFERD_OK;
    bool changed = watch->asked && find_watched_status(watch) != watch->sent;
    inf_grpc_stream_set_ready(stream, stream->ended || changed);
}

static void receive_message(struct inf_grpc_stream *stream)
{
    take_message(stream->user);
    update_call(stream->user);
    inf_grpc_reply_continue(stream);
}

// Makes the newest status the next response.
static bool load_status(struct inf_grpc_stream *stream)
{
    struct watch *watch = stream->user;
    enum serving_status status = watch->asked ? find_watched_status(watch) : NONE;
    bool changed = stream->end_code == INFERD_OK && status != watch->sent;
    stream->piece_next = stream->piece_count = 0;
    if (changed) {
        const uint8_t message[] = {0, 0, 0, 0, 2, 1 << 3, (uint8_t)status};
        memcpy(watch->message, message, sizeof message);
        stream->pieces[0] = (struct iovec){watch->message, sizeof message};
        stream->piece_count = 1;
        watch->sent = status;
    }
    update_call(watch);
    return changed;
}

static void handle_change(void *context)
{
    struct watch *watch = context;
    update_call(watch);
    inf_grpc_reply_continue(watch->stream);
}

static void free_watch(void *context)
{
    struct watch *watch = context;
    inf_link_unwatch(&watch->watcher);
    free(watch);
}

void inf_grpc_health_watch_begin(struct inf_grpc_stream *stream)
{
    static const struct inf_grpc_streaming functions = {receive_message, load_status, true};
    struct watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL) {
        inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "no memory for the call");
        return;
    }
    watch->stream = stream;
    watch->watcher.callback = handle_change;
    watch->watcher.context = watch;
    inf_link_watch(stream->gateway->link, &watch->watcher);
    inf_grpc_reply_begin(stream, &functions, watch, free_watch);
}
