// SPDX-License-Identifier: Apache-2.0
// Writes the encoding of protobuf to a stream.
#ifndef INF_GATEWAY_OIP_PROTO_WRITER_H
#define INF_GATEWAY_OIP_PROTO_WRITER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// Writes a varint.
void inf_proto_write_varint(FILE *out, uint64_t value);

// Writes the tag and the length of a field with `size` bytes, which the caller writes next.
void inf_proto_write_head(FILE *out, unsigned field, size_t size);

// Writes a field that consists of bytes: a text, or an encoded message.
void inf_proto_write_bytes(FILE *out, unsigned field, const void *data, size_t size);

#endif
