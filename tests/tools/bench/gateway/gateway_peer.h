// SPDX-License-Identifier: Apache-2.0
// One connection of a gateway_pool, and the two protocols that it speaks.
#ifndef INF_TESTS_TOOLS_BENCH_GATEWAY_PEER_H
#define INF_TESTS_TOOLS_BENCH_GATEWAY_PEER_H

#include "tests/tools/bench/gateway/gateway_pool.h"

#define PEER_INPUT_BYTES ((size_t)64 << 10)

// One request in flight.
struct peer_stream {
    uint32_t id; // HTTP/2: the number of the stream
    bool active;
    uint64_t start_ns;
    size_t sent;    // HTTP/2: bytes of the message that are in `output` or written
    int64_t window; // HTTP/2: bytes of the message that the server allows
    size_t body_size;
};

struct peer {
    struct gateway_pool *pool;
    int fd;
    bool waits_for_room; // epoll reports when the socket is writable
    // The next bytes to write to the socket. They are in the request of the load (HTTP/1.1) or in
    // `output` (HTTP/2).
    const uint8_t *source;
    size_t left;
    uint8_t *output; // HTTP/2 only: frames to write to the socket
    size_t output_size, output_capacity;
    uint8_t *input; // received bytes; has room for PEER_INPUT_BYTES
    size_t input_size;
    // HTTP/2 only: the id of the next stream; the windows of the connection and of a new stream.
    uint32_t next_id;
    int64_t window, initial_window;
    bool has_table; // true: the server's HPACK table has the header fields of the request
    struct peer_stream streams[GATEWAY_DEPTH_MAX];
};

// The functions of a protocol.
struct peer_protocol {
    void (*open)(struct peer *peer); // called after the connection is made
    void (*start)(struct peer *peer, struct peer_stream *stream); // begins a request
    void (*parse)(struct peer *peer); // handles the bytes in `input`, and removes them
};

extern const struct peer_protocol peer_http1;
extern const struct peer_protocol peer_grpc;

const struct gateway_load *peer_load(const struct peer *peer);

// Called by parse() when a response is complete.
void peer_complete(struct peer *peer, struct peer_stream *stream);

#endif
