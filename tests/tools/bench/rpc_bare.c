// SPDX-License-Identifier: Apache-2.0
// A bare ping-pong server with one blocking thread for each connection.
#include "tests/tools/bench/rpc_bare.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// --- the server process ---

struct connection {
    int fd;
    size_t size;
};

static bool read_all(int fd, uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t got = read(fd, bytes, size);
        if (got <= 0)
            return false;
        bytes += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        ssize_t put = send(fd, bytes, size, MSG_NOSIGNAL);
        if (put <= 0)
            return false;
        bytes += put;
        size -= (size_t)put;
    }
    return true;
}

static void *serve_pairs(void *context)
{
    const struct connection *connection = context;
    uint8_t *bytes = malloc(connection->size);
    while (bytes != NULL && read_all(connection->fd, bytes, connection->size)) {
        uint64_t sum = 0;
        for (size_t i = 0; i + 8 <= connection->size; i += 8) {
            uint64_t word;
            memcpy(&word, bytes + i, sizeof word);
            sum += word;
        }
        memcpy(bytes, &sum, sizeof sum); // the answer begins with the sum of the payload
        if (!write_all(connection->fd, bytes, RPC_BARE_HEADER_BYTES))
            break;
    }
    free(bytes);
    return NULL;
}

static void run_server(const struct rpc_bare *bare)
{
    pthread_t thread;
    struct connection *connections = calloc(bare->clients, sizeof *connections);
    for (unsigned i = 0; i < bare->clients && connections != NULL; i++) {
        connections[i] =
            (struct connection){bare->pairs[i][0], RPC_BARE_HEADER_BYTES + bare->payload_bytes};
        if (pthread_create(&thread, NULL, serve_pairs, &connections[i]) != 0)
            _exit(1);
    }
    for (;;)
        pause();
}

void rpc_bare_start(struct rpc_bare *bare, size_t payload_bytes, unsigned clients)
{
    rpc_bare_start_with(bare, payload_bytes, clients, run_server);
}

void rpc_bare_start_with(struct rpc_bare *bare, size_t payload_bytes, unsigned clients,
                         void (*serve_all)(const struct rpc_bare *bare))
{
    *bare = (struct rpc_bare){.payload_bytes = payload_bytes, .clients = clients};
    bare->pairs = calloc(clients, sizeof *bare->pairs);
    if (bare->pairs == NULL)
        rpc_die("no memory for socket pairs");
    for (unsigned i = 0; i < clients; i++)
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bare->pairs[i]) != 0)
            rpc_die("cannot make socket pair %u", i);
    bare->server = fork();
    if (bare->server < 0)
        rpc_die("cannot fork");
    if (bare->server == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_all(bare);
        _exit(1);
    }
    for (unsigned i = 0; i < clients; i++)
        close(bare->pairs[i][0]);
}

void rpc_bare_stop(struct rpc_bare *bare)
{
    kill(bare->server, SIGKILL);
    waitpid(bare->server, NULL, 0);
    for (unsigned i = 0; i < bare->clients; i++)
        close(bare->pairs[i][1]);
    free(bare->pairs);
}

// --- the client's connection and round trips ---

struct client {
    int fd;
    size_t payload_bytes;
    uint8_t *source, *frame;
};

static void *open_client(void *context, unsigned index)
{
    const struct rpc_bare *bare = context;
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL)
        rpc_die("no memory for a client");
    client->fd = bare->pairs[index][1];
    client->payload_bytes = bare->payload_bytes;
    client->source = malloc(bare->payload_bytes);
    client->frame = calloc(1, RPC_BARE_HEADER_BYTES + bare->payload_bytes);
    if (client->source == NULL || client->frame == NULL)
        rpc_die("no memory for a payload");
    memset(client->source, 1, bare->payload_bytes);
    return client;
}

static void make_trip(void *context)
{
    struct client *client = context;
    uint8_t reply[RPC_BARE_HEADER_BYTES];
    memcpy(client->frame + RPC_BARE_HEADER_BYTES, client->source, client->payload_bytes);
    if (!write_all(client->fd, client->frame, RPC_BARE_HEADER_BYTES + client->payload_bytes) ||
        !read_all(client->fd, reply, sizeof reply))
        rpc_die("the bare connection broke");
}

static void close_client(void *context)
{
    struct client *client = context;
    free(client->source);
    free(client->frame);
    free(client);
}

struct rpc_way rpc_bare_way(struct rpc_bare *bare)
{
    return (struct rpc_way){open_client, make_trip, close_client, bare};
}
