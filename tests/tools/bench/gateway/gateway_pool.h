// SPDX-License-Identifier: Apache-2.0
// Load for bench_gateway: connections over TCP that repeat one request, driven by one thread with
// epoll. A failure, or a response that is not a success, exits the program.
#ifndef INF_TESTS_TOOLS_BENCH_GATEWAY_POOL_H
#define INF_TESTS_TOOLS_BENCH_GATEWAY_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/tools/bench/rpc_samples.h"

// Maximum number of requests in flight on one connection.
#define GATEWAY_DEPTH_MAX 64u

struct gateway_pool;

struct gateway_load {
    uint16_t port; // TCP port of the server on 127.0.0.1
    bool grpc;     // true: gRPC over HTTP/2; false: HTTP/1.1
    // HTTP/1.1: the whole request. gRPC: the message with its prefix of 5 bytes. The bytes must
    // stay valid until the pool is closed.
    const uint8_t *request;
    size_t request_size;
    unsigned connections;
    unsigned depth; // number of requests in flight on each connection; must be 1 for HTTP/1.1
};

// Opens the connections. Each makes one request and waits for the response.
struct gateway_pool *gateway_pool_open(const struct gateway_load *load);

// Returns the size of the body of the last response.
size_t gateway_pool_body_size(const struct gateway_pool *pool);

// Makes requests for `ms` milliseconds after a warm-up of a tenth of that.
struct rpc_times gateway_pool_run(struct gateway_pool *pool, unsigned ms);

// Closes the connections and frees the pool.
void gateway_pool_close(struct gateway_pool *pool);

#endif
