// SPDX-License-Identifier: Apache-2.0
// Receives the heads and bodies of requests.
//
// Heads are collected in the connection's input buffer. A body whose size is known is received
// directly into the memory of the body, which is shared with the daemon if the handler placed it
// there. A chunked body is received into the input buffer and decoded from it. Bytes of the next
// request stay in the input buffer until the response is written.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/gateway/http/connection.h"

// Maximum number of bytes that are read and dropped in the state LINGER. If the socket were closed
// while bytes are unread, the kernel would reset the connection, and the client could lose the
// response.
#define LINGER_BYTES ((size_t)256 << 10)

static bool body_is_complete(const struct inf_http_connection *connection)
{
    return connection->exchange.head.chunked
               ? connection->chunked.state == INF_HTTP_CHUNK_DONE
               : connection->body_size == connection->exchange.head.length;
}

static void hand_over(struct inf_http_connection *connection)
{
    struct inf_http_server *server = connection->server;
    connection->state = INF_HTTP_HANDLING;
    event_del(connection->timer);
    connection->exchange.body = (struct inf_span){connection->body, connection->body_size};
    server->handler.handle(server->handler.context, &connection->exchange);
    if (connection->state != INF_HTTP_HANDLING || connection->dead)
        return;
    bool full = connection->input_end == INF_HTTP_INPUT_BYTES;
    inf_http_connection_wait_for(connection, full ? EV_CLOSED : EV_READ);
}

// Moves bytes of the body from the input buffer to the body. Returns false, and sets *refusal, if
// the request must be refused.
static bool take_body(struct inf_http_connection *connection, struct inf_http_refusal *refusal)
{
    struct inf_span input = {connection->input + connection->input_begin,
                             connection->input_end - connection->input_begin};
    struct inf_span piece;
    if (!connection->exchange.head.chunked) {
        size_t want = (size_t)connection->exchange.head.length - connection->body_size;
        size_t size = INF_MIN(want, input.size);
        if (size > 0)
            memcpy(connection->body + connection->body_size, input.data, size);
        connection->body_size += size;
        connection->input_begin += size;
        return true;
    }
    do {
        if (!inf_http_chunked_decode(&connection->chunked, &input, &piece, refusal) ||
            !inf_http_body_reserve(connection, piece.size, refusal))
            return false;
        if (connection->chunked.left > connection->server->limits.body_bytes_max) {
            *refusal = (struct inf_http_refusal){413, "the body is too large"};
            return false;
        }
        if (piece.size > 0)
            memcpy(connection->body + connection->body_size, piece.data, piece.size);
        connection->body_size += piece.size;
    } while (piece.size > 0);
    connection->input_begin = connection->input_end - input.size;
    return true;
}

// The first bytes that a client sends on an HTTP/2 connection.
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Hands the connection to the handler if the input begins with the preface of HTTP/2. Returns true
// if it does, or if the input is an incomplete preface.
static bool take_over(struct inf_http_connection *connection, struct inf_span input)
{
    struct inf_http_server *server = connection->server;
    const struct inf_http_takeover *takeover = &server->handler.takeover;
    if (takeover->begin == NULL ||
        memcmp(input.data, preface, INF_MIN(input.size, sizeof preface - 1)) != 0)
        return false;
    if (input.size < sizeof preface - 1)
        return true;
    connection->state = INF_HTTP_TAKEN;
    connection->session = takeover->begin(server->handler.context, connection, connection->fd,
                                          connection->exchange.admin, input);
    free(connection->input);
    connection->input = NULL;
    connection->input_begin = connection->input_end = 0;
    if (connection->session == NULL)
        inf_http_connection_close(connection);
    return true;
}

// Parses the head in the input buffer and prepares the body. Returns false if the head is
// incomplete, the request was refused, or the connection was taken over.
static bool take_head(struct inf_http_connection *connection, struct inf_http_refusal *refusal)
{
    struct inf_span input = {connection->input + connection->input_begin,
                             connection->input_end - connection->input_begin};
    struct inf_http_head *head = &connection->exchange.head;
    if (take_over(connection, input))
        return false;
    enum inf_http_parse parse = inf_http_head_parse(input, connection->scanned, head, refusal);
    if (parse == INF_HTTP_INCOMPLETE) {
        connection->scanned = input.size;
        return false;
    }
    if (parse == INF_HTTP_REFUSED) {
        inf_http_refuse(connection, refusal);
        return false;
    }
    connection->input_begin += head->size;
    connection->close_after_response = !head->keep_alive;
    const struct inf_http_handler *handler = &connection->server->handler;
    if (!handler->check_head(handler->context, head, refusal) ||
        !inf_http_body_begin(connection, refusal)) {
        inf_http_refuse(connection, refusal);
        return false;
    }
    connection->state = INF_HTTP_BODY;
    inf_http_connection_set_timer(connection, connection->server->limits.body_ms);
    if (head->expects_continue && !body_is_complete(connection) &&
        connection->input_begin == connection->input_end) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        (void)send(connection->fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    return true;
}

static void begin_reading(struct inf_http_connection *connection)
{
    TAILQ_REMOVE(&connection->server->idle, connection, idle);
    connection->state = INF_HTTP_READING;
    inf_http_connection_set_timer(connection, connection->server->limits.head_ms);
    // Move the bytes to the start of the buffer, so that the longest head and a piece of a body
    // fit.
    size_t size = connection->input_end - connection->input_begin;
    memmove(connection->input, connection->input + connection->input_begin, size);
    connection->input_begin = 0;
    connection->input_end = size;
}

static void process_requests(struct inf_http_connection *connection)
{
    struct inf_http_refusal refusal = {0};
    while (!connection->dead && connection->input != NULL) {
        bool has_bytes = connection->input_begin < connection->input_end;
        if (connection->state == INF_HTTP_IDLE && has_bytes)
            begin_reading(connection);
        if (connection->state == INF_HTTP_READING && !take_head(connection, &refusal))
            return;
        if (connection->state != INF_HTTP_BODY)
            return;
        if (!take_body(connection, &refusal)) {
            inf_http_refuse(connection, &refusal);
            return;
        }
        if (!body_is_complete(connection)) {
            // The buffer has no unused bytes. Receive the next bytes behind the head, because spans
            // of the head point into the buffer.
            connection->input_begin = connection->input_end = connection->exchange.head.size;
            return;
        }
        hand_over(connection);
    }
}

void inf_http_input_process(struct inf_http_connection *connection)
{
    // If a call of this function is on the stack, its loop handles the next request, so that many
    // requests in the buffer do not deepen the stack.
    if (connection->processing || connection->dead)
        return;
    inf_http_connection_enter(connection);
    connection->processing = true;
    process_requests(connection);
    connection->processing = false;
    inf_http_connection_leave(connection);
}

// Returns the memory that receives the next bytes: in the body if *direct is set to true, otherwise
// in the input buffer. The memory is empty if there is none.
static struct iovec receive_place(struct inf_http_connection *connection, bool *direct)
{
    *direct = connection->state == INF_HTTP_BODY && !connection->exchange.head.chunked;
    if (*direct)
        return (struct iovec){connection->body + connection->body_size,
                              (size_t)connection->exchange.head.length - connection->body_size};
    if (connection->input == NULL)
        connection->input = malloc(INF_HTTP_INPUT_BYTES);
    if (connection->input == NULL)
        return (struct iovec){0};
    return (struct iovec){connection->input + connection->input_end,
                          INF_HTTP_INPUT_BYTES - connection->input_end};
}

static void drop_input(struct inf_http_connection *connection)
{
    char bytes[4096];
    ssize_t got = recv(connection->fd, bytes, sizeof bytes, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    connection->lingered += got > 0 ? (size_t)got : LINGER_BYTES;
    if (connection->lingered >= LINGER_BYTES)
        inf_http_connection_close(connection);
}

static void read_socket(struct inf_http_connection *connection)
{
    if (connection->state == INF_HTTP_LINGER) {
        drop_input(connection);
        return;
    }
    bool direct;
    struct iovec place = receive_place(connection, &direct);
    ssize_t got = place.iov_len > 0 ? recv(connection->fd, place.iov_base, place.iov_len, 0) : 0;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        inf_http_connection_close(connection);
        return;
    }
    connection->server->counters.bytes_received += (size_t)got;
    if (direct) {
        connection->body_size += (size_t)got;
        if (body_is_complete(connection))
            hand_over(connection);
        return;
    }
    connection->input_end += (size_t)got;
    if (connection->state == INF_HTTP_HANDLING || connection->state == INF_HTTP_WRITING) {
        if (connection->input_end == INF_HTTP_INPUT_BYTES)
            inf_http_connection_wait_for(connection, EV_CLOSED);
        return;
    }
    inf_http_input_process(connection);
}

void inf_http_input_handle_socket(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    struct inf_http_connection *connection = context;
    inf_http_connection_enter(connection);
    if (connection->state == INF_HTTP_TAKEN) {
        connection->server->handler.takeover.handle(connection->session, events);
        inf_http_connection_leave(connection);
        return;
    }
    if ((events & EV_WRITE) != 0 && connection->state == INF_HTTP_WRITING)
        inf_http_output_flush(connection);
    if ((events & EV_READ) != 0 && !connection->dead)
        read_socket(connection);
    else if ((events & EV_CLOSED) != 0 && !connection->dead)
        inf_http_connection_close(connection);
    inf_http_connection_leave(connection);
}

static void handle_taken_timer(struct inf_http_connection *connection)
{
    inf_http_connection_enter(connection);
    connection->server->handler.takeover.handle(connection->session, EV_TIMEOUT);
    inf_http_connection_leave(connection);
}

void inf_http_input_handle_timer(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    struct inf_http_connection *connection = context;
    static const struct inf_http_refusal too_slow = {408, "the request did not arrive in time"};
    enum inf_http_state state = connection->state;
    if (state == INF_HTTP_TAKEN) {
        handle_taken_timer(connection);
        return;
    }
    if (state != INF_HTTP_IDLE && state != INF_HTTP_LINGER)
        connection->server->counters.timeouts++;
    inf_http_connection_enter(connection);
    if (state == INF_HTTP_READING || state == INF_HTTP_BODY)
        inf_http_refuse(connection, &too_slow);
    else
        inf_http_connection_close(connection);
    inf_http_connection_leave(connection);
}
