// SPDX-License-Identifier: Apache-2.0
// Builds protobuf bytes without protobuf-c and without the encoder under test.
#ifndef INF_TESTS_SUPPORT_WIRE_WIRE_BYTES_H
#define INF_TESTS_SUPPORT_WIRE_WIRE_BYTES_H

#include <assert.h>
#include <string.h>

#include "proto/core/span.h"

struct wire_bytes {
    size_t size;
    uint8_t data[1 << 17];
};

static inline void wire_raw(struct wire_bytes *bytes, const void *data, size_t size)
{
    assert(size <= sizeof bytes->data - bytes->size);
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
}

static inline void wire_byte(struct wire_bytes *bytes, uint8_t byte)
{
    wire_raw(bytes, &byte, 1);
}

static inline void wire_varint(struct wire_bytes *bytes, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        wire_byte(bytes, (uint8_t)(value | 0x80));
    wire_byte(bytes, (uint8_t)value);
}

// Appends a protobuf field with a varint.
static inline void wire_number(struct wire_bytes *bytes, uint32_t field, uint64_t value)
{
    wire_varint(bytes, (uint64_t)field << 3);
    wire_varint(bytes, value);
}

// Appends a length-delimited protobuf field, such as bytes or a sub-message.
static inline void wire_block(struct wire_bytes *bytes, uint32_t field, const void *data,
                              size_t size)
{
    wire_varint(bytes, (uint64_t)field << 3 | 2);
    wire_varint(bytes, size);
    wire_raw(bytes, data, size);
}

static inline void wire_text(struct wire_bytes *bytes, uint32_t field, const char *text)
{
    wire_block(bytes, field, text, strlen(text));
}

static inline void wire_message(struct wire_bytes *bytes, uint32_t field,
                                const struct wire_bytes *message)
{
    wire_block(bytes, field, message->data, message->size);
}

// Appends the same bytes `count` times.
static inline void wire_repeat(struct wire_bytes *bytes, const void *data, size_t size,
                               size_t count)
{
    for (size_t i = 0; i < count; i++)
        wire_raw(bytes, data, size);
}

static inline struct inf_span wire_span(const struct wire_bytes *bytes)
{
    return (struct inf_span){bytes->data, bytes->size};
}

#endif
