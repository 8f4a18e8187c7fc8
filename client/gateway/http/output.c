// SPDX-License-Identifier: Apache-2.0
// Writes responses. One sendmsg() call writes the head and all pieces of the body, as far as the
// socket accepts them; tensors are not copied. The memory of the pieces must stay valid until
// release(context) of the response is called.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client/gateway/http/connection.h"

static const struct {
    int status;
    const char *text;
} statuses[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {499, "Client Closed Request"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

const char *inf_http_status_text(int status)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "Unknown";
}

static void release_response(struct inf_http_connection *connection)
{
    free(connection->head_text);
    connection->head_text = NULL;
    struct inf_http_response *response = &connection->response;
    if (response->release != NULL)
        response->release(response->context);
    response->release = NULL;
}

// Removes the first `size` bytes, which were written, from the output.
static void skip_written(struct inf_http_connection *connection, size_t size)
{
    connection->server->counters.bytes_sent += size;
    while (connection->output_next < connection->output_count) {
        struct iovec *piece = &connection->output[connection->output_next];
        if (size < piece->iov_len) {
            piece->iov_base = (uint8_t *)piece->iov_base + size;
            piece->iov_len -= size;
            return;
        }
        size -= piece->iov_len;
        connection->output_next++;
    }
}

void inf_http_output_flush(struct inf_http_connection *connection)
{
    while (connection->output_next < connection->output_count) {
        struct msghdr message = {
            .msg_iov = connection->output + connection->output_next,
            .msg_iovlen = connection->output_count - connection->output_next,
        };
        ssize_t sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            inf_http_connection_set_timer(connection, connection->server->limits.write_ms);
            inf_http_connection_wait_for(connection, EV_WRITE);
            return;
        }
        if (sent < 0) {
            inf_http_connection_close(connection);
            return;
        }
        skip_written(connection, (size_t)sent);
    }
    release_response(connection);
    inf_http_body_free(connection);
    inf_http_connection_enter(connection);
    inf_http_connection_finish_exchange(connection);
    connection->server->callbacks.process(connection);
    inf_http_connection_leave(connection);
}

// Prints the head of the response to connection->head_text. Returns the size of the head, or 0 if
// there is no memory.
static size_t print_head(struct inf_http_connection *connection, size_t body_size)
{
    const struct inf_http_response *response = &connection->response;
    struct inf_span id = connection->exchange.head.request_id;
    struct inf_span trace = connection->exchange.head.trace_parent;
    int size = asprintf(
        &connection->head_text,
        "HTTP/1.1 %d %s\r\n%s%s%s%s%s%.*s%s%s%.*s%sContent-Length: %zu\r\n%s\r\n", response->status,
        inf_http_status_text(response->status),
        response->content_type != NULL ? "Content-Type: " : "",
        response->content_type != NULL ? response->content_type : "",
        response->content_type != NULL ? "\r\n" : "",
        response->fields != NULL ? response->fields : "", id.size > 0 ? "X-Request-Id: " : "",
        (int)id.size, id.size > 0 ? (const char *)id.data : "", id.size > 0 ? "\r\n" : "",
        trace.size > 0 ? "traceparent: " : "", (int)trace.size,
        trace.size > 0 ? (const char *)trace.data : "", trace.size > 0 ? "\r\n" : "", body_size,
        connection->close_after_response ? "Connection: close\r\n" : "");
    if (size < 0)
        connection->head_text = NULL;
    return size < 0 ? 0 : (size_t)size;
}

void inf_http_respond(struct inf_http_exchange *exchange, const struct inf_http_response *response)
{
    struct inf_http_connection *connection = (struct inf_http_connection *)exchange;
    struct inf_http_server *server = connection->server;
    inf_http_connection_enter(connection);
    connection->response = *response;
    connection->state = INF_HTTP_WRITING;
    connection->close_after_response = connection->close_after_response || server->draining;
    int class = response->status / 100;
    server->counters.responses[class >= 1 && class <= 5 ? class : 5]++;
    size_t body_size = 0;
    for (size_t i = 0; i < response->piece_count; i++)
        body_size += response->pieces[i].iov_len;
    size_t head_size = print_head(connection, body_size);
    bool with_body = connection->exchange.head.method != INF_HTTP_HEAD;
    connection->output[0] = (struct iovec){connection->head_text, head_size};
    connection->output_next = 0;
    connection->output_count = with_body ? 1 + response->piece_count : 1;
    memcpy(connection->output + 1, response->pieces,
           response->piece_count * sizeof response->pieces[0]);
    // The events that the connection waits for stay as they are: the next state is usually IDLE,
    // which waits for EV_READ too, so that a request needs no call of epoll_ctl().
    if (head_size == 0)
        inf_http_connection_close(connection);
    if (!connection->dead)
        inf_http_output_flush(connection);
    inf_http_connection_leave(connection);
}

void inf_http_refuse(struct inf_http_connection *connection, const struct inf_http_refusal *refusal)
{
    if (connection->state == INF_HTTP_BODY)
        inf_http_connection_abandon(connection);
    char *text;
    int size = asprintf(&text, "{\"error\":\"%s\"}", refusal->why);
    if (size < 0) {
        connection->state = INF_HTTP_WRITING;
        inf_http_connection_close(connection);
        return;
    }
    connection->close_after_response = true;
    struct inf_http_response response = {
        .status = refusal->status,
        .content_type = "application/json",
        .fields = refusal->status == 503   ? "Retry-After: 1\r\n"
                  : refusal->status == 401 ? "WWW-Authenticate: Bearer\r\n"
                                           : NULL,
        .pieces = {{text, (size_t)size}},
        .piece_count = 1,
        .release = free,
        .context = text,
    };
    inf_http_respond(&connection->exchange, &response);
}
