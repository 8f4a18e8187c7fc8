// SPDX-License-Identifier: Apache-2.0
// Stores the request of a gRPC call: its header fields, and the bytes of its message.
#include "client/gateway/grpc/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/http/clock.h"

// Initial capacity of the buffer for a message, in bytes. The capacity doubles when the buffer is
// full. It does not depend on the length in the message's prefix, because a client can announce a
// large message without sending it.
#define FIRST_CAPACITY ((size_t)4 << 10)

struct inf_grpc_stream *inf_grpc_stream_create(struct inf_grpc_stream **list,
                                               struct inf_gateway *gateway, int32_t id)
{
    struct inf_grpc_stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL)
        return NULL;
    stream->gateway = gateway;
    stream->id = id;
    stream->next = *list;
    stream->previous = list;
    if (stream->next != NULL)
        stream->next->previous = &stream->next;
    *list = stream;
    return stream;
}

static void free_body(struct inf_grpc_stream *stream)
{
    inf_http_server_release(stream->gateway->server, stream->body_capacity);
    free(stream->body);
    stream->body = NULL;
    stream->body_size = stream->body_capacity = 0;
}

void inf_grpc_stream_free(struct inf_grpc_stream *stream)
{
    if (stream->user != NULL)
        stream->abandon(stream->user);
    if (stream->release != NULL)
        stream->release(stream->context);
    inf_grpc_inflater_fini(&stream->inflater);
    free_body(stream);
    *stream->previous = stream->next;
    if (stream->next != NULL)
        stream->next->previous = stream->previous;
    free(stream);
}

// Parses the value of grpc-timeout: one to eight digits and a letter for the unit. Returns at least
// 1 millisecond, or 0 if the value is invalid.
static uint64_t parse_timeout(struct inf_span value)
{
    uint64_t number = 0;
    if (value.size < 2 || value.size > 9)
        return 0;
    for (size_t i = 0; i + 1 < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return 0;
        number = number * 10 + (value.data[i] - '0');
    }
    switch (value.data[value.size - 1]) {
    case 'H':
        return INF_MAX(number * 3600000, 1u);
    case 'M':
        return INF_MAX(number * 60000, 1u);
    case 'S':
        return INF_MAX(number * 1000, 1u);
    case 'm':
        return INF_MAX(number, 1u);
    case 'u':
        return number / 1000 + 1;
    case 'n':
        return number / 1000000 + 1;
    default:
        return 0;
    }
}

static bool span_is(struct inf_span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.data, text, span.size) == 0;
}

// Copies `value`, whose size was checked, and appends NUL.
static void copy_text(char *to, struct inf_span value)
{
    if (value.size > 0)
        memcpy(to, value.data, value.size);
    to[value.size] = '\0';
}

void inf_grpc_stream_set_field(struct inf_grpc_stream *stream, struct inf_span name,
                               struct inf_span value)
{
    if (span_is(name, ":method")) {
        stream->is_post = span_is(value, "POST");
    } else if (span_is(name, ":path") && value.size < sizeof stream->path) {
        memcpy(stream->path, value.data, value.size);
    } else if (span_is(name, "content-type")) {
        stream->is_grpc = value.size >= 16 && memcmp(value.data, "application/grpc", 16) == 0;
    } else if (span_is(name, "grpc-timeout")) {
        stream->timeout_ms = parse_timeout(value);
        stream->has_bad_timeout = stream->timeout_ms == 0;
    } else if (span_is(name, "grpc-encoding")) {
        stream->coding = span_is(value, "gzip")      ? INF_HTTP_GZIP
                         : span_is(value, "deflate") ? INF_HTTP_DEFLATE
                                                     : INF_HTTP_IDENTITY;
        stream->has_bad_coding = stream->coding == INF_HTTP_IDENTITY && !span_is(value, "identity");
    } else if (span_is(name, "authorization") && stream->gateway->tokens != NULL) {
        stream->token = inf_tokens_find(stream->gateway->tokens, value);
    } else if (span_is(name, "x-request-id") && inf_http_request_id_valid(value)) {
        copy_text(stream->request_id, value);
    } else if (span_is(name, "traceparent") && inf_http_trace_parent_valid(value)) {
        copy_text(stream->trace_parent, value);
    }
}

const char *inf_grpc_stream_other_id(const struct inf_grpc_stream *stream)
{
    return stream->request_id[0] != '\0'     ? stream->request_id
           : stream->trace_parent[0] != '\0' ? stream->trace_parent
                                             : NULL;
}

// Makes room for `size` more bytes of the body. Returns false if that exceeds the limit of one body
// or of all bodies, or if there is no memory.
static bool reserve_body(struct inf_grpc_stream *stream, size_t size)
{
    struct inf_http_server *server = stream->gateway->server;
    size_t wanted = stream->body_size + size, max = inf_http_server_limits(server)->body_bytes_max;
    // The body of a streaming call can hold a message and what the client sent behind it.
    if (stream->streaming != NULL)
        max += INF_GRPC_PREFIX_BYTES + INF_GRPC_WINDOW_BYTES;
    if (wanted <= stream->body_capacity)
        return true;
    size_t capacity = INF_MAX(stream->body_capacity * 2, FIRST_CAPACITY);
    capacity = INF_MAX(INF_MIN(capacity, max), wanted);
    size_t more = capacity - stream->body_capacity;
    if (wanted > max || !inf_http_server_charge(server, more))
        return false;
    uint8_t *grown = realloc(stream->body, capacity);
    if (grown == NULL) {
        inf_http_server_release(server, more);
        return false;
    }
    stream->body = grown;
    stream->body_capacity = capacity;
    return true;
}

bool inf_grpc_stream_append(struct inf_grpc_stream *stream, struct inf_span bytes)
{
    if (!reserve_body(stream, bytes.size)) {
        free_body(stream);
        return false;
    }
    memcpy(stream->body + stream->body_size, bytes.data, bytes.size);
    stream->body_size += bytes.size;
    return true;
}

void inf_grpc_stream_fail(struct inf_grpc_stream *stream, int code, const char *text)
{
    if (stream->end_code != INFERD_OK)
        return;
    stream->end_code = code;
    snprintf(stream->end_text, sizeof stream->end_text, "%s", text);
    free_body(stream);
}

bool inf_grpc_prefix_read(struct inf_span bytes, size_t *size, bool *compressed)
{
    const uint8_t *p = bytes.data;
    if (bytes.size < INF_GRPC_PREFIX_BYTES)
        return false;
    *compressed = p[0] != 0;
    *size = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
    return true;
}

bool inf_grpc_stream_take(struct inf_grpc_stream *stream, size_t *offset, size_t size,
                          uint8_t **bytes, size_t *charged)
{
    if (*offset == 0 && size == stream->body_size) {
        // The usual case: the body is this message, which is then not copied.
        *bytes = stream->body;
        *charged = stream->body_capacity;
        stream->body = NULL;
        stream->body_size = stream->body_capacity = 0;
        return true;
    }
    if (!inf_http_server_charge(stream->gateway->server, size))
        return false;
    *bytes = malloc(size);
    if (*bytes == NULL) {
        inf_http_server_release(stream->gateway->server, size);
        return false;
    }
    *charged = size;
    memcpy(*bytes, stream->body + *offset, size);
    *offset += size;
    return true;
}

void inf_grpc_stream_set_ready(struct inf_grpc_stream *stream, bool ready)
{
    if (ready && !stream->ready)
        stream->progress_ms = inf_http_clock_ms();
    stream->ready = ready;
}

bool inf_grpc_stream_peek(struct inf_grpc_stream *stream, size_t size_max, struct inf_span *message)
{
    struct inf_span body = {stream->body, stream->body_size};
    size_t size;
    bool compressed;
    if (stream->end_code != INFERD_OK || !inf_grpc_prefix_read(body, &size, &compressed))
        return false;
    if (compressed)
        inf_grpc_stream_fail(stream, INFERD_UNIMPLEMENTED,
                             "compressed messages are not supported by this method");
    else if (size > size_max)
        inf_grpc_stream_fail(stream, INFERD_RESOURCE_EXHAUSTED, "the message is too large");
    if (stream->end_code != INFERD_OK || body.size - INF_GRPC_PREFIX_BYTES < size)
        return false;
    *message = (struct inf_span){body.data + INF_GRPC_PREFIX_BYTES, size};
    return true;
}

void inf_grpc_stream_discard(struct inf_grpc_stream *stream, size_t size)
{
    stream->body_size -= size;
    if (stream->body_size == 0)
        free_body(stream);
    else if (size > 0)
        memmove(stream->body, stream->body + size, stream->body_size);
}

enum inf_code inf_grpc_stream_message(const struct inf_grpc_stream *stream,
                                      struct inf_span *message, bool *compressed,
                                      struct inf_error *err)
{
    size_t size;
    if (!inf_grpc_prefix_read((struct inf_span){stream->body, stream->body_size}, &size,
                              compressed))
        return inf_fail(err, INF_INVALID, "the call has no message");
    if (size != stream->body_size - INF_GRPC_PREFIX_BYTES)
        return inf_fail(err, INF_INVALID, "the call has not exactly one whole message");
    *message = (struct inf_span){stream->body + INF_GRPC_PREFIX_BYTES, size};
    return INF_OK;
}

enum inf_code inf_grpc_stream_check_coding(const struct inf_grpc_stream *stream, bool compressed,
                                           struct inf_error *err)
{
    if (!compressed || stream->coding != INF_HTTP_IDENTITY)
        return INF_OK;
    if (stream->has_bad_coding)
        return inf_fail(err, INF_UNSUPPORTED,
                        "the message has a coding that is none of " INF_GRPC_CODINGS);
    // gRPC wants this code for a compressed message without a coding.
    return inf_fail(err, INF_INTERNAL, "the message is compressed, but grpc-encoding is missing");
}
