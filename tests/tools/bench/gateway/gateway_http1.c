// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 for the clients of bench_gateway. Responses must be 200 with a Content-Length.
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/tools/bench/gateway/gateway_peer.h"

static void open_peer(struct peer *peer)
{
    (void)peer;
}

static void start_request(struct peer *peer, struct peer_stream *stream)
{
    (void)stream;
    peer->source = peer_load(peer)->request;
    peer->left = peer_load(peer)->request_size;
}

// Returns the value of Content-Length of a head, which ends with an empty line.
static size_t find_length(const char *head)
{
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, "content-length:", 15) == 0)
            return (size_t)strtoul(line + 17, NULL, 10);
    rpc_die("a response has no Content-Length");
}

static void parse_input(struct peer *peer)
{
    struct peer_stream *stream = &peer->streams[0];
    peer->input[peer->input_size] = '\0';
    char *text = (char *)peer->input;
    char *end = strstr(text, "\r\n\r\n");
    if (end == NULL)
        return;
    if (strncmp(text, "HTTP/1.1 200", 12) != 0)
        rpc_die("a request failed: %.300s", text);
    end[2] = '\0';
    size_t size = find_length(text), head_size = (size_t)(end - text) + 4;
    end[2] = '\r';
    if (head_size + size >= PEER_INPUT_BYTES)
        rpc_die("a response has %zu bytes, which is too large", size);
    if (peer->input_size < head_size + size)
        return;
    peer->input_size = 0;
    stream->body_size = size;
    peer_complete(peer, stream);
}

const struct peer_protocol peer_http1 = {open_peer, start_request, parse_input};
