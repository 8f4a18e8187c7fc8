// SPDX-License-Identifier: Apache-2.0
// From a path to a greeted client, and its end.
#include "client/lib/background_thread.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DEFAULT_PATH    "/run/inferd/inferd.sock"
#define CONNECT_WAIT_MS 10

static const char *socket_path(const char *path)
{
    if (path != NULL)
        return path;
    path = getenv("INFERD_SOCKET");
    return path != NULL && path[0] != '\0' ? path : DEFAULT_PATH;
}

static enum inf_code fail_connect(const char *path, struct inf_error *err)
{
    switch (errno) {
    case ENOENT:
    case ECONNREFUSED:
    case ENOTDIR:
        return inf_fail(err, INF_UNAVAILABLE, "no daemon listens on '%s'", path);
    case EACCES:
    case EPERM:
        return inf_fail(err, INF_DENIED,
                        "this user may not connect to '%s' (members of its group may)", path);
    case EAGAIN:
        return inf_fail(err, INF_UNAVAILABLE, "the daemon on '%s' does not accept connections",
                        path);
    case EPROTOTYPE:
        return inf_fail(err, INF_INVALID, "'%s' is not a stream socket", path);
    default:
        return inf_fail(err, INF_UNAVAILABLE, "cannot connect to '%s': %s", path, strerror(errno));
    }
}

static enum inf_code open_socket(inferd_client *client, const char *path, uint64_t until_ns,
                                 struct inf_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof address.sun_path)
        return inf_fail(err, INF_INVALID, "a socket's path has 1 to %zu bytes; '%s' has %zu",
                        sizeof address.sun_path - 1, path, length);
    memcpy(address.sun_path, path, length);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->fd < 0)
        return inf_fail(err, INF_EXHAUSTED, "cannot make a socket: %s", strerror(errno));
    // EAGAIN: the daemon's queue of new connections is full; there is nothing to poll for.
    while (connect(client->fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || inf_client_now_ns() >= until_ns)
            return fail_connect(path, err);
        (void)poll(NULL, 0, CONNECT_WAIT_MS);
    }
    return INF_OK;
}

static enum inf_code send_hello(inferd_client *client, struct inf_error *err)
{
    client->control.hello = (struct inf_hello){
        .major = INF_PROTOCOL_MAJOR,
        .minor = INF_PROTOCOL_MINOR,
        .client_name = "libinferd",
        .client_version = INFERD_VERSION,
        .feature_count = 1,
        .features = {"inferd.data"},
    };
    struct inf_frame_header header = {.type = INF_FRAME_HELLO};
    return inf_client_send(client, header, INF_MESSAGE_HELLO, -1, err);
}

static enum inf_code greet(inferd_client *client, const char *path, uint64_t until_ns,
                           struct inf_error *err)
{
    INF_TRY(send_hello(client, err));
    inf_client_flush(client);
    while (!client->greeted && inf_client_wait(client, until_ns))
        ;
    if (client->failure.code != INF_OK) {
        *err = client->failure;
        return inf_error_prefix(err, INF_INTERNAL, "the greeting on '%s' failed", path);
    }
    if (!client->greeted)
        return inf_fail(err, INF_DEADLINE, "what listens on '%s' has not answered in %u s", path,
                        (unsigned)(INF_CLIENT_ANSWER_NS / 1000000000));
    return INF_OK;
}

static enum inf_code fill(inferd_client *client, const char *path, struct inf_error *err)
{
    client->fd = -1;
    client->next_stream = 1;
    client->region_from_bytes = INF_CLIENT_REGION_FROM_BYTES;
    client->ended_tail = &client->ended_head;
    client->out_tail = &client->out_head;
    struct inf_assembler_limits limits = {
        .meta_bytes = INF_LIMIT_META_BYTES,
        .data_bytes = INF_LIMIT_DATA_BYTES,
    };
    struct inf_assembler_memory memory = {
        .alloc = inf_client_data_alloc, .free = inf_client_data_free, .context = client};
    inf_assembler_init(&client->assembler, &limits, &memory);
    INF_TRY(inf_scratch_create(&client->scratch, err));
    client->path = strdup(path);
    if (client->path == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a client");
    uint64_t until_ns = inf_client_now_ns() + INF_CLIENT_ANSWER_NS;
    INF_TRY(open_socket(client, path, until_ns, err));
    return greet(client, path, until_ns, err);
}

void inf_client_destroy(inferd_client *client)
{
    inf_service_destroy(&client->service);
    if (client->fd >= 0)
        close(client->fd);
    inf_client_results_fini(client); // results lie in regions and data
    inf_client_calls_fini(client);
    inf_client_memory_fini(client);
    inf_client_metadata_fini(client);
    inf_client_sessions_fini(client);
    inf_client_io_fini(client);
    inf_scratch_destroy(&client->scratch);
    free(client->path);
    free(client);
}

int inferd_connect(inferd_client **out_client, const char *path, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    inferd_client *client = NULL;
    if (out_client == NULL) {
        inf_fail(&error, INF_INVALID, "no place for the client was given");
        return inf_client_report(err, &error);
    }
    *out_client = NULL;
    client = calloc(1, sizeof *client);
    if (client == NULL) {
        inf_fail_reason(&error, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a client");
        return inf_client_report(err, &error);
    }
    if (fill(client, socket_path(path), &error) != INF_OK) {
        inf_client_destroy(client);
        return inf_client_report(err, &error);
    }
    *out_client = client;
    return INFERD_OK;
}

// --- connecting anew ---

// Lets go of the connection and of all that hung on it. Nothing is in flight.
static void reset(inferd_client *client)
{
    static const struct inf_error gone = {.code = INF_UNAVAILABLE, .text = "connecting anew"};
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
    client->failure = gone;
    client->greeted = client->draining = false;
    client->credit = 0;
    inf_client_memory_reset(client);
    inf_client_io_reset(client);
}

static enum inf_code connect_once(inferd_client *client, uint64_t until_ns, struct inf_error *err)
{
    reset(client);
    client->failure.code = INF_OK;
    client->connecting = true;
    client->connect_ns = inf_client_now_ns();
    INF_TRY(open_socket(client, client->path, until_ns, err));
    INF_TRY(greet(client, client->path, until_ns, err));
    bool registered = !client->connecting; // for the sake of requests to be sent again
    client->connecting = false;
    return registered ? INF_OK : inf_client_memory_register(client, err);
}

void inf_client_connect_begin(inferd_client *client, uint64_t now_ns)
{
    struct inf_error err = {.code = INF_OK};
    client->statistics.reconnects++;
    client->connecting = true;
    reset(client);
    client->failure.code = INF_OK;
    if (open_socket(client, client->path, now_ns, &err) == INF_OK &&
        send_hello(client, &err) == INF_OK)
        return;
    client->failure = err;
    client->failure.code = INF_UNAVAILABLE;
}

enum inf_code inf_client_reconnect(inferd_client *client, uint64_t until_ns, struct inf_error *err)
{
    // What was begun there is answered there.
    while (client->failure.code == INF_OK && client->open_count > 0 &&
           inf_client_wait(client, until_ns))
        ;
    inf_client_fail(client, &(struct inf_error){.code = INF_UNAVAILABLE,
                                                .text = "the connection was given up"});
    client->statistics.reconnects++;
    enum inf_code code;
    while ((code = connect_once(client, until_ns, err)) != INF_OK && !client->closing &&
           inf_client_now_ns() < until_ns)
        (void)poll(NULL, 0, CONNECT_WAIT_MS);
    if (code == INF_OK)
        return INF_OK;
    client->failure = *err;
    client->failure.code = INF_UNAVAILABLE;
    return err->code;
}

int inferd_reconnect(inferd_client *client, uint64_t timeout_ms, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    inf_client_enter(client);
    uint64_t until_ns = inf_client_now_ns() + INF_MIN(timeout_ms, UINT32_MAX) * 1000000;
    enum inf_code code = inf_client_reconnect(client, until_ns, &error);
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report(err, &error);
}

void inferd_set_retry(inferd_client *client, uint64_t limit_ms)
{
    inf_client_enter(client);
    client->retry_ns = INF_MIN(limit_ms, UINT32_MAX) * 1000000;
    inf_client_leave(client);
}

void inferd_set_queue_timeout(inferd_client *client, uint64_t timeout_ms)
{
    uint64_t timeout_ns;
    if (__builtin_mul_overflow(timeout_ms, (uint64_t)1000000, &timeout_ns))
        timeout_ns = 0; // centuries are for ever
    inf_client_enter(client);
    client->queue_timeout_ns = timeout_ns;
    inf_client_leave(client);
}

int inferd_set_run_options(inferd_client *client, const char *precision, const char *mode,
                           struct inferd_error *err)
{
    const char *texts[] = {precision, mode};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(texts); i++)
        if (texts[i] != NULL && strlen(texts[i]) >= sizeof client->mode) {
            struct inf_error why = {0};
            (void)inf_fail_reason(&why, INF_INVALID, INF_REASON_BAD_PARAMETER, "'%.32s' is no %s",
                                  texts[i], i == 0 ? "precision" : "mode");
            return inf_client_report(err, &why);
        }
    inf_client_enter(client);
    snprintf(client->precision, sizeof client->precision, "%s", precision != NULL ? precision : "");
    snprintf(client->mode, sizeof client->mode, "%s", mode != NULL ? mode : "");
    inf_client_leave(client);
    return INFERD_OK;
}

// The client's own locking, where it is only read.
static void enter_to_read(const inferd_client *client)
{
    inf_client_enter((inferd_client *)client);
}

static void leave_from_reading(const inferd_client *client)
{
    inf_client_leave((inferd_client *)client);
}

void inferd_epoch(const inferd_client *client, uint64_t epoch[2])
{
    enter_to_read(client);
    epoch[0] = client->epoch[0];
    epoch[1] = client->epoch[1];
    leave_from_reading(client);
}

void inferd_client_statistics(const inferd_client *client, inferd_statistics *statistics)
{
    enter_to_read(client);
    *statistics = client->statistics;
    statistics->memory_bytes = client->region_bytes;
    statistics->in_flight = client->waiting_count;
    leave_from_reading(client);
}

void inf_client_enter(inferd_client *client)
{
    inf_service_enter(client);
    client->depth++;
}

void inf_client_leave(inferd_client *client)
{
    client->depth--;
    if (client->service != NULL)
        inf_service_leave(client);
    else if (client->depth == 0 && client->closing)
        inf_client_destroy(client);
}

void inferd_close(inferd_client *client)
{
    if (client == NULL)
        return;
    if (client->service != NULL) {
        inf_service_close(client);
        return;
    }
    client->closing = true;
    if (client->depth == 0)
        inf_client_destroy(client);
}

int inferd_fd(const inferd_client *client)
{
    return client->service != NULL ? -1 : inf_client_pollfd(client).fd;
}

short inferd_events(const inferd_client *client)
{
    return client->service != NULL ? 0 : inf_client_pollfd(client).events;
}

int inferd_timeout(const inferd_client *client)
{
    return client->service != NULL ? -1 : inf_client_poll_ms(client, 0);
}

int inferd_process(inferd_client *client, struct inferd_error *err)
{
    inf_client_enter(client);
    if (client->service == NULL)
        inf_client_process(client);
    struct inf_error failure = client->failure;
    bool going_on = client->parked != NULL; // a new connection is tried
    inf_client_leave(client);
    return failure.code == INF_OK || going_on ? INFERD_OK : inf_client_report(err, &failure);
}

int inferd_wait(inferd_client *client, struct inferd_error *err)
{
    inf_client_enter(client);
    bool elsewhere = inf_service_is_elsewhere(client);
    while ((client->waiting_count > 0 || (elsewhere && inf_service_is_calling(client))) &&
           inf_client_wait(client, 0))
        ;
    if (!elsewhere)
        inf_client_dispatch(client);
    struct inf_error failure = client->failure;
    inf_client_leave(client);
    return failure.code == INF_OK ? INFERD_OK : inf_client_report(err, &failure);
}

int inferd_wait_credit(inferd_client *client, size_t bytes, uint64_t timeout_ms,
                       struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    uint64_t until_ns = inf_client_now_ns() + INF_MIN(timeout_ms, UINT32_MAX) * 1000000;
    inf_client_enter(client);
    enum inf_code code;
    while ((code = inf_client_may_send(client, &error)) == INF_EXHAUSTED ||
           (code == INF_OK && (code = inf_client_may_send_bytes(client, bytes, &error)) != INF_OK))
        if (!inf_client_wait(client, until_ns))
            break;
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report(err, &error);
}
