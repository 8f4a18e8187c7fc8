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
    int (*pairs)[2]; // one pair of sockets per client; the client uses [1], the server [0]
    pid_t server;
};

// Forks the server. The calling process must have one thread.
void rpc_bare_start(struct rpc_bare *bare, size_t payload_bytes, unsigned clients);

// Starts a server in a forked process, as rpc_bare_start() does, but the process runs `serve`,
// which answers the requests on the first socket of each pair.
void rpc_bare_start_with(struct rpc_bare *bare, size_t payload_bytes, unsigned clients,
                         void (*serve)(const struct rpc_bare *bare));

// Stops the server.
void rpc_bare_stop(struct rpc_bare *bare);

// Returns the functions with which rpc_samples.h measures the server.
struct rpc_way rpc_bare_way(struct rpc_bare *bare);

#endif
