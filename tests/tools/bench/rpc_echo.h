// SPDX-License-Identifier: Apache-2.0
// The minimum cost of a server with the threads of the daemon: a libevent loop that reads the
// request, a worker that gets it through a locked queue and reads each word of it once, and an
// eventfd that returns the answer to the loop, which writes it. 64 bytes of header each way, no
// protocol.
#ifndef INF_TESTS_TOOLS_BENCH_RPC_ECHO_H
#define INF_TESTS_TOOLS_BENCH_RPC_ECHO_H

#include "tests/tools/bench/rpc_bare.h"

// As rpc_bare_start(), with such a server. rpc_bare_stop() and rpc_bare_way() work with it.
void rpc_echo_start(struct rpc_bare *bare, size_t payload_bytes, unsigned clients);

#endif
