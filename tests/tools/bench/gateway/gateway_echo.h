// SPDX-License-Identifier: Apache-2.0
// The minimum cost of an HTTP server: libevent's evhttp, and a loop around libnghttp2, which read a
// request and answer a constant. Each runs in a process of its own.
#ifndef INF_TESTS_TOOLS_BENCH_GATEWAY_ECHO_H
#define INF_TESTS_TOOLS_BENCH_GATEWAY_ECHO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Forks a server that accepts connections on the listening socket `fd` and answers each request
// with `answer_size` bytes: over HTTP/1.1, or, if `http2` is true, over HTTP/2 with the trailer
// fields of gRPC. The calling process must have one thread. Returns the server's process id.
pid_t gateway_echo_start(int fd, bool http2, size_t answer_size);

#endif
