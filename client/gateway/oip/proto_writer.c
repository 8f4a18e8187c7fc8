// SPDX-License-Identifier: Apache-2.0
// The parts of protobuf's encoding that responses need.
#include "client/gateway/oip/proto_writer.h"

void inf_proto_write_varint(FILE *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        fputc((int)(value & 0x7f) | 0x80, out);
    fputc((int)value, out);
}

void inf_proto_write_head(FILE *out, unsigned field, size_t size)
{
    inf_proto_write_varint(out, field << 3 | 2);
    inf_proto_write_varint(out, size);
}

void inf_proto_write_bytes(FILE *out, unsigned field, const void *data, size_t size)
{
    inf_proto_write_head(out, field, size);
    fwrite(data, 1, size, out);
}
