// SPDX-License-Identifier: Apache-2.0
// One connection of an HTTP server. Private to client/gateway/http.
#ifndef INF_GATEWAY_HTTP_CONNECTION_H
#define INF_GATEWAY_HTTP_CONNECTION_H

#include <event2/event.h>
#include <sys/queue.h>

#include "client/gateway/http/chunked.h"
#include "client/gateway/http/server.h"

// Size of the buffer for received bytes: room for a head of the maximum size, followed by the same
// amount of room for pieces of a chunked body.
#define INF_HTTP_INPUT_BYTES (2 * INF_HTTP_HEAD_BYTES)

enum inf_http_state {
    INF_HTTP_IDLE,     // waits for the first byte of a request
    INF_HTTP_READING,  // a part of the head has arrived
    INF_HTTP_BODY,     // the head has arrived, and none or a part of the body
    INF_HTTP_HANDLING, // the handler has the request and has not responded
    INF_HTTP_WRITING,  // the response is being written
    INF_HTTP_TAKEN,    // the handler has taken the connection over (HTTP/2)
    // Nothing more is written; the connection reads and drops what the client still sends, because
    // closing it at once could discard the response before the client reads it.
    INF_HTTP_LINGER,
};

struct inf_http_listener {
    struct inf_http_server *server;
    int fd;
    bool admin;
    // Accepts no connections, because its limit is reached, or memory or descriptors are exhausted.
    bool paused;
    unsigned connections;
    struct event *event; // fires when a connection can be accepted
    struct event *retry; // timer that ends the pause
    SLIST_ENTRY(inf_http_listener) link;
};

struct inf_http_connection {
    // Must be the first member, because inf_http_respond() converts a pointer to it to a pointer to
    // its connection.
    struct inf_http_exchange exchange;
    struct inf_http_server *server;
    struct inf_http_listener *listener;
    enum inf_http_state state;
    struct timeval idle_since; // valid if the state is IDLE
    int fd;
    short events; // what `event` waits for
    struct event *event, *timer;
    unsigned depth;  // number of calls of inf_http_connection_enter() without their leave()
    bool dead;       // the connection is closed, and is freed when `depth` becomes 0
    bool processing; // inf_http_input_process() is on the stack
    bool close_after_response;
    uint8_t *input; // NULL while the connection is idle
    // `input` holds unused bytes from input_begin to input_end. The first `scanned` of them were
    // searched for the end of the head without success.
    size_t input_begin, input_end, scanned;
    uint8_t *body;
    size_t body_size, body_capacity;
    bool body_is_placed; // the memory of `body` belongs to the handler
    size_t body_charged; // bytes of this body in the server's counter body_bytes
    struct inf_http_chunked chunked;
    char *head_text; // head of the response; freed when the response was written
    struct inf_http_response response;
    struct iovec output[INF_HTTP_PIECES + 1];
    size_t output_next, output_count;
    size_t lingered;                       // bytes dropped in the state LINGER
    void *session;                         // what takeover.begin() returned; NULL: not taken over
    TAILQ_ENTRY(inf_http_connection) link; // in the list `connections` of the server
    TAILQ_ENTRY(inf_http_connection) idle; // in the list `idle` of the server, if the state is IDLE
};

// Functions of input.c and server.c that connection.c and output.c call. They are pointers, because
// input.c and server.c depend on connection.c and output.c.
struct inf_http_callbacks {
    event_callback_fn socket, timer; // events of a connection
    // Handles the complete requests in the input buffer of a connection.
    void (*process)(struct inf_http_connection *connection);
    // Called when a connection of the listener has ended: the listener can accept another one.
    void (*room)(struct inf_http_listener *listener);
};

struct inf_http_server {
    struct event_base *base;
    struct inf_http_callbacks callbacks;
    struct inf_http_limits limits;
    struct inf_http_handler handler;
    struct inf_http_counters counters;
    bool draining;
    SLIST_HEAD(, inf_http_listener) listeners;
    TAILQ_HEAD(, inf_http_connection) connections;
    // The connections in the state IDLE. The connection that has been idle longest is first.
    TAILQ_HEAD(inf_http_idle_list, inf_http_connection) idle;
};

// Creates a connection for the accepted socket `fd`, which the connection then owns. Closes `fd` if
// there is no memory.
void inf_http_connection_open(struct inf_http_listener *listener, int fd);

// Closes a connection. Its memory is freed at once, or by the last inf_http_connection_leave().
void inf_http_connection_close(struct inf_http_connection *connection);

// Sets the events that the connection waits for: EV_READ, EV_WRITE and EV_CLOSED, or 0 for none.
void inf_http_connection_wait_for(struct inf_http_connection *connection, short events);

// Restarts the timer of the connection, which expires after `ms` milliseconds. If it expires, a
// request that has not arrived completely is refused, a connection that was taken over gets
// EV_TIMEOUT, and any other connection is closed.
void inf_http_connection_set_timer(struct inf_http_connection *connection, unsigned ms);

// Called when the response is written. Makes the connection wait for the next request, or begins to
// close it if it carries no further request.
void inf_http_connection_finish_exchange(struct inf_http_connection *connection);

// inf_http_connection_enter() keeps the connection's memory valid until the caller's matching call
// of inf_http_connection_leave(), even if the connection is closed meanwhile.
void inf_http_connection_enter(struct inf_http_connection *connection);
void inf_http_connection_leave(struct inf_http_connection *connection);

// The functions for `socket`, `timer` and `process` of struct inf_http_callbacks.
void inf_http_input_handle_socket(evutil_socket_t fd, short events, void *connection);
void inf_http_input_handle_timer(evutil_socket_t fd, short events, void *connection);
void inf_http_input_process(struct inf_http_connection *connection);

// Calls the handler's abandon(user), if `user` is set, because the exchange ends without a
// response.
void inf_http_connection_abandon(struct inf_http_connection *connection);

// Frees the body of the request, unless the handler owns its memory, and gives its charged bytes
// back.
void inf_http_body_free(struct inf_http_connection *connection);

// Allocates the body if the head gives its size. Returns false, and sets *refusal, if the body
// exceeds a limit or there is no memory.
bool inf_http_body_begin(struct inf_http_connection *connection, struct inf_http_refusal *refusal);

// Makes room for `size` more bytes of a chunked body. Returns false, and sets *refusal, if the body
// exceeds a limit or there is no memory.
bool inf_http_body_reserve(struct inf_http_connection *connection, size_t size,
                           struct inf_http_refusal *refusal);

// Responds with *refusal to a request that breaks a rule or a limit. The connection is closed after
// the response.
void inf_http_refuse(struct inf_http_connection *connection,
                     const struct inf_http_refusal *refusal);

// Writes as much of the response as the socket accepts. If the response is complete, continues with
// the next request.
void inf_http_output_flush(struct inf_http_connection *connection);

#endif
