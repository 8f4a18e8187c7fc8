// SPDX-License-Identifier: Apache-2.0
// The minimum cost of a request over a Unix socket: two processes, one blocking thread per
// connection. A request is a 64-byte header and the payload, and the answer is 64 bytes. The server
// reads the payload once, as an inference would.
#ifndef INF_TESTS_TOOLS_BENCH_RPC_BARE_H
#define INF_TESTS_TOOLS_BENCH_RPC_BARE_H

#include <stddef.h>
#include <sys/types.h>

#include "tests/tools/bench/rpc_samples.h"

#define RPC_BARE_HEADER_BYTES 64u

struct rpc_bare {
    size_t payload_bytes;
    unsigned clients;
    int (*pairs)[2]; // socket pairs; [1] is the client's
    pid_t server;
};

// Forks the server. The calling process must have one thread.
void rpc_bare_start(struct rpc_bare *bare, size_t payload_bytes, unsigned clients);

// As rpc_bare_start(), with another server: `serve` runs in the forked process and gets the first
// socket of each pair.
void rpc_bare_start_with(struct rpc_bare *bare, size_t payload_bytes, unsigned clients,
                         void (*serve)(const struct rpc_bare *bare));

// Stops the server.
void rpc_bare_stop(struct rpc_bare *bare);

// Returns the functions with which rpc_samples.h measures the server.
struct rpc_way rpc_bare_way(struct rpc_bare *bare);

#endif
