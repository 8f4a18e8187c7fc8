// SPDX-License-Identifier: Apache-2.0
// The minimum cost of a server with the daemon's threads. A libevent loop reads the request and
// passes it to a worker through a locked queue. The worker reads each word of the request once and
// returns the answer through an eventfd to the loop, which writes it. Requests and answers have a
// 64-byte header, but no protocol.
#ifndef INF_TESTS_TOOLS_BENCH_RPC_ECHO_H
#define INF_TESTS_TOOLS_BENCH_RPC_ECHO_H

#include "tests/tools/bench/rpc_bare.h"

// Forks this server, in the way in which rpc_bare_start() forks the bare server. Use
// rpc_bare_stop() to stop it and rpc_bare_way() to measure it.
void rpc_echo_start(struct rpc_bare *bare, size_t payload_bytes, unsigned clients);

#endif
