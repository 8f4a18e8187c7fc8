// SPDX-License-Identifier: Apache-2.0
// A ping-pong server with a loop, a queue and a worker, like the daemon.
#include "tests/tools/bench/rpc_echo.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

// The connection of one client, which has at most one request in flight.
struct peer {
    struct echo *echo;
    struct peer *next; // next connection in the list of the worker or of the loop
    int fd;
    size_t size, got; // size of a request with its header, and bytes received so far
    uint8_t *bytes;
};

struct list {
    struct peer *first, *last;
};

struct echo {
    pthread_mutex_t mutex; // guards `waiting` and `done`
    pthread_cond_t filled;
    struct list waiting, done;
    int done_fd;
};

static void push_peer(struct list *list, struct peer *peer)
{
    peer->next = NULL;
    if (list->last != NULL)
        list->last->next = peer;
    else
        list->first = peer;
    list->last = peer;
}

static struct peer *pop_peer(struct list *list)
{
    struct peer *peer = list->first;
    if (peer == NULL)
        return NULL;
    list->first = peer->next;
    if (list->first == NULL)
        list->last = NULL;
    return peer;
}

static void *run_worker(void *context)
{
    struct echo *echo = context;
    for (;;) {
        pthread_mutex_lock(&echo->mutex);
        struct peer *peer;
        while ((peer = pop_peer(&echo->waiting)) == NULL)
            pthread_cond_wait(&echo->filled, &echo->mutex);
        pthread_mutex_unlock(&echo->mutex);
        uint64_t sum = 0;
        for (size_t i = 0; i + 8 <= peer->size; i += 8) {
            uint64_t word;
            memcpy(&word, peer->bytes + i, sizeof word);
            sum += word;
        }
        memcpy(peer->bytes, &sum, sizeof sum); // the answer begins with the sum of the payload
        pthread_mutex_lock(&echo->mutex);
        push_peer(&echo->done, peer);
        pthread_mutex_unlock(&echo->mutex);
        uint64_t one = 1;
        if (write(echo->done_fd, &one, sizeof one) < 0)
            _exit(1);
    }
    return NULL;
}

static void on_readable(int fd, short what, void *context)
{
    (void)what;
    struct peer *peer = context;
    ssize_t got = recv(fd, peer->bytes + peer->got, peer->size - peer->got, MSG_DONTWAIT);
    if (got > 0)
        peer->got += (size_t)got;
    if (peer->got < peer->size)
        return;
    peer->got = 0;
    pthread_mutex_lock(&peer->echo->mutex);
    push_peer(&peer->echo->waiting, peer);
    pthread_mutex_unlock(&peer->echo->mutex);
    pthread_cond_signal(&peer->echo->filled);
}

static void on_done(int fd, short what, void *context)
{
    (void)what;
    struct echo *echo = context;
    uint64_t count;
    if (read(fd, &count, sizeof count) < 0)
        return;
    for (;;) {
        pthread_mutex_lock(&echo->mutex);
        struct peer *peer = pop_peer(&echo->done);
        pthread_mutex_unlock(&echo->mutex);
        if (peer == NULL)
            return;
        if (send(peer->fd, peer->bytes, RPC_BARE_HEADER_BYTES, MSG_NOSIGNAL) < 0)
            _exit(1);
    }
}

static void run_server(const struct rpc_bare *bare)
{
    pthread_t thread;
    struct echo echo = {.done_fd = eventfd(0, EFD_NONBLOCK)};
    struct event_base *base = event_base_new();
    struct peer *peers = calloc(bare->clients, sizeof *peers);
    pthread_mutex_init(&echo.mutex, NULL);
    pthread_cond_init(&echo.filled, NULL);
    if (base == NULL || peers == NULL || echo.done_fd < 0 ||
        pthread_create(&thread, NULL, run_worker, &echo) != 0)
        _exit(1);
    for (unsigned i = 0; i < bare->clients; i++) {
        peers[i] = (struct peer){.echo = &echo,
                                 .fd = bare->pairs[i][0],
                                 .size = RPC_BARE_HEADER_BYTES + bare->payload_bytes};
        peers[i].bytes = malloc(peers[i].size);
        struct event *event =
            event_new(base, peers[i].fd, EV_READ | EV_PERSIST, on_readable, &peers[i]);
        if (peers[i].bytes == NULL || event == NULL || event_add(event, NULL) != 0)
            _exit(1);
    }
    struct event *event = event_new(base, echo.done_fd, EV_READ | EV_PERSIST, on_done, &echo);
    if (event == NULL || event_add(event, NULL) != 0)
        _exit(1);
    event_base_dispatch(base);
}

void rpc_echo_start(struct rpc_bare *bare, size_t payload_bytes, unsigned clients)
{
    rpc_bare_start_with(bare, payload_bytes, clients, run_server);
}
