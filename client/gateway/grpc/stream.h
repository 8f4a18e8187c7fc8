// SPDX-License-Identifier: Apache-2.0
// One gRPC call: an HTTP/2 stream with one message in each direction.
#ifndef INF_GATEWAY_GRPC_STREAM_H
#define INF_GATEWAY_GRPC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "client/gateway/core/gateway.h"
#include "proto/core/span.h"

struct inf_grpc_session;

// Size of the buffer for a path, with its NUL. The longest path that is served has 46 bytes; a path
// that does not fit is treated as unknown.
#define INF_GRPC_PATH_BYTES 128u
// Maximum number of pieces of a response: one for the fields before the tensors, and for each of 64
// outputs one for its protobuf tag and one for its data.
#define INF_GRPC_PIECES 129u

struct inf_grpc_stream {
    struct inf_grpc_session *session;
    struct inf_gateway *gateway;
    int32_t id;
    struct inf_grpc_stream *next, **previous; // in the list `streams` of the session
    // The request.
    char path[INF_GRPC_PATH_BYTES];
    bool is_post, is_grpc;
    bool has_bad_timeout;
    uint64_t timeout_ms; // value of grpc-timeout; 0: the request sets none
    uint8_t *body;       // the message with its prefix of 5 bytes
    size_t body_size, body_capacity;
    uint64_t begin_ms;
    bool complete; // the whole request has arrived
    bool answered; // a response was submitted to nghttp2
    bool reset;    // RST_STREAM was submitted to nghttp2, because the client is too slow
    // State of the method for this call; NULL: none. If the stream ends before the response,
    // abandon(user) is called, which must free `user`.
    void *user;
    void (*abandon)(void *user);
    // The response. release(context) frees the memory of the pieces.
    struct iovec pieces[INF_GRPC_PIECES];
    size_t piece_next, piece_count;
    void (*release)(void *context);
    void *context;
};

// Handles a complete call: answers it before it returns, or when the daemon has answered.
void inf_grpc_method_handle(struct inf_grpc_stream *stream);

// Creates a stream and inserts it into `list`. Returns NULL if there is no memory.
struct inf_grpc_stream *inf_grpc_stream_create(struct inf_grpc_stream **list,
                                               struct inf_gateway *gateway, int32_t id);

// Removes a stream from its list and frees it. Calls abandon(user) if the call is not answered, and
// release(context) if the response has not been released.
void inf_grpc_stream_free(struct inf_grpc_stream *stream);

// Stores a header field of the request if the gateway uses this field.
void inf_grpc_stream_set_field(struct inf_grpc_stream *stream, struct inf_span name,
                               struct inf_span value);

// Appends bytes to the body. If that exceeds the limit of one body or of all bodies, or if there is
// no memory, frees the body and returns false.
bool inf_grpc_stream_append(struct inf_grpc_stream *stream, struct inf_span bytes);

// Sets *message to the message in the body, without its prefix. Fails if the message is compressed,
// or if the body does not consist of exactly one message.
enum inf_code inf_grpc_stream_message(const struct inf_grpc_stream *stream,
                                      struct inf_span *message,
                                      struct inf_error *err) INF_NODISCARD;

// Sends the message in stream->pieces, which must begin with its prefix of 5 bytes, and the status
// OK. Calls release(context) when the stream is freed. The caller must not use the stream
// afterwards.
void inf_grpc_reply(struct inf_grpc_stream *stream, void (*release)(void *context), void *context);

// Answers the call with the status `code` and a text. The caller must not use the stream
// afterwards.
void inf_grpc_reply_error(struct inf_grpc_stream *stream, int code, const char *message);

#endif
