// SPDX-License-Identifier: Apache-2.0
// Protobuf's wire format, read in place: a cursor over the fields of one message. Nothing is
// copied, and no function recurses. The caller interprets the fields.
#ifndef INF_BACKENDS_IMPORT_ONNX_PROTOBUF_H
#define INF_BACKENDS_IMPORT_ONNX_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/span.h"
#include "proto/core/status.h"

// The wire types of protobuf: how the value of a field is encoded.
enum inf_pb_type {
    INF_PB_VARINT = 0,
    INF_PB_FIXED64 = 1,
    INF_PB_BYTES = 2,
    INF_PB_FIXED32 = 5,
};

// One field of a protobuf message: its number, type and value.
struct inf_pb_field {
    uint32_t number;
    enum inf_pb_type type;
    uint64_t value;        // value of a number: the bits as stored
    struct inf_span bytes; // contents of an INF_PB_BYTES field
};

// A cursor: the bytes of a message that have not been read.
struct inf_pb {
    struct inf_span left;
};

// Reads the next field. At the end of the message *more is false and *field is undefined.
//
// INF_INVALID  an unterminated varint, a length beyond the message, field 0, or a group.
enum inf_code inf_pb_next(struct inf_pb *pb, struct inf_pb_field *field, bool *more,
                          struct inf_error *err) INF_NODISCARD;

// Removes one varint from the front of `bytes`. Returns false if the varint is unterminated or has
// more than 64 bits.
bool inf_pb_varint(struct inf_span *bytes, uint64_t *value) INF_NODISCARD;

// The deepest nesting of messages that inf_pb_check() accepts.
#define INF_PB_DEPTH_MAX 64

// A field whose bytes are a message. A schema is a table of these rows and ends with a row with
// field 0. The caller numbers the kinds of messages; numbers must be below 32.
struct inf_pb_child {
    uint8_t message; // kind of message that has the field
    uint8_t child;   // kind of message that the field is
    uint16_t field;
    // If false, a second occurrence is refused, because merging the occurrences would take
    // quadratic time.
    bool repeated;
    const char *name;
};

// Checks a whole message of kind `message` without recursion. Every field of every nested message
// must be well-formed, messages may nest at most INF_PB_DEPTH_MAX deep, and there may be at most
// `fields_max` fields.
//
// INF_INVALID    as inf_pb_next(), or a field of the schema that is not a message or occurs twice.
// INF_EXHAUSTED  nested too deep, or too many fields.
enum inf_code inf_pb_check(struct inf_span bytes, const struct inf_pb_child *schema,
                           uint8_t message, uint64_t fields_max,
                           struct inf_error *err) INF_NODISCARD;

#endif
