// SPDX-License-Identifier: Apache-2.0
// Carries gRPC calls over HTTP/2. nghttp2 parses frames and compressed header fields, manages the
// flow control windows, and bounds the memory that a client can make it use.
//
// A call is answered either inside a callback of nghttp2, when its request has just arrived, or
// later, when the daemon's answer arrives. In the first case the response is submitted to nghttp2
// and written to the socket after nghttp2 has returned. In the second case it is submitted and
// written at once.
#include "client/gateway/grpc/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <nghttp2/nghttp2.h>

#include "client/gateway/grpc/stream.h"
#include "client/gateway/http/clock.h"

// Maximum number of concurrent calls on one connection.
#define STREAMS_MAX 256
// Flow control window of a connection: the number of bytes that a client can send before the
// gateway has read them.
#define CONNECTION_WINDOW (16 << 20)
// Maximum size of the header fields of one call, in bytes.
#define HEADER_LIST_BYTES (16 << 10)
#define TICK_MS           1000
#define OUTPUT_BYTES      ((size_t)64 << 10)

struct inf_grpc_session {
    struct inf_gateway *gateway;
    struct inf_http_connection *connection;
    int fd;
    nghttp2_session *http2;
    bool busy;  // a function of nghttp2 is on the stack
    bool admin; // the listener is for administrators
    struct inf_grpc_stream *streams;
    uint64_t active_ms;   // time of the last bytes received or sent
    uint64_t receive_ms;  // time of the last bytes received
    uint64_t ping_ms;     // time of the last PING; 0: none was sent since bytes were received
    uint64_t progress_ms; // time of the last bytes sent
    // Bytes from output_begin to output_end, which the socket did not accept. NULL if there are
    // none, so that an idle connection needs little memory.
    uint8_t *output;
    size_t output_begin, output_end;
};

// --- streams ---

static int handle_begin(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    struct inf_grpc_session *session = context;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct inf_grpc_stream *stream =
        inf_grpc_stream_create(&session->streams, session->gateway, frame->hd.stream_id);
    if (stream == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    stream->session = session;
    stream->is_admin = session->admin;
    stream->begin_ms = inf_http_clock_ms();
    nghttp2_session_set_stream_user_data(http2, stream->id, stream);
    return 0;
}

static int handle_header(nghttp2_session *http2, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                         void *context)
{
    (void)flags;
    (void)context;
    struct inf_grpc_stream *stream =
        nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    if (stream != NULL)
        inf_grpc_stream_set_field(stream, (struct inf_span){name, name_size},
                                  (struct inf_span){value, value_size});
    return 0;
}

// Lets the client send as many bytes as the stream has taken, unless the stream is stalled.
static void enlarge_window(struct inf_grpc_stream *stream)
{
    if (stream->unconsumed > 0 && !stream->stalled) {
        (void)nghttp2_session_consume_stream(stream->session->http2, stream->id,
                                             stream->unconsumed);
        stream->unconsumed = 0;
    }
}

static int handle_data(nghttp2_session *http2, uint8_t flags, int32_t id, const uint8_t *data,
                       size_t size, void *context)
{
    (void)flags;
    (void)context;
    struct inf_grpc_stream *stream = nghttp2_session_get_stream_user_data(http2, id);
    // One stream that is stalled must not stall the others, so the window of the connection is
    // enlarged at once.
    (void)nghttp2_session_consume_connection(http2, size);
    if (stream == NULL)
        return 0;
    stream->unconsumed += size;
    bool takes = stream->streaming != NULL ? stream->end_code == INFERD_OK : !stream->answered;
    if (takes && stream->body_size == 0)
        stream->begin_ms = stream->streaming != NULL ? inf_http_clock_ms() : stream->begin_ms;
    if (takes && size > 0 && !inf_grpc_stream_append(stream, (struct inf_span){data, size})) {
        if (stream->streaming == NULL)
            inf_grpc_reply_error(stream, INFERD_RESOURCE_EXHAUSTED, "the message is too large");
        else
            inf_grpc_stream_fail(stream, INFERD_RESOURCE_EXHAUSTED, "the message is too large");
    }
    if (stream->streaming != NULL)
        stream->streaming->receive(stream);
    enlarge_window(stream);
    return 0;
}

static int handle_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    (void)context;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct inf_grpc_stream *stream =
        nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id);
    if (stream == NULL)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        stream->gateway->begin_call(stream);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    stream->complete = true;
    if (stream->streaming != NULL)
        stream->streaming->receive(stream);
    else if (!stream->answered)
        stream->gateway->handle_call(stream);
    return 0;
}

// Called when nghttp2 has sent a frame. If the frame ends a response whose request has not arrived
// completely, resets the stream, so that the client stops sending.
static int handle_sent(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    (void)context;
    struct inf_grpc_stream *stream =
        frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0
            ? nghttp2_session_get_stream_user_data(http2, frame->hd.stream_id)
            : NULL;
    if (stream != NULL && !stream->complete)
        nghttp2_submit_rst_stream(http2, 0, stream->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int handle_close(nghttp2_session *http2, int32_t id, uint32_t error, void *context)
{
    (void)error;
    (void)context;
    struct inf_grpc_stream *stream = nghttp2_session_get_stream_user_data(http2, id);
    if (stream != NULL)
        inf_grpc_stream_free(stream);
    return 0;
}

// --- writing ---

// Writes bytes to the socket until all are written or the socket is full. Adds the number of
// written bytes to *written. Returns false if the connection is broken.
static bool write_bytes(struct inf_grpc_session *session, struct inf_span bytes, size_t *written)
{
    size_t sum = 0;
    while (sum < bytes.size) {
        ssize_t sent =
            send(session->fd, bytes.data + sum, bytes.size - sum, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return false;
        if (sent < 0)
            break;
        sum += (size_t)sent;
    }
    if (sum > 0) {
        session->active_ms = session->progress_ms = inf_http_clock_ms();
        inf_http_server_count(session->gateway->server, 0, sum, 0);
    }
    *written += sum;
    return true;
}

// Writes the kept bytes. Returns false if the connection is broken.
static bool write_kept(struct inf_grpc_session *session)
{
    struct inf_span kept = {session->output + session->output_begin,
                            session->output_end - session->output_begin};
    if (session->output == NULL)
        return true;
    bool ok = write_bytes(session, kept, &session->output_begin);
    if (session->output_begin == session->output_end) {
        free(session->output);
        session->output = NULL;
    }
    return ok;
}

// Writes `bytes`, and keeps those that the socket does not accept. Returns false if the connection
// is broken or there is no memory.
static bool write_or_keep(struct inf_grpc_session *session, struct inf_span bytes)
{
    size_t written = 0;
    if (!write_bytes(session, bytes, &written))
        return false;
    if (written == bytes.size)
        return true;
    session->output = malloc(bytes.size - written);
    if (session->output == NULL)
        return false;
    memcpy(session->output, bytes.data + written, bytes.size - written);
    session->output_begin = 0;
    session->output_end = bytes.size - written;
    return true;
}

// Moves bytes from nghttp2 to `bytes`, which has OUTPUT_BYTES bytes, until nghttp2 has no more, or
// until the free space is smaller than the largest frame. Returns false if nghttp2 failed.
static bool take_output(struct inf_grpc_session *session, uint8_t *bytes, size_t *taken)
{
    *taken = 0;
    // One call returns at most one frame: a frame header and at most 16 KiB.
    while (*taken + (17 << 10) <= OUTPUT_BYTES) {
        const uint8_t *data;
        session->busy = true;
        ssize_t size = nghttp2_session_mem_send(session->http2, &data);
        session->busy = false;
        if (size < 0 || (size_t)size > OUTPUT_BYTES - *taken)
            return false;
        if (size == 0)
            return true;
        memcpy(bytes + *taken, data, (size_t)size);
        *taken += (size_t)size;
    }
    return true;
}

// Writes to the socket until it is full or there is nothing to write, and sets the events that the
// connection waits for. Closes the connection if it has failed or ended; this frees the session.
static void flush_session(struct inf_grpc_session *session)
{
    uint8_t bytes[OUTPUT_BYTES];
    bool ok = write_kept(session);
    while (ok && session->output == NULL) {
        size_t size;
        ok = take_output(session, bytes, &size);
        if (size == 0)
            break;
        ok = write_or_keep(session, (struct inf_span){bytes, size}) && ok;
    }
    bool blocked = session->output != NULL;
    bool over = !blocked && !nghttp2_session_want_read(session->http2) &&
                !nghttp2_session_want_write(session->http2);
    if (!ok || over)
        inf_http_takeover_close(session->connection);
    else
        inf_http_takeover_wait_for(session->connection,
                                   (short)(EV_READ | (blocked ? EV_WRITE : 0)));
}

// Writes a message to `to`. Bytes that are not printable ASCII, and '%', become %XX, as gRPC
// requires. A message that does not fit is cut.
static void escape_message(const char *message, char *to, size_t room)
{
    size_t at = 0;
    for (; *message != '\0' && at + 4 <= room; message++) {
        uint8_t c = (uint8_t)*message;
        bool plain = c >= ' ' && c < 0x7f && c != '%';
        at += (size_t)snprintf(to + at, room - at, plain ? "%c" : "%%%02X", c);
    }
    to[at] = '\0';
}

static nghttp2_nv header_field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0};
}

// Submits the status of a call behind its responses.
static int submit_status(nghttp2_session *http2, const struct inf_grpc_stream *stream)
{
    char status[12], text[1024];
    snprintf(status, sizeof status, "%d", stream->end_code);
    escape_message(stream->end_text, text, sizeof text);
    const nghttp2_nv trailers[] = {header_field("grpc-status", status),
                                   header_field("grpc-message", text)};
    return nghttp2_submit_trailer(http2, stream->id, trailers,
                                  stream->end_code == INFERD_OK ? 1 : 2);
}

// Copies pieces of the response to `buffer`. Returns the number of bytes.
static size_t copy_pieces(struct inf_grpc_stream *stream, uint8_t *buffer, size_t length)
{
    size_t written = 0;
    while (written < length) {
        if (stream->piece_next == stream->piece_count) {
            if (stream->streaming == NULL || !stream->streaming->next(stream))
                break;
            continue;
        }
        struct iovec *piece = &stream->pieces[stream->piece_next];
        size_t size = INF_MIN(piece->iov_len, length - written);
        if (size > 0)
            memcpy(buffer + written, piece->iov_base, size);
        written += size;
        piece->iov_base = (uint8_t *)piece->iov_base + size;
        piece->iov_len -= size;
        if (piece->iov_len == 0)
            stream->piece_next++;
    }
    return written;
}

static ssize_t read_response(nghttp2_session *http2, int32_t id, uint8_t *buffer, size_t length,
                             uint32_t *flags, nghttp2_data_source *source, void *context)
{
    (void)id;
    (void)context;
    struct inf_grpc_stream *stream = source->ptr;
    size_t written = copy_pieces(stream, buffer, length);
    stream->progress_ms = inf_http_clock_ms();
    enlarge_window(stream);
    if (stream->piece_next < stream->piece_count)
        return (ssize_t)written;
    if (stream->streaming != NULL && !stream->ended)
        return written > 0 ? (ssize_t)written : NGHTTP2_ERR_DEFERRED;
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (submit_status(http2, stream) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return (ssize_t)written;
}

// Submits the header fields of a response, with the `count` fields in `more`, to nghttp2. Writes
// them at once unless a function of nghttp2 is on the stack.
static void submit_response(struct inf_grpc_stream *stream, const nghttp2_nv *more, size_t count,
                            const nghttp2_data_provider *provider)
{
    struct inf_grpc_session *session = stream->session;
    nghttp2_nv fields[7] = {header_field(":status", "200"),
                            header_field("content-type", "application/grpc"),
                            header_field("grpc-accept-encoding", INF_GRPC_CODINGS)};
    size_t field_count = 3;
    if (stream->request_id[0] != '\0')
        fields[field_count++] = header_field("x-request-id", stream->request_id);
    if (stream->trace_parent[0] != '\0')
        fields[field_count++] = header_field("traceparent", stream->trace_parent);
    for (size_t i = 0; i < count; i++)
        fields[field_count++] = more[i];
    stream->answered = true;
    stream->progress_ms = inf_http_clock_ms();
    inf_http_server_count(session->gateway->server, 0, 0, count > 0 ? 4 : 2);
    int code = nghttp2_submit_response(session->http2, stream->id, fields, field_count, provider);
    if (code != 0)
        nghttp2_submit_rst_stream(session->http2, 0, stream->id, NGHTTP2_INTERNAL_ERROR);
    if (!session->busy)
        flush_session(session);
}

void inf_grpc_reply(struct inf_grpc_stream *stream, void (*release)(void *context), void *context)
{
    const nghttp2_data_provider provider = {{.ptr = stream}, read_response};
    stream->user = NULL;
    stream->release = release;
    stream->context = context;
    submit_response(stream, NULL, 0, &provider);
}

void inf_grpc_reply_begin(struct inf_grpc_stream *stream,
                          const struct inf_grpc_streaming *streaming, void *user,
                          void (*abandon)(void *user))
{
    const nghttp2_data_provider provider = {{.ptr = stream}, read_response};
    stream->streaming = streaming;
    stream->user = user;
    stream->abandon = abandon;
    if (stream->timeout_ms != 0)
        stream->deadline_ms = inf_http_clock_ms() + stream->timeout_ms;
    submit_response(stream, NULL, 0, &provider);
}

void inf_grpc_reply_continue(struct inf_grpc_stream *stream)
{
    struct inf_grpc_session *session = stream->session;
    // Fails if the response is not deferred; nghttp2 then reads it without being told.
    (void)nghttp2_session_resume_data(session->http2, stream->id);
    enlarge_window(stream);
    if (!session->busy)
        flush_session(session);
}

void inf_grpc_reply_error(struct inf_grpc_stream *stream, int code, const char *message)
{
    char status[12], text[1024];
    snprintf(status, sizeof status, "%d", code);
    escape_message(message, text, sizeof text);
    const nghttp2_nv fields[] = {header_field("grpc-status", status),
                                 header_field("grpc-message", text)};
    stream->user = NULL;
    submit_response(stream, fields, 2, NULL);
}

// --- the session ---

static void end_session(void *context)
{
    struct inf_grpc_session *session = context;
    while (session->streams != NULL)
        inf_grpc_stream_free(session->streams);
    nghttp2_session_del(session->http2);
    free(session->output);
    free(session);
}

static bool create_http2(struct inf_grpc_session *session)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0) {
        nghttp2_session_callbacks_del(callbacks);
        return false;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, handle_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, handle_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, handle_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, handle_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, handle_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, handle_close);
    // Maximum number of answers to PING and SETTINGS that wait for a client that does not read.
    nghttp2_option_set_max_outbound_ack(option, 100);
    nghttp2_option_set_no_auto_window_update(option, 1);
    int code = nghttp2_session_server_new2(&session->http2, callbacks, session, option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, INF_GRPC_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES},
    };
    return code == 0 && nghttp2_submit_settings(session->http2, 0, settings, 3) == 0 &&
           nghttp2_session_set_local_window_size(session->http2, 0, 0, CONNECTION_WINDOW) == 0;
}

// Passes received bytes to nghttp2. Returns false if the connection must be closed.
static bool receive_bytes(struct inf_grpc_session *session, struct inf_span bytes)
{
    session->active_ms = session->receive_ms = inf_http_clock_ms();
    session->ping_ms = 0;
    inf_http_server_count(session->gateway->server, bytes.size, 0, 0);
    session->busy = true;
    ssize_t used = nghttp2_session_mem_recv(session->http2, bytes.data, bytes.size);
    session->busy = false;
    return used == (ssize_t)bytes.size;
}

static void *begin_session(void *gateway, struct inf_http_connection *connection, int fd,
                           bool admin, struct inf_span received)
{
    struct inf_grpc_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->gateway = gateway;
    session->connection = connection;
    session->fd = fd;
    session->admin = admin;
    session->progress_ms = inf_http_clock_ms();
    if (!create_http2(session) || !receive_bytes(session, received)) {
        end_session(session);
        return NULL;
    }
    inf_http_takeover_set_timer(connection, TICK_MS);
    // EV_WRITE makes the loop write the SETTINGS frame that create_http2() submitted.
    inf_http_takeover_wait_for(connection, EV_READ | EV_WRITE);
    return session;
}

// Returns true if the client does not send its request, or does not read its response, in time.
static bool is_too_slow(const struct inf_grpc_stream *stream, const struct inf_http_limits *limits,
                        uint64_t now)
{
    bool writes = stream->streaming != NULL ? stream->ready : stream->answered;
    // A streaming call may wait for its next message without a limit.
    bool reads =
        stream->streaming != NULL ? stream->body_size > 0 && !stream->stalled : !stream->complete;
    return (writes && now - stream->progress_ms > limits->write_ms) ||
           (reads && now - stream->begin_ms > limits->body_ms);
}

// Sends a PING to a client that has calls but has sent nothing for half of idle_ms. Returns false
// if the client has sent nothing, not even an answer to the PING, for idle_ms.
static bool check_alive(struct inf_grpc_session *session, unsigned idle_ms, uint64_t now)
{
    if (session->ping_ms != 0)
        return now - session->ping_ms <= idle_ms - idle_ms / 2;
    if (now - session->receive_ms > idle_ms / 2 &&
        nghttp2_submit_ping(session->http2, 0, NULL) == 0)
        session->ping_ms = now;
    return true;
}

// Makes a streaming call end with an error. Leaves the writing to the caller.
static void fail_streaming(struct inf_grpc_stream *stream, int code, const char *text)
{
    struct inf_grpc_session *session = stream->session;
    session->busy = true;
    inf_grpc_stream_fail(stream, code, text);
    stream->streaming->receive(stream);
    session->busy = false;
}

// Ends the calls that would keep a gateway that stops waiting.
static void fail_endless_calls(struct inf_grpc_session *session)
{
    struct inf_grpc_stream *next;
    for (struct inf_grpc_stream *stream = session->streams; stream != NULL; stream = next) {
        next = stream->next;
        if (stream->streaming != NULL && stream->streaming->endless && !stream->ended)
            fail_streaming(stream, INFERD_UNAVAILABLE, "the gateway stops");
    }
}

// Ends calls that have exceeded a time limit. Returns false if the connection must be closed
// because it is idle, or because the client does not read or is gone.
static bool check_times(struct inf_grpc_session *session)
{
    const struct inf_http_limits *limits = inf_http_server_limits(session->gateway->server);
    uint64_t now = inf_http_clock_ms();
    if (session->streams == NULL)
        session->ping_ms = 0;
    if (session->streams == NULL && now - session->active_ms > limits->idle_ms)
        return false;
    bool waits = session->output != NULL || nghttp2_session_want_write(session->http2);
    if ((waits && now - session->progress_ms > limits->write_ms) ||
        (session->streams != NULL && !check_alive(session, limits->idle_ms, now))) {
        inf_http_server_count_timeout(session->gateway->server);
        return false;
    }
    struct inf_grpc_stream *next;
    for (struct inf_grpc_stream *stream = session->streams; stream != NULL; stream = next) {
        next = stream->next;
        if (!stream->reset && is_too_slow(stream, limits, now)) {
            stream->reset = true;
            inf_http_server_count_timeout(session->gateway->server);
            nghttp2_submit_rst_stream(session->http2, 0, stream->id, NGHTTP2_CANCEL);
        } else if (stream->deadline_ms != 0 && now >= stream->deadline_ms && !stream->ended)
            fail_streaming(stream, INFERD_DEADLINE_EXCEEDED, "the call's deadline passed");
    }
    return true;
}

static void handle_session(void *context, short events)
{
    struct inf_grpc_session *session = context;
    bool ok = true;
    if ((events & EV_TIMEOUT) != 0) {
        ok = check_times(session);
        inf_http_takeover_set_timer(session->connection, TICK_MS);
    }
    if ((events & EV_CLOSED) != 0) {
        // Refuses new calls. The session ends after the calls in flight.
        fail_endless_calls(session);
        nghttp2_submit_goaway(session->http2, 0,
                              nghttp2_session_get_last_proc_stream_id(session->http2),
                              NGHTTP2_NO_ERROR, NULL, 0);
    }
    if ((events & EV_READ) != 0) {
        uint8_t bytes[32768];
        ssize_t got = recv(session->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got > 0)
            ok = receive_bytes(session, (struct inf_span){bytes, (size_t)got});
        else
            ok = got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    if (ok)
        flush_session(session);
    else
        inf_http_takeover_close(session->connection);
}

const struct inf_http_takeover inf_grpc_takeover = {
    .begin = begin_session,
    .handle = handle_session,
    .end = end_session,
};
