// SPDX-License-Identifier: Apache-2.0
// Opens the client's socket. The socket is not blocking; only connecting may block, while the
// daemon's backlog is full. Stream numbers continue after a reconnection, so that an answer to an
// old request cannot be mistaken for an answer to a new one.
#include "client/lib/io/connection.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/io/data_pool.h"
#include "proto/core/utf8.h"

#define CONNECT_WAIT_MS 10

// Fills *err with the message that this user must not connect to the socket, and with the names of
// the users who may.
static enum inf_code fail_permission(const char *path, struct inf_error *err)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return inf_fail(err, INF_DENIED,
                        "this user may not connect to '%s': wanted access to its directory", path);
    if ((status.st_mode & S_IWGRP) != 0)
        return inf_fail(err, INF_DENIED,
                        "this user may not connect to '%s': wanted user %u or a member of group %u",
                        path, status.st_uid, status.st_gid);
    return inf_fail(err, INF_DENIED, "this user may not connect to '%s': wanted user %u", path,
                    status.st_uid);
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
        return fail_permission(path, err);
    case EAGAIN:
        return inf_fail(err, INF_UNAVAILABLE, "the daemon on '%s' does not accept connections",
                        path);
    case EPROTOTYPE:
        return inf_fail(err, INF_INVALID, "'%s' is not a stream socket", path);
    default:
        return inf_fail(err, INF_UNAVAILABLE, "cannot connect to '%s': %s", path, strerror(errno));
    }
}

enum inf_code inf_client_connection_open(inferd_client *client, const char *path, uint64_t until_ns,
                                         struct inf_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof address.sun_path)
        return inf_fail(err, INF_INVALID, "a socket's path has 1 to %zu bytes; '%s' has %zu",
                        sizeof address.sun_path - 1, path, length);
    memcpy(address.sun_path, path, length);
    client->connection.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client->connection.fd < 0)
        return inf_fail(err, INF_EXHAUSTED, "cannot make a socket: %s", strerror(errno));
    // EAGAIN means that the daemon's backlog of new connections is full. No event announces free
    // space, so the loop sleeps and retries.
    while (connect(client->connection.fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || inf_client_now_ns() >= until_ns)
            return fail_connect(path, err);
        (void)poll(NULL, 0, CONNECT_WAIT_MS);
    }
    return INF_OK;
}

enum inf_code inf_client_connection_send_hello(inferd_client *client, struct inf_error *err)
{
    // The daemon gets the name of the program, which "inferctl clients" shows.
    const struct inf_quoted name = inf_quote(program_invocation_short_name);
    client->control.hello = (struct inf_hello){
        .major = INF_PROTOCOL_MAJOR,
        .minor = INF_PROTOCOL_MINOR,
        .client_name = name.text,
        .client_version = INFERD_VERSION,
        .feature_count = 1,
        .features = {"inferd.data"},
    };
    struct inf_frame_header header = {.type = INF_FRAME_HELLO};
    return inf_client_send_queue_push_control(client, header, INF_MESSAGE_HELLO, -1, err);
}

// Drops all bytes that were read and not handled, or queued and not sent.
static void reset_buffers(inferd_client *client)
{
    inf_client_send_queue_reset(client);
    struct inf_assembler_limits limits = client->input.assembler.limits;
    struct inf_assembler_memory memory = client->input.assembler.memory;
    inf_assembler_fini(&client->input.assembler);
    inf_assembler_init(&client->input.assembler, &limits, &memory);
    client->input.begin = client->input.end = 0;
}

void inf_client_connection_reset(inferd_client *client)
{
    static const struct inf_error reconnecting = {.code = INF_UNAVAILABLE, .text = "reconnecting"};
    if (client->connection.fd >= 0)
        close(client->connection.fd);
    client->connection.fd = -1;
    client->connection.failure = reconnecting;
    client->connection.greeted = client->connection.draining = false;
    client->credit.requests = 0;
    inf_client_region_table_reset(client);
    reset_buffers(client);
}

void inf_client_connection_begin(inferd_client *client, uint64_t now_ns)
{
    struct inf_error err = {.code = INF_OK};
    client->statistics.reconnects++;
    client->connection.needs_registration = true;
    inf_client_connection_reset(client);
    client->connection.failure.code = INF_OK;
    if (inf_client_connection_open(client, client->connection.path, now_ns, &err) == INF_OK &&
        inf_client_connection_send_hello(client, &err) == INF_OK)
        return;
    client->connection.failure = err;
    client->connection.failure.code = INF_UNAVAILABLE;
}
