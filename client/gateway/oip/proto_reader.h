// SPDX-License-Identifier: Apache-2.0
// Reads the fields of a protobuf message one by one.
#ifndef INF_GATEWAY_OIP_PROTO_READER_H
#define INF_GATEWAY_OIP_PROTO_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/core/span.h"

enum inf_proto_wire {
    INF_PROTO_VARINT = 0,
    INF_PROTO_FIXED64 = 1,
    INF_PROTO_BYTES = 2,
    INF_PROTO_FIXED32 = 5,
};

// One field. `value` is the number if the wire type is VARINT, FIXED32 or FIXED64. `bytes` refers
// to the contents if the wire type is BYTES.
struct inf_proto_field {
    uint32_t number;
    enum inf_proto_wire wire;
    uint64_t value;
    struct inf_span bytes;
};

// Removes the next field from the start of *message and stores it in *field. Returns 1, or 0 at the
// end of the message, or -1 if the bytes are no valid field.
int inf_proto_read_field(struct inf_span *message, struct inf_proto_field *field);

// Removes a varint from the start of *bytes. Returns false if *bytes does not begin with a valid
// varint.
bool inf_proto_read_varint(struct inf_span *bytes, uint64_t *value);

#endif
