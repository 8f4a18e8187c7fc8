// SPDX-License-Identifier: Apache-2.0
// Spans of bytes, and functions for arithmetic on sizes from outside, which must not use plain
// operators.
#ifndef INF_PROTO_CORE_SPAN_H
#define INF_PROTO_CORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/attributes.h"

// A reference to bytes that belong to another object. `data` may be NULL if `size` is 0.
struct inf_span {
    const uint8_t *data;
    size_t size;
};

// Sets *product to a * b. Returns false, and leaves *product unchanged, if the result does not fit.
static inline INF_NODISCARD bool inf_size_mul(size_t a, size_t b, size_t *product)
{
    size_t result;
    if (__builtin_mul_overflow(a, b, &result))
        return false;
    *product = result;
    return true;
}

// Sets *sum to a + b. Returns false, and leaves *sum unchanged, if the result does not fit.
static inline INF_NODISCARD bool inf_size_add(size_t a, size_t b, size_t *sum)
{
    size_t result;
    if (__builtin_add_overflow(a, b, &result))
        return false;
    *sum = result;
    return true;
}

// Returns whether [offset, offset + length) is inside [0, size). No intermediate result can
// overflow.
static inline bool inf_range_ok(uint64_t offset, uint64_t length, uint64_t size)
{
    return length <= size && offset <= size - length;
}

// Returns `size` rounded up to a multiple of `alignment`, a power of two. The result must fit
// size_t.
static inline size_t inf_size_align(size_t size, size_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}

#endif
