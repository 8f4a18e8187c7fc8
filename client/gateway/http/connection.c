// SPDX-License-Identifier: Apache-2.0
// Opens and closes connections, and sets their states, events and timers.
//
//   IDLE -> READING -> BODY -> HANDLING -> WRITING -> IDLE ...
//
// IDLE, READING and BODY have one deadline for the whole state, not one for each byte, so that a
// client that sends one byte per second is closed, too. In WRITING the time restarts when the
// socket accepts bytes. HANDLING has no deadline of its own. In HANDLING the connection still
// reads, to detect a client that closes the connection: its request is then cancelled, so that it
// does not occupy the daemon. A client that only shuts down its sending side counts as closed, as
// in nginx.
#include "client/gateway/http/connection.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static void free_connection(struct inf_http_connection *connection)
{
    free(connection->input);
    free(connection);
}

void inf_http_connection_enter(struct inf_http_connection *connection)
{
    connection->depth++;
}

void inf_http_connection_leave(struct inf_http_connection *connection)
{
    if (--connection->depth == 0 && connection->dead)
        free_connection(connection);
}

void inf_http_connection_abandon(struct inf_http_connection *connection)
{
    struct inf_http_exchange *exchange = &connection->exchange;
    void *user = exchange->user;
    exchange->user = NULL;
    if (user != NULL)
        exchange->abandon(user);
}

void inf_http_connection_close(struct inf_http_connection *connection)
{
    struct inf_http_server *server = connection->server;
    struct inf_http_listener *listener = connection->listener;
    if (connection->dead)
        return;
    connection->dead = true;
    if (connection->state == INF_HTTP_BODY || connection->state == INF_HTTP_HANDLING) {
        server->counters.abandoned++;
        inf_http_connection_abandon(connection);
    }
    if (connection->session != NULL)
        server->handler.takeover.end(connection->session);
    inf_http_body_free(connection);
    if (connection->response.release != NULL)
        connection->response.release(connection->response.context);
    free(connection->head_text);
    if (connection->state == INF_HTTP_IDLE)
        TAILQ_REMOVE(&server->idle, connection, idle);
    TAILQ_REMOVE(&server->connections, connection, link);
    event_free(connection->event);
    event_free(connection->timer);
    close(connection->fd);
    server->counters.connections_open--;
    listener->connections--;
    server->callbacks.room(listener);
    if (connection->depth == 0)
        free_connection(connection);
}

void inf_http_connection_wait_for(struct inf_http_connection *connection, short events)
{
    if (connection->events == events)
        return;
    if (connection->events != 0)
        event_del(connection->event);
    connection->events = events;
    if (events == 0)
        return;
    event_assign(connection->event, connection->server->base, connection->fd, events | EV_PERSIST,
                 connection->server->callbacks.socket, connection);
    if (event_add(connection->event, NULL) != 0)
        inf_http_connection_close(connection);
}

void inf_http_connection_set_timer(struct inf_http_connection *connection, unsigned ms)
{
    struct timeval time = {ms / 1000, (suseconds_t)(ms % 1000) * 1000};
    event_add(connection->timer, &time);
}

static void become_idle(struct inf_http_connection *connection)
{
    struct inf_http_server *server = connection->server;
    connection->state = INF_HTTP_IDLE;
    event_base_gettimeofday_cached(server->base, &connection->idle_since);
    TAILQ_INSERT_TAIL(&server->idle, connection, idle);
    inf_http_connection_set_timer(connection, server->limits.idle_ms);
    inf_http_connection_wait_for(connection, EV_READ);
}

void inf_http_connection_finish_exchange(struct inf_http_connection *connection)
{
    struct inf_http_server *server = connection->server;
    if (connection->close_after_response || server->draining) {
        connection->state = INF_HTTP_LINGER;
        shutdown(connection->fd, SHUT_WR);
        inf_http_connection_set_timer(connection, 1000);
        inf_http_connection_wait_for(connection, EV_READ);
        return;
    }
    connection->exchange = (struct inf_http_exchange){.admin = connection->listener->admin};
    connection->scanned = 0;
    if (connection->input_begin == connection->input_end) {
        // An idle connection has no input buffer, so that a thousand of them need little memory.
        free(connection->input);
        connection->input = NULL;
        connection->input_begin = connection->input_end = 0;
    }
    become_idle(connection);
}

void inf_http_connection_open(struct inf_http_listener *listener, int fd)
{
    struct inf_http_server *server = listener->server;
    struct inf_http_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        close(fd);
        return;
    }
    connection->server = server;
    connection->listener = listener;
    connection->fd = fd;
    connection->exchange.admin = listener->admin;
    connection->event = event_new(server->base, fd, 0, server->callbacks.socket, connection);
    connection->timer = evtimer_new(server->base, server->callbacks.timer, connection);
    if (connection->event == NULL || connection->timer == NULL) {
        if (connection->event != NULL)
            event_free(connection->event);
        if (connection->timer != NULL)
            event_free(connection->timer);
        close(fd);
        free(connection);
        return;
    }
    server->counters.connections_total++;
    server->counters.connections_open++;
    listener->connections++;
    TAILQ_INSERT_TAIL(&server->connections, connection, link);
    become_idle(connection);
}

void inf_http_takeover_wait_for(struct inf_http_connection *connection, short events)
{
    inf_http_connection_wait_for(connection, events);
}

void inf_http_takeover_set_timer(struct inf_http_connection *connection, unsigned ms)
{
    inf_http_connection_set_timer(connection, ms);
}

void inf_http_takeover_close(struct inf_http_connection *connection)
{
    inf_http_connection_close(connection);
}
