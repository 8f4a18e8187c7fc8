// SPDX-License-Identifier: Apache-2.0
// One gRPC call: an HTTP/2 stream. A unary call has one message in each direction, a streaming call
// any number of messages.
#ifndef INF_GATEWAY_GRPC_STREAM_H
#define INF_GATEWAY_GRPC_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "client/gateway/core/gateway.h"
#include "client/gateway/grpc/inflater.h"
#include "proto/core/span.h"

struct inf_grpc_session;
struct inf_grpc_stream;

// Size of the buffer for a path, with its NUL. The longest path that is served has 64 bytes; a path
// that does not fit is treated as unknown.
#define INF_GRPC_PATH_BYTES 128u
// Maximum number of pieces of a response: one for the fields before the tensors, and for each of 64
// outputs one for its protobuf tag and one for its data.
#define INF_GRPC_PIECES 129u
// Codings of compressed messages that the gateway reads, as in grpc-accept-encoding.
#define INF_GRPC_CODINGS "identity,deflate,gzip"
// Size of the prefix of a message: one byte that says whether the message is compressed, and four
// bytes for its length.
#define INF_GRPC_PREFIX_BYTES 5u
// Flow control window of a stream: the number of bytes that a client can send before the gateway
// has taken them.
#define INF_GRPC_WINDOW_BYTES ((size_t)1 << 20)

// Functions of the method of a streaming call.
struct inf_grpc_streaming {
    // Called when bytes of the request have arrived, or when the request is complete.
    void (*receive)(struct inf_grpc_stream *stream);
    // Called when the pieces of the stream are sent. Frees them, and sets the pieces of the next
    // response. Returns false if no response is ready.
    bool (*next)(struct inf_grpc_stream *stream);
    // The call does not end by itself, so it ends when the gateway does.
    bool endless;
};

struct inf_grpc_stream {
    struct inf_grpc_session *session;
    struct inf_gateway *gateway;
    int32_t id;
    struct inf_grpc_stream *next, **previous; // neighbours in the list `streams` of the session
    // The request.
    char path[INF_GRPC_PATH_BYTES];
    bool is_post, is_grpc, is_admin;
    unsigned token; // number of the token in `authorization`; 0: none that the gateway accepts
    // Values of x-request-id and traceparent, which come back in the response; "": the call has no
    // valid one.
    char request_id[INF_HTTP_REQUEST_ID_BYTES + 1], trace_parent[INF_HTTP_TRACE_PARENT_BYTES + 1];
    bool has_bad_timeout;
    enum inf_http_coding coding; // of compressed messages, from grpc-encoding
    bool has_bad_coding;         // grpc-encoding names a coding that the gateway lacks
    uint64_t timeout_ms;         // value of grpc-timeout; 0: the request sets none
    uint8_t *body;               // the message with its prefix of 5 bytes
    size_t body_size, body_capacity;
    struct inf_grpc_inflater inflater; // the message of a unary call, if it is compressed
    uint64_t begin_ms;                 // when the request, or its current message, began to arrive
    uint64_t deadline_ms;              // when the timeout of a streaming call passes; 0: no timeout
    bool complete;                     // the whole request has arrived
    bool answered;                     // a response was submitted to nghttp2
    bool reset; // RST_STREAM was submitted to nghttp2, because the client is too slow
    // Functions of the streaming method; NULL: the call is unary.
    const struct inf_grpc_streaming *streaming;
    size_t unconsumed; // received bytes for which the client's window was not enlarged
    bool stalled;      // no more of the request is taken until a response was sent
    bool ready;        // the client has a response or the status to read
    bool ended;        // no further response follows, only the status
    int end_code;      // status of the call; INFERD_OK: no error
    char end_text[256];
    // State of the method for this call; NULL: none. If the stream ends before the response,
    // abandon(user) is called, which must free `user`.
    void *user;
    void (*abandon)(void *user);
    // The response. release(context) frees the memory of the pieces.
    struct iovec pieces[INF_GRPC_PIECES];
    size_t piece_next, piece_count;
    uint64_t progress_ms; // when bytes of the response were last passed to nghttp2
    void (*release)(void *context);
    void *context;
};

// Handles a complete unary call: answers it before it returns, or when the daemon has answered.
void inf_grpc_method_handle(struct inf_grpc_stream *stream);

// Called when the header fields of a call have arrived. Begins a streaming call if the method is
// one.
void inf_grpc_method_begin(struct inf_grpc_stream *stream);

// Creates a stream and inserts it into `list`. Returns NULL if there is no memory.
struct inf_grpc_stream *inf_grpc_stream_create(struct inf_grpc_stream **list,
                                               struct inf_gateway *gateway, int32_t id);

// Removes a stream from its list and frees it. Calls abandon(user) if the call is not answered, and
// release(context) if the response has not been released.
void inf_grpc_stream_free(struct inf_grpc_stream *stream);

// Stores a header field of the request if the gateway uses this field.
void inf_grpc_stream_set_field(struct inf_grpc_stream *stream, struct inf_span name,
                               struct inf_span value);

// Returns the id of the call for the daemon's log: x-request-id, traceparent or NULL.
const char *inf_grpc_stream_other_id(const struct inf_grpc_stream *stream);

// Appends bytes to the body. If that exceeds the limit of one body or of all bodies, or if there is
// no memory, frees the body and returns false.
bool inf_grpc_stream_append(struct inf_grpc_stream *stream, struct inf_span bytes);

// Makes a streaming call end with an error after the responses to its earlier messages: sets its
// status and drops the received bytes of later messages. The caller then calls
// stream->streaming->receive() or inf_grpc_reply_continue().
void inf_grpc_stream_fail(struct inf_grpc_stream *stream, int code, const char *text);

// Sets whether the client of a streaming call has a response or the status to read, and notes since
// when it has.
void inf_grpc_stream_set_ready(struct inf_grpc_stream *stream, bool ready);

// Reads the prefix of the message at the start of `bytes`. Returns false if the prefix is
// incomplete. Otherwise *size is the size of the message without its prefix, and *compressed is set
// if the message is compressed.
bool inf_grpc_prefix_read(struct inf_span bytes, size_t *size, bool *compressed);

// Takes the first `size` bytes of the body, which must have arrived, out of the body from `*offset`
// on. On success the caller owns *bytes, must free it with free(), and must give *charged bytes
// back with inf_http_server_release(). Moves *offset behind the bytes. Returns false if there is no
// memory.
bool inf_grpc_stream_take(struct inf_grpc_stream *stream, size_t *offset, size_t size,
                          uint8_t **bytes, size_t *charged);

// Finds the message at the start of the body of a streaming call whose method takes only small
// messages without compression. Returns false if it has not arrived completely; it also fails the
// call if the message is compressed or has more than `size_max` bytes. *message is valid until the
// body changes.
bool inf_grpc_stream_peek(struct inf_grpc_stream *stream, size_t size_max,
                          struct inf_span *message);

// Removes the first `size` bytes from the body.
void inf_grpc_stream_discard(struct inf_grpc_stream *stream, size_t size);

// Sets *message to the message in the body, without its prefix, and *compressed if it is
// compressed. Fails if the body does not consist of exactly one message.
enum inf_code inf_grpc_stream_message(const struct inf_grpc_stream *stream,
                                      struct inf_span *message, bool *compressed,
                                      struct inf_error *err) INF_NODISCARD;

// Fails if a message is compressed, and the call has no grpc-encoding or an unknown one.
enum inf_code inf_grpc_stream_check_coding(const struct inf_grpc_stream *stream, bool compressed,
                                           struct inf_error *err) INF_NODISCARD;

// Sends the message in stream->pieces, which must begin with its prefix of 5 bytes, and the status
// OK. Calls release(context) when the stream is freed. The caller must not use the stream
// afterwards.
void inf_grpc_reply(struct inf_grpc_stream *stream, void (*release)(void *context), void *context);

// Begins the response of a streaming call. Its timeout counts from now on. Must be called while the
// header fields are being handled. Sets the fields `streaming`, `user` and `abandon` of the stream.
// `user` may be NULL.
void inf_grpc_reply_begin(struct inf_grpc_stream *stream,
                          const struct inf_grpc_streaming *streaming, void *user,
                          void (*abandon)(void *user));

// Continues a streaming call: a response has become ready, the call has ended, or the stream is not
// stalled any longer. Only the functions in stream->streaming may use the stream after this call.
void inf_grpc_reply_continue(struct inf_grpc_stream *stream);

// Answers the call with the status `code` and a text. The caller must not use the stream
// afterwards.
void inf_grpc_reply_error(struct inf_grpc_stream *stream, int code, const char *message);

#endif
