// SPDX-License-Identifier: Apache-2.0
// Drives the connections of a pool with epoll, and keeps the time of each request.
#include "tests/tools/bench/gateway/gateway_pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/tools/bench/gateway/gateway_peer.h"

#define EVENTS_MAX 64

struct gateway_pool {
    struct gateway_load load;
    const struct peer_protocol *protocol;
    int epoll;
    struct peer *peers;
    // Responses are measured from begin_ns on. No request begins after end_ns.
    uint64_t begin_ns, end_ns;
    size_t in_flight, body_size;
    float *samples; // times of requests in microseconds
    size_t count, capacity;
    size_t in_time; // number of responses that arrived from begin_ns to end_ns
};

const struct gateway_load *peer_load(const struct peer *peer)
{
    return &peer->pool->load;
}

static void write_output(struct peer *peer)
{
    bool grpc = peer->pool->load.grpc;
    while (grpc ? peer->output_size > 0 : peer->left > 0) {
        const uint8_t *bytes = grpc ? peer->output : peer->source;
        size_t size = grpc ? peer->output_size : peer->left;
        ssize_t sent = send(peer->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0)
            rpc_die("cannot send: %s", strerror(errno));
        if (grpc) {
            peer->output_size -= (size_t)sent;
            memmove(peer->output, peer->output + sent, peer->output_size);
        } else {
            peer->source += sent;
            peer->left -= (size_t)sent;
        }
    }
    bool waits = grpc ? peer->output_size > 0 : peer->left > 0;
    if (waits == peer->waits_for_room)
        return;
    peer->waits_for_room = waits;
    struct epoll_event event = {.events = EPOLLIN | (waits ? EPOLLOUT : 0), .data.ptr = peer};
    epoll_ctl(peer->pool->epoll, EPOLL_CTL_MOD, peer->fd, &event);
}

static void start_request(struct peer *peer, struct peer_stream *stream, uint64_t now_ns)
{
    stream->active = true;
    stream->start_ns = now_ns;
    peer->pool->in_flight++;
    peer->pool->protocol->start(peer, stream);
}

static void keep_sample(struct gateway_pool *pool, uint64_t ns)
{
    if (pool->count == pool->capacity) {
        pool->capacity = pool->capacity == 0 ? 65536 : pool->capacity * 2;
        pool->samples = realloc(pool->samples, pool->capacity * sizeof *pool->samples);
        if (pool->samples == NULL)
            rpc_die("no memory for samples");
    }
    pool->samples[pool->count++] = (float)ns / 1000.0f;
}

void peer_complete(struct peer *peer, struct peer_stream *stream)
{
    struct gateway_pool *pool = peer->pool;
    uint64_t now_ns = rpc_now_ns();
    stream->active = false;
    pool->in_flight--;
    pool->body_size = stream->body_size;
    if (now_ns >= pool->begin_ns)
        keep_sample(pool, now_ns - stream->start_ns);
    pool->in_time += now_ns >= pool->begin_ns && now_ns < pool->end_ns;
    if (now_ns < pool->end_ns)
        start_request(peer, stream, now_ns);
}

static void read_input(struct peer *peer)
{
    ssize_t got = recv(peer->fd, peer->input + peer->input_size,
                       PEER_INPUT_BYTES - 1 - peer->input_size, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        rpc_die("the server closed a connection");
    peer->input_size += (size_t)got;
    peer->pool->protocol->parse(peer);
}

// Handles events until no request is in flight.
static void finish_requests(struct gateway_pool *pool)
{
    struct epoll_event events[EVENTS_MAX];
    while (pool->in_flight > 0) {
        int count = epoll_wait(pool->epoll, events, EVENTS_MAX, 10000);
        if (count == 0)
            rpc_die("no response in 10 s");
        for (int i = 0; i < count; i++) {
            struct peer *peer = events[i].data.ptr;
            if ((events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
                read_input(peer);
            write_output(peer);
        }
    }
}

static void connect_peer(struct gateway_pool *pool, struct peer *peer)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_port = htons(pool->load.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    peer->pool = pool;
    peer->input = malloc(PEER_INPUT_BYTES);
    peer->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer->input == NULL || peer->fd < 0 ||
        connect(peer->fd, (struct sockaddr *)&name, sizeof name) != 0)
        rpc_die("cannot connect to port %u: %s", pool->load.port, strerror(errno));
    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    if (epoll_ctl(pool->epoll, EPOLL_CTL_ADD, peer->fd, &event) != 0)
        rpc_die("cannot wait for a connection: %s", strerror(errno));
    pool->protocol->open(peer);
}

struct gateway_pool *gateway_pool_open(const struct gateway_load *load)
{
    struct gateway_pool *pool = calloc(1, sizeof *pool);
    struct peer *peers = calloc(load->connections, sizeof *peers);
    if (pool == NULL || peers == NULL || load->depth < 1 || load->depth > GATEWAY_DEPTH_MAX)
        rpc_die("cannot make %u connections with %u requests each", load->connections, load->depth);
    pool->load = *load;
    pool->peers = peers;
    pool->protocol = load->grpc ? &peer_grpc : &peer_http1;
    pool->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < load->connections; i++) {
        connect_peer(pool, &peers[i]);
        start_request(&peers[i], &peers[i].streams[0], rpc_now_ns());
        write_output(&peers[i]);
    }
    finish_requests(pool);
    return pool;
}

size_t gateway_pool_body_size(const struct gateway_pool *pool)
{
    return pool->body_size;
}

static int compare_samples(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

struct rpc_times gateway_pool_run(struct gateway_pool *pool, unsigned ms)
{
    uint64_t now_ns = rpc_now_ns();
    pool->count = pool->in_time = 0;
    pool->begin_ns = now_ns + (uint64_t)ms * 100000;
    pool->end_ns = pool->begin_ns + (uint64_t)ms * 1000000;
    for (unsigned i = 0; i < pool->load.connections; i++) {
        for (unsigned j = 0; j < pool->load.depth; j++)
            start_request(&pool->peers[i], &pool->peers[i].streams[j], now_ns);
        write_output(&pool->peers[i]);
    }
    finish_requests(pool);
    if (pool->count == 0)
        rpc_die("no request ended in %u ms", ms);
    qsort(pool->samples, pool->count, sizeof *pool->samples, compare_samples);
    return (struct rpc_times){pool->in_time, (double)pool->samples[pool->count / 2],
                              (double)pool->samples[pool->count * 99 / 100],
                              (double)pool->samples[pool->count - 1]};
}

void gateway_pool_close(struct gateway_pool *pool)
{
    for (unsigned i = 0; i < pool->load.connections; i++) {
        close(pool->peers[i].fd);
        free(pool->peers[i].input);
        free(pool->peers[i].output);
    }
    close(pool->epoll);
    free(pool->peers);
    free(pool->samples);
    free(pool);
}
