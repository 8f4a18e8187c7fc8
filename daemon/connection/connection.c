// SPDX-License-Identifier: Apache-2.0
// The set of all connections: accepts, drains and shuts down clients. The other files of this
// folder implement one connection, from top to bottom: io (callbacks), frame (state machine),
// request, hello, region_frame (frame types), finished (results), end_call, flush, fail, reply,
// close, watch, upload, call, order. The file activity lists all connections and requests.
#include "daemon/connection/connection.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/connection/accept.h"
#include "daemon/connection/activity.h"
#include "daemon/connection/close.h"
#include "daemon/connection/end_call.h"
#include "daemon/connection/io.h"
#include "daemon/connection/kept.h"
#include "daemon/connection/order.h"
#include "daemon/connection/reply.h"
#include "daemon/connection/upload.h"
#include "daemon/connection/watch.h"

static enum inf_code init_set(struct inf_connections *set,
                              const struct inf_connections_options *options, struct inf_error *err)
{
    set->options = *options;
    inf_output_store_init(&set->output_store, options->pool);
    if (getrandom(set->epoch, sizeof set->epoch, 0) != (ssize_t)sizeof set->epoch)
        return inf_fail(err, INF_UNAVAILABLE, "getrandom: %s", strerror(errno));
    return inf_scratch_create(&set->scratch, err);
}

static void free_set(struct inf_connections *set)
{
    while (set->leaving != NULL) {
        struct inf_kept *kept = set->leaving;
        set->leaving = kept->next;
        inf_reply_writer_unref(&kept->writer);
        free(kept);
    }
    inf_output_store_fini(&set->output_store);
    inf_connections_order_fini(set);
    inf_scratch_destroy(&set->scratch);
    free(set);
}

enum inf_code inf_connections_create(struct inf_connections **out_connections,
                                     const struct inf_connections_options *options,
                                     struct inf_error *err)
{
    struct inf_connections *set = calloc(1, sizeof *set);
    if (set == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for connections");
    enum inf_code code = init_set(set, options, err);
    if (code != INF_OK) {
        free_set(set);
        return code;
    }
    inf_connections_publish(set);
    *out_connections = set;
    return INF_OK;
}

void inf_connections_destroy(struct inf_connections **connections)
{
    if (*connections == NULL)
        return;
    (*connections)->ending = true;
    inf_connections_keep_sessions(*connections);
    while ((*connections)->all != NULL)
        inf_connection_close((*connections)->all);
    inf_connections_flush(*connections);
    free_set(*connections);
    *connections = NULL;
}

void inf_connections_drain(struct inf_connections *connections, uint64_t drain_ns)
{
    connections->draining = true;
    connections->drain_since_ns = inf_clock_ns();
    struct inf_connection *next;
    for (struct inf_connection *connection = connections->all; connection != NULL;
         connection = next) {
        next = connection->next;
        if (connection->state != INF_CONNECTION_OPEN)
            continue;
        // The client of a kept connection need not know of the restart.
        if (inf_connection_is_kept(connection)) {
            inf_connection_pause(connection);
            continue;
        }
        const struct inf_reply reply = {.type = INF_FRAME_GOAWAY};
        connections->message.goaway = (struct inf_goaway){
            .last_stream = connection->last_stream, .reason = "shutdown", .drain_ns = drain_ns};
        inf_connection_send(connection, &reply, INF_MESSAGE_GOAWAY, &connections->message);
    }
}

void inf_connections_shut_down(struct inf_connections *connections)
{
    struct inf_connection *next;
    for (struct inf_connection *connection = connections->all; connection != NULL;
         connection = next) {
        next = connection->next;
        struct inf_call *next_call;
        for (struct inf_call *call = connection->calls; call != NULL; call = next_call) {
            next_call = call->next;
            if (!call->answered)
                inf_connection_end_call(connection, call, INF_CALL_END_SHUTDOWN);
        }
        // Drop the uploads without a reply: the requests that they belong to have not arrived.
        inf_connection_drop_uploads(connection);
    }
}

// Returns true if the process may end as far as this connection is concerned. If `patient` is set,
// a kept connection must be between two frames in both directions.
static bool is_idle(const struct inf_connection *connection, bool patient) INF_ON_LOOP
{
    bool kept = inf_connection_is_kept(connection);
    if (connection->in_flight > 0)
        return false;
    if (kept && !patient)
        return true;
    bool received = kept ? connection->paused || connection->state != INF_CONNECTION_OPEN
                         : connection->upload_count == 0;
    return received && connection->output.first == NULL &&
           !inf_reply_writer_busy(connection->writer);
}

bool inf_connections_idle(const struct inf_connections *connections)
{
    // A kept client that sends half a frame, or does not read, delays the restart for a while only:
    // the next process can end what it left.
    bool patient =
        inf_clock_ns() - connections->drain_since_ns < INF_CONNECTION_PARTIAL_MS * INF_NS_PER_MS;
    for (const struct inf_connection *connection = connections->all; connection != NULL;
         connection = connection->next)
        if (!is_idle(connection, patient))
            return false;
    return true;
}

static void *alloc_data(void *context, size_t size)
{
    const struct inf_connection *connection = context;
    return inf_pool_acquire(connection->set->options.pool, size);
}

static void free_data(void *context, void *memory, size_t size)
{
    const struct inf_connection *connection = context;
    inf_pool_release(connection->set->options.pool, memory, size);
}

static void close_deferred(void *context, int fd)
{
    inf_role_enter_loop();
    const struct inf_connection *connection = context;
    inf_deferred_close_fd(connection->set->options.deferred_close, fd, connection->user);
}

static void close_socket(void *context, int fd)
{
    inf_close_task_submit(context, fd);
}

static enum inf_code open_account(struct inf_connection *connection, struct inf_connections *set,
                                  const struct inf_peer *peer, struct inf_error *err) INF_ON_LOOP
{
    struct inf_quota_user *user = inf_quota_open(set->options.quota, peer->uid);
    if (user == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a connection");
    enum inf_code code = inf_quota_charge(user, INF_QUOTA_FDS, 1, err);
    if (code == INF_OK) {
        code = inf_quota_charge(user, INF_QUOTA_CONNECTIONS, 1, err);
        if (code != INF_OK)
            inf_quota_refund(user, INF_QUOTA_FDS, 1);
    }
    if (code != INF_OK) {
        inf_quota_unref(&user);
        return code;
    }
    connection->user = user;
    connection->socket_charged = true;
    return INF_OK;
}

static enum inf_code init_connection(struct inf_connection *connection, struct inf_connections *set,
                                     const struct inf_peer *peer, struct inf_error *err) INF_ON_LOOP
{
    struct event_base *base = set->options.base;
    connection->read_event =
        event_new(base, peer->fd, EV_READ | EV_PERSIST, inf_connection_on_readable, connection);
    connection->write_event =
        event_new(base, peer->fd, EV_WRITE | EV_PERSIST, inf_connection_on_writable, connection);
    connection->timer_event = event_new(base, -1, 0, inf_connection_on_timer, connection);
    if (connection->read_event == NULL || connection->write_event == NULL ||
        connection->timer_event == NULL || event_add(connection->read_event, NULL) != 0)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a connection");
    INF_TRY(open_account(connection, set, peer, err));
    INF_TRY(inf_reply_writer_create(&connection->writer, set->options.returns, peer->fd, connection,
                                    err));
    INF_TRY(inf_deferred_close_reserve(set->options.deferred_close, 1, err));
    inf_reply_writer_set_close(
        connection->writer, close_socket,
        inf_deferred_close_take(set->options.deferred_close, connection->user));
    connection->socket_charged = false;
    connection->set = set;
    connection->reading = true;
    connection->fd = peer->fd;
    connection->pid = peer->pid;
    inf_caller_init(&connection->caller, peer->fd, peer->uid, peer->admin);
    connection->opened_ns = inf_clock_ns();
    const struct inf_assembler_limits limits = {.meta_bytes = INF_LIMIT_META_BYTES,
                                                .data_bytes = INF_LIMIT_DATA_BYTES};
    const struct inf_assembler_memory memory = {
        .alloc = alloc_data, .free = free_data, .close_fd = close_deferred, .context = connection};
    inf_assembler_init(&connection->assembler, &limits, &memory);
    inf_region_table_init(&connection->regions, set->options.deferred_close, set->options.counters,
                          connection->user);
    inf_session_table_init(&connection->sessions, set->options.counters, connection->user);
    return INF_OK;
}

static enum inf_code check_room(const struct inf_connections *set, struct inf_error *err)
{
    const struct inf_connections_options *options = &set->options;
    if (set->draining)
        return inf_fail_reason(err, INF_UNAVAILABLE, INF_REASON_DRAINING, "the daemon shuts down");
    uint32_t limit = options->config->connections_max;
    if (options->counters->connections >= limit)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS,
                               "%" PRIu32 " connections are open already, which is the limit",
                               limit);
    return INF_OK;
}

void inf_connections_close_socket(struct inf_connections *connections, int fd)
{
    struct inf_deferred_close *deferred_close = connections->options.deferred_close;
    shutdown(fd, SHUT_RDWR);
    if (inf_deferred_close_reserve(deferred_close, 1, NULL) == INF_OK)
        inf_deferred_close_fd(deferred_close, fd, NULL);
    else
        close(fd);
}

// Sends a client the reason why the daemon refuses its connection, if the socket buffer has room,
// and closes the socket.
static void refuse_client(struct inf_connections *set, int fd,
                          const struct inf_error *err) INF_ON_LOOP
{
    struct inf_fault fault;
    union inf_message message;
    size_t meta_bytes = 0;
    inf_fault_init(&fault);
    fault.err = *err;
    inf_fault_status(&fault, &message.status);
    if (inf_message_encode(&message, INF_MESSAGE_STATUS, set->head + INF_FRAME_HEADER_BYTES,
                           INF_LIMIT_META_BYTES, &meta_bytes, set->scratch, NULL) == INF_OK) {
        const struct inf_frame_header header = {.meta_bytes = (uint32_t)meta_bytes,
                                                .type = INF_FRAME_ERROR,
                                                .flags = INF_FRAME_FLAG_ERROR};
        inf_frame_header_encode(&header, set->head);
        (void)!send(fd, set->head, INF_FRAME_HEADER_BYTES + meta_bytes,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    inf_connections_close_socket(set, fd);
}

static enum inf_code create_connection(struct inf_connections *set, const struct inf_peer *peer,
                                       struct inf_connection **out_connection,
                                       struct inf_error *err) INF_ON_LOOP
{
    struct inf_connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a connection");
    enum inf_code code = init_connection(connection, set, peer, err);
    if (code == INF_OK)
        *out_connection = connection;
    else
        inf_connection_free(connection);
    return code;
}

enum inf_code inf_connections_add(struct inf_connections *connections, const struct inf_peer *peer,
                                  struct inf_error *err)
{
    struct inf_connection *connection = NULL;
    enum inf_code code = check_room(connections, err);
    if (code == INF_OK)
        code = create_connection(connections, peer, &connection, err);
    if (code != INF_OK) {
        refuse_client(connections, peer->fd, err);
        return code;
    }
    connection->next = connections->all;
    if (connection->next != NULL)
        connection->next->previous = connection;
    connections->all = connection;
    connections->options.counters->connections++;
    connections->options.counters->connections_total++;
    connection->id = connections->options.counters->connections_total;
    inf_connection_watch(connection);
    return INF_OK;
}
