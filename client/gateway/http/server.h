// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server in a libevent loop. It reads whole requests within limits, passes each to a
// handler, and writes the response. Not thread-safe: all functions run on the thread of the loop.
#ifndef INF_GATEWAY_HTTP_SERVER_H
#define INF_GATEWAY_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "client/gateway/http/head.h"
#include "proto/core/attributes.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

struct event_base;
struct inf_http_server;

// Limits of a server. All times are in milliseconds.
struct inf_http_limits {
    unsigned connections_max;    // maximum number of connections of each listener
    size_t body_bytes_max;       // maximum size of the body of one request
    size_t total_body_bytes_max; // maximum size of the bodies of all requests together
    unsigned head_ms;            // maximum time from the first byte of a head to its last
    unsigned body_ms;            // maximum time from the end of a head to the end of the body
    unsigned idle_ms;            // maximum time without a request on a connection
    unsigned write_ms;           // maximum time in which no byte of a response can be written
};

// Counters since the server was created.
struct inf_http_counters {
    uint64_t connections_total;
    uint64_t connections_open; // connections that are open at present
    uint64_t evicted;          // idle connections closed because a listener had reached its limit
    uint64_t timeouts;     // HTTP/1.1 connections, and gRPC calls or connections, that were ended
                           // because head_ms, body_ms or write_ms expired
    uint64_t abandoned;    // requests whose connection was closed before the response
    uint64_t responses[6]; // responses by class: responses[2] counts the statuses 200 to 299
    uint64_t bytes_received, bytes_sent;
    uint64_t body_bytes; // memory of request bodies and what was charged with them, at present
};

// One request, which waits for its response. The struct is valid until the handler calls
// inf_http_respond(), or until the server calls `abandon`.
struct inf_http_exchange {
    struct inf_http_head head;
    struct inf_span body; // the body, without its chunked coding; it can be compressed
    bool admin;           // the request arrived on a listener for administrators
    // State of the handler for this request; NULL at first. If the exchange ends before the
    // response, because the connection was closed or the request is refused, and `user` is not
    // NULL, the server calls abandon(user), which must free `user`.
    void *user;
    void (*abandon)(void *user);
};

// A connection of the server. The handler uses it only if it took the connection over (HTTP/2).
struct inf_http_connection;

// Functions of a handler that takes over HTTP/2 connections.
struct inf_http_takeover {
    // Takes over a connection. `received` holds the bytes that have arrived so far, beginning with
    // the preface of HTTP/2. Returns the session that handle() and end() get, or NULL if the server
    // must close the connection.
    void *(*begin)(void *context, struct inf_http_connection *connection, int fd, bool admin,
                   struct inf_span received);
    // Called if the socket is readable or writable (EV_READ, EV_WRITE), if the timer has expired
    // (EV_TIMEOUT), or if the server begins to drain (EV_CLOSED).
    void (*handle)(void *session, short events);
    // Called when the connection is closed. Must free the session.
    void (*end)(void *session);
};

// Functions of the application that handle requests. All run on the thread of the loop.
struct inf_http_handler {
    // Called when the head of a request has arrived, before memory for the body is allocated.
    // Returns false, and sets *refusal, if the request must be refused.
    bool (*check_head)(void *context, const struct inf_http_head *head,
                       struct inf_http_refusal *refusal);
    // Returns memory for a body of `size` bytes, which the handler owns, or NULL if the server must
    // allocate the body. Called only if the head gives the size and the body is not compressed.
    uint8_t *(*place_body)(void *context, struct inf_http_exchange *exchange, size_t size);
    // Handles a request. Must call inf_http_respond(), before it returns or later.
    void (*handle)(void *context, struct inf_http_exchange *exchange);
    struct inf_http_takeover takeover; // if `begin` is NULL, HTTP/2 is refused
    void *context;
};

// Maximum number of pieces of a response's body: one text and one piece for each output of a model.
#define INF_HTTP_PIECES 66u

struct inf_http_response {
    int status;
    const char *content_type; // NULL: no Content-Type
    const char *fields;       // more header fields, each with CR LF at its end; NULL: none
    struct iovec pieces[INF_HTTP_PIECES];
    size_t piece_count;
    // Called when the response is written or the connection is closed; frees the memory of the
    // pieces. NULL: the pieces need not be freed.
    void (*release)(void *context);
    void *context;
};

// Creates a server without listeners.
enum inf_code inf_http_server_create(struct inf_http_server **server, struct event_base *base,
                                     const struct inf_http_limits *limits,
                                     const struct inf_http_handler *handler,
                                     struct inf_error *err) INF_NODISCARD;

// Begins to accept connections on the listening socket `fd`. The server owns `fd` from then on,
// even if the function fails. `admin` is copied to each exchange of the listener.
enum inf_code inf_http_server_add_listener(struct inf_http_server *server, int fd, bool admin,
                                           struct inf_error *err) INF_NODISCARD;

// Stops accepting connections and closes idle connections. A connection that has a request is
// closed after the response.
void inf_http_server_drain(struct inf_http_server *server);

// Closes all listeners and connections and frees the server. Sets *server to NULL.
void inf_http_server_destroy(struct inf_http_server **server);

// Returns the counters, which the server owns.
const struct inf_http_counters *inf_http_server_counters(const struct inf_http_server *server);

// Functions for a connection that was taken over. inf_http_takeover_wait_for() sets the events that
// the connection waits for (EV_READ, EV_WRITE). inf_http_takeover_set_timer() restarts its timer,
// which expires after `ms` milliseconds. inf_http_takeover_close() closes it and ends the session.
void inf_http_takeover_wait_for(struct inf_http_connection *connection, short events);
void inf_http_takeover_set_timer(struct inf_http_connection *connection, unsigned ms);
void inf_http_takeover_close(struct inf_http_connection *connection);

// Charges `size` bytes of the body of a request on a connection that was taken over to
// total_body_bytes_max. Returns false, and charges nothing, if that exceeds the limit.
// inf_http_server_release() gives charged bytes back.
bool inf_http_server_charge(struct inf_http_server *server, size_t size);
void inf_http_server_release(struct inf_http_server *server, size_t size);

// Returns the limits, which the server owns.
const struct inf_http_limits *inf_http_server_limits(const struct inf_http_server *server);

// Adds to the counters for a connection that was taken over: `received` and `sent` bytes, and one
// response of the class `response_class` (2 to 5; 0: none). inf_http_server_count_timeout() counts
// a connection, or a call on it, that ends because the client is too slow.
void inf_http_server_count(struct inf_http_server *server, size_t received, size_t sent,
                           unsigned response_class);
void inf_http_server_count_timeout(struct inf_http_server *server);

// Sends the response. The handler must not use the exchange afterwards.
void inf_http_respond(struct inf_http_exchange *exchange, const struct inf_http_response *response);

// Returns the reason phrase of a status code, such as "Not Found" for 404.
const char *inf_http_status_text(int status);

#endif
