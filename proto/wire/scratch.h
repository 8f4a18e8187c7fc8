// SPDX-License-Identifier: Apache-2.0
// The inside of struct inf_scratch (message.h): a bump allocator with two budgets, one for what is
// unpacked and one behind it for what is being packed. Private to proto/wire.
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
    uint8_t *base; // INF_SCRATCH_BYTES, aligned to 16
    size_t used;
    size_t limit;   // what `used` may reach now
    size_t decoded; // `used` behind what was decoded last
    bool exhausted; // an allocation failed since the last begin
    ProtobufCAllocator allocator;
};

// Forgets what was decoded and opens the budget of decoding.
void inf_scratch_begin_decode(struct inf_scratch *scratch);

// Opens the budget of encoding, behind what was decoded, which stays.
void inf_scratch_begin_encode(struct inf_scratch *scratch);

// Forgets what was allocated since inf_scratch_begin_encode().
void inf_scratch_end_encode(struct inf_scratch *scratch);

// `size` bytes, zeroed and aligned to 16; NULL where the budget is spent.
void *inf_scratch_alloc(struct inf_scratch *scratch, size_t size);

// `count` zeroed elements of `size` bytes, not NULL even for none; NULL, and *err filled, where the
// budget is spent.
void *inf_scratch_array(struct inf_scratch *scratch, size_t count, size_t size,
                        struct inf_error *err);

// Fails because the budget is spent.
enum inf_code inf_scratch_fail(struct inf_error *err);

#endif
