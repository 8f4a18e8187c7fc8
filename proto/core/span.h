// SPDX-License-Identifier: Apache-2.0
// Views of bytes, and the only arithmetic allowed on sizes that come from outside.
#ifndef INF_PROTO_CORE_SPAN_H
#define INF_PROTO_CORE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/attributes.h"

// Bytes that somebody else owns. `data` may be NULL when `size` is 0.
struct inf_span {
    const uint8_t *data;
    size_t size;
};

// *product = a * b; false, and *product untouched, where that does not fit.
static inline INF_NODISCARD bool inf_size_mul(size_t a, size_t b, size_t *product)
{
    size_t result;
    if (__builtin_mul_overflow(a, b, &result))
        return false;
    *product = result;
    return true;
}

// *sum = a + b; false, and *sum untouched, where that does not fit.
static inline INF_NODISCARD bool inf_size_add(size_t a, size_t b, size_t *sum)
{
    size_t result;
    if (__builtin_add_overflow(a, b, &result))
        return false;
    *sum = result;
    return true;
}

// Whether [offset, offset + length) lies inside [0, size). Written so that nothing can wrap.
static inline bool inf_range_ok(uint64_t offset, uint64_t length, uint64_t size)
{
    return length <= size && offset <= size - length;
}

// `size` rounded up to a multiple of `alignment`, a power of two; the caller knows that it fits.
static inline size_t inf_size_align(size_t size, size_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}

#endif
