// SPDX-License-Identifier: Apache-2.0
// Reads protobuf without copies, allocations or recursion: a message, and a message inside it, is a
// span of the received bytes. protobuf-c would copy each tensor and allocate an object for each
// message.
#include "client/gateway/oip/proto_reader.h"

#include <string.h>

bool inf_proto_read_varint(struct inf_span *bytes, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned i = 0; i < 10 && i < bytes->size; i++) {
        uint8_t byte = bytes->data[i];
        if (i == 9 && byte > 1)
            return false;
        result |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = result;
            bytes->data += i + 1;
            bytes->size -= i + 1;
            return true;
        }
    }
    return false;
}

static bool read_fixed(struct inf_span *message, struct inf_proto_field *field, size_t size)
{
    if (message->size < size)
        return false;
    field->value = 0;
    memcpy(&field->value, message->data, size); // little-endian: low bytes first
    message->data += size;
    message->size -= size;
    return true;
}

static bool read_value(struct inf_span *message, struct inf_proto_field *field)
{
    switch (field->wire) {
    case INF_PROTO_VARINT:
        return inf_proto_read_varint(message, &field->value);
    case INF_PROTO_FIXED64:
        return read_fixed(message, field, 8);
    case INF_PROTO_FIXED32:
        return read_fixed(message, field, 4);
    case INF_PROTO_BYTES:
        if (!inf_proto_read_varint(message, &field->value) || field->value > message->size)
            return false;
        field->bytes = (struct inf_span){message->data, (size_t)field->value};
        message->data += field->bytes.size;
        message->size -= field->bytes.size;
        return true;
    }
    return false; // a group, or a number that is no wire type
}

int inf_proto_read_field(struct inf_span *message, struct inf_proto_field *field)
{
    uint64_t tag;
    if (message->size == 0)
        return 0;
    if (!inf_proto_read_varint(message, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
        return -1;
    *field = (struct inf_proto_field){.number = (uint32_t)(tag >> 3),
                                      .wire = (enum inf_proto_wire)(tag & 7)};
    return read_value(message, field) ? 1 : -1;
}
