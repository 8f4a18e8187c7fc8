// SPDX-License-Identifier: Apache-2.0
// Creates and ends an HTTP server, and accepts connections on its listeners.
//
// A listener that has reached its limit of connections closes the connection that has been idle
// longest. If it can close none, the listener stops accepting until a connection ends or a pause is
// over, so that clients wait in the kernel's queue. If the process has no descriptor left, accept()
// fails although the socket stays readable; the listener then pauses instead of spinning.
#include "client/gateway/http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/gateway/http/connection.h"

// Maximum number of connections that a listener accepts before the loop handles other events.
#define ACCEPT_BATCH 64
// Time for which a listener pauses if descriptors or memory are exhausted or its limit of
// connections is reached, in milliseconds.
#define EXHAUSTED_PAUSE_MS 100
// A connection is closed to make room for a new one only if it has been idle for this time, in
// milliseconds, so that a client that has just connected has time to send its first request.
#define EVICT_AFTER_MS 250

static void pause_listener(struct inf_http_listener *listener, unsigned ms)
{
    listener->paused = true;
    event_del(listener->event);
    struct timeval time = {.tv_usec = (suseconds_t)ms * 1000};
    event_add(listener->retry, &time);
}

static void resume_listener(struct inf_http_listener *listener)
{
    if (!listener->paused || listener->server->draining)
        return;
    listener->paused = false;
    event_add(listener->event, NULL);
}

// Returns true if a connection can be closed to make room for a new one: it has been idle for
// EVICT_AFTER_MS, and its socket has no unread bytes.
static bool is_evictable(const struct inf_http_connection *connection)
{
    struct timeval now, idle;
    uint8_t byte;
    event_base_gettimeofday_cached(connection->server->base, &now);
    evutil_timersub(&now, &connection->idle_since, &idle);
    return idle.tv_sec * 1000 + idle.tv_usec / 1000 >= EVICT_AFTER_MS &&
           recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

// Closes an idle connection if the listener has reached its limit of connections. Returns false if
// it has reached the limit and no connection can be closed.
static bool make_room(struct inf_http_listener *listener)
{
    struct inf_http_server *server = listener->server;
    if (listener->connections < server->limits.connections_max)
        return true;
    struct inf_http_connection *oldest;
    TAILQ_FOREACH(oldest, &server->idle, idle)
    {
        if (oldest->listener != listener || !is_evictable(oldest))
            continue;
        server->counters.evicted++;
        inf_http_connection_close(oldest);
        return true;
    }
    return false;
}

static void handle_listener(evutil_socket_t fd, short events, void *context)
{
    (void)events;
    struct inf_http_listener *listener = context;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        if (!make_room(listener)) {
            pause_listener(listener, EXHAUSTED_PAUSE_MS);
            return;
        }
        int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            int on = 1; // setsockopt() fails for Unix sockets, which need no TCP_NODELAY
            (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            inf_http_connection_open(listener, client);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
            pause_listener(listener, EXHAUSTED_PAUSE_MS);
        if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

static void handle_retry(evutil_socket_t fd, short events, void *context)
{
    (void)fd;
    (void)events;
    resume_listener(context);
}

enum inf_code inf_http_server_create(struct inf_http_server **server, struct event_base *base,
                                     const struct inf_http_limits *limits,
                                     const struct inf_http_handler *handler, struct inf_error *err)
{
    struct inf_http_server *made = calloc(1, sizeof *made);
    if (made == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a server");
    made->base = base;
    made->callbacks = (struct inf_http_callbacks){
        .socket = inf_http_input_handle_socket,
        .timer = inf_http_input_handle_timer,
        .process = inf_http_input_process,
        .room = resume_listener,
    };
    made->limits = *limits;
    made->handler = *handler;
    SLIST_INIT(&made->listeners);
    TAILQ_INIT(&made->connections);
    TAILQ_INIT(&made->idle);
    *server = made;
    return INF_OK;
}

static void destroy_listener(struct inf_http_listener *listener)
{
    if (listener->event != NULL)
        event_free(listener->event);
    if (listener->retry != NULL)
        event_free(listener->retry);
    close(listener->fd);
    free(listener);
}

enum inf_code inf_http_server_add_listener(struct inf_http_server *server, int fd, bool admin,
                                           struct inf_error *err)
{
    struct inf_http_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL) {
        close(fd);
        return inf_fail(err, INF_EXHAUSTED, "no memory for a listener");
    }
    *listener = (struct inf_http_listener){.server = server, .fd = fd, .admin = admin};
    evutil_make_socket_nonblocking(fd);
    listener->event = event_new(server->base, fd, EV_READ | EV_PERSIST, handle_listener, listener);
    listener->retry = evtimer_new(server->base, handle_retry, listener);
    if (listener->event == NULL || listener->retry == NULL ||
        event_add(listener->event, NULL) != 0) {
        destroy_listener(listener);
        return inf_fail(err, INF_EXHAUSTED, "no memory for a listener");
    }
    SLIST_INSERT_HEAD(&server->listeners, listener, link);
    return INF_OK;
}

void inf_http_server_drain(struct inf_http_server *server)
{
    server->draining = true;
    struct inf_http_listener *listener;
    SLIST_FOREACH(listener, &server->listeners, link)
    {
        event_del(listener->event);
        event_del(listener->retry);
    }
    while (!TAILQ_EMPTY(&server->idle))
        inf_http_connection_close(TAILQ_FIRST(&server->idle));
    struct inf_http_connection *connection, *next;
    for (connection = TAILQ_FIRST(&server->connections); connection != NULL; connection = next) {
        next = TAILQ_NEXT(connection, link);
        if (connection->state == INF_HTTP_TAKEN)
            server->handler.takeover.handle(connection->session, EV_CLOSED);
    }
}

void inf_http_server_destroy(struct inf_http_server **server)
{
    struct inf_http_server *dying = *server;
    if (dying == NULL)
        return;
    dying->draining = true;
    while (!TAILQ_EMPTY(&dying->connections))
        inf_http_connection_close(TAILQ_FIRST(&dying->connections));
    while (!SLIST_EMPTY(&dying->listeners)) {
        struct inf_http_listener *listener = SLIST_FIRST(&dying->listeners);
        SLIST_REMOVE_HEAD(&dying->listeners, link);
        destroy_listener(listener);
    }
    free(dying);
    *server = NULL;
}

const struct inf_http_counters *inf_http_server_counters(const struct inf_http_server *server)
{
    return &server->counters;
}

const struct inf_http_limits *inf_http_server_limits(const struct inf_http_server *server)
{
    return &server->limits;
}

bool inf_http_server_charge(struct inf_http_server *server, size_t size)
{
    if (!inf_range_ok(server->counters.body_bytes, size, server->limits.total_body_bytes_max))
        return false;
    server->counters.body_bytes += size;
    return true;
}

void inf_http_server_release(struct inf_http_server *server, size_t size)
{
    server->counters.body_bytes -= size;
}

void inf_http_server_count(struct inf_http_server *server, size_t received, size_t sent,
                           unsigned response_class)
{
    server->counters.bytes_received += received;
    server->counters.bytes_sent += sent;
    if (response_class >= 2 && response_class <= 5)
        server->counters.responses[response_class]++;
}

void inf_http_server_count_timeout(struct inf_http_server *server)
{
    server->counters.timeouts++;
}
