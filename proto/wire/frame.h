// SPDX-License-Identifier: Apache-2.0
// The frame: a fixed 24-byte header, then metadata (protobuf), then data (raw tensor bytes).
// Little-endian on the wire. docs/reference/protocol.md is the specification.
//
//   u32 meta_len | u32 data_len | u64 stream_id | u8 type | u8 n_fds |
//   u16 flags | u16 method | u16 0
#ifndef INF_PROTO_WIRE_FRAME_H
#define INF_PROTO_WIRE_FRAME_H

#include <stdint.h>

#include "proto/core/status.h"

#define INF_FRAME_HEADER_BYTES 24
#define INF_PROTOCOL_MAJOR     1
#define INF_PROTOCOL_MINOR     0

// Tensors in the data segment start at multiples of this number of bytes, counted from the start of
// the segment.
#define INF_FRAME_DATA_ALIGNMENT 64

// The types of frames. The numbers are sent on the wire, so types may only be appended.
enum inf_frame_type {
    INF_FRAME_HELLO = 1,     // client: the first frame of a connection
    INF_FRAME_HELLO_ACK = 2, // server: the answer to HELLO
    INF_FRAME_REQUEST = 3,   // client: calls `method` on a new stream
    // Server: any number of responses; the last one has INF_FRAME_FINAL.
    INF_FRAME_RESPONSE = 4,
    INF_FRAME_CANCEL = 5,         // client: cancels the request on the stream
    INF_FRAME_MEM_REGISTER = 6,   // client: registers the memfd that is sent with it
    INF_FRAME_MEM_REGISTERED = 7, // server: the answer to MEM_REGISTER, on the same stream_id
    INF_FRAME_MEM_UNREGISTER = 8, // client: releases a region
    // Server: the answer to MEM_UNREGISTER, sent when no request uses the region.
    INF_FRAME_MEM_RELEASED = 9,
    INF_FRAME_PING = 10, // sent by client or server; the receiver answers with PONG
    INF_FRAME_PONG = 11, // the answer to PING
    // server: takes no requests on new streams, and answers those that it has started
    INF_FRAME_GOAWAY = 12,
    INF_FRAME_ERROR = 13, // server: closes the connection because of a fault of the client
    // Client: asks the server to create a memfd. The server sends the memfd with the frame
    // MEM_REGISTERED.
    INF_FRAME_MEM_ALLOC = 14,
    INF_FRAME_CREDIT = 15, // server: replaces the credit of HELLO_ACK
    // Client or server: a part of the data of a request or reply, sent before the REQUEST or
    // RESPONSE.
    INF_FRAME_DATA = 16,
};

// Flags of a header. A frame with an unknown flag is an error. A frame of an unknown type is
// skipped, unless it has INF_FRAME_CRITICAL.
enum {
    INF_FRAME_FINAL = 1u << 0,      // last frame of the stream
    INF_FRAME_FLAG_ERROR = 1u << 1, // the metadata is a Status
    INF_FRAME_CRITICAL = 1u << 2,   // a receiver that does not know the type must disconnect
    INF_FRAME_FLAGS_KNOWN = 7u,
};

// Methods of REQUEST and RESPONSE. The numbers are sent on the wire, so methods may only be
// appended.
enum inf_method {
    INF_METHOD_NONE = 0,
    INF_METHOD_SERVER_LIVE = 1,
    INF_METHOD_SERVER_READY = 2,
    INF_METHOD_MODEL_READY = 3,
    INF_METHOD_SERVER_METADATA = 4,
    INF_METHOD_MODEL_METADATA = 5,
    INF_METHOD_MODEL_INFER = 6,
    INF_METHOD_REPOSITORY_INDEX = 16,
    INF_METHOD_REPOSITORY_MODEL_LOAD = 17,
    INF_METHOD_REPOSITORY_MODEL_UNLOAD = 18,
    INF_METHOD_REPOSITORY_RELOAD = 19,
    INF_METHOD_DEVICE_LIST = 64,
    INF_METHOD_SERVER_STATUS = 65,
    INF_METHOD_MEMORY_INFO = 66,
    INF_METHOD_METRICS = 67,
    INF_METHOD_REQUEST_LIST = 70,
    INF_METHOD_CLIENT_LIST = 71,
    INF_METHOD_REQUEST_CANCEL = 72,
    INF_METHOD_CLIENT_DISCONNECT = 73,
    INF_METHOD_REPORT = 74,
    INF_METHOD_SESSION_OPEN = 80,
    INF_METHOD_SESSION_CLOSE = 81,
    INF_METHOD_SERVER_LIMITS = 82,
    INF_METHOD_SESSION_REWIND = 83,

    INF_METHOD_MODEL_PLACEMENT = 100,
    INF_METHOD_MODEL_PLACE = 101,
    INF_METHOD_ENVIRONMENT = 102,
    INF_METHOD_FLAG_SET = 103,
    INF_METHOD_MODEL_INSPECT = 104,
    INF_METHOD_FLAG_PERSIST = 105,

    INF_METHOD_MODEL_PRECOMPILE = 200,
};

struct inf_frame_header {
    uint32_t meta_bytes;
    uint32_t data_bytes;
    uint64_t stream_id;
    uint8_t type; // enum inf_frame_type, or a type that this version does not know
    uint8_t fd_count;
    uint16_t flags;
    uint16_t method; // enum inf_method, or a method that this version does not know
};

// Writes the 24 bytes of a header.
void inf_frame_header_encode(const struct inf_frame_header *header,
                             uint8_t bytes[INF_FRAME_HEADER_BYTES]);

// Reads a header and checks everything except the lengths, which the assembler checks: flags, the
// reserved field, the number of descriptors, and the stream id if the type needs one.
//
// INF_INVALID  (BAD_FRAME) the error text names the field, its value and the expected value.
enum inf_code inf_frame_header_decode(struct inf_frame_header *header,
                                      const uint8_t bytes[INF_FRAME_HEADER_BYTES],
                                      struct inf_error *err) INF_NODISCARD;

// Returns the name of a frame type ("REQUEST"), or "?" for an unknown number.
const char *inf_frame_type_name(uint8_t type);

// Returns the name of a method as the Open Inference Protocol spells it ("ModelInfer"), or "?" for
// an unknown number.
const char *inf_method_name(uint16_t method);

#endif
