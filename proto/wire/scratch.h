// SPDX-License-Identifier: Apache-2.0
// The definition of struct inf_scratch (message.h): a bump allocator with a limit for decoding and
// another one for encoding. Private to proto/wire.
#ifndef INF_PROTO_WIRE_SCRATCH_H
#define INF_PROTO_WIRE_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/core/limits.h"
#include "proto/core/status.h"

#define INF_SCRATCH_DECODE_BYTES ((size_t)INF_LIMIT_META_UNPACK_BYTES)
#define INF_SCRATCH_BYTES        (2 * INF_SCRATCH_DECODE_BYTES)

struct inf_scratch {
    uint8_t *base; // the memory: INF_SCRATCH_BYTES bytes, aligned to 16
    size_t used;
    // the largest allowed value of `used`, which differs between decoding and encoding
    size_t limit;
    size_t decoded; // offset of the end of the message that was decoded last
    bool exhausted; // an allocation failed since the last inf_scratch_begin_*()
    ProtobufCAllocator allocator;
};

// Frees all objects and begins to decode a message.
void inf_scratch_begin_decode(struct inf_scratch *scratch);

// Begins to encode a message. The message that was decoded last stays valid.
void inf_scratch_begin_encode(struct inf_scratch *scratch);

// Frees all objects that were allocated since inf_scratch_begin_encode().
void inf_scratch_end_encode(struct inf_scratch *scratch);

// Returns `size` zeroed bytes, aligned to 16, or NULL if the memory is exhausted.
void *inf_scratch_alloc(struct inf_scratch *scratch, size_t size);

// Returns `count` zeroed elements of `size` bytes, not NULL even if `count` is 0. Returns NULL and
// fills *err if the memory is exhausted.
void *inf_scratch_array(struct inf_scratch *scratch, size_t count, size_t size,
                        struct inf_error *err);

// Fills *err with the error that the scratch has no memory left. Returns the code.
enum inf_code inf_scratch_fail(struct inf_error *err);

#endif
