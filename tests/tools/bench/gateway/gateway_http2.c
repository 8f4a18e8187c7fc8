// SPDX-License-Identifier: Apache-2.0
// gRPC over HTTP/2 for the clients of bench_gateway.
//
// A client that costs much processor time would hide the cost of the server, so frames are written
// by hand. The first request of a connection adds its header fields to the server's table; each
// later one has six bytes of header fields. Responses are not decoded: a call has succeeded if its
// stream ends and had a message, because a failed call has only header fields.
#include <stdlib.h>
#include <string.h>

#include "tests/tools/bench/gateway/gateway_peer.h"

#define FRAME_BYTES     9u
#define FRAME_DATA_MAX  16384u
#define WINDOW_MAX      0x7fffffffu
#define WINDOW_DEFAULT  65535
#define FLAG_END_STREAM 0x1u
#define FLAG_ACK        0x1u
#define FLAG_END_HEAD   0x4u

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8
};

// The header fields of the first request of a connection, encoded by HPACK. Each text has its
// length in front of it. A byte from 0x40 to 0x5f begins a field that the server adds to its table.
static const char first_fields[] =
    "\x83\x86"
    "\x44\x2a/inference.GRPCInferenceService/ModelInfer"
    "\x41\x09localhost"
    "\x5f\x10"
    "application/grpc"
    "\x40\x02te\x08trailers";
// The header fields of later requests, as their numbers in the server's HPACK table.
static const char later_fields[] = "\x83\x86\xc1\xc0\xbf\xbe";

static void add_bytes(struct peer *peer, const void *bytes, size_t size)
{
    if (peer->output_size + size > peer->output_capacity) {
        peer->output_capacity = (peer->output_size + size) * 2;
        peer->output = realloc(peer->output, peer->output_capacity);
        if (peer->output == NULL)
            rpc_die("no memory for a request");
    }
    memcpy(peer->output + peer->output_size, bytes, size);
    peer->output_size += size;
}

static void add_frame(struct peer *peer, enum frame_type type, unsigned flags, uint32_t id,
                      const void *bytes, size_t size)
{
    const uint8_t header[FRAME_BYTES] = {
        (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size,
        (uint8_t)type,         (uint8_t)flags,       (uint8_t)(id >> 24),
        (uint8_t)(id >> 16),   (uint8_t)(id >> 8),   (uint8_t)id};
    add_bytes(peer, header, sizeof header);
    add_bytes(peer, bytes, size);
}

static uint32_t read_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void open_peer(struct peer *peer)
{
    // INITIAL_WINDOW_SIZE = 2^31 - 1
    static const uint8_t window[] = {0, 4, 0x7f, 0xff, 0xff, 0xff};
    static const uint8_t more[] = {0x7f, 0xfe, 0, 0}; // added to the window of the connection
    add_bytes(peer, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    add_frame(peer, FRAME_SETTINGS, 0, 0, window, sizeof window);
    add_frame(peer, FRAME_WINDOW_UPDATE, 0, 0, more, sizeof more);
    peer->next_id = 1;
    peer->window = peer->initial_window = WINDOW_DEFAULT;
}

// Adds as many DATA frames of the stream's request to the output as the windows of the stream and
// of the connection allow.
static void add_message(struct peer *peer, struct peer_stream *stream)
{
    const struct gateway_load *load = peer_load(peer);
    while (stream->active && stream->sent < load->request_size) {
        size_t size = load->request_size - stream->sent;
        int64_t window = stream->window < peer->window ? stream->window : peer->window;
        if (window <= 0)
            return;
        if (size > FRAME_DATA_MAX)
            size = FRAME_DATA_MAX;
        if (size > (size_t)window)
            size = (size_t)window;
        bool last = stream->sent + size == load->request_size;
        add_frame(peer, FRAME_DATA, last ? FLAG_END_STREAM : 0, stream->id,
                  load->request + stream->sent, size);
        stream->sent += size;
        stream->window -= (int64_t)size;
        peer->window -= (int64_t)size;
    }
}

static void start_request(struct peer *peer, struct peer_stream *stream)
{
    stream->id = peer->next_id;
    stream->sent = stream->body_size = 0;
    stream->window = peer->initial_window;
    peer->next_id += 2;
    if (peer->has_table)
        add_frame(peer, FRAME_HEADERS, FLAG_END_HEAD, stream->id, later_fields,
                  sizeof later_fields - 1);
    else
        add_frame(peer, FRAME_HEADERS, FLAG_END_HEAD, stream->id, first_fields,
                  sizeof first_fields - 1);
    peer->has_table = true;
    add_message(peer, stream);
}

static struct peer_stream *find_stream(struct peer *peer, uint32_t id)
{
    for (unsigned i = 0; i < peer_load(peer)->depth; i++)
        if (peer->streams[i].active && peer->streams[i].id == id)
            return &peer->streams[i];
    return NULL;
}

static void take_settings(struct peer *peer, const uint8_t *bytes, size_t size)
{
    for (; size >= 6; bytes += 6, size -= 6) {
        if (bytes[0] != 0 || bytes[1] != 4)
            continue;
        int64_t change = (int64_t)read_number(bytes + 2) - peer->initial_window;
        peer->initial_window += change;
        for (unsigned i = 0; i < peer_load(peer)->depth; i++)
            peer->streams[i].window += change;
    }
    add_frame(peer, FRAME_SETTINGS, FLAG_ACK, 0, "", 0);
}

static void handle_frame(struct peer *peer, const uint8_t *frame, size_t size)
{
    uint32_t id = read_number(frame + 5) & WINDOW_MAX;
    unsigned flags = frame[4];
    struct peer_stream *stream = find_stream(peer, id);
    switch (frame[3]) {
    case FRAME_SETTINGS:
        if ((flags & FLAG_ACK) == 0)
            take_settings(peer, frame + FRAME_BYTES, size);
        break;
    case FRAME_PING:
        if ((flags & FLAG_ACK) == 0)
            add_frame(peer, FRAME_PING, FLAG_ACK, 0, frame + FRAME_BYTES, size);
        break;
    case FRAME_WINDOW_UPDATE:
        if (id == 0)
            peer->window += read_number(frame + FRAME_BYTES) & WINDOW_MAX;
        else if (stream != NULL)
            stream->window += read_number(frame + FRAME_BYTES) & WINDOW_MAX;
        break;
    case FRAME_RST_STREAM:
    case FRAME_GOAWAY:
        rpc_die("the server ends a stream or the connection (frame %d)", frame[3]);
    case FRAME_DATA:
        if (stream != NULL)
            stream->body_size += size;
        break;
    }
    if (frame[3] > FRAME_HEADERS || (flags & FLAG_END_STREAM) == 0 || stream == NULL)
        return;
    if (stream->body_size == 0)
        rpc_die("a call failed");
    peer_complete(peer, stream);
}

static void parse_input(struct peer *peer)
{
    size_t at = 0;
    while (peer->input_size - at >= FRAME_BYTES) {
        const uint8_t *frame = peer->input + at;
        size_t size = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];
        if (peer->input_size - at < FRAME_BYTES + size)
            break;
        handle_frame(peer, frame, size);
        at += FRAME_BYTES + size;
    }
    memmove(peer->input, peer->input + at, peer->input_size - at);
    peer->input_size -= at;
    for (unsigned i = 0; i < peer_load(peer)->depth; i++)
        add_message(peer, &peer->streams[i]);
}

const struct peer_protocol peer_grpc = {open_peer, start_request, parse_input};
