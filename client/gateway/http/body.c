// SPDX-License-Identifier: Apache-2.0
// Memory of request bodies. Each byte is charged to the server's total before it is allocated, so
// that many large requests at once are refused instead of exhausting the memory.
#include <stdlib.h>

#include "client/gateway/http/connection.h"

// Initial capacity of a chunked body, in bytes. It doubles when the body is full.
#define FIRST_CAPACITY ((size_t)4 << 10)

// Charges `size` more bytes to the connection's body and to the total of all bodies. Returns false,
// and sets *refusal, if that exceeds the limit of one body or of all bodies.
static bool charge_bytes(struct inf_http_connection *connection, size_t size,
                         struct inf_http_refusal *refusal)
{
    struct inf_http_server *server = connection->server;
    const struct inf_http_limits *limits = &server->limits;
    if (!inf_range_ok(connection->body_charged, size, limits->body_bytes_max)) {
        *refusal = (struct inf_http_refusal){413, "the body is too large"};
        return false;
    }
    if (!inf_range_ok(server->counters.body_bytes, size, limits->total_body_bytes_max)) {
        *refusal = (struct inf_http_refusal){503, "the bodies of other requests need all memory"};
        return false;
    }
    server->counters.body_bytes += size;
    connection->body_charged += size;
    return true;
}

void inf_http_body_free(struct inf_http_connection *connection)
{
    if (!connection->body_is_placed)
        free(connection->body);
    connection->body = NULL;
    connection->body_is_placed = false;
    connection->body_size = connection->body_capacity = 0;
    connection->server->counters.body_bytes -= connection->body_charged;
    connection->body_charged = 0;
}

bool inf_http_body_begin(struct inf_http_connection *connection, struct inf_http_refusal *refusal)
{
    struct inf_http_server *server = connection->server;
    struct inf_http_head *head = &connection->exchange.head;
    connection->chunked = (struct inf_http_chunked){0};
    if (head->chunked || head->length == 0)
        return true;
    if (head->length > server->limits.body_bytes_max) {
        *refusal = (struct inf_http_refusal){413, "the body is too large"};
        return false;
    }
    size_t size = (size_t)head->length;
    if (!charge_bytes(connection, size, refusal))
        return false;
    if (head->coding == INF_HTTP_IDENTITY)
        connection->body =
            server->handler.place_body(server->handler.context, &connection->exchange, size);
    connection->body_is_placed = connection->body != NULL;
    if (connection->body == NULL)
        connection->body = malloc(size);
    connection->body_capacity = size;
    if (connection->body == NULL)
        *refusal = (struct inf_http_refusal){503, "no memory for the body"};
    return connection->body != NULL;
}

bool inf_http_body_reserve(struct inf_http_connection *connection, size_t size,
                           struct inf_http_refusal *refusal)
{
    size_t wanted = connection->body_size + size;
    if (wanted <= connection->body_capacity)
        return true;
    size_t max = connection->server->limits.body_bytes_max;
    size_t capacity = INF_MAX(connection->body_capacity * 2, FIRST_CAPACITY);
    capacity = INF_MAX(INF_MIN(capacity, max), wanted);
    if (!charge_bytes(connection, capacity - connection->body_capacity, refusal))
        return false;
    uint8_t *grown = realloc(connection->body, capacity);
    if (grown == NULL) {
        *refusal = (struct inf_http_refusal){503, "no memory for the body"};
        return false;
    }
    connection->body = grown;
    connection->body_capacity = capacity;
    return true;
}
