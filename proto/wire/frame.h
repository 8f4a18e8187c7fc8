// SPDX-License-Identifier: Apache-2.0
// The frame: a fixed 24-byte header, then metadata (protobuf), then data (raw tensor bytes).
// Little-endian on the wire. docs/reference/protocol.md is the specification.
//
//   u32 meta_len | u32 data_len | u64 stream_id | u8 type | u8 n_fds | u16 flags | u16 method | u16 0
#ifndef INF_PROTO_WIRE_FRAME_H
#define INF_PROTO_WIRE_FRAME_H

#include <stdint.h>

#include "proto/core/status.h"

#define INF_FRAME_HEADER_BYTES 24
#define INF_PROTOCOL_MAJOR     1
#define INF_PROTOCOL_MINOR     0

// Tensors in the data segment start at multiples of this, counted from the segment's start.
#define INF_FRAME_DATA_ALIGNMENT 64

// Wire numbers: append only.
enum inf_frame_type {
    INF_FRAME_HELLO = 1,          // client: first frame
    INF_FRAME_HELLO_ACK = 2,      // server: its answer
    INF_FRAME_REQUEST = 3,        // client: `method` on a new stream
    INF_FRAME_RESPONSE = 4,       // server: 0..n partial ones, then one with INF_FRAME_FINAL
    INF_FRAME_CANCEL = 5,         // client: the stream's answer is no longer wanted
    INF_FRAME_MEM_REGISTER = 6,   // client: one memfd with it
    INF_FRAME_MEM_REGISTERED = 7, // server: answer, by stream_id
    INF_FRAME_MEM_UNREGISTER = 8, // client
    INF_FRAME_MEM_RELEASED = 9,   // server: answer, once nothing in flight uses the region
    INF_FRAME_PING = 10,          // either
    INF_FRAME_PONG = 11,          // answer
    INF_FRAME_GOAWAY = 12,        // server: no new streams
    INF_FRAME_ERROR = 13,         // server: the connection is at fault and will be closed
    INF_FRAME_MEM_ALLOC = 14,     // client: MEM_REGISTERED comes with a memfd of the server's
    INF_FRAME_CREDIT = 15,        // server: another credit than HELLO_ACK's is in force
    INF_FRAME_DATA = 16,          // either: a piece of a request's or a reply's data, ahead of it
};

// Flags. Unknown flags are an error; unknown types without CRITICAL are skipped.
enum {
    INF_FRAME_FINAL = 1u << 0,      // last frame of the stream
    INF_FRAME_FLAG_ERROR = 1u << 1, // the metadata is a Status
    INF_FRAME_CRITICAL = 1u << 2,   // a receiver that does not know the type must fail
    INF_FRAME_FLAGS_KNOWN = 7u,
};

// Methods of REQUEST and RESPONSE. Wire numbers: append only.
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
    INF_METHOD_DEVICE_LIST = 64,
    INF_METHOD_SERVER_STATUS = 65,
    INF_METHOD_MEMORY_INFO = 66,
    INF_METHOD_SESSION_OPEN = 80,
    INF_METHOD_SESSION_CLOSE = 81,
    INF_METHOD_SERVER_LIMITS = 82,

    INF_METHOD_MODEL_PLACEMENT = 100,
    INF_METHOD_MODEL_PLACE = 101,
    INF_METHOD_ENVIRONMENT = 102,
    INF_METHOD_FLAG_SET = 103,
    INF_METHOD_MODEL_INSPECT = 104,

    INF_METHOD_MODEL_PRECOMPILE = 200,
};

struct inf_frame_header {
    uint32_t meta_bytes;
    uint32_t data_bytes;
    uint64_t stream_id;
    uint8_t type; // enum inf_frame_type, or one not known here
    uint8_t fd_count;
    uint16_t flags;
    uint16_t method; // enum inf_method, or one not known here
};

// Writes the header's 24 bytes.
void inf_frame_header_encode(const struct inf_frame_header *header,
                             uint8_t bytes[INF_FRAME_HEADER_BYTES]);

// Reads a header and checks what can be checked without knowing more: flags, the reserved field,
// the number of fds against INF_LIMIT_FRAME_FDS, and a stream id where the type needs one. Lengths
// are the assembler's to judge.
//
// INF_INVALID  (BAD_FRAME) the text names the field, its value and what was wanted.
enum inf_code inf_frame_header_decode(struct inf_frame_header *header,
                                      const uint8_t bytes[INF_FRAME_HEADER_BYTES],
                                      struct inf_error *err) INF_NODISCARD;

// "REQUEST" and so on; "?" for unknown numbers.
const char *inf_frame_type_name(uint8_t type);

// "ModelInfer" and so on, as the Open Inference Protocol spells them; "?" for unknown numbers.
const char *inf_method_name(uint16_t method);

#endif
