// SPDX-License-Identifier: Apache-2.0
// Connects listeners, connections, service and workers to the event loop. Every callback of
// libevent that is not about one connection or a listening socket is in this file. Draining goes
// through the states RUNNING, DRAINING (requests finish), FLUSHING (replies are written) and
// DRAINED.
//
// The server must be able to end even if memory is exhausted, so the timer of a drain is a timerfd
// (daemon/system/timer_fd.h).
//
// The loop may poll instead of sleeping: between an answer and the next request of a client
// (spin_wait), and while a result is about to arrive (inf_service_poll()).
#include "daemon/server.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/base/spin_wait.h"
#include "backends/base/system/cores.h"
#include "daemon/connection/connection.h"
#include "daemon/connection/restore.h"
#include "daemon/listeners.h"
#include "daemon/output/reply_writer.h"
#include "daemon/resource/quota.h"
#include "daemon/service/events.h"
#include "daemon/system/timer_fd.h"

// The highest number of clients accepted per wake-up, so that a flood of new clients does not
// starve connected ones.
#define ACCEPTS_PER_TURN 64
// The most bytes of unused frame buffers that the buffer pool keeps for later frames.
#define POOL_KEPT_BYTES ((size_t)64 << 20)
// How long writing replies may take after the last request is answered, while the server drains.
#define FLUSH_MS 1000
// How often the loop checks whether draining is complete. Clients wait for the next process
// meanwhile.
#define DRAIN_TICK_MS 2

enum server_state {
    SERVER_IDLE,     // created, but not started
    SERVER_RUNNING,  //
    SERVER_DRAINING, // requests in flight may finish
    SERVER_FLUSHING, // all requests are answered; replies are being written
    SERVER_DRAINED,
};

struct inf_server {
    struct inf_server_options options;
    const struct inf_log *log; // log of the part INF_LOG_PART_CONNECTION
    enum server_state state;
    struct inf_listeners *listeners;
    struct inf_counters counters;
    struct inf_pool *pool;
    struct inf_deferred_close *deferred_close;
    struct inf_quota *quota;
    struct inf_reply_writer_returns *returns;
    struct inf_service *service;
    struct inf_connections *connections;
    int drain_fd;                   // timerfd that drain_event watches
    struct event *finished_event;   // fires when an inference has finished
    struct event *returned_event;   // fires when a worker could not write its whole reply
    struct event *deadline_event;   // fires when the deadline of a call has passed
    struct event *wait_event;       // the same for requests that wait for a model
    struct event *load_event;       // fires when the loader reports progress or a result
    struct event *drain_event;      // fires when the loop must check whether draining is complete
    uint64_t drain_end_ns;          // time at which the current phase of a drain ends
    struct inf_spin_wait spin_wait; // polling between an answer and the next request
    // Numbers of accepted and of answered requests at the previous call of inf_server_poll().
    uint64_t accepted_before, answered_before;
    uint64_t busy_ns; // time at which the last request arrived or was answered
};

// --- draining ---

static void schedule_check(struct inf_server *server)
{
    inf_timer_fd_set(server->drain_fd, DRAIN_TICK_MS);
}

void inf_server_drain(struct inf_server *server)
{
    if (server->state != SERVER_RUNNING)
        return;
    uint32_t ms = server->options.config->drain_timeout_ms;
    server->state = SERVER_DRAINING;
    server->drain_end_ns = inf_clock_ns() + (uint64_t)ms * INF_NS_PER_MS;
    inf_listeners_close(server->listeners);
    inf_service_drain(server->service);
    inf_connections_drain(server->connections, (uint64_t)ms * INF_NS_PER_MS);
    inf_connections_flush(server->connections);
    // Do not call options.drained() inside this call, even if nothing is in flight: only schedule
    // the check whether draining is complete. The check calls options.drained() from the event
    // loop.
    schedule_check(server);
}

void inf_server_finish_reload(struct inf_server *server, const struct inf_config *next,
                              const struct inf_error *why)
{
    struct inf_load_event event;
    struct inf_call *call;
    inf_service_begin_turn(server->service);
    if (inf_service_finish_reload(server->service, next, why, &event, &call))
        inf_connections_report(server->connections, call, &event);
    inf_connections_flush(server->connections);
}

void inf_server_update_memory(struct inf_server *server)
{
    inf_service_update_memory(server->service);
}

void inf_server_watch_models(struct inf_server *server)
{
    inf_service_watch_models(server->service);
}

void inf_server_stop(struct inf_server *server)
{
    inf_server_drain(server);
    if (server->state == SERVER_DRAINING)
        server->drain_end_ns = 0;
}

// Ends a drain whose time is up: every request in flight is answered with CANCELLED/SHUTDOWN.
static void cancel_requests(struct inf_server *server) INF_ON_LOOP
{
    uint32_t left = server->counters.requests_in_flight;
    if (left > 0)
        inf_log(server->log, INF_LOG_WARNING, "drain time is up cancelled=%u", left);
    inf_connections_shut_down(server->connections);
    inf_connections_flush(server->connections);
    server->state = SERVER_FLUSHING;
    server->drain_end_ns = inf_clock_ns() + (uint64_t)FLUSH_MS * INF_NS_PER_MS;
}

static void on_drain_tick(evutil_socket_t fd, short what, void *context)
{
    (void)what;
    inf_role_enter_loop();
    inf_timer_fd_clear(fd);
    struct inf_server *server = context;
    bool late = inf_clock_ns() >= server->drain_end_ns;
    bool idle = inf_connections_idle(server->connections);
    if (!idle && late && server->state == SERVER_DRAINING) {
        cancel_requests(server);
        idle = inf_connections_idle(server->connections);
        late = false;
    }
    if (!idle && !late) {
        schedule_check(server);
        return;
    }
    if (!idle)
        inf_log(server->log, INF_LOG_WARNING, "clients do not read their last replies, ignoring");
    server->state = SERVER_DRAINED;
    server->options.drained(server->options.context);
}

// --- clients, new ones and those of an earlier process ---

static void accept_client(struct inf_server *server, uint32_t listener, int fd) INF_ON_LOOP
{
    struct inf_peer peer = {.fd = fd};
    struct inf_error err;
    if (inf_listeners_identify(server->listeners, listener, &peer, &err) != INF_OK) {
        inf_log(server->log, INF_LOG_WARNING, "client refused error=\"%s\"", err.text);
        inf_connections_close_socket(server->connections, fd);
        return;
    }
    if (inf_connections_add(server->connections, &peer, &err) != INF_OK)
        inf_log(server->log, INF_LOG_DEBUG, "client refused uid=%u error=\"%s\"",
                (unsigned)peer.uid, err.text);
}

static void accept_clients(void *context, uint32_t listener)
{
    inf_role_enter_loop();
    struct inf_server *server = context;
    inf_service_begin_turn(server->service);
    inf_deferred_close_settle(server->deferred_close);
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        int fd = inf_listeners_accept(server->listeners, listener);
        if (fd < 0)
            break;
        accept_client(server, listener, fd);
    }
    inf_connections_flush(server->connections);
}

enum inf_code inf_server_restore(struct inf_server *server, struct inf_left_connection *left,
                                 uint32_t *answered, struct inf_error *err)
{
    uint32_t listener;
    // The flags of the file are those that accept4() set.
    if (!inf_listeners_find(server->listeners, left->peer.fd, &listener) ||
        inf_listeners_identify(server->listeners, listener, &left->peer, err) != INF_OK) {
        inf_connections_drop_left(server->connections, left);
        return inf_fail(err, INF_INVALID, "the socket is not one that this daemon accepted");
    }
    return inf_connections_restore(server->connections, left, answered, err);
}

void inf_server_resume(struct inf_server *server)
{
    inf_service_begin_turn(server->service);
    inf_connections_resume(server->connections);
}

// --- events from workers and loaders ---

static void handle_finished(struct inf_server *server) INF_ON_LOOP
{
    inf_connections_take_done(server->connections);
    inf_connections_flush(server->connections);
}

static void on_finished(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_server *server = context;
    inf_service_begin_turn(server->service);
    handle_finished(server);
}

// Returns true if the loop should poll, because a client that was just answered is likely to send
// its next request sooner than a sleeping thread could be woken.
static bool expects_request(struct inf_server *server, uint64_t now_ns) INF_ON_LOOP
{
    const struct inf_counters *counters = &server->counters;
    uint64_t answered = counters->requests_ok + counters->requests_failed;
    bool received = counters->requests_accepted != server->accepted_before;
    bool answered_any = answered != server->answered_before;
    if (answered_any)
        inf_spin_wait_note_work(&server->spin_wait, inf_service_last_run_ns(server->service));
    if (received)
        inf_spin_wait_note_wait(&server->spin_wait, answered_any ? 0 : now_ns - server->busy_ns);
    if (received || answered_any)
        server->busy_ns = now_ns;
    server->accepted_before = counters->requests_accepted;
    server->answered_before = answered;
    return inf_spin_wait_should_spin(&server->spin_wait) && inf_service_idle(server->service) &&
           now_ns - server->busy_ns < server->spin_wait.limit_ns;
}

bool inf_server_poll(struct inf_server *server)
{
    bool poll = inf_service_poll(server->service);
    if (poll)
        handle_finished(server);
    uint64_t now_ns = inf_clock_ns();
    inf_service_end_turn(server->service, now_ns);
    if (!expects_request(server, now_ns) && !poll)
        return false;
    if (inf_spin_wait_yield())
        return true;
    // Sleep instead of polling, because another thread needs this processor. Sleeping delays the
    // next request little: the kernel scheduler quickly wakes up a thread that slept.
    server->spin_wait.last_short = false;
    if (!inf_service_stop_polling(server->service))
        return false;
    // Decide again, because the answers may have allowed held requests to begin.
    handle_finished(server);
    return true;
}

static void on_deadline(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_server *server = context;
    struct inf_call *call;
    inf_service_begin_turn(server->service);
    while ((call = inf_service_next_expired(server->service)) != NULL)
        inf_connections_expire(server->connections, call);
    inf_connections_flush(server->connections);
}

static void on_load(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_server *server = context;
    struct inf_load_event event;
    struct inf_call *call;
    inf_service_begin_turn(server->service);
    while (inf_service_next_load(server->service, &event, &call)) {
        if (call != NULL)
            inf_connections_report(server->connections, call, &event);
        if (server->options.loaded != NULL)
            server->options.loaded(server->options.context, &event);
        free(event.rows);
        free(event.report);
    }
    inf_connections_flush(server->connections);
}

// --- creating and destroying a server ---

static enum inf_code create_listeners(struct inf_server *server, struct inf_error *err)
{
    const struct inf_server_options *options = &server->options;
    const struct inf_listeners_options listeners = {.base = options->base,
                                                    .config = options->config,
                                                    .log = server->log,
                                                    .data_fds = options->data_fds,
                                                    .data_fd_count = options->data_fd_count,
                                                    .admin_fds = options->admin_fds,
                                                    .admin_fd_count = options->admin_fd_count,
                                                    .ready = accept_clients,
                                                    .context = server};
    return inf_listeners_create(&server->listeners, &listeners, err);
}

static enum inf_code create_parts(struct inf_server *server, struct inf_error *err)
{
    const struct inf_server_options *options = &server->options;
    const struct inf_config *config = options->config;
    INF_TRY(inf_pool_create(&server->pool, POOL_KEPT_BYTES, err));
    INF_TRY(inf_deferred_close_create(&server->deferred_close, err));
    INF_TRY(inf_reply_writer_returns_create(&server->returns, server->pool, err));
    uint64_t most[INF_QUOTA_KIND_COUNT];
    inf_service_quota_limits(config, most);
    INF_TRY(inf_quota_create(&server->quota, most, err));
    const struct inf_service_options service = {.store = options->store,
                                                .environment = options->environment,
                                                .logs = options->logs,
                                                .devices = options->devices,
                                                .pool = server->pool,
                                                .counters = &server->counters,
                                                .version = options->version,
                                                .quota = server->quota,
                                                .memory_budget = server->options.memory_budget,
                                                .fd_store = options->fd_store,
                                                .log_lines_dropped = options->log_lines_dropped,
                                                .reload = options->reload,
                                                .context = options->context};
    INF_TRY(inf_service_create(&server->service, &service, err));
    const struct inf_connections_options connections = {.base = options->base,
                                                        .service = server->service,
                                                        .pool = server->pool,
                                                        .deferred_close = server->deferred_close,
                                                        .returns = server->returns,
                                                        .counters = &server->counters,
                                                        .log = server->log,
                                                        .version = options->version,
                                                        .quota = server->quota,
                                                        .handover = options->handover,
                                                        .fd_store = options->fd_store,
                                                        .config = config};
    return inf_connections_create(&server->connections, &connections, err);
}

static enum inf_code create_event(struct inf_server *server, struct event **event, int fd,
                                  event_callback_fn callback, struct inf_error *err)
{
    *event = event_new(server->options.base, fd, EV_READ | EV_PERSIST, callback, server);
    return *event != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for events");
}

// Adds an edge-triggered event, so that the loop need not read the eventfd. Reading would cost one
// system call per reply.
static enum inf_code create_edge_event(struct inf_server *server, struct event **event, int fd,
                                       struct inf_error *err)
{
    *event = event_new(server->options.base, fd, EV_READ | EV_PERSIST | EV_ET, on_finished, server);
    return *event != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for events");
}

static enum inf_code create_events(struct inf_server *server, struct inf_error *err)
{
    struct inf_service *service = server->service;
    INF_TRY(inf_timer_fd_create(&server->drain_fd, err));
    INF_TRY(create_event(server, &server->drain_event, server->drain_fd, on_drain_tick, err));
    INF_TRY(
        create_edge_event(server, &server->finished_event, inf_service_finished_fd(service), err));
    INF_TRY(create_edge_event(server, &server->returned_event,
                              inf_reply_writer_returns_fd(server->returns), err));
    INF_TRY(create_event(server, &server->deadline_event, inf_service_timer_fd(service),
                         on_deadline, err));
    INF_TRY(create_event(server, &server->wait_event, inf_service_wait_timer_fd(service),
                         on_deadline, err));
    return create_event(server, &server->load_event, inf_service_load_fd(service), on_load, err);
}

static enum inf_code init_server(struct inf_server *server,
                                 const struct inf_server_options *options, struct inf_error *err)
{
    server->options = *options;
    server->log = &options->logs[INF_LOG_PART_CONNECTION];
    server->drain_fd = -1;
    inf_spin_wait_init(&server->spin_wait, inf_cores_usable());
    INF_TRY(create_listeners(server, err));
    INF_TRY(create_parts(server, err));
    return create_events(server, err);
}

enum inf_code inf_server_create(struct inf_server **out_server,
                                const struct inf_server_options *options, struct inf_error *err)
{
    struct inf_server *server = calloc(1, sizeof *server);
    if (server == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a server");
    enum inf_code code = init_server(server, options, err);
    if (code == INF_OK)
        *out_server = server;
    else
        inf_server_destroy(&server);
    return code;
}

enum inf_code inf_server_start(struct inf_server *server, struct inf_error *err)
{
    assert(server->state == SERVER_IDLE);
    int failed = event_add(server->finished_event, NULL);
    failed |= event_add(server->returned_event, NULL);
    failed |= event_add(server->deadline_event, NULL);
    failed |= event_add(server->wait_event, NULL);
    failed |= event_add(server->load_event, NULL);
    failed |= event_add(server->drain_event, NULL);
    if (failed != 0)
        return inf_fail(err, INF_EXHAUSTED, "no memory for events");
    INF_TRY(inf_listeners_start(server->listeners, err));
    server->state = SERVER_RUNNING;
    return INF_OK;
}

bool inf_server_is_stuck(struct inf_server *server)
{
    return inf_service_is_stuck(server->service);
}

uint32_t inf_server_connections(const struct inf_server *server)
{
    return server->counters.connections;
}

uint32_t inf_server_in_flight(const struct inf_server *server)
{
    return server->counters.requests_in_flight;
}

static void free_event(struct event *event)
{
    if (event != NULL)
        event_free(event);
}

void inf_server_destroy(struct inf_server **server)
{
    struct inf_server *gone = *server;
    if (gone == NULL)
        return;
    inf_role_enter_loop();
    inf_listeners_destroy(&gone->listeners);
    free_event(gone->finished_event);
    free_event(gone->returned_event);
    free_event(gone->deadline_event);
    free_event(gone->wait_event);
    free_event(gone->load_event);
    free_event(gone->drain_event);
    if (gone->drain_fd >= 0)
        close(gone->drain_fd);
    inf_connections_destroy(&gone->connections);
    inf_service_destroy(&gone->service);
    inf_deferred_close_destroy(&gone->deferred_close);
    inf_quota_destroy(&gone->quota);
    inf_reply_writer_returns_destroy(&gone->returns);
    inf_pool_destroy(&gone->pool);
    free(gone);
    *server = NULL;
    inf_role_leave();
}
