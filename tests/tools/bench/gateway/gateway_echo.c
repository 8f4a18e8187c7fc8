// SPDX-License-Identifier: Apache-2.0
// Two HTTP servers that answer every request with the same bytes, with the settings of
// inferd-gateway.
#include "tests/tools/bench/gateway/gateway_echo.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <nghttp2/nghttp2.h>
#include <signal.h>

#include "tests/tools/bench/rpc_samples.h"

struct echo {
    struct event_base *base;
    uint8_t *answer;
    size_t answer_size;
};

// --- HTTP/1.1 ---

static void answer_request(struct evhttp_request *request, void *context)
{
    struct echo *echo = context;
    struct evbuffer *body = evbuffer_new();
    if (body == NULL ||
        evbuffer_add_reference(body, echo->answer, echo->answer_size, NULL, NULL) != 0)
        _exit(1);
    evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                      "application/octet-stream");
    evhttp_send_reply(request, 200, "OK", body);
    evbuffer_free(body);
}

static void serve_http1(struct echo *echo, int fd)
{
    struct evhttp *http = evhttp_new(echo->base);
    if (http == NULL || evhttp_accept_socket(http, fd) != 0)
        _exit(1);
    evhttp_set_gencb(http, answer_request, echo);
}

// --- HTTP/2 ---

struct peer {
    struct echo *echo;
    struct event *event;
    nghttp2_session *http2;
    int fd;
};

static ssize_t read_answer(nghttp2_session *http2, int32_t id, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *context)
{
    (void)source;
    struct echo *echo = ((struct peer *)context)->echo;
    static nghttp2_nv trailer = {(uint8_t *)"grpc-status", (uint8_t *)"0", 11, 1, 0};
    if (echo->answer_size > length || nghttp2_submit_trailer(http2, id, &trailer, 1) != 0)
        _exit(1);
    memcpy(buffer, echo->answer, echo->answer_size);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    return (ssize_t)echo->answer_size;
}

static int handle_frame(nghttp2_session *http2, const nghttp2_frame *frame, void *context)
{
    (void)context;
    static const nghttp2_nv fields[] = {
        {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0},
        {(uint8_t *)"content-type", (uint8_t *)"application/grpc", 12, 16, 0}};
    if (frame->hd.type != NGHTTP2_DATA || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    const nghttp2_data_provider provider = {{.ptr = NULL}, read_answer};
    return nghttp2_submit_response(http2, frame->hd.stream_id, fields, 2, &provider);
}

static void close_peer(struct peer *peer)
{
    nghttp2_session_del(peer->http2);
    event_free(peer->event);
    close(peer->fd);
    free(peer);
}

static void handle_peer(evutil_socket_t fd, short events, void *context)
{
    (void)events;
    struct peer *peer = context;
    uint8_t bytes[65536];
    ssize_t got = recv(fd, bytes, 32768, MSG_DONTWAIT);
    if (got <= 0 || nghttp2_session_mem_recv(peer->http2, bytes, (size_t)got) != got) {
        close_peer(peer);
        return;
    }
    size_t size = 0;
    const uint8_t *data;
    // Answers are small, so expect that the buffer of the socket always has room for them.
    for (ssize_t more; (more = nghttp2_session_mem_send(peer->http2, &data)) > 0;) {
        if (size + (size_t)more > sizeof bytes) {
            if (send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
                _exit(1);
            size = 0;
        }
        memcpy(bytes + size, data, (size_t)more);
        size += (size_t)more;
    }
    if (size > 0 && send(fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        close_peer(peer);
}

static void accept_peer(evutil_socket_t listener, short events, void *context)
{
    (void)events;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    struct peer *peer = calloc(1, sizeof *peer);
    nghttp2_session_callbacks *callbacks;
    if (fd < 0 || peer == NULL || nghttp2_session_callbacks_new(&callbacks) != 0)
        _exit(1);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    peer->echo = context;
    peer->fd = fd;
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, handle_frame);
    peer->event = event_new(peer->echo->base, fd, EV_READ | EV_PERSIST, handle_peer, peer);
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 256},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20}};
    if (nghttp2_session_server_new(&peer->http2, callbacks, peer) != 0 ||
        nghttp2_submit_settings(peer->http2, 0, settings, 2) != 0 ||
        nghttp2_session_set_local_window_size(peer->http2, 0, 0, 16 << 20) != 0 ||
        peer->event == NULL || event_add(peer->event, NULL) != 0)
        _exit(1);
    nghttp2_session_callbacks_del(callbacks);
}

static void serve_http2(struct echo *echo, int fd)
{
    struct event *event = event_new(echo->base, fd, EV_READ | EV_PERSIST, accept_peer, echo);
    if (event == NULL || event_add(event, NULL) != 0)
        _exit(1);
}

pid_t gateway_echo_start(int fd, bool http2, size_t answer_size)
{
    pid_t pid = fork();
    if (pid < 0)
        rpc_die("cannot fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM); // the server ends with the benchmark
    struct echo echo = {event_base_new(), calloc(1, answer_size + 1), answer_size};
    evutil_make_socket_nonblocking(fd);
    if (echo.base == NULL || echo.answer == NULL)
        _exit(1);
    (http2 ? serve_http2 : serve_http1)(&echo, fd);
    event_base_dispatch(echo.base);
    _exit(0);
}
