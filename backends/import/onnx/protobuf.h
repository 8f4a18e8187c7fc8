// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, read in place: a cursor over the fields of one message. Nothing is copied
// and nothing recurses; what a field means is the caller's business.
#ifndef INF_BACKENDS_IMPORT_ONNX_PROTOBUF_H
#define INF_BACKENDS_IMPORT_ONNX_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// How a field is written.
enum inf_pb_type {
    INF_PB_VARINT = 0,
    INF_PB_FIXED64 = 1,
    INF_PB_BYTES = 2,
    INF_PB_FIXED32 = 5,
};

// One field.
struct inf_pb_field {
    uint32_t number;
    enum inf_pb_type type;
    uint64_t value;        // of numbers: the bits as written
    struct inf_span bytes; // of INF_PB_BYTES
};

// What is left of a message.
struct inf_pb {
    struct inf_span left;
};

// Reads the next field; *more is false at the end of the message, and *field then means nothing.
//
// INF_INVALID  a varint that does not end, a length beyond the message, field 0, a group.
enum inf_code inf_pb_next(struct inf_pb *pb, struct inf_pb_field *field, bool *more,
                          struct inf_error *err) INF_NODISCARD;

// Reads one varint off the front of `bytes`; false where it does not end or is above 64 bits.
bool inf_pb_varint(struct inf_span *bytes, uint64_t *value) INF_NODISCARD;

// Deepest nesting of messages that inf_pb_check() lets pass.
#define INF_PB_DEPTH_MAX 64

// A field whose bytes are a message themselves. A table of these, ended by a row with field 0, is a
// schema; messages are numbers of the caller's, below 32.
struct inf_pb_child {
    uint8_t message; // that has the field
    uint8_t child;   // the message that the field is
    uint16_t field;
    bool repeated; // else a second occurrence is refused: merging them would be quadratic
    const char *name;
};

// Walks a whole message of kind `message` without recursion: every field of every nested message is
// well-formed, nested at most INF_PB_DEPTH_MAX deep, and fields number at most `fields_max` in all.
//
// INF_INVALID    as inf_pb_next(), or a field of the schema that is no message, or there twice.
// INF_EXHAUSTED  nested too deep, or too many fields.
enum inf_code inf_pb_check(struct inf_span bytes, const struct inf_pb_child *schema,
                           uint8_t message, uint64_t fields_max,
                           struct inf_error *err) INF_NODISCARD;

#endif
